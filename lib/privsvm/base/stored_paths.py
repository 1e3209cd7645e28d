"""Released models from their stored arrays; see `privsvm.base.released`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from privsvm.base.released import (
    BlockPath,
    CentredLinearPath,
    ConstantPath,
    FourierPath,
    KernelPath,
    LinearPath,
    OneVsOneLinearPath,
    OneVsRestKernelPath,
    PredictionsPath,
    RandomKernelPath,
    ReleasedPath,
    StandardizedLinearPath,
    TreesPath,
    UnitLinearPath,
)
from privsvm.base.scaled_paths import ColumnLinearPath, ScaledLinearPath
from privsvm.errors import PrivSVMError, nearest_name

__all__ = ["path_class", "path_from_arrays"]


def path_class(kind: str) -> type[ReleasedPath]:
    """Return the class of a stored path; raise PrivSVMError if its kind is unknown."""
    paths = (
        LinearPath, UnitLinearPath, CentredLinearPath, StandardizedLinearPath, ScaledLinearPath, ColumnLinearPath,
        OneVsOneLinearPath, BlockPath, RandomKernelPath,
        FourierPath, KernelPath, OneVsRestKernelPath, ConstantPath, PredictionsPath, TreesPath,
    )  # fmt: skip
    kinds: dict[str, type[ReleasedPath]] = {cls.kind: cls for cls in paths}
    if kind not in kinds:
        raise PrivSVMError(f"model file: kind {kind!r} is unknown; {nearest_name(kind, kinds)}")
    return kinds[kind]


def path_from_arrays(kind: str, arrays: Mapping[str, np.ndarray], **common: Any) -> ReleasedPath:
    """Rebuild a path from its stored arrays.

    `arrays` come from `ReleasedPath.arrays`, and `common` has the attributes of `ReleasedPath`. Raises PrivSVMError if
    the kind is unknown, or an array is missing, or is not such as a model of this kind has.
    """
    missing = set(path_class(kind).array_names) - set(arrays)
    if missing:
        raise PrivSVMError(f"model file: array {sorted(missing)[0]!r} is missing; delete the model and run again")
    stored: dict[str, Any] = {**arrays, **common}
    path = path_class(kind)(**stored)
    path.check_arrays()
    return path
