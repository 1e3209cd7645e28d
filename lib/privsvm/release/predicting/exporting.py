"""Write a released model for other programs: a graph of ONNX, a query of SQL, or a model of MLflow without pickle.

The export is public: it follows from the released files, and costs no epsilon.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from privsvm.base.model_file import ARRAYS, CARD, RECORD
from privsvm.errors import PrivSVMError, printable
from privsvm.files import atomic_path, write_text
from privsvm.release.documents.card import PAGE
from privsvm.release.documents.verifying import verify
from privsvm.release.predicting.model import ReleasedModel, load
from privsvm.release.predicting.onnx_graph import onnx_model
from privsvm.release.predicting.sql_query import sql_query

_MLMODEL = """\
flavors:
  python_function:
    loader_module: privsvm.release.predicting.mlflow_loader
    data: data
    python_version: {python}
    env:
      virtualenv: python_env.yaml
"""
_PYTHON_ENV = """\
python: {python}
dependencies:
- -r requirements.txt
"""


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
        _write_mlflow(folder, out, model)
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


def _write_mlflow(folder: Path, out: Path, model: ReleasedModel) -> None:
    """Write a folder that MLflow loads by `mlflow_loader`: files of text around the model's own."""
    if os.path.lexists(out):
        raise PrivSVMError(f"{out}: exists already; give a new folder")
    out.parent.mkdir(parents=True, exist_ok=True)
    if (folder / CARD).exists():
        # The card and its page are shown to others.
        verify(folder)
    python = ".".join(map(str, sys.version_info[:3]))
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.", suffix=".part") as temporary:
        part = Path(temporary) / out.name
        (part / "data").mkdir(parents=True)
        # Any other file is not released.
        for name in filter(lambda name: (folder / name).is_file(), (ARRAYS, RECORD, CARD, PAGE)):
            shutil.copyfile(folder / name, part / "data" / name)
        (part / "MLmodel").write_text(_MLMODEL.format(python=python), encoding="utf-8")
        (part / "python_env.yaml").write_text(_PYTHON_ENV.format(python=python), encoding="utf-8")
        (part / "requirements.txt").write_text(f"privsvm=={version('privsvm')}\n", encoding="utf-8")
        os.rename(part, out)
