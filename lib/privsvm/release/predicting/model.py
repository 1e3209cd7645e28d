"""A released model that was read from its files: it predicts, and has a guarantee."""

from __future__ import annotations

import dataclasses
import functools
import os
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np

from privsvm.base.model_file import RECORD, Description, ModelFile, Protection, read_model, write_model
from privsvm.base.released import ReleasedPath
from privsvm.errors import PrivSVMError, list_names
from privsvm.numerics.compiled.threads import one_blas_thread
from privsvm.privacy.gate import Guarantee
from privsvm.release.documents.calibration import COVERAGE, Calibration, HeldBackCounts
from privsvm.release.documents.explanation import Explanation
from privsvm.tables.delimited import Tally
from privsvm.tables.schema import Schema, parse_schema
from privsvm.tables.tables import Encoder, read_chunks, take_columns

NOT_CALIBRATED = "probabilities are not calibrated: a release with --hold-back 0.1 calibrates them on rows held back"


def probabilities(scores: np.ndarray) -> np.ndarray:
    """Turn decision values (n, k) into numbers (n, c) that add up to 1; k is 1 for two classes decided by sign.

    They follow the logistic curve of the decision values, a fixed one, which no rows have calibrated.
    """
    if scores.shape[1] == 1:
        scores = np.concatenate([np.zeros_like(scores), scores], axis=1)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares: np.ndarray = weights / weights.sum(axis=1, keepdims=True)
    return shares


class ReleasedModel:
    """A released model, with its record: a classifier for scikit-learn's tools, which does not train.

    Predicting needs NumPy, and nothing is compiled for linear models. `classes_` are the labels (c,), sorted as these
    tools expect, and `schema_` the schema by which tables become rows, or None. `n_features_in_` columns are read; with
    a schema, `feature_names_in_` are their names. scikit-learn's `clone` returns the model itself.
    """

    def __init__(self, path: ReleasedPath, record: ModelFile) -> None:
        self._path, self.record = path, record
        self._order = np.argsort(record.classes)
        self.classes_ = np.array(record.classes)[self._order]
        self.n_features_in_ = record.n_features
        self.schema_: Schema | None = None if record.table is None else parse_schema(record.table, "the model's schema")
        self._encoder = None
        if self.schema_ is not None:
            self._encoder = Encoder(self.schema_)
            self.feature_names_in_ = np.array([*self.schema_.features], dtype=object)
            self.n_features_in_ = len(self.feature_names_in_)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        read = InputTags(sparse=self.schema_ is None, allow_nan=self.schema_ is not None)
        target = TargetTags(required=True)
        return Tags(estimator_type="classifier", target_tags=target, classifier_tags=ClassifierTags(), input_tags=read)

    def __sklearn_clone__(self) -> Self:
        return self

    def fit(self, X: Any = None, y: Any = None) -> NoReturn:
        """Raise PrivSVMError: a released model does not train."""
        raise PrivSVMError(
            "fit: a released model does not train; wrap it in `sklearn.frozen.FrozenEstimator`, or release another one"
        )

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Compute the share of rows whose label is predicted."""
        from sklearn.metrics import accuracy_score

        return float(accuracy_score(y, self.predict(X), sample_weight=sample_weight))

    @functools.cached_property
    def guarantee_(self) -> Guarantee:
        """The guarantee for rows, judged again at its first use; see `ModelFile.judged`."""
        return self.record.judged[0]

    @functools.cached_property
    def protection_(self) -> Protection:
        """Who is protected, and how well: computed from the event at the stated delta when it is first asked for."""
        return self.record.judged[1]

    def scores(self, X: Any) -> np.ndarray:
        """Compute decision values (n, k) of rows; k is 1 for two classes decided by sign, else c.

        They are in the order of `record.classes`, whose second one is the positive class of two.

        With a schema, X is a data frame or mapping with its columns, a mapping of single values for one row, or rows
        with its columns in their order. Without one, X is an array or sparse matrix (n, d) with the columns in the
        order of training. Raises PrivSVMError for rows of another width, numbers that are not finite, columns that are
        missing or there twice, numbers in place of categories such as 007, and tables where there is no schema.
        """
        if self._encoder is not None:
            X = self._encoder.features(take_columns(X, self._encoder.schema, check_cells=True))
        elif hasattr(X, "columns") or isinstance(X, Mapping):
            raise PrivSVMError(
                "X: is a table, and the model has no schema to read it by; give an array with the columns in the order "
                "of training"
            )
        elif not hasattr(X, "indptr"):
            try:
                X = np.asarray(X, dtype=np.float64)
            except (TypeError, ValueError):
                raise PrivSVMError(f"X: must hold rows of {self.n_features_in_} numbers each") from None
        return self._scores(X)

    @one_blas_thread()
    def _scores(self, X: Any) -> np.ndarray:
        """Compute `scores` of features (n, d)."""
        if X.ndim != 2 or X.shape[1] != self.record.n_features:
            shape = "x".join(map(str, X.shape))
            raise PrivSVMError(f"X: has shape {shape}, and the model reads rows of {self.record.n_features} features")
        if not np.isfinite(X.data if hasattr(X, "indptr") else X).all():
            raise PrivSVMError("X: holds a number that is not finite; fill missing values as for training")
        scores: np.ndarray = self._path.scores(X, 0)[0]
        return scores

    def decision_function(self, X: Any) -> np.ndarray:
        """Decision values, as of the estimator: (n,) for two classes, positive for ``classes_[1]``, else (n, c)."""
        scores = self.scores(X)
        if len(self.classes_) > 2:
            return scores[:, self._order]
        values = scores[:, -1] if scores.shape[1] == 1 else scores[:, 1] - scores[:, 0]
        return values if self._order[0] == 0 else -values

    def predict(self, X: Any) -> np.ndarray:
        """Predict the labels (n,)."""
        return self._labels(self.scores(X))

    @functools.cached_property
    def calibration_(self) -> Calibration | None:
        """What rows that were held back say of probabilities and prediction sets; None where none were."""
        if self.record.held_back is None:
            return None
        try:
            return HeldBackCounts.from_json(self.record.held_back, len(self.record.classes)).calibration
        except ValueError as error:
            raise PrivSVMError(f"{RECORD}: {error}; get the model again") from None

    def predict_proba(self, X: Any) -> np.ndarray:
        """Compute probabilities (n, c); a warning says where they are not calibrated, see `probabilities`."""
        if self.calibration_ is None:
            warnings.warn(NOT_CALIBRATED, UserWarning, stacklevel=2)
        return self._shares(self.scores(X))

    def predict_set(self, X: Any, coverage: float = COVERAGE) -> np.ndarray:
        """Compute prediction sets (n, c): True for the classes of `classes_` in the set of a row.

        X is as in `scores`. At least the share `coverage` of new rows has a set with their class. This holds with 97.5
        % confidence, over the rows that were held back and the noise on their counts. Raises PrivSVMError for a model
        that was released without ``--hold-back``.
        """
        return self._sets(self.scores(X), coverage)

    def _shares(self, scores: np.ndarray) -> np.ndarray:
        calibration = self.calibration_
        shares = probabilities(scores) if calibration is None else calibration.probabilities(self._path, scores)
        return shares[:, self._order]

    def _sets(self, scores: np.ndarray, coverage: float) -> np.ndarray:
        if self.calibration_ is None:
            raise PrivSVMError("no rows were held back for prediction sets: release with --hold-back 0.1")
        if not 0.0 < coverage < 1.0:
            raise PrivSVMError(f"coverage={coverage!r}: must lie between 0 and 1")
        return self.calibration_.sets(self._path, scores, coverage)[:, self._order]

    def _labels(self, scores: np.ndarray) -> np.ndarray:
        labels: np.ndarray = np.array(self.record.classes)[self._path.codes(scores[None])[0]]
        return labels

    def predict_table(
        self,
        path: str | os.PathLike[str],
        keep: tuple[str, ...] = (),
        tally: Tally | None = None,
        coverage: float | None = None,
    ) -> Iterator[tuple[np.ndarray, np.ndarray, list[Any], np.ndarray | None]]:
        """Predict the rows of a file of delimited text with the schema's columns, block by block.

        Yields labels (n,), shares (n, c), the values of the columns in `keep`, and, with a coverage, prediction sets
        (n, c), else None. `tally` counts the records, the malformed ones, which are predicted as rows without any
        value, and the texts that are unknown or cannot be read.
        """
        if self._encoder is None:
            raise PrivSVMError("the model has no schema: call predict(X) in Python, or release it with one")
        tally = Tally() if tally is None else tally
        for columns in read_chunks(path, self._encoder.schema, keep, tally=tally):
            scores = self._scores(self._encoder.features(columns, tally.unread))
            sets = None if coverage is None else self._sets(scores, coverage)
            yield self._labels(scores), self._shares(scores), [columns[name] for name in keep], sets

    def explain(self) -> Explanation:
        """Explain the scores by the columns of the table, with intervals from the noise that is known.

        Reads no rows and spends no epsilon. `columns` of the result have shares, `shape` the effect of a column's
        values, and `contributions` splits the scores of rows. Raises PrivSVMError for a model whose scores are no sums
        over features.
        """
        return Explanation(self._path, self.record.n_features, self.schema_)

    def explain_table(
        self, path: str | os.PathLike[str], keep: tuple[str, ...] = (), tally: Tally | None = None
    ) -> Iterator[tuple[np.ndarray, list[Any], np.ndarray, np.ndarray]]:
        """Split the decision values of the rows of a file, block by block.

        Yields labels (n,), the values of the columns in `keep`, and the arrays of `Explanation.contributions`.
        """
        if self._encoder is None:
            raise PrivSVMError("the model has no schema: call explain().contributions(X) in Python")
        explanation, tally = self.explain(), Tally() if tally is None else tally
        for columns in read_chunks(path, self._encoder.schema, keep, tally=tally):
            X = self._encoder.features(columns, tally.unread)
            yield self._labels(self._scores(X)), [columns[name] for name in keep], *explanation.contributions(X)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model once more; see `save`."""
        names = (field.name for field in dataclasses.fields(Description))
        described = Description(**{name: getattr(self.record, name) for name in names})
        write_model(path, self._path, described, self.guarantee_, self.protection_)


def check_names(names: list[str]) -> None:
    """Raise PrivSVMError where two columns of predictions would have one name."""
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise PrivSVMError(f"--keep: two columns would have the name {list_names(twice)}; keep each once, or rename it")


def load(path: str | os.PathLike[str]) -> ReleasedModel:
    """Read a released model.

    Parameters
    ----------
    path : path-like
        The folder with `model.npz` and `model.json`.

    Raises
    ------
    PrivSVMError
        If a file is missing, damaged, or of a newer version. `guarantee_` and `protection_` raise it where the file
        says more than its event does.
    """
    return ReleasedModel(*read_model(path))


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted model, or a Pipeline that begins with a `PublicSchema`, as files.

    Parameters
    ----------
    model : estimator, Pipeline or ReleasedModel
        Fitted.
    path : path-like
        The folder to write `model.npz` and `model.json` to.

    Raises
    ------
    PrivSVMError
        For a model of another kind, or a Pipeline with other steps.
    """
    table = None
    steps = list(getattr(model, "steps", []))
    if steps:
        from privsvm.tables.public_schema import PublicSchema

        for name, step in steps[:-1]:
            if type(step) is not PublicSchema or len(steps) != 2:
                raise PrivSVMError(f"step {name!r} cannot be saved: a model file holds one PublicSchema and one model")
            broken = step.broken_assumption
            if broken is not None and steps[-1][1].guarantee_.theorem_holds:
                raise PrivSVMError(f"step {name!r}: {broken}; fit it with privsvm.make_private_pipeline")
            table = step.declaration.to_json()
        model = steps[-1][1]
    if isinstance(model, ReleasedModel):
        model.save(path)
    elif hasattr(model, "_path") and hasattr(model, "save"):
        Path(path).mkdir(parents=True, exist_ok=True)
        model.save(path, table=table)
    else:
        raise PrivSVMError(f"{type(model).__name__} cannot be saved: fit a classifier of PrivSVM first")
