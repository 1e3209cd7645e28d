"""Combinations of the keys of the user's own dataset, against a table of the keys that forbid a proof.

The table follows from the meaning of the keys, not from the gate.
"""

import itertools

import numpy as np
import pandas as pd
import pytest
from tests.guarantees import proved

from privsvm.errors import PrivSVMError
from privsvm.privacy.gate import restore
from privsvm.privacy.statement import AS_GIVEN, Facts
from privsvm_bench.datasets.catalogue import resolve
from privsvm_bench.datasets.prepare import prepare
from privsvm_bench.datasets.settings import Holdout
from privsvm_bench.jobs.training import data_facts

# Values that are undeclared or computed from the rows: they forbid a proof, whatever the other keys are.
UNSOUND = {
    ("prescaled", None): "nobody says whether the file was scaled",
    ("prescaled", True): "scaled by statistics of its own rows",
    ("classes", None): "class set was taken from the private labels",
    ("scaling", "min_max"): "scaling was taken from",
    ("scaling", "z_score"): "scaling was taken from",
    ("missing", "drop_rows"): "rows with missing values are dropped",
    ("missing", "drop_columns"): "columns are dropped",
    ("protocol", "stratified holdout"): "splits are stratified",
    ("protocol", "stratified folds"): "splits are stratified",
    ("format", "libsvm"): "number of features was taken",
    ("condense", "ci"): "condensed",
    ("condense", "fcm"): "condensed",
}
# Further keys that remove such a reason.
CURES = {("format", "libsvm"): ("n_features", 3), ("classes", None): ("groups", True)}
SOUND = {
    "prescaled": False, "classes": ["no", "yes"], "scaling": "none", "missing": "error", "protocol": "holdout",
    "format": "csv", "condense": "none", "n_rows": 20, "method": "not used", "relation": "add_remove", "gaps": False,
    "fit_on": "training_rows", "bounds": None, "range": None, "groups": None, "n_features": None, "header": True,
    "delimiter": None, "encoding": None, "drop_columns": (), "share": None, "positive": None, "file": "a",
}  # fmt: skip
OTHER = {
    "prescaled": [None, True], "classes": [None], "scaling": ["min_max", "z_score", "bounds"],
    "missing": ["drop_rows", "drop_columns", "zero"],
    "protocol": ["stratified holdout", "stratified folds", "folds", "resubstitution"], "format": ["libsvm"],
    "condense": ["ci", "fcm"], "n_rows": [None, 19], "method": ["counted"], "relation": ["replace_one"],
    "gaps": [True], "fit_on": ["all_rows"], "bounds": [[-1.0, 1.0]], "range": [[0.0, 1.0]], "groups": [True],
    "n_features": [3], "header": [False], "delimiter": ["semicolon"], "encoding": ["latin-1"], "drop_columns": [(1,)],
    "share": [True], "positive": ["no"], "file": ["b"],
}  # fmt: skip
PROTOCOLS = {
    "holdout": {"kind": "holdout", "repeats": 1, "test_size": 0.25, "stratified": False},
    "stratified holdout": {"kind": "holdout", "repeats": 1, "test_size": 0.25, "stratified": True},
    "folds": {"kind": "k_fold", "folds": 2, "repeats": 1, "stratified": False},
    "stratified folds": {"kind": "k_fold", "folds": 2, "repeats": 1, "stratified": True},
    "resubstitution": {"kind": "resubstitution"},
}


def files(folder):
    """Write every variant of the file, with and without a missing value."""
    rows = pd.DataFrame(np.random.default_rng(3).uniform(-1, 1, (20, 3)).round(3).astype(str), columns=list("uvw"))
    for name, gaps in itertools.product("ab", (False, True)):
        subfolder = folder / f"{name}{gaps:d}"
        subfolder.mkdir()
        table = rows.assign(y=["no", "yes"] * 10)
        if gaps:
            table.loc[4, "v"] = ""
        for header, delimiter in itertools.product((True, False), (",", ";")):
            path = subfolder / f"rows{header:d}{ord(delimiter)}.csv"
            table.to_csv(path, sep=delimiter, header=header, index=False)
        with open(subfolder / "rows.libsvm", "w") as handle:
            for *cells, label in table.to_numpy():
                pairs = " ".join(f"{number}:{cell or 'nan'}" for number, cell in enumerate(cells, start=1))
                handle.write(f"{int(label == 'yes')} {pairs}\n")


def settings_of(chosen, folder):
    """Return settings as in params.yaml, and the folder of the file."""
    numbers = chosen["format"] == "libsvm"
    name = "rows.libsvm"
    if not numbers:
        name = f"rows{chosen['header']:d}{ord(';' if chosen['delimiter'] else ',')}.csv"
    label_of = {"yes": "1", "no": "0"} if numbers else {"yes": "yes", "no": "no"}
    keys = ("prescaled", "scaling", "missing", "n_rows", "fit_on", "bounds", "range", "n_features", "delimiter",
            "encoding", "share")  # fmt: skip
    settings = {key: chosen[key] for key in keys if chosen[key] is not None}
    # Drop keys without effect, which are refused.
    if chosen["scaling"] not in ("min_max", "z_score"):
        del settings["fit_on"]
    if chosen["scaling"] not in ("min_max", "bounds"):
        settings.pop("range", None)
    for key in ("delimiter", "encoding") if numbers else ():
        settings.pop(key, None)
    if chosen["classes"] is not None:
        settings["classes"] = [label_of[label] for label in chosen["classes"]]
    if chosen["groups"]:
        settings["groups"] = {label_of[label]: [label_of[label]] for label in ("no", "yes")}
    if chosen["positive"]:
        settings["positive"] = label_of[chosen["positive"]]
    if chosen["drop_columns"]:
        settings["drop_columns"] = list(chosen["drop_columns"])
    if not numbers:
        settings |= {"label": "y" if chosen["header"] else 3, "header": chosen["header"]}
    settings |= {"format": chosen["format"], "protocol": PROTOCOLS[chosen["protocol"]]}
    subfolder = folder / f"{chosen['file']}{chosen['gaps']:d}"
    return settings | {"path": str(subfolder / name)}, subfolder


def expect(chosen):
    """Return the reasons by the table."""
    reasons = [
        text
        for (key, value), text in UNSOUND.items()
        if chosen[key] == value and not ((key, value) in CURES and chosen[CURES[key, value][0]] == CURES[key, value][1])
    ]
    counted = chosen["method"] == "counted" and chosen["relation"] == "add_remove" and chosen["n_rows"] is None
    return reasons + ["private number of rows was counted"] * counted


def judge(chosen, folder, cache):
    """Return the gate's guarantee; None if the keys are refused."""
    settings, raw_folder = settings_of(chosen, folder)
    key = repr(sorted(settings.items(), key=str))
    if key not in cache:
        try:
            cache[key] = prepare(resolve("mine", settings), raw_folder, Holdout(), 1, "test")[1]
        except PrivSVMError:
            cache[key] = None
    if cache[key] is None:
        return None
    facts = data_facts(cache[key] | {"digest": ""}, chosen["condense"], 0)
    # Facts of a method that uses the number of rows, or does not.
    uses = chosen["method"] == "counted"
    n_rows = "not used" if not uses else "declared" if facts["declared_rows"] else "counted"
    declared = Facts(
        **{**AS_GIVEN, "classes": "declared", "n_rows": "not used", "features": "none", "solution": "certified"}
    )
    guarantee = proved(neighbours=chosen["relation"], facts=declared)
    return restore(guarantee, **facts, n_rows=n_rows)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("own")
    files(path)
    return path


def combinations():
    choices = [(key, value) for key, values in OTHER.items() for value in values]
    pairs = [pair for pair in itertools.combinations(choices, 2) if pair[0][0] != pair[1][0]]
    rng = np.random.default_rng(8)
    several = [
        [(key, OTHER[key][rng.integers(len(OTHER[key]))]) for key in rng.permutation(list(OTHER))[: 3 + number % 4]]
        for number in range(120)
    ]
    return [(), *([one] for one in choices), *pairs, *several]


def test_combinations_are_proved_as_the_table_says(folder):
    cache, counts = {}, {"proved": 0, "claimed": 0, "refused": 0}
    for changes in combinations():
        chosen = {**SOUND, **dict(changes)}
        made, reasons = judge(chosen, folder, cache), expect(chosen)
        if made is None:
            counts["refused"] += 1
            continue
        counts[made.status] += 1
        assert made.status == ("claimed" if reasons else "proved"), (changes, made.reason)
        text = made.reason or ""
        # The record names one of several preparations of a file.
        files_own = [
            reason for reason in reasons if reason.startswith(("nobody says", "scaled by", "rows with", "columns"))
        ]
        assert all(reason in text for reason in reasons if reason not in files_own), (changes, text)
        assert not files_own or any(reason in text for reason in files_own), (changes, text)
    assert min(counts.values()) > 40, counts


@pytest.mark.parametrize("key", ["missing", "scaling", "protocol"])
def test_the_word_does_not_follow_the_rows(folder, key):
    """Records with and without a missing value agree, or one is refused."""
    for value in OTHER[key]:
        for relation in ("add_remove", "replace_one"):
            both = [
                judge({**SOUND, key: value, "relation": relation, "gaps": gaps}, folder, {}) for gaps in (False, True)
            ]
            if None not in both:
                assert both[0] == both[1], (value, relation)
