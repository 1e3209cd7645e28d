"""Pipelines whose steps before a private model read no private values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Self

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
)

from privsvm.base.budget import refuse_in_budget
from privsvm.base.estimators import other_code
from privsvm.base.validation import check_consent
from privsvm.data.public_schema import PublicSchema

__all__ = ["PrivatePipeline", "make_private_pipeline", "private_steps"]

# Each number of their result depends on numbers of one row alone, and on nothing that was learnt.
_READ_NO_VALUES = (PublicSchema, Normalizer, Binarizer, PolynomialFeatures)
# Number by number, and rounded correctly: other rows change no bit.
_EXACT_FUNCTIONS = (
    None, np.absolute, np.ceil, np.fabs, np.floor, np.negative, np.positive, np.rint, np.sign, np.sqrt, np.square,
    np.trunc,
)  # fmt: skip


def _has_other_code(step: Any) -> bool:
    """Whether an object has a method of its own in the place of its class's."""
    return any(callable(getattr(type(step), name, None)) for name in getattr(step, "__dict__", ()))


def _reads_rows(step: Any) -> bool:
    """Whether what a step makes of a row may depend on other rows: so unless its declaration tells otherwise."""
    # Subclasses may do what they like with other rows.
    kind = type(step)
    if step is None or isinstance(step, str) or kind in _READ_NO_VALUES or getattr(step, "reads_no_rows", False):
        return False
    if kind is FunctionTransformer:
        # A function of all rows may well subtract their mean.
        return not (step.func in _EXACT_FUNCTIONS or getattr(step.func, "reads_no_rows", False))
    if kind in (OneHotEncoder, OrdinalEncoder):
        # Rare categories are found by counting.
        counted = step.min_frequency is not None or step.max_categories is not None
        return isinstance(step.categories, str) or counted
    if kind is SimpleImputer:
        # An indicator has a column for each feature that misses a value; one that misses all may be dropped.
        kept = step.keep_empty_features and not step.add_indicator
        return step.strategy != "constant" or step.fill_value is None or not kept
    return True


def private_steps(steps: Iterable[tuple[Any, ...]]) -> list[str]:
    """Name the steps that may be fitted to private values.

    Parameters
    ----------
    steps : iterable of tuple
        ``(name, transformer)``, as of a Pipeline, or ``(name, transformer, columns)``; the model is not among them.

    Returns
    -------
    list of str
        ``name (class)``.
    """
    found = []
    for name, step, *columns in steps:
        if any(map(callable, columns)):
            found.append(f"{name} (columns chosen by a function of the rows)")
        if _has_other_code(step):
            found.append(f"{name} ({type(step).__name__} with a method of its own)")
        elif type(step) is Pipeline:
            found += private_steps(step.steps)
        elif type(step) is ColumnTransformer:
            found += private_steps([*step.transformers, ("remainder", step.remainder)])
        elif type(step) is FeatureUnion:
            found += private_steps(step.transformer_list)
        elif _reads_rows(step):
            found.append(f"{name} ({type(step).__name__})")
    return found


def _schemas(steps: Iterable[tuple[Any, ...]]) -> Iterator[PublicSchema]:
    """Yield the public schemas among steps, and among those inside them."""
    for _, step, *_ in steps:
        if isinstance(step, PublicSchema):
            yield step
        if isinstance(step, (Pipeline, ColumnTransformer, FeatureUnion)):
            for name in ("steps", "transformers", "transformer_list"):
                yield from _schemas(getattr(step, name, ()))
            yield from _schemas([("remainder", getattr(step, "remainder", None))])


class PrivatePipeline(Pipeline):  # type: ignore[misc]
    """A Pipeline that ends in a private model, and knows which of its steps take the proof away.

    Steps that are fitted to the rows (a StandardScaler, say) make the guarantee ``claimed``, which needs
    ``allow_unsound=True`` of the model, and are refused in a `privsvm.Budget`. So does every step of which nobody says
    otherwise. Those are known to treat each row by itself: `PublicSchema`, Normalizer, Binarizer, PolynomialFeatures;
    encoders with given categories and no limit on rare ones; imputers with a given constant and
    ``keep_empty_features=True``; FunctionTransformer with a function of NumPy that rounds each number correctly, such
    as ``numpy.sqrt``; and whatever has a true attribute ``reads_no_rows``: your word that other rows change no bit.
    A schema that says ``prescaled: true``, or names persons, makes the guarantee ``claimed``, too: epsilon covers one
    row that was not scaled by others.

    Attributes
    ----------
    guarantee_ : Guarantee
        Of the last step, for the rows that the pipeline was given.
    """

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Fit the steps and the model; see Pipeline."""
        broken = self._broken
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
        if unknown := other_code(self):
            return unknown
        fitted = private_steps(self.steps[:-1])
        reasons = [f"may be fitted to private rows before the model: {', '.join(fitted)}"] if fitted else []
        reasons += [schema.broken_assumption for schema in _schemas(self.steps[:-1]) if schema.broken_assumption]
        return "; ".join(dict.fromkeys(reasons)) or None

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
