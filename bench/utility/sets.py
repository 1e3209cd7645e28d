"""Datasets of the utility table: real tabular data with public bounds and label-blind splits.

Every library gets the same rows: features with their public bounds, categories as indicators or as codes, label codes,
and ten splits with a fifth of the rows for testing. What the catalogue does not declare is stated here with its origin;
nothing is taken from the rows.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from packaged import PACKAGED, table

from privsvm.errors import PrivSVMError
from privsvm.tables.schema import parse_schema
from privsvm_bench.datasets.catalogue import DatasetEntry, raw_files, resolve
from privsvm_bench.datasets.download import download_raw
from privsvm_bench.datasets.prepare import prepare
from privsvm_bench.datasets.prepared import rows_of_arrays
from privsvm_bench.datasets.settings import Holdout

__all__ = ["NEWER", "SETS", "SPLITS", "Coded", "UtilitySet", "load"]

SPLITS = 10
_SEED = 20260
_CACHE = Path(__file__).resolve().parents[2] / ".cache" / "utility"

# Datasets, with bounds as in params.yaml if the catalogue has none.
SETS: dict[str, Any] = {
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
    # By the schemas of the catalogue.
    **dict.fromkeys(PACKAGED),
}
# Sets that chose no constant for linear features.
NEWER = tuple(PACKAGED)

# Features that are declared to be 0 or 1.
_INDICATORS = {
    **dict.fromkeys(["a9a", "w8a", "mushrooms", "phishing"], slice(None)), "ijcnn1": slice(10),
    # Wilderness areas and types of soil.
    "covtype_5000": slice(10, None),
}  # fmt: skip
# Features that are codes of categories, from 1: nucleotides.
_CATEGORIES = {"splice": 4}


@dataclass(frozen=True)
class Coded:
    """The columns of a table, with categories as codes.

    Attributes
    ----------
    X : ndarray of shape (n, c)
        Numbers, and codes of categories from 0 (-1 for none of them).
    lower, upper : ndarray of shape (c,)
        Public bounds; 0 and the last code for categories.
    levels : ndarray of int of shape (c,)
        Number of categories, 0 for a number.
    """

    X: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    levels: np.ndarray


@dataclass(frozen=True)
class UtilitySet:
    """One set.

    Attributes
    ----------
    name : str
        Its name in the catalogue.
    X : ndarray of shape (n, d)
        Features, dense. Categories are indicators; numbers are in the units of the file, or scaled by a schema.
    y : ndarray of shape (n,)
        Label codes from 0.
    lower, upper : ndarray of shape (d,)
        Public bounds of the features.
    indicators : ndarray of bool of shape (d,)
        Features that are declared to be 0 or 1.
    columns : ndarray of int of shape (d,)
        The column of the table that each feature comes from.
    n_classes : int
        Number of classes, public.
    splits : list of (ndarray, ndarray)
        Training and test rows.
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

    def coded(self) -> Coded:
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
    if entry.name in _CATEGORIES:
        levels = _CATEGORIES[entry.name]
        shown = X[:, :, np.newaxis] == np.arange(1, levels + 1)
        columns = np.repeat(np.arange(X.shape[1]), levels)
        return shown.reshape(len(X), -1).astype(float), np.ones(len(columns), dtype=bool), columns
    indicators = np.zeros(X.shape[1], dtype=bool)
    if entry.schema is None:
        if entry.name in _INDICATORS:
            indicators[_INDICATORS[entry.name]] = True
        return X, indicators, np.arange(X.shape[1])
    declared = parse_schema(entry.schema).features.values()
    columns = np.repeat(np.arange(len(declared)), [max(1, len(column.words)) for column in declared])
    booleans = np.array([column.kind == "boolean" for column in declared])[columns]
    indicators = booleans | np.array([column.kind == "categories" for column in declared])[columns]
    return np.where(booleans, 0.5 * X + 0.5, X), indicators, columns


@functools.lru_cache(maxsize=2)
def load(name: str) -> UtilitySet:
    """Read a set from a mirror or the network (`PRIVSVM_MIRROR`), and draw its splits.

    Parameters
    ----------
    name : str
        A key of `SETS`.

    Returns
    -------
    UtilitySet
        The set.

    Raises
    ------
    PrivSVMError
        If no source has a file.
    """
    settings: dict[str, Any] = {"scaling": "none"}
    if SETS[name] is not None:
        settings["bounds"] = SETS[name]
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
    sides = ((0.0,), (1.0,)) if indicators.all() else (entry.bounds.lower, entry.bounds.upper)
    lower, upper = (np.array(np.broadcast_to(side, X.shape[1]), dtype=float) for side in sides)
    lower[indicators], upper[indicators] = 0.0, 1.0
    splits = [(arrays[f"train_{s}"], arrays[f"test_{s}"]) for s in range(SPLITS)]
    return UtilitySet(name, X, arrays["y"], lower, upper, indicators, columns, len(description["classes"]), splits)
