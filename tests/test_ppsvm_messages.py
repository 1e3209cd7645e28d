"""Messages of the protocol: right ones give the result of one process, wrong ones are refused in one line."""

import math
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from messages import (
    AgreedLabels,
    combine_messages,
    draw_secrets,
    kernel_agreement,
    make_block,
    read_private,
    rows_digest,
    train_on_messages,
    write_private,
)

from privsvm.families.one_norm.ppsvm_protocol import Entity, combine_blocks
from privsvm.families.one_norm.ppsvm_training import PublicKernel, train_on_blocks
from privsvm.numerics.noise.streams import seeded_stream
from tests.refusals import refusal

ROWS, COUNTS = [30, 28], {"north": 3, "south": 2, "west": 1}
CLASSES = [np.arange(rows) % 3 for rows in ROWS]
DIGESTS = [rows_digest(codes) for codes in CLASSES]


def columns_of(name):
    rng = seeded_stream(1, name)
    return {
        f"{subset}_{split}": rng.normal(size=(rows if subset == "train" else 12, COUNTS[name]))
        for split, rows in enumerate(ROWS)
        for subset in ("train", "test")
    }


def agreement_of(kernel="linear", **parameters):
    return kernel_agreement({"kernel": kernel, "mbar": 4, **parameters}, COUNTS, ROWS, [5, 5])


def secrets_of(name, agreement):
    return draw_secrets(columns_of(name), agreement, name, lambda split: seeded_stream(2, name, split))


def messages_of(agreement, subset="train", digests=DIGESTS):
    return {
        f"{name}.npz": make_block(columns_of(name), secrets_of(name, agreement), agreement, name, subset, digests)
        for name in COUNTS
    }


@pytest.mark.parametrize(("kernel", "gamma"), [("linear", "auto"), ("gaussian", 0.2), ("gaussian", "tune")])
def test_messages_give_what_one_process_computes(kernel, gamma):
    C = "tune" if gamma == "tune" else 2.0
    agreement = agreement_of(kernel, gamma=gamma, C=C)
    assert agreement["gamma"] == (None if kernel == "linear" else gamma if gamma == 0.2 else 1 / 6)
    messages = messages_of(agreement)
    paths = train_on_messages(
        messages, AgreedLabels(CLASSES, 3, DIGESTS), agreement, C, gamma, lambda split: seeded_stream(3, split)
    )
    answers = combine_messages(messages_of(agreement, "test", None), agreement, "test")
    for split, path in enumerate(paths):
        entities = {
            name: Entity.draw(columns_of(name)[f"train_{split}"], 4, seeded_stream(2, name, split)) for name in COUNTS
        }

        def kernel_of(subset, split=split, entities=entities):
            return combine_blocks(
                {
                    name: entity.publish(columns_of(name)[f"{subset}_{split}"], kernel, agreement["gamma"] or math.nan)
                    for name, entity in entities.items()
                },
                kernel,
            )

        model, arrays = train_on_blocks(
            kernel_of("train"),
            CLASSES[split],
            3,
            PublicKernel(kernel, agreement["gamma"]),
            C,
            gamma == "tune",
            seeded_stream(3, split),
        )
        np.testing.assert_array_equal(path.step("power")["power"], arrays["steps"][0].arrays["power"])
        for name in ("coef", "intercept"):
            np.testing.assert_array_equal(getattr(path, name), arrays[name])
        assert path.objective == model.objective
        np.testing.assert_array_equal(answers[split], kernel_of("test"))
        assert path.guarantees[0].status == "none"
    assert len(paths) == 2
    assert all(path.fit_seconds > 0 and path.release_seconds == 0 for path in paths)


def standardise(numbers):
    """Numbers in every unit at once: of mean 0 and spread 1."""
    centred = numbers - numbers.mean(axis=0)
    return centred / np.maximum(np.linalg.norm(centred, axis=0), 1e-300)


@given(st.sampled_from(["linear", "gaussian"]), st.booleans(), st.integers(0, 2**32 - 1))
def test_no_message_holds_a_column_or_a_secret(kernel, standardize, seed):
    """The trainer and the predicting party get neither a column in any unit, nor a number of the secrets."""
    agreement = agreement_of(kernel, standardize=standardize)
    for name in COUNTS:
        columns = columns_of(name)
        secrets = draw_secrets(columns, agreement, name, lambda split, name=name: seeded_stream(seed, name, split))
        private = np.concatenate([array.ravel() for array in (*columns.values(), *secrets.values())])
        private = private[(private != 0.0) & (private != 1.0)]
        for subset in ("train", "test"):
            message = make_block(columns, secrets, agreement, name, subset, DIGESTS)
            assert set(message) == {"entity", *(f"{kind}_{split}" for kind in (subset, "rows") for split in (0, 1))}
            for split in (0, 1):
                block = message[f"{subset}_{split}"]
                assert not np.isin(block, private).any()
                if COUNTS[name] > 1 or kernel == "gaussian":
                    # A single column is published up to a factor (docs/ppsvm.md).
                    likeness = standardise(block).T @ standardise(columns[f"{subset}_{split}"])
                    assert np.abs(likeness).max() < 1 - 1e-9


def test_agreement_holds_no_value_of_a_column():
    agreement = agreement_of("gaussian")
    assert set(agreement) == {
        "kernel", "gamma", "standardize", "n_splits", "rows", "mbar", "n_features", "entities"
    }  # fmt: skip
    assert agreement["mbar"] == [4, 4]
    assert kernel_agreement({"mbar": 0.1}, COUNTS, [30, 52], [0, 0])["mbar"] == [3, 5]


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"mbar": 29}, ["mbar=29", "28 training rows"]),
        ({"mbar": 1.5}, ["mbar=1.5"]),
        ({"kernel": "rbf"}, ["rbf"]),
        ({"C": -1.0}, ["C=-1.0"]),
        ({"standardize": 2}, ["standardize=2"]),
    ],
)
def test_agreements_that_are_refused(parameters, words):
    message = refusal(kernel_agreement, parameters, COUNTS, ROWS, [5, 5])
    assert all(word in message for word in words)


def test_an_entity_without_columns_is_refused():
    assert "south has no column" in refusal(kernel_agreement, {}, {**COUNTS, "south": 0}, ROWS, [5, 5])
    agreement = agreement_of()
    columns = {**columns_of("south"), "train_1": np.empty((28, 0))}
    message = refusal(draw_secrets, columns, agreement, "south", lambda split: seeded_stream(0))
    assert "south, split 1" in message
    assert "no column" in message


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_values_that_are_not_finite_are_named(value):
    agreement = agreement_of()
    columns = columns_of("north")
    columns["train_1"][7, 2] = value
    message = refusal(draw_secrets, columns, agreement, "north", lambda split: seeded_stream(0))
    assert all(word in message for word in ("north", "split 1", "row 7", "column 2", str(value), "fill or drop"))
    columns = columns_of("north")
    columns["test_0"][0, 0] = value
    assert "row 0" in refusal(make_block, columns, secrets_of("north", agreement), agreement, "north", "test")


def test_columns_that_are_not_as_agreed():
    agreement = agreement_of()
    secrets = secrets_of("north", agreement)
    columns = columns_of("north")
    wrong = {**columns, "train_0": columns["train_0"][:, :2]}
    assert "2 columns, agreed were 3" in refusal(make_block, wrong, secrets, agreement, "north", "train")
    wrong = {**columns, "train_0": columns["train_0"][:29]}
    message = refusal(make_block, wrong, secrets, agreement, "north", "train")
    assert "29 training rows, agreed were 30" in message
    assert "missing" in refusal(make_block, {}, secrets, agreement, "north", "train")
    assert "not among" in refusal(make_block, columns, secrets, agreement, "east", "train")
    assert "draw them again" in refusal(
        make_block, columns, secrets_of("south", agreement), agreement, "north", "train"
    )


def test_blocks_of_different_rows_or_mbar_name_the_entity():
    agreement = agreement_of()
    messages = messages_of(agreement)
    other = agreement_of(mbar=5)
    messages["south.npz"] = make_block(
        columns_of("south"), secrets_of("south", other), other, "south", "train", DIGESTS
    )
    message = refusal(combine_messages, messages, agreement, "train", DIGESTS)
    assert "the block of south has shape (30, 5)" in message
    messages = messages_of(agreement)
    messages["west.npz"] = {**messages["west.npz"], "train_1": messages["west.npz"]["train_1"][:20]}
    assert "the block of west has shape (20, 4)" in refusal(combine_messages, messages, agreement, "train", DIGESTS)
    # All alike, and not as agreed.
    message = refusal(combine_messages, messages_of(other), agreement, "train", DIGESTS)
    assert "(30, 5)" in message
    assert "agreed was (30, 4)" in message


def test_labels_that_differ_name_the_entity():
    agreement = agreement_of()
    messages = messages_of(agreement)
    relabelled = CLASSES[1].copy()
    relabelled[3] = (relabelled[3] + 1) % 3
    messages["south.npz"] = {**messages["south.npz"], "rows_1": np.array(rows_digest(relabelled))}
    message = refusal(combine_messages, messages, agreement, "train", DIGESTS)
    assert "split 1: the labels, or the order of rows, of south differ from those of north, west" in message
    # Without labels of its own the reader compares the entities.
    assert "of south differ" in refusal(combine_messages, messages, agreement, "train")
    # The trainer's labels are the wrong ones.
    wrong = [DIGESTS[0], rows_digest(relabelled)]
    message = refusal(combine_messages, messages_of(agreement), agreement, "train", wrong)
    assert "the reader differ from those of north, south, west" in message


def test_missing_and_unknown_entities():
    agreement = agreement_of()
    messages = messages_of(agreement)
    fewer = {source: message for source, message in messages.items() if source != "west.npz"}
    assert "west: has published no block" in refusal(combine_messages, fewer, agreement, "train")
    assert "a second message of north" in refusal(
        combine_messages, {**messages, "again.npz": messages["north.npz"]}, agreement, "train"
    )
    stranger = {**messages["west.npz"], "entity": np.array("east")}
    assert "'east'" in refusal(combine_messages, {**messages, "east.npz": stranger}, agreement, "train")
    assert "no block of the test rows" in refusal(combine_messages, messages, agreement, "test")


def test_labels_must_fit_the_rows():
    agreement = agreement_of()
    short = [CLASSES[0], CLASSES[1][:5]]
    arguments = (messages_of(agreement), AgreedLabels(short, 3), agreement, 1.0, "auto", seeded_stream)
    assert "5 labels and 28 rows" in refusal(train_on_messages, *arguments)


def test_digests_depend_on_every_word_and_their_order():
    digests = {
        rows_digest(["a", "b"]), rows_digest(["b", "a"]), rows_digest(["ab", ""]), rows_digest(["a"], ["b"]),
        rows_digest(["a", "b"], [1, 2]), rows_digest(["a", "b"], [2, 1]),
    }  # fmt: skip
    assert len(digests) == 6
    assert rows_digest(np.array([1, 2])) == rows_digest(["1", "2"])


def test_private_files_are_for_their_owner_alone(tmp_path):
    path = tmp_path / "entity" / "secret.npz"
    before = os.umask(0o022)
    try:
        write_private(path, {"a": np.arange(3)})
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    np.testing.assert_array_equal(read_private(path)["a"], np.arange(3))
    path.chmod(0o640)
    message = refusal(read_private, path)
    assert str(path) in message
    assert "0640" in message
