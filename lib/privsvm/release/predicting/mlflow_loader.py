"""Loads what `privsvm export --to mlflow` wrote, without pickle: the name of its function is MLflow's."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import Any

from privsvm.errors import PrivSVMError
from privsvm.release.documents.calibration import COVERAGE
from privsvm.release.predicting.model import ReleasedModel, load

METHODS = ("predict", "predict_proba", "predict_set")


def _load_pyfunc(path: str) -> ServedModel:
    """Read the model of an MLflow model of flavour ``python_function``."""
    return ServedModel(load(path))


class ServedModel:
    """A released model as MLflow calls it: its errors are answers 400 with one line for the client."""

    def __init__(self, model: ReleasedModel) -> None:
        columns = {} if model.schema_ is None else model.schema_.features
        self._model = model
        spellings = [
            (name, spelling)
            for name, column in columns.items()
            for word in column.words
            # Of markers of missing cells, pandas knows no other ones.
            for spelling in ([word, word.lower(), word.upper(), word.title()] if column.ignore_case else [word])
        ]
        lost = _lost_words({spelling for _, spelling in spellings})
        self._lost = {name: spelling for name, spelling in spellings if spelling in lost}

    def predict(self, rows: Any, params: Mapping[str, Any] | None = None) -> Any:
        """Predict labels (n,), or a frame of probabilities or sets (n, c) with the labels as columns.

        `params` may name another of `METHODS`, and the coverage of prediction sets.
        """
        from mlflow.exceptions import MlflowException
        from pandas import DataFrame

        method, coverage = (params or {}).get("method", METHODS[0]), (params or {}).get("coverage", COVERAGE)
        try:
            if method not in METHODS:
                raise PrivSVMError(f"params.method={method!r}: must be one of {', '.join(METHODS)}")
            for name, word in self._lost.items():
                if rows[name].isna().any():
                    raise PrivSVMError(
                        f"X: column {name!r} has missing cells, which a reader of CSV makes of category {word!r}; send "
                        "JSON, with empty texts for missing cells"
                    )
            answers = getattr(self._model, method)(rows, *([coverage] if method == "predict_set" else []))
        except PrivSVMError as error:
            raise MlflowException.invalid_parameter_value(str(error)) from None
        return answers if method == "predict" else DataFrame(answers, columns=self._model.classes_.astype(str))


def _lost_words(words: set[str]) -> set[str]:
    """Find the words of a CSV that pandas reads as missing cells, such as NA for Namibia."""
    from pandas import DataFrame, read_csv

    listed = DataFrame({"word": sorted(words)}, dtype=object)
    read = read_csv(io.StringIO(listed.to_csv(index=False, quoting=csv.QUOTE_ALL)), dtype=object)
    return set(listed["word"][read["word"].isna()])
