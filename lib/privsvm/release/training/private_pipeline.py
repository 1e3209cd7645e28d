"""Pipelines whose steps before a private model read no private values."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.pipeline import Pipeline

from privsvm.base.budget import refuse_in_budget
from privsvm.base.estimators import reason_if_subclass
from privsvm.base.model_file import read_model
from privsvm.base.parameters import check_consent
from privsvm.tables.public_schema import PublicSchema


class PrivatePipeline(Pipeline):  # type: ignore[misc]
    """A Pipeline that ends in a private model, and whose steps are known to treat each row by itself.

    `PublicSchema` is the one step that keeps the proof: it always returns dense rows, and other rows change no bit of a
    row. Every other step makes the guarantee ``claimed``, which needs ``allow_unsound=True`` of the model, and is
    refused in a `privsvm.Budget`. That includes steps of scikit-learn that look row-wise: the container that a
    ColumnTransformer returns depends on all rows, and a function may treat a matrix in another way than its rows.

    A schema that says ``prescaled: true``, or names persons, makes the guarantee ``claimed``, too: epsilon covers one
    row that was not scaled by others.

    A function of single rows (a logarithm, a norm) can be applied before the pipeline, one row at a time: the
    guarantee's first assumption is that rows reach the pipeline untouched by other rows. `guarantee_` is the guarantee
    of the last step, for the rows that the pipeline was given.
    """

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Fit the steps and the model; see Pipeline."""
        broken, after = self._broken, getattr(self.steps[-1][1], "after", None)
        for _, step in self.steps[:-1] if after is not None else []:
            if type(step) is PublicSchema:
                read_model(str(after))[1].check_schema(step.declaration.to_json(), after)
        if broken is None:
            super().fit(X, y, **params)
            return self
        model = self.steps[-1][1]
        check_consent(getattr(model, "allow_unsound", False), f"nothing is proved: {broken}")
        refuse_in_budget(broken)
        super().fit(X, y, **params)
        model.break_guarantee(broken)
        return self

    @property
    def _broken(self) -> str | None:
        """Why nothing is proved, if steps or a derived class take the proof away."""
        if unknown := reason_if_subclass(self):
            return unknown
        steps = self.steps[:-1]
        unknown_steps = ", ".join(
            f"{name} ({type(step).__name__})"
            for name, step in steps
            if step is not None
            and type(step) is not str
            and (type(step) is not PublicSchema or reason_if_subclass(step))
        )
        reasons = [
            f"steps that may mix private rows before the model: {unknown_steps}" if unknown_steps else None,
            reason_if_subclass(self.steps[-1][1]),
            *(step.broken_assumption for _, step in steps if type(step) is PublicSchema),
        ]
        return "; ".join(filter(None, reasons)) or None

    @property
    def guarantee_(self) -> Any:
        guarantee, broken = self.steps[-1][1].guarantee_, self._broken
        # Steps may have come after the fit.
        if broken is None or broken in (guarantee.reason or ""):
            return guarantee
        return guarantee.with_broken_assumption(broken)

    @property
    def classes_(self) -> np.ndarray:
        classes: np.ndarray = self.steps[-1][1].classes_
        return classes

    def save(self, path: Any) -> None:
        """Write the model with its schema as files; see `privsvm.save`."""
        from privsvm.release.predicting.model import save

        save(self, path)


def make_private_pipeline(*steps: Any) -> PrivatePipeline:
    """Make a `PrivatePipeline`, its steps named as by `sklearn.pipeline.make_pipeline`.

    Parameters
    ----------
    *steps : estimator
        Transformers, and a private model.

    Examples
    --------
    >>> from privsvm import PrivateSVMClassifier, PublicSchema, make_private_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> schema = PublicSchema({
    ...     "name": "wards", "label": "died", "classes": ["no", "yes"],
    ...     "columns": {"age": {"bounds": [0, 100], "fill": 50}},
    ... })
    >>> model = PrivateSVMClassifier(classes=["no", "yes"])
    >>> rows, labels = {"age": [20, 80] * 50}, ["no", "yes"] * 50
    >>> make_private_pipeline(schema, model).fit(rows, labels).guarantee_.status
    'proved'
    >>> model = model.set_params(allow_unsound=True)
    >>> make_private_pipeline(schema, StandardScaler(), model).fit(rows, labels).guarantee_.status
    'claimed'
    """
    from sklearn.pipeline import make_pipeline

    return PrivatePipeline(make_pipeline(*steps).steps)
