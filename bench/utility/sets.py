"""Datasets of the utility table: real tabular data with public bounds and label-blind splits.

``kinds.json`` names them by kind. Constants of `recommended` may look at *choose*; of *look*, results may be looked at,
and nothing is chosen; *judge* is run by ``judge.py`` alone, once per release of the rule, and nobody reads single cells
before the rule is frozen. A rule that is changed after a look at *judge* moves these sets to *look*.

Every library gets the same rows: features with their public bounds, categories as indicators or as codes, label codes,
and ten splits with a fifth of the rows for testing. Declarations that the catalogue lacks are stated here with their
origin; nothing is taken from the rows.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from packaged import HERE, PACKAGED, table

from privsvm.errors import PrivSVMError
from privsvm.tables.schema import parse_schema
from privsvm_bench.datasets.catalogue import DatasetEntry, load_catalogue, raw_files, resolve
from privsvm_bench.datasets.download import download_raw
from privsvm_bench.datasets.prepare import prepare
from privsvm_bench.datasets.prepared import rows_of_arrays
from privsvm_bench.datasets.settings import Holdout

SPLITS = 10
# Of so many rows, fewer splits tell methods apart.
LARGE_ROWS, LARGE_SPLITS = 20_000, 3
# Tables with fewer rows, where noise decides most, have so many draws of it in every split.
SMALL_ROWS, SMALL_DRAWS = 2000, 5
_SEED = 20260
_CACHE = Path(__file__).resolve().parents[2] / ".cache" / "utility"

# Sets with curves over epsilon, with bounds as in params.yaml if the catalogue has none. They chose the constants of
# `recommended`, with the sets of `CHOSE`.
OLDER: dict[str, Any] = {
    "a9a": None,
    "w8a": None,
    # Indicators and LIBSVM's scaled signals.
    "ijcnn1": [-1, 1],
    # A folding energy, the shorter sequence's length, and shares of nucleotides in two sequences.
    "cod-rna": {"lower": [-2000, 0] + [0] * 6, "upper": [0, 200] + [1] * 6},
    "phishing": None,
    "mushrooms": None,
    "covtype_5000": None,
    "german.numer_scale": None,
    # Range for adults: pregnancies, glucose, pressure, skin fold, insulin, body-mass index, pedigree, age.
    "pima_uci": {"lower": [0] * 7 + [20], "upper": [20, 250, 150, 100, 900, 70, 3, 100]},
    "splice": None,
    "australian_scale": None,
    "breast_cancer": None,
    "wine": None,
    "digits": None,
    "satimage.scale": None,
    "segment.scale": None,
    "letter.scale": None,
    "usps": None,
    "isolet_pmsvm": None,
}
CHOSE: dict[str, Any] = {
    # Age, sex, pain, pressure, cholesterol, sugar, ECG, heart rate, angina, ST depression, slope, vessels, thal.
    "cleveland_uci": {
        "lower": [20, 0, 1, 80, 100, 0, 0, 60, 0, 0, 1, 0, 3],
        "upper": [100, 1, 4, 220, 600, 1, 2, 220, 1, 8, 3, 3, 7],
    },
    "dermatology_uci": None,
    "fourclass_scale": None,
    "glass.scale": None,
    "heart_scale": None,
    "ionosphere_scale": None,
    "sonar_scale": None,
    "vehicle.scale": None,
}
CHOOSE, LOOK, JUDGE = (tuple(names) for names in json.loads((HERE / "kinds.json").read_text()).values())
# Sets that choose constants with bounds from meaning, by the schemas of the catalogue.
REAL = tuple(name for name in CHOOSE if name not in OLDER and name not in CHOSE)
SETS: dict[str, Any] = {**OLDER, **CHOSE, **dict.fromkeys((*REAL, *LOOK))}

# Features that are declared to be 0 or 1.
_INDICATORS: dict[str, Any] = {
    **dict.fromkeys(["a9a", "w8a", "mushrooms", "phishing"], slice(None)), "ijcnn1": slice(10),
    # Wilderness areas and types of soil.
    "covtype_5000": slice(10, None),
    # Sex, sugar, angina.
    "cleveland_uci": [1, 5, 8],
}  # fmt: skip
# Codes of the features that are categories: nucleotides; pain, ECG and thal.
_CATEGORIES = {
    "splice": dict.fromkeys(range(60), (1, 2, 3, 4)),
    "cleveland_uci": {2: (1, 2, 3, 4), 6: (0, 1, 2), 12: (3, 6, 7)},
}


@dataclass(frozen=True)
class Coded:
    """The columns of a table, with categories as codes.

    `X` (n, c) has numbers, and codes of categories from 0 (-1 for none of them); `lower` and `upper` (c,) are public
    bounds, 0 and the last code for categories; `levels` (c,) counts the categories, 0 for a number.
    """

    X: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    levels: np.ndarray


@dataclass(frozen=True)
class UtilitySet:
    """One set, by its name in the catalogue.

    Features `X` (n, d) are dense: categories are indicators; numbers are in the units of the file, or scaled by a
    schema. `y` (n,) has label codes from 0, `lower` and `upper` (d,) public bounds, `indicators` (d,) tells which
    features are declared to be 0 or 1, and `columns` (d,) names the column of the table of each feature. The number of
    classes is public; `splits` are pairs of training and test rows.
    """

    name: str
    X: np.ndarray
    y: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    indicators: np.ndarray
    columns: np.ndarray
    n_classes: int
    splits: list[tuple[np.ndarray, np.ndarray]]

    def unit_features(self) -> np.ndarray:
        """Scale features to [0, 1] by public bounds."""
        return np.clip((self.X - self.lower) / (self.upper - self.lower), 0.0, 1.0)

    def scale_features(self) -> np.ndarray:
        """Scale features to [-1, 1]; methods clip rows to norm 1."""
        return 2.0 * self.unit_features() - 1.0

    def code_columns(self) -> Coded:
        """Return one column per column of the table."""
        first = np.unique(self.columns, return_index=True)[1]
        X, lower, upper = self.X[:, first].copy(), self.lower[first].copy(), self.upper[first].copy()
        levels = np.where(self.indicators[first], 2, 0)
        for column, count in enumerate(np.bincount(self.columns)):
            if count > 1:
                shown = self.X[:, self.columns == column]
                X[:, column] = np.where(shown.any(axis=1), shown.argmax(axis=1), -1)
                upper[column], levels[column] = count - 1, count
        return Coded(X, lower, upper, levels)


def _fetch(name: str, file: str, target: Path, settings: dict[str, Any]) -> None:
    """Get a raw file: from a mirror, the network, or a package."""
    try:
        download_raw(name, file, target, settings)
    except PrivSVMError:
        if name not in PACKAGED:
            raise
        target.write_bytes(table(name))


def _features(entry: DatasetEntry, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return features with categories as indicators, which of them are indicators, and their columns."""
    if entry.schema is None:
        categories = _CATEGORIES.get(entry.name, {})
        indicators = np.isin(np.arange(X.shape[1]), list(categories))
        indicators[_INDICATORS.get(entry.name, [])] = True
        columns = np.repeat(np.arange(X.shape[1]), [len(categories.get(j, "1")) for j in range(X.shape[1])])
        shown = [X[:, [j]] == categories[j] if j in categories else X[:, [j]] for j in range(X.shape[1])]
        return np.hstack(shown).astype(float), indicators[columns], columns
    declared = parse_schema(entry.schema).features.values()
    columns = np.repeat(np.arange(len(declared)), [max(1, len(column.words)) for column in declared])
    booleans = np.array([column.kind == "boolean" for column in declared])[columns]
    indicators = booleans | np.array([column.kind == "categories" for column in declared])[columns]
    return np.where(booleans, 0.5 * X + 0.5, X), indicators, columns


@functools.lru_cache(maxsize=2)
def load(name: str) -> UtilitySet:
    """Read a set of `SETS` from a mirror or the network (`PRIVSVM_MIRROR`), and draw its splits.

    Raises PrivSVMError if no source has a file.
    """
    settings: dict[str, Any] = {"scaling": "none"}
    if (bounds := SETS.get(name)) is not None:
        settings["bounds"] = bounds
    entry = resolve(name, settings)
    folder = _CACHE / name
    folder.mkdir(parents=True, exist_ok=True)
    for file in raw_files(name, settings):
        if not (folder / file).exists():
            _fetch(name, file, folder / file, settings)
    protocol = Holdout(repeats=SPLITS, test_size=0.2)
    arrays, description = prepare(entry, folder, protocol, _SEED, "utility")
    X = rows_of_arrays("X", arrays)
    X = np.asarray(X if isinstance(X, np.ndarray) else X.toarray(), dtype=float)
    X, indicators, columns = _features(entry, X)
    sides = (np.array(side, dtype=float) for side in (entry.bounds.lower, entry.bounds.upper))
    lower, upper = (np.broadcast_to(side, columns[-1] + 1)[columns] for side in sides)
    lower[indicators], upper[indicators] = 0.0, 1.0
    splits = [(arrays[f"train_{s}"], arrays[f"test_{s}"]) for s in range(SPLITS)]
    return UtilitySet(name, X, arrays["y"], lower, upper, indicators, columns, len(description["classes"]), splits)


@functools.cache
def list_splits(name: str) -> range:
    """List the splits that all entries share: all splits, unless rows are very many."""
    return range(SPLITS if len(load(name).y) < LARGE_ROWS else LARGE_SPLITS)


def training_rows(name: str) -> int:
    """Return the number of training rows by the catalogue, without reading the set."""
    entry = load_catalogue()[name]
    return round(0.8 * sum(entry.parts[role].n_rows or 0 for role in entry.pool))


# Joined entries run on these, of the sets that listed ones have answers on.
SMALLEST = tuple(sorted((name for name in SETS if name not in REAL), key=training_rows)[:20])
