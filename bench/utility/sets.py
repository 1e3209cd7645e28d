"""Datasets of the utility table: real tabular data with public bounds and label-blind splits.

Every library gets the same rows: unscaled features, the public bounds of every feature, label codes, and ten splits
with a fifth of the rows for testing. Bounds that the catalogue lacks are stated here with their origin; none is taken
from the rows.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from privsvm_bench.datasets.catalogue import raw_files, resolve
from privsvm_bench.datasets.download import download_raw
from privsvm_bench.datasets.prepare import prepare
from privsvm_bench.datasets.prepared import rows_of_arrays

__all__ = ["SETS", "SPLITS", "UtilitySet", "load"]

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
}


# Features that are declared to be 0 or 1.
_INDICATORS = {"a9a": slice(None), "w8a": slice(None), "mushrooms": slice(None), "ijcnn1": slice(10)}


@dataclass(frozen=True)
class UtilitySet:
    """One set.

    Attributes
    ----------
    name : str
        Its name in the catalogue.
    X : ndarray of shape (n, d)
        Features, dense, in the units of the file.
    y : ndarray of shape (n,)
        Label codes from 0.
    lower, upper : ndarray of shape (d,)
        Public bounds of the features.
    indicators : ndarray of bool of shape (d,)
        Features that are declared to be 0 or 1.
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
    n_classes: int
    splits: list[tuple[np.ndarray, np.ndarray]]


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
            download_raw(name, file, folder / file, settings)
    protocol = {"kind": "holdout", "repeats": SPLITS, "test_size": 0.2, "stratified": False}
    arrays, description = prepare(entry, folder, protocol, _SEED, "utility")
    X = rows_of_arrays("X", arrays)
    X = np.asarray(X if isinstance(X, np.ndarray) else X.toarray(), dtype=float)
    sides = (entry.bounds.lower, entry.bounds.upper)
    lower, upper = (np.array(np.broadcast_to(side, X.shape[1]), dtype=float) for side in sides)
    indicators = np.zeros(X.shape[1], dtype=bool)
    if name in _INDICATORS:
        indicators[_INDICATORS[name]] = True
    splits = [(arrays[f"train_{s}"], arrays[f"test_{s}"]) for s in range(SPLITS)]
    return UtilitySet(name, X, arrays["y"], lower, upper, indicators, len(description["classes"]), splits)
