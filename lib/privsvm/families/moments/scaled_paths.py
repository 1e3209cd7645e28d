"""Released paths of scaled models, made of trained ones and read again to be averaged with later ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from privsvm.base.feature_steps import Step
from privsvm.families.moments.scaled_descent import EarlierModel, Recipe, ScaledModel
from privsvm.solvers.features.columns import Columns

_KIND = "columns unit direction fourier unit linear"


def read_earlier(
    folder: str, *, classes: np.ndarray, neighbours: str, bounds: Mapping[str, np.ndarray], randomness: str
) -> tuple[EarlierModel, list[Any]]:
    """Read the model in a folder, and list the releases in it.

    Whatever it says, it changes no sensitivity: rows stay unit rows. Raises PrivSVMError for files that are damaged or
    state more than their event, and ValueError for a model that does not fit.
    """
    # Imported late: training does not wait for pydantic.
    from privsvm.base.model_file import plain_labels, read_model

    if not Path(folder).is_dir():
        raise ValueError(f"after={folder!r}: no such folder; give the folder of a saved model")
    path, record = read_model(folder)
    guarantee, labels, codes = record.judged[0], plain_labels(classes.tolist()), [*range(classes.size)]
    arrays: Any = {step.name: step.arrays for step in getattr(path, "steps", ())}
    columns, is_ours = arrays.get("columns", {}), path.kind.replace("noisy_", "") == _KIND
    fits = {
        "it is no model of PrivateLinearClassifier": is_ours and record.history is not None,
        f"its guarantee is {guarantee.status}, not proved": guarantee.status in ("proved", randomness),
        # A release trains on the codes of its schema's classes.
        f"its classes are {record.classes}": labels == record.classes or (record.table and labels == codes),
        f"its relation is {guarantee.neighbours}": guarantee.neighbours == neighbours,
        "it has other columns": all(np.array_equal(columns.get(name), bounds[name]) for name in bounds),
    }
    for problem, holds in fits.items():
        if not holds:
            raise ValueError(f"after={folder!r}: {problem}; give a model of such releases alone, or none")
    weights, fourier = path.arrays(), arrays["fourier"]
    earlier = EarlierModel(
        coef=weights["coef"][0, 0], intercept=weights["intercept"][0, 0], mean=arrays["direction"]["centre"][0, 0],
        columns=Columns(*(columns[name][0, 0].item() for name in Columns._fields)),
        frequencies=fourier["frequencies"][:, : fourier["count"].item()],
        weight=sum(one.weight for one in record.releases),
    )  # fmt: skip
    return earlier, record.releases


def make_path(
    models: Sequence[ScaledModel], recipes: Sequence[Recipe], bounds: dict[str, np.ndarray], n_epsilons: int
) -> dict[str, Any]:
    """Make the weights and steps of a path from E R models, padded to the widest, and the bounds of columns."""

    def stack(arrays: Iterable[np.ndarray]) -> np.ndarray:
        arrays = list(arrays)
        width = max(array.shape[-1] for array in arrays)
        rows = [np.pad(row, [(0, 0)] * (row.ndim - 1) + [(0, width - row.shape[-1])]) for row in arrays]
        return np.reshape(rows, (n_epsilons, -1, *rows[0].shape))

    columns = {
        name: np.reshape([getattr(recipe.columns, name) for recipe in recipes], (n_epsilons, -1))
        for name in Columns._fields
    }
    count = np.reshape([recipe.n_frequencies for recipe in recipes], (n_epsilons, -1))
    # Fewer are the first ones of more: rows with random features are all as wide.
    most, widest = int(count.argmax()), max(model.mean.size for model in models)
    frequencies = recipes[most].frequencies(models[most].mean.size if count.any() else widest)
    steps = (
        Step("columns", **bounds, **columns),
        Step("unit"),
        Step("direction", centre=stack(model.mean for model in models)),
        Step("fourier", frequencies=frequencies, count=count, beside=np.ones(1)),
        Step("unit"),
    )
    coef, intercept = stack(model.coef for model in models), stack(model.intercept for model in models)
    return {"coef": coef, "intercept": intercept, "steps": steps}
