"""Facts about the origin of training rows, which the benchmark states to the gate."""

import dataclasses
import itertools

import numpy as np
import pytest
from prepared_wine import DESCRIPTION, prepare_wine
from proof_pages import proofs
from sklearn.datasets import load_wine

from privsvm.numerics.noise.noise_source import NoiseSource, seeded_source
from privsvm.privacy.events import NEIGHBOURS
from privsvm.registry import estimator_class
from privsvm_bench.datasets.catalogue import resolve
from privsvm_bench.datasets.download import download_raw
from privsvm_bench.datasets.prepare import _count_declared_rows, _random_splits, prepare
from privsvm_bench.datasets.settings import Holdout, parse_protocol
from privsvm_bench.jobs import training
from privsvm_bench.jobs.condensing import condense_splits
from privsvm_bench.jobs.job import TrainJob
from privsvm_bench.jobs.training import data_facts, train_paths, training_sizes

BROKEN = {
    "stratified": {"protocol": {"kind": "k_fold", "stratified": True}},
    "the published file was scaled by statistics of its own rows": {"prescaled": True},
    "nobody says whether the file was scaled": {"prescaled": None, "prescaled_origin": "declared"},
    # The rule alone counts: whether it dropped anything depends on private rows.
    "columns are dropped": {"missing": {"rule": "drop_columns", "columns_dropped": []}},
    "rows with missing values are dropped": {"missing": {"rule": "drop_rows", "columns_dropped": []}},
    "scaling was taken from training rows": {"scaling": {"kind": "min_max", "origin": "training rows"}},
    "bounds of the scaling": {"scaling": DESCRIPTION["scaling"] | {"bounds_origin": "observed"}},
    "class set was taken": {"classes_origin": "data"},
    "number of features": {"n_features_origin": "data"},
}
SETTINGS = {"pmsvm_wp": {"C": 0.05}, "pmsvm_gp": {"epochs": 5, "scaling": "centre"}}
# Methods that are proved under add_remove. One method stands for all with noisy gradients, because these share the code
# that states their facts.
ADD_REMOVE = [
    name
    for name in proofs()
    if estimator_class(name).declared["neighbours"].constraint.accepts("add_remove")
    and (name == "pmsvm_gp" or not proofs().get(name, "").startswith("noisy_gradients.md"))
]


def wine_path(implementation, description, n_train=140, labels=None, neighbours="add_remove"):
    prepared = prepare_wine(n_train=n_train, labels=labels, **description)
    privacy = {"epsilons": [1.0], "delta": 1e-5, "neighbours": neighbours, "repeats": 1}
    return train(prepared, implementation, SETTINGS.get(implementation, {}), **privacy)[0]


def guarantee(*given, **changes):
    return wine_path(*given, **changes).guarantees[0]


def train(prepared, implementation, parameters, **fields):
    """Train a method on the uncondensed rows of every split; return its paths."""
    job = TrainJob(
        **{"condense": "none", "experiment": "demo", "method": "m", "seed": 5, **fields},
        implementation=implementation, parameters=parameters,
    )  # fmt: skip
    return train_paths(prepared, condense_splits(prepared, "none", "demo", 5)[0], job)[0]


@pytest.mark.parametrize("implementation", SETTINGS)
def test_what_is_stated_is_judged(implementation):
    made = guarantee(implementation, {})
    assert (made.status, made.randomness) == ("seeded", "seeded")
    assert made.facts.declared_rows == 140
    assert "looks at none of them" in " ".join(made.assumptions)
    assert "those given to fit" not in " ".join(made.assumptions)
    for reason, change in BROKEN.items():
        fallen = guarantee(implementation, change)
        assert fallen.status == "claimed"
        assert reason in fallen.reason
        assert fallen.epsilon_proved == np.inf
    # A training part without a class is trained on.
    for labels in (lambda y: np.minimum(y, 1), lambda y: y * 0):
        assert guarantee(implementation, {}, labels=labels).status == "seeded"


def test_methods_get_declared_bounds_and_indicators():
    path = wine_path("recommended", {"indicators": [3]})
    columns = path.step("columns")
    assert (columns["lower"] == -1.0).all()
    assert (columns["upper"] == 1.0).all()
    assert np.flatnonzero(columns["indicators"]).tolist() == [3]
    # Rows that were scaled by themselves, or not at all, have no declared range.
    for kind in ("none", "min_max"):
        path = wine_path("recommended", {"scaling": {"kind": kind, "origin": "none", "range": [-1.0, 1.0]}})
        assert (path.step("columns")["upper"] > 1e100).all()


def test_a_method_that_pays_for_counts_is_told_no_private_number():
    first, second = (guarantee("recommended", {"declared_training_rows": None}, n_train) for n_train in (140, 139))
    assert first == second
    assert first.status == "seeded"
    assert first.facts.n_rows == "not used"
    assert first.facts.declared_rows is None
    assert guarantee("recommended", {}).facts.n_rows == "declared"


def test_a_counted_number_of_rows_is_not_passed_off_as_declared():
    """Neighbours under add_remove used to differ in their public record."""
    for n_train in (140, 139):
        fallen = guarantee("pmsvm_gp", {"declared_training_rows": None}, n_train)
        assert fallen.status == "claimed"
        assert "the private number of rows was counted" in fallen.reason
    first, second = (guarantee("pmsvm_gp", {}, n_train) for n_train in (140, 139))
    assert first.status == "seeded"
    assert (first.noise_scale, first.event, first.assumptions) == (second.noise_scale, second.event, second.assumptions)
    # A method that does not use the number, and neighbours of equal size, need no declaration.
    assert guarantee("pmsvm_wp", {"declared_training_rows": None}).status == "seeded"
    assert guarantee("pmsvm_gp", {"declared_training_rows": None}, neighbours="replace_one").status == "seeded"


@pytest.mark.parametrize("implementation", ADD_REMOVE)
def test_proved_records_do_not_depend_on_private_counts(implementation):
    """Every method states the same of 140 rows and of 139, or no more than claimed."""
    method = estimator_class(implementation)
    counts_rows = "n_rows" in method.declared and not method.pays_for_counts
    for declared in (None, [140]):
        first, second = (guarantee(implementation, {"declared_training_rows": declared}, n) for n in (140, 139))
        assert first.status == second.status
        assert first.status == ("seeded" if declared or not counts_rows else "claimed")
        if first.status == "seeded":
            # Witnesses of benchmarks are computed from the rows.
            names = [field.name for field in dataclasses.fields(first) if field.name != "witness"]
            assert [getattr(first, name) for name in names] == [getattr(second, name) for name in names]


def test_the_record_of_models_counts_no_private_rows():
    """Under add_remove neighbours used to differ in `n_train`."""
    sizes, fields = {}, {"condense": "none", "experiment": "demo", "method": "m", "parameters": {}, "seed": 5}
    for relation, declared, n_train in itertools.product(NEIGHBOURS, (None, [140]), (140, 139)):
        prepared = prepare_wine(n_train=n_train, declared_training_rows=declared)
        privacy = {"epsilons": [1.0], "delta": 1e-5, "neighbours": relation, "repeats": 1}
        job = TrainJob(**fields, implementation="pmsvm_wp", **privacy)
        sizes[relation, declared is None, n_train] = training_sizes(prepared, job)
    assert [sizes["add_remove", True, n] for n in (140, 139)] == [None, None]
    assert [sizes["add_remove", False, n] for n in (140, 139)] == [140, 140]
    assert [sizes["replace_one", True, n] for n in (140, 139)] == [140, 139]
    # Nothing is protected where no epsilon is stated.
    assert training_sizes(prepared, TrainJob(**fields, implementation="svm")) == 139


@pytest.mark.parametrize("implementation", ["svm", "majority", "fcm_svm", "sklearn.naive_bayes:GaussianNB"])
def test_a_method_without_epsilon_needs_no_privacy(implementation):
    prepared = prepare_wine()
    privacy = {"epsilons": [0.5, 2.0], "delta": 1e-5, "neighbours": "replace_one", "repeats": 3}
    (plain,), (with_privacy,) = (train(prepared, implementation, {}, **fields) for fields in ({}, privacy))
    assert plain.epsilons == (np.inf,)
    assert plain.guarantees == with_privacy.guarantees
    for name, array in plain.arrays().items():
        assert np.array_equal(array, with_privacy.arrays()[name]), name


def test_label_blind_splits_do_not_move_with_a_label():
    """Stratified ones do: one label exchanged up to 22 of 142 training rows."""
    entry, y = resolve("wine"), load_wine().target
    changed = y.copy()
    changed[0] = 2

    def moved(stratified):
        plan = Holdout(repeats=5, test_size=0.2, stratified=stratified)
        both = [_random_splits(entry, plan, labels, ("0", "1", "2"), 7, "e") for labels in (y, changed)]
        return max(len(set(a[0]) - set(b[0])) for a, b in zip(*both, strict=True))

    assert moved(False) == 0
    assert moved(True) > 1


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        ({"kind": "holdout", "repeats": 2, "test_size": 0.2, "stratified": False}, [142, 142]),
        ({"kind": "holdout", "repeats": 1, "test_size": 30, "stratified": False}, [148]),
        ({"kind": "k_fold", "folds": 5, "repeats": 1, "stratified": False}, [142, 142, 142, 143, 143]),
        ({"kind": "resubstitution"}, [178]),
    ],
)
def test_count_declared_rows_are_those_of_the_splits(plan, expected):
    plan = parse_protocol(plan)
    entry = resolve("wine")
    assert _count_declared_rows(entry, plan, ("all",), len(expected)) == expected
    if plan.kind != "resubstitution":
        splits = _random_splits(entry, plan, load_wine().target, ("0", "1", "2"), 7, "e")
        assert [len(train) for train, _ in splits] == expected
    dropping = dataclasses.replace(entry, missing="drop_rows")
    assert _count_declared_rows(dropping, plan, ("all",), len(expected)) is None


def test_a_file_of_ones_own_is_as_somebody_declares(tmp_path):
    """A file that was standardised by its own rows once counted as untouched."""
    (tmp_path / "own.csv").write_text("x,y,label\n" + "".join(f"{i % 7},{i % 5},{'ab'[i % 2]}\n" for i in range(40)))
    settings = {"path": str(tmp_path / "own.csv"), "label": "label", "classes": ["a", "b"], "bounds": [0, 7]}
    preparations = {}
    for prescaled in (None, True, False):
        entry = resolve("own", settings if prescaled is None else {**settings, "prescaled": prescaled})
        download_raw("own", "own.csv", tmp_path / "raw" / "own.csv", settings)
        _, description = prepare(entry, tmp_path / "raw", Holdout(), 1, "demo")
        facts = data_facts(description, "none", 0)
        preparations[prescaled] = facts["preparation"]
        made = guarantee("pmsvm_wp", {name: description[name] for name in ("prescaled", "prescaled_origin")})
        assert made.status == ("seeded" if prescaled is False else "claimed")
    assert preparations == {None: "undeclared", True: "prescaled", False: "declared"}
    assert "knows how it was made" in " ".join(made.assumptions)


def test_facts_of_prepared_data():
    facts = data_facts(DESCRIPTION, "fcm", 0)
    assert (facts["condensing"], facts["split"], facts["declared_rows"]) == ("fcm", "label-blind", 140)
    assert data_facts({**DESCRIPTION, "protocol": {"kind": "given"}}, "none", 0)["split"] == "of the files"
    assert data_facts({**DESCRIPTION, "protocol": {"kind": "resubstitution"}}, "none", 0)["split"] == "every row"


def test_no_two_releases_of_the_benchmark_share_their_noise(monkeypatch):
    """Experiment, seed, dataset, method, split, epsilon, repeat: one key."""
    keys = []

    class RecordedSource(NoiseSource):
        def __init__(self, key):
            super().__init__(key)
            keys.append(key)

    monkeypatch.setattr(training, "seeded_source", lambda *purpose: RecordedSource(seeded_source(*purpose)._key))
    n_releases = 0
    for seed, experiment, dataset, method in ((5, "demo", "wine", "m"), (6, "demo", "wine", "m"),
                                              (5, "other", "wine", "m"), (5, "demo", "beer", "m"),
                                              (5, "demo", "wine", "n")):  # fmt: skip
        prepared = prepare_wine(2, dataset=dataset)
        privacy = {"epsilons": [1.0, 2.0], "delta": 1e-5, "neighbours": "replace_one", "repeats": 2}
        train(prepared, "pmsvm_wp", {"C": 0.05}, experiment=experiment, method=method, seed=seed, **privacy)
        n_releases += 8
    assert len(keys) == len(set(keys)) == n_releases
