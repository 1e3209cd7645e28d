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
                # A single linear column is published up to sign and scale (docs/ppsvm.md).
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


NOT_FINITE = columns_of("north")
NOT_FINITE[7, 2] = math.nan


@pytest.mark.parametrize(
    ("entity", "columns", "words"),
    [
        ("north", NOT_FINITE, "north: row 7 of its column 2 holds nan; fill or drop"),
        ("north", np.where(np.isnan(NOT_FINITE), -math.inf, NOT_FINITE), "row 7 of its column 2 holds -inf"),
        ("north", NOT_FINITE[:, :2], "north: it has 2 columns, agreed were 3"),
        ("south", np.empty((28, 0)), "south: it has 0 columns, agreed were 2"),
        ("north", columns_of("north")[:27], "27 training rows, agreed were 28"),
        ("east", columns_of("north"), "east: is not among"),
    ],
)
def test_columns_that_are_not_as_agreed(entity, columns, words):
    agreement = agreement_of()
    assert words in refusal(draw_secrets, columns, agreement, entity, seeded_stream(0))
    assert words in refusal(make_block, columns, secrets_of("north", agreement), agreement, entity, "train")


def test_secrets_of_other_columns_are_refused():
    agreement = agreement_of()
    message = refusal(make_block, columns_of("north"), secrets_of("south", agreement), agreement, "north", "train")
    assert "draw them again" in message


AGREEMENT = agreement_of()
RIGHT, WIDER = messages_of(AGREEMENT), messages_of(agreement_of(mbar=5))
NORTH, SOUTH, WEST = RIGHT.values()
RELABELLED = rows_digest(np.where(np.arange(ROWS) == 3, (CLASSES + 1) % 3, CLASSES))
SOUTH_DIFFERS = {"south.npz": {**SOUTH, "rows": np.array(RELABELLED)}}
OF_SOUTH = "the labels, or the order of rows, of south differ from those of north, west"


@pytest.mark.parametrize(
    ("changed", "part", "digest", "words"),
    [
        ({"south.npz": WIDER["south.npz"]}, "train", DIGEST, "the block of south has shape (28, 5)"),
        ({"west.npz": {**WEST, "train": WEST["train"][:20]}}, "train", DIGEST, "the block of west has shape (20, 4)"),
        (WIDER, "train", DIGEST, "have shape (28, 5), agreed was (28, 4)"),
        (SOUTH_DIFFERS, "train", DIGEST, OF_SOUTH),
        # Without labels of its own the reader compares the entities.
        (SOUTH_DIFFERS, "train", None, OF_SOUTH),
        # The reader's labels are the wrong ones.
        ({}, "train", RELABELLED, "of the reader differ from those of north, south, west"),
        ({"west.npz": NORTH}, "train", None, "a second message of north"),
        ({"west.npz": None}, "train", None, "west: has published no block"),
        ({"east.npz": {**WEST, "entity": np.array("east")}}, "train", None, "east.npz: is of 'east'"),
        ({}, "test", None, "north, south, west: has published no block of the test rows"),
    ],
)
def test_messages_that_do_not_belong_together(changed, part, digest, words):
    messages = {source: message for source, message in (RIGHT | changed).items() if message}
    assert words in refusal(combine_messages, messages, AGREEMENT, part, digest)


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
