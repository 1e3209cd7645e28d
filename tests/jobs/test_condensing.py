"""Condensed training rows: files of the stage, rows that methods read, attacks."""

import numpy as np
import pytest
import scipy.sparse
from prepared_wine import prepare_wine

from privsvm.errors import PrivSVMError
from privsvm.families.condensed.condensation import KINDS, condense_rows
from privsvm.files import read_npz, write_npz
from privsvm.numerics.noise.noise_source import seeded_source
from privsvm.numerics.noise.streams import seeded_stream
from privsvm_bench.datasets.prepared import PreparedData
from privsvm_bench.jobs.condensing import attack_split, condense_splits, training_rows
from privsvm_bench.jobs.job import TrainJob
from privsvm_bench.jobs.training import train_paths

PRIVACY = {"epsilons": [1.0], "repeats": 1, "delta": 1e-5, "neighbours": "replace_one"}


def job(implementation: str, condense: str = "none", **parameters):
    return TrainJob(
        condense=condense, experiment="demo", implementation=implementation, method="mine", parameters=parameters,
        **PRIVACY, seed=5,
    )  # fmt: skip


def dense(X) -> np.ndarray:
    return X.toarray() if scipy.sparse.issparse(X) else X


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_methods_read_what_the_stage_condensed(tmp_path, kind, sparse):
    prepared = prepare_wine(2, sparse)
    arrays, record, timings = condense_splits(prepared, kind, "demo", 5)
    write_npz(tmp_path / "rows.npz", arrays)
    stored = read_npz(tmp_path / "rows.npz")
    assert len(timings.condense_seconds) == len(record.splits) == 2
    assert (record.condense, record.method, record.dataset) == (kind, None, "wine")
    for number, figures in enumerate(record.splits):
        rows = prepared.split(number)
        draws = seeded_stream(5, "condense", "demo", "wine", kind, number)
        expected = condense_rows(kind, rows.X_train, rows.y_train, 3, rng=draws)
        X, y = training_rows(prepared, stored, number)
        assert scipy.sparse.issparse(X) == (sparse and kind == "ci")
        np.testing.assert_array_equal(dense(X), dense(expected.rows))
        np.testing.assert_array_equal(y, expected.codes)
        assert figures.n_rows == 140
        assert figures.n_condensed == len(y) == 47
        assert figures.size_ratio == 47 / 140
        assert figures.label_purity == np.mean(y[expected.group_of] == rows.y_train)
    if kind == "ci":
        # Two members of a group of three give away the third.
        assert record.splits[0].groups_of_three == 46
        assert record.splits[0].third_member_error < 1e-12
    else:
        assert record.splits[0].groups_of_three is record.splits[0].linkage_rate is None
        # The centres hardly move from their initial rows.
        assert record.splits[0].nearest_row < 0.2
    assert record.splits[0].other_rows == 38
    assert record.splits[0].lost_classes == 0


def test_none_passes_the_rows_on():
    prepared = prepare_wine(2)
    arrays, record, timings = condense_splits(prepared, "none", "demo", 5)
    assert list(arrays) == ["condense"]
    assert record.splits == timings.condense_seconds == ()
    X, y = training_rows(prepared, arrays, 1)
    np.testing.assert_array_equal(X, prepared.split(1).X_train)
    np.testing.assert_array_equal(y, prepared.split(1).y_train)


def with_a_rare_class(prepared, labels, code):
    """Return the data with other labels, of which one training row of the first split has a class of its own."""
    labels[prepared._arrays["train_0"][0]] = code
    return PreparedData(prepared.X, labels, prepared.description, prepared._arrays)


def test_an_unknown_kind_and_lost_classes_are_named():
    prepared = prepare_wine(2)
    with pytest.raises(ValueError, match="condense='pca'"):
        condense_splits(prepared, "pca", "demo", 5)
    lone = with_a_rare_class(prepared, np.zeros_like(prepared.y), 1)
    with pytest.raises(PrivSVMError, match=r"condense: 'ci' leaves only rows of class a in split 0 of wine; set"):
        condense_splits(lone, "ci", "demo", 5)
    lost = with_a_rare_class(prepared, np.minimum(prepared.y, 1), 2)
    assert condense_splits(lost, "ci", "demo", 5)[1].splits[0].lost_classes == 1


def guarantees_of(prepared, implementation, **parameters):
    """Train on the rows, and on condensed ones; return both guarantees."""
    found = []
    for kind in ("none", "ci"):
        rows = condense_splits(prepared, kind, "demo", 5)[0]
        (path, _), attacks = train_paths(prepared, rows, job(implementation, kind, **parameters))
        assert attacks == []
        found.append(path.guarantees[0])
    return found


def test_no_guarantee_survives_condensation():
    plain, condensed = guarantees_of(prepare_wine(2), "pmsvm_wp", C=0.05)
    assert (plain.status, condensed.status) == ("seeded", "claimed")
    assert "condensed (ci)" in condensed.reason


@pytest.mark.parametrize("implementation", ["dpsvmdvp", "pmsvm_wp_as_published"])
def test_statements_on_training_rows_drop_for_condensed_ones(implementation):
    """Data sets that differ in a condensed row are not neighbours."""
    prepared = prepare_wine(2, labels=lambda y: np.minimum(y, 1), classes=["a", "b"])
    audited, condensed = guarantees_of(prepared, implementation, allow_unsound=True)
    assert audited.witness is not None
    assert (condensed.status, condensed.witness) == ("claimed", None)
    assert condensed.reason != audited.reason
    assert not [assumption for assumption in condensed.assumptions if "training set" in assumption]


def test_test_rows_that_were_condensed_too_tell_nothing():
    prepared = prepare_wine(2)
    arrays = {**prepared._arrays, "test_0": prepared._arrays["train_0"]}
    same = PreparedData(prepared.X, prepared.y, prepared.description, arrays)
    _, record, _ = condense_splits(same, "ci", "demo", 5)
    assert record.splits[0].other_rows == 0
    assert record.splits[0].membership_auc is None
    assert record.splits[1].membership_auc is not None


@pytest.mark.parametrize(("implementation", "kind"), [("ci_svm", "ci"), ("fcm_svm", "fcm")])
def test_a_condensing_method_is_attacked_on_its_rows(implementation, kind):
    prepared = prepare_wine(2)
    plain = condense_splits(prepared, "none", "demo", 5)[0]
    _, (attack,) = train_paths(prepared, plain, job(implementation))
    assert (attack.method, attack.condense, attack.attack) == ("mine", kind, "condensed_rows")
    rows = prepared.split(1)
    draws = seeded_source(5, "demo", "wine", "mine", 1, 0.0, 0).generator()
    groups = condense_rows(kind, rows.X_train, rows.y_train, 3, rng=draws)
    attacker = seeded_stream(5, "attack", "demo", "wine", "mine", 1)
    published = groups.rows, groups.codes, groups.group_of
    expected = attack_split(kind, rows.X_train, rows.y_train, published, rows.X_test, attacker)
    assert attack.splits[1] == expected
    # After the stage its rows are a third of a third.
    condensed = condense_splits(prepared, "ci", "demo", 5)[0]
    _, (attack,) = train_paths(prepared, condensed, job(implementation, "ci"))
    assert (attack.splits[0].n_rows, attack.splits[0].n_condensed) == (47, 16)
    # Test rows are not like rows that were condensed before.
    assert attack.splits[0].membership_auc is None


@pytest.mark.parametrize("kernel", ["linear", "gaussian"])
def test_published_blocks_of_entities_are_attacked(kernel):
    prepared = prepare_wine(2)
    method = job("ppsvm", kernel=kernel, entities=[[0, 2, 4], [1, 3], list(range(5, 13))], mbar=20)
    paths, (attack,) = train_paths(prepared, condense_splits(prepared, "none", "demo", 5)[0], method)
    assert (attack.method, attack.dataset, attack.attack) == ("mine", "wine", "known_sample")
    assert (attack.kernel, attack.n_rows, attack.mbar) == (kernel, 140, 20)
    assert attack.gamma == (None if kernel == "linear" else 1 / 13)
    assert [(entity.entity, entity.features) for entity in attack.entities] == [
        ("entity-1", 3), ("entity-2", 2), ("entity-3", 8)
    ]  # fmt: skip
    for entity in attack.entities:
        assert entity.rows_needed == entity.features + (kernel == "gaussian")
        assert entity.possible
        assert entity.error_at_rows_needed < 1e-8
    for split, path in enumerate(paths):
        rows = prepared.split(split)
        assert (path.codes(path.scores(rows.X_test, 0))[0] == rows.y_test).mean() > 0.9
