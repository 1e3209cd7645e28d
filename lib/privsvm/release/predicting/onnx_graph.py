"""A released model as a graph of ONNX, in double precision.

The graph has one input for each column: numbers of double precision, NaN where they are missing, and for categories
texts, empty where they are missing. Dates are days since 1970-01-01, booleans 1 or 0.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from privsvm.errors import PrivSVMError
from privsvm.release.predicting.exported_scores import TINY, write_scores
from privsvm.release.predicting.model import ReleasedModel
from privsvm.solvers.features.columns import Columns
from privsvm.tables.labels import normalise_label, spell_in_any_case
from privsvm.tables.schema import Column
from privsvm.tables.tables import category_codes

# Old enough for the runtimes in use: of operators, of those for machine learning, and of the file.
_OPSET, _ML_OPSET, _IR = 17, 2, 8
# Texts of one category in capital and small letters, each of which the graph holds.
_MOST_SPELLINGS = 1 << 15
_OUTPUTS = ("predicted", "scores")


def _onnx() -> Any:
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ImportError:
        raise PrivSVMError("ONNX needs the package onnx: run `pip install onnx`") from None
    return onnx


class _Graph:
    """Nodes of a graph; a backend of `write_scores` whose values are names of tensors."""

    def __init__(self, columns: Mapping[str, Column]) -> None:
        self.onnx = _onnx()
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        # Longer than the names of all columns.
        self._prefix = "_" * (1 + max(map(len, columns)))

    def _new_name(self) -> str:
        return f"{self._prefix}{len(self.nodes) + len(self.constants)}"

    def constant(self, values: Any, kind: type = np.float64) -> str:
        """Add a constant; return its name."""
        name = self._new_name()
        array: np.ndarray = np.array(values, dtype=kind)
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def node(self, operator: str, *inputs: str, out: str | None = None, **attributes: Any) -> str:
        """Add a node; return the name of its output."""
        out = out or self._new_name()
        self.nodes.append(self.onnx.helper.make_node(operator, inputs, [out], **attributes))
        return out

    def pick(self, rows: str, columns: Any) -> str:
        """Pick columns of a table."""
        return self.node("Gather", rows, self.constant(columns, np.int64), axis=1)

    def cut(self, rows: str, low: Any, high: Any) -> str:
        """Cut numbers to bounds."""
        return self.node("Min", self.node("Max", rows, self.constant(low)), self.constant(high))

    def ratio(self, rows: str, factor: float, less: Any, divisor: Any) -> str:
        """Multiply, subtract and divide."""
        product = self.node("Mul", rows, self.constant(factor))
        return self.node("Div", self.node("Sub", product, self.constant(less)), self.constant(divisor))

    def features(self, columns: Mapping[str, Column], decimal: str | None) -> str:
        """Encode the columns as `privsvm.tables.tables.Encoder.features` does."""
        tables = {name: self._indicators(name, column) for name, column in columns.items() if column.words}
        numbers = [name for name, column in columns.items() if not column.words]
        parts = list(tables.values())
        if numbers:
            last = self.constant([1], np.int64)
            scalars = [columns[name] for name in numbers]
            given = self.node("Concat", *(self.node("Unsqueeze", name, last) for name in numbers), axis=1)
            parts.insert(0, self._scale_numbers(given, scalars, decimal))
        # Numbers are first in the table, and where the schema has them among the features.
        order: list[int] = []
        after, before = len(numbers), 0
        for column in columns.values():
            if column.words:
                order += range(after, after + len(column.words))
                after += len(column.words)
            else:
                order.append(before)
                before += 1
        return self.pick(self.node("Concat", *parts, axis=1), order)

    def _scale_numbers(self, numbers: str, columns: list[Column], decimal: str | None) -> str:
        low, high = np.array([column.limits for column in columns]).T
        missing = self.node("Or", self.node("IsNaN", numbers), self.node("IsInf", numbers))
        marks = [column.missing_numbers(decimal) for column in columns]
        gaps = self.constant([column.rounding for column in columns])
        for row in itertools.zip_longest(*marks, fillvalue=np.nan):
            distance = self.node("Abs", self.node("Sub", numbers, self.constant(row)))
            missing = self.node("Or", missing, self.node("LessOrEqual", distance, gaps))
        filled = self.node("Where", missing, self.constant([column.fill_number for column in columns]), numbers)
        middle, width = 0.5 * (0.5 * low + 0.5 * high), 0.25 * high - 0.25 * low
        return self.cut(self.ratio(self.cut(filled, low, high), 0.5, middle, width), -1.0, 1.0)

    def _indicators(self, name: str, column: Column) -> str:
        words, unknown, missing = category_codes(column)
        # The last row stands for none of them.
        rows = np.vstack([np.eye(len(column.words)), np.zeros(len(column.words))])
        spellings = words | {normalise_label(word): code for code, word in enumerate(column.words)}
        if column.ignore_case:
            try:
                folded = {
                    spelling: words[word] for word in words for spelling in spell_in_any_case(word, _MOST_SPELLINGS)
                }
            except ValueError as error:
                raise PrivSVMError(f"column {name!r}: {error}; export to sql or mlflow") from None
            spellings |= folded
        keys = {"": missing, **{word: code for word, code in spellings.items() if word}}
        code = self.node(
            "LabelEncoder", name, domain="ai.onnx.ml", keys_strings=list(keys),
            values_int64s=[value % len(rows) for value in keys.values()], default_int64=unknown % len(rows),
        )  # fmt: skip
        return self.node("Gather", self.constant(rows), code, axis=0)

    def columns(self, rows: str, lower: Any, upper: Any, indicators: Any, **columns: Any) -> str:
        features, stays = Columns(**columns), indicators != 0.0
        rows = self.cut(rows, lower, upper)
        if not np.all(stays):
            wide = upper > lower
            half = np.where(wide, upper / 2.0 - lower / 2.0, 1.0)
            doubled = self.node("Mul", self.ratio(rows, 0.5, lower / 2.0, half), self.constant(2.0))
            mapped = self.node("Sub", doubled, self.constant(np.where(wide, 1.0, 0.0)))
            rows = self.node("Where", self.constant(stays, np.bool_), rows, mapped)
        parts = [rows]
        if features.constant > 0.0:
            # One number of each row, without its value.
            zeros = self.node("Mul", self.pick(rows, [0]), self.constant(0.0))
            parts.append(self.node("Add", zeros, self.constant(features.constant)))
        numbers = np.flatnonzero(~stays)
        if features.n_hats > 0 and numbers.size:
            centres, width = np.linspace(-1.0, 1.0, features.n_hats, retstep=True)
            cells = self.node("Unsqueeze", self.pick(rows, numbers), self.constant([2], np.int64))
            distances = self.node(
                "Div", self.node("Abs", self.node("Sub", cells, self.constant(centres))), self.constant(width)
            )
            heights = self.node("Max", self.node("Sub", self.constant(1.0), distances), self.constant(0.0))
            hats = self.node("Mul", heights, self.constant(features.hat_weight))
            parts.append(self.node("Reshape", hats, self.constant([0, numbers.size * features.n_hats], np.int64)))
        return self.node("Concat", *parts, axis=1)

    def unit(self, rows: str) -> str:
        return self._divide_by_norm(rows)

    def direction(self, rows: str, centre: np.ndarray) -> str:
        return self._divide_by_norm(self.node("Sub", rows, self.constant(centre)))

    def _divide_by_norm(self, rows: str) -> str:
        squares = self.node("ReduceSum", self.node("Mul", rows, rows), self.constant([1], np.int64), keepdims=1)
        return self.node("Div", rows, self.node("Max", self.node("Sqrt", squares), self.constant(TINY)))

    def fourier(self, rows: str, frequencies: np.ndarray, count: int, beside: np.ndarray) -> str:
        angles = self.node("MatMul", rows, self.constant(frequencies[:, :count]))
        waves = self.node("Concat", self.node("Cos", angles), self.node("Sin", angles), axis=1)
        features = self.node("Div", waves, self.constant(np.sqrt(count)))
        return self.node("Concat", rows, features, axis=1) if beside.any() else features

    def scores(self, rows: str, coef: np.ndarray, intercept: np.ndarray) -> str:
        return self.node(
            "Add", self.node("MatMul", rows, self.constant(coef.T)), self.constant(intercept), out=_OUTPUTS[1]
        )


def onnx_model(model: ReleasedModel, description: str) -> bytes:
    """Write a released model, with a schema, as an ONNX file with a description.

    Raises PrivSVMError if the package onnx is missing, or a column has the name of an output.
    """
    assert model.schema_ is not None
    columns = model.schema_.features
    for name in _OUTPUTS:
        if name in columns:
            raise PrivSVMError(f"column {name!r}: an output of the graph has this name; export to sql")
    graph = _Graph(columns)
    onnx, types = graph.onnx, graph.onnx.TensorProto
    scores = write_scores(graph, model._path, graph.features(columns, model.schema_.decimal), model.record.n_features)
    labels, is_text = np.array(model.record.classes), model.classes_.dtype.kind == "U"
    n_scores = model._path.intercept.shape[-1]  # type: ignore[attr-defined]
    if n_scores == 1:
        code = graph.node("Cast", graph.node("Greater", scores, graph.constant(0.0)), to=types.INT64)
        code = graph.node("Squeeze", code, graph.constant([1], np.int64))
    else:
        code = graph.node("ArgMax", scores, axis=1, keepdims=0)
    kind = object if is_text else labels.dtype.type
    graph.node("Gather", graph.constant(labels, kind), code, axis=0, out=_OUTPUTS[0])
    label_type = types.STRING if is_text else onnx.helper.np_dtype_to_tensor_dtype(labels.dtype)
    info = onnx.helper.make_tensor_value_info
    made = onnx.helper.make_graph(
        graph.nodes,
        "privsvm",
        [info(name, types.STRING if column.words else types.DOUBLE, ["n"]) for name, column in columns.items()],
        [info(_OUTPUTS[0], label_type, ["n"]), info(_OUTPUTS[1], types.DOUBLE, ["n", n_scores])],
        graph.constants,
    )
    domains = [onnx.helper.make_opsetid("", _OPSET), onnx.helper.make_opsetid("ai.onnx.ml", _ML_OPSET)]
    finished = onnx.helper.make_model(made, opset_imports=domains, ir_version=_IR, producer_name="PrivSVM")
    finished.doc_string = description
    data: bytes = finished.SerializeToString()
    return data
