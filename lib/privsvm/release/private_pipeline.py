"""Pipelines whose steps before a private model read no private values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
)

from privsvm.base.validation import check_consent
from privsvm.data.public_schema import PublicSchema

__all__ = ["PrivatePipeline", "make_private_pipeline", "private_steps"]

_READ_NO_VALUES = (PublicSchema, FunctionTransformer, Normalizer, Binarizer, PolynomialFeatures)


def _reads_rows(step: Any) -> bool:
    """Whether fitting a step reads values of the rows, as far as its declaration tells."""
    if step is None or isinstance(step, (str, *_READ_NO_VALUES)) or getattr(step, "reads_no_rows", False):
        return False
    if isinstance(step, (OneHotEncoder, OrdinalEncoder)):
        return isinstance(step.categories, str)
    if isinstance(step, SimpleImputer):
        # An indicator has a column for each feature that misses a value.
        return step.strategy != "constant" or step.fill_value is None or step.add_indicator
    if isinstance(step, RBFSampler):
        return isinstance(step.gamma, str)
    return True


def private_steps(steps: Iterable[tuple[Any, ...]]) -> list[str]:
    """Name the steps that are fitted to private values.

    Parameters
    ----------
    steps : iterable of tuple
        ``(name, transformer)``, as of a Pipeline; the model is not among them.

    Returns
    -------
    list of str
        ``name (class)``.
    """
    found = []
    for name, step, *_ in steps:
        if isinstance(step, Pipeline):
            found += private_steps(step.steps)
        elif isinstance(step, ColumnTransformer):
            found += private_steps(step.transformers)
        elif isinstance(step, FeatureUnion):
            found += private_steps(step.transformer_list)
        elif _reads_rows(step):
            found.append(f"{name} ({type(step).__name__})")
    return found


class PrivatePipeline(Pipeline):  # type: ignore[misc]
    """A Pipeline that ends in a private model, and knows which of its steps take the proof away.

    Steps that are fitted to the rows (a StandardScaler, say) make the guarantee ``claimed``, which needs
    ``allow_unsound=True`` of the model. Steps that are declared to be public do not: `PublicSchema`,
    FunctionTransformer and Normalizer, encoders with given categories, imputers with a given constant, and whatever
    says ``reads_no_rows``.

    Attributes
    ----------
    guarantee_ : Guarantee
        Of the last step, for the rows that the pipeline was given.
    """

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Fit the steps and the model; see Pipeline."""
        fitted = private_steps(self.steps[:-1])
        broken = f"fitted to private rows before the model: {', '.join(fitted)}"
        if fitted:
            check_consent(getattr(self.steps[-1][1], "allow_unsound", False), f"nothing is proved: {broken}")
        super().fit(X, y, **params)
        model = self.steps[-1][1]
        if fitted:
            model.guarantee_ = model.guarantee_.with_broken_assumption(broken)
        return self

    @property
    def guarantee_(self) -> Any:
        return self.steps[-1][1].guarantee_

    @property
    def classes_(self) -> np.ndarray:
        classes: np.ndarray = self.steps[-1][1].classes_
        return classes

    def save(self, path: Any) -> None:
        """Write the model with its schema as files; see `privsvm.save`."""
        from privsvm.release.model import save

        save(self, path)


def make_private_pipeline(*steps: Any) -> PrivatePipeline:
    """Make a `PrivatePipeline`, its steps named as by `sklearn.pipeline.make_pipeline`.

    Parameters
    ----------
    *steps : estimator
        Transformers, and a private model.

    Returns
    -------
    PrivatePipeline

    Examples
    --------
    >>> from privsvm import PrivateSVMClassifier, make_private_pipeline
    >>> from sklearn.preprocessing import Normalizer, StandardScaler
    >>> model = PrivateSVMClassifier(classes=[0, 1])
    >>> rows, labels = [[-1.0, 0.1], [1.0, 0.2]] * 50, [0, 1] * 50
    >>> make_private_pipeline(Normalizer(), model).fit(rows, labels).guarantee_.status
    'proved'
    >>> model = model.set_params(allow_unsound=True)
    >>> make_private_pipeline(StandardScaler(), model).fit(rows, labels).guarantee_.status
    'claimed'
    """
    from sklearn.pipeline import make_pipeline

    return PrivatePipeline(make_pipeline(*steps).steps)
