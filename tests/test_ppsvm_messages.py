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

ROWS, COUNTS = 28, {"north": 3, "south": 2, "west": 1}
CLASSES = np.arange(ROWS) % 3
DIGEST = rows_digest(CLASSES)


def columns_of(name, part="train"):
    return seeded_stream(1, name, part).normal(size=(ROWS if part == "train" else 12, COUNTS[name]))


def agreement_of(kernel="linear", **parameters):
    return kernel_agreement({"kernel": kernel, "mbar": 4, **parameters}, COUNTS, ROWS)


def secrets_of(name, agreement):
    return draw_secrets(columns_of(name), agreement, name, seeded_stream(2, name))


def messages_of(agreement, part="train", digest=DIGEST):
    return {
        f"{name}.npz": make_block(columns_of(name, part), secrets_of(name, agreement), agreement, name, part, digest)
        for name in COUNTS
    }


@pytest.mark.parametrize(("kernel", "gamma"), [("linear", "auto"), ("gaussian", 0.2), ("gaussian", "tune")])
def test_messages_give_what_one_process_computes(kernel, gamma):
    C = "tune" if gamma == "tune" else 2.0
    agreement = agreement_of(kernel, gamma=gamma, C=C)
    assert agreement["gamma"] == (None if kernel == "linear" else gamma if gamma == 0.2 else 1 / 6)
    labels = AgreedLabels(CLASSES, 3, DIGEST)
    path = train_on_messages(messages_of(agreement), labels, agreement, C, gamma, seeded_stream(3))
    entities = {name: Entity.draw(columns_of(name), 4, seeded_stream(2, name)) for name in COUNTS}

    def kernel_of(part):
        published = agreement["gamma"] or math.nan
        blocks = {name: entity.publish(columns_of(name, part), kernel, published) for name, entity in entities.items()}
        return combine_blocks(blocks, kernel)

    public = PublicKernel(kernel, agreement["gamma"])
    model, arrays = train_on_blocks(kernel_of("train"), CLASSES, 3, public, C, gamma == "tune", seeded_stream(3))
    np.testing.assert_array_equal(path.step("power")["power"], arrays["steps"][0].arrays["power"])
    for name in ("coef", "intercept"):
        np.testing.assert_array_equal(getattr(path, name), arrays[name])
    assert path.objective == model.objective
    answers = combine_messages(messages_of(agreement, "test", None), agreement, "test")
    np.testing.assert_array_equal(answers, kernel_of("test"))
    assert path.guarantees[0].status == "none"
    assert path.fit_seconds > 0
    assert path.release_seconds == 0


def standardise(numbers):
    """Numbers in every unit at once: of mean 0 and spread 1."""
    centred = numbers - numbers.mean(axis=0)
    return centred / np.maximum(np.linalg.norm(centred, axis=0), 1e-300)


@given(st.sampled_from(["linear", "gaussian"]), st.booleans(), st.integers(0, 2**32 - 1))
def test_no_message_holds_a_column_or_a_secret(kernel, standardize, seed):
    """The trainer and the predicting party get neither a column in any unit, nor a number of the secrets."""
    agreement = agreement_of(kernel, standardize=standardize)
    for name in COUNTS:
        columns = {part: columns_of(name, part) for part in ("train", "test")}
        secrets = draw_secrets(columns["train"], agreement, name, seeded_stream(seed, name))
        private = np.concatenate([array.ravel() for array in (*columns.values(), *secrets.values())])
        private = private[(private != 0.0) & (private != 1.0)]
        for part, own in columns.items():
            message = make_block(own, secrets, agreement, name, part, DIGEST)
            assert set(message) == {"entity", part, "rows"}
            assert not np.isin(message[part], private).any()
            if COUNTS[name] > 1 or kernel == "gaussian":
                # A single column is published up to a factor (docs/ppsvm.md).
                assert np.abs(standardise(message[part]).T @ standardise(own)).max() < 1 - 1e-13


def test_agreement_holds_no_value_of_a_column():
    agreement = agreement_of("gaussian")
    assert set(agreement) == {"kernel", "gamma", "standardize", "rows", "mbar", "n_features", "entities"}
    assert agreement["mbar"] == 4
    assert kernel_agreement({"mbar": 0.1}, COUNTS, 52)["mbar"] == 5


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
    message = refusal(kernel_agreement, parameters, COUNTS, ROWS)
    assert all(word in message for word in words)


def test_an_entity_without_columns_is_refused():
    assert "south has no column" in refusal(kernel_agreement, {}, {**COUNTS, "south": 0}, ROWS)
    agreement = agreement_of()
    message = refusal(draw_secrets, np.empty((28, 0)), agreement, "south", seeded_stream(0))
    assert "south: it has 0 columns, agreed were 2" in message


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_values_that_are_not_finite_are_named(value):
    agreement = agreement_of()
    columns = columns_of("north")
    columns[7, 2] = value
    message = refusal(draw_secrets, columns, agreement, "north", seeded_stream(0))
    assert all(word in message for word in ("north", "row 7", "column 2", str(value), "fill or drop"))
    assert "row 7" in refusal(make_block, columns, secrets_of("north", agreement), agreement, "north", "test")


def test_columns_that_are_not_as_agreed():
    agreement = agreement_of()
    secrets = secrets_of("north", agreement)
    columns = columns_of("north")
    assert "2 columns, agreed were 3" in refusal(make_block, columns[:, :2], secrets, agreement, "north", "train")
    message = refusal(make_block, columns[:27], secrets, agreement, "north", "train")
    assert "27 training rows, agreed were 28" in message
    assert "not among" in refusal(make_block, columns, secrets, agreement, "east", "train")
    others = secrets_of("south", agreement)
    assert "draw them again" in refusal(make_block, columns, others, agreement, "north", "train")


def test_blocks_of_different_rows_or_mbar_name_the_entity():
    agreement = agreement_of()
    messages = messages_of(agreement)
    other = agreement_of(mbar=5)
    messages["south.npz"] = messages_of(other)["south.npz"]
    message = refusal(combine_messages, messages, agreement, "train", DIGEST)
    assert "the block of south has shape (28, 5)" in message
    messages = messages_of(agreement)
    messages["west.npz"] = {**messages["west.npz"], "train": messages["west.npz"]["train"][:20]}
    assert "the block of west has shape (20, 4)" in refusal(combine_messages, messages, agreement, "train", DIGEST)
    # All alike, and not as agreed.
    message = refusal(combine_messages, messages_of(other), agreement, "train", DIGEST)
    assert "(28, 5)" in message
    assert "agreed was (28, 4)" in message


def test_labels_that_differ_name_the_entity():
    agreement = agreement_of()
    messages = messages_of(agreement)
    relabelled = CLASSES.copy()
    relabelled[3] = (relabelled[3] + 1) % 3
    messages["south.npz"] = {**messages["south.npz"], "rows": np.array(rows_digest(relabelled))}
    message = refusal(combine_messages, messages, agreement, "train", DIGEST)
    assert "the labels, or the order of rows, of south differ from those of north, west" in message
    # Without labels of its own the reader compares the entities.
    assert "of south differ" in refusal(combine_messages, messages, agreement, "train")
    # The trainer's labels are the wrong ones.
    message = refusal(combine_messages, messages_of(agreement), agreement, "train", rows_digest(relabelled))
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
    assert "north, south, west: has published no block of the test rows" in refusal(
        combine_messages, messages, agreement, "test"
    )


def test_labels_must_fit_the_rows():
    agreement = agreement_of()
    arguments = (messages_of(agreement), AgreedLabels(CLASSES[:5], 3), agreement, 1.0, "auto", seeded_stream(3))
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
