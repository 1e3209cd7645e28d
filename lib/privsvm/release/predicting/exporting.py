"""Write a released model for other programs: a graph of ONNX, a query of SQL, or a model of MLflow without pickle.

The export is public: it follows from the released files, and costs no epsilon.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from privsvm.errors import PrivSVMError, printable
from privsvm.files import atomic_path, write_text
from privsvm.release.predicting.mlflow_folder import write_mlflow_folder
from privsvm.release.predicting.model import ReleasedModel, load
from privsvm.release.predicting.onnx_graph import onnx_model
from privsvm.release.predicting.sql_query import sql_query


def export(
    folder: str | os.PathLike[str],
    to: str,
    out: str | os.PathLike[str],
    *,
    table: str = "rows",
    keep: Sequence[str] = (),
) -> None:
    """Write a released model, with its schema, in another format: mlflow, onnx or sql.

    `out` is a file or, for MLflow, a folder that must not exist. A query reads `table` and returns the columns in
    `keep` before its predictions. Raises PrivSVMError if the model has no schema, is of a kind that cannot be exported,
    or a package is missing; for MLflow, if it has a card and `verify` refuses it.
    """
    folder, out = Path(folder), Path(out)
    model = load(folder)
    if to == "mlflow":
        write_mlflow_folder(folder, out, model)
        return
    if model.schema_ is None:
        raise PrivSVMError(f"{folder}: the model has no schema, which says what its columns are; release it with one")
    if to == "sql":
        write_text(out, f"-- {printable(_summary(model))}\n{sql_query(model, table, keep)};\n")
        return
    graph = onnx_model(model, _summary(model))
    with atomic_path(out) as temporary:
        temporary.write_bytes(graph)


def _summary(model: ReleasedModel) -> str:
    """Describe the model and its guarantee."""
    record, protection = model.record, model.protection_
    proved = "nothing is proved about it"
    if protection.epsilon is not None:
        proved = f"epsilon {protection.epsilon:.4g} per {protection.unit}, delta {protection.delta:.3g}"
    return f"PrivSVM {record.privsvm}, model {record.digest}: {proved}"
