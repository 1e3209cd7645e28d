"""Write a released model as a folder of MLflow's format, without MLflow and without pickle.

Every declared column is a text to MLflow, which then hands over the cells of a CSV as written ("007") and JSON cells
with their types: its other types would cast them, or refuse a whole request for one cell.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import io
import os
import shutil
import sys
import tempfile
import zipfile
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

from privsvm.base.model_file import ARRAYS, CARD, RECORD
from privsvm.digests import canonical_json
from privsvm.errors import PrivSVMError
from privsvm.release.documents.calibration import COVERAGE
from privsvm.release.documents.card import PAGE
from privsvm.release.documents.verifying import verify
from privsvm.release.predicting.mlflow_loader import METHODS
from privsvm.release.predicting.model import ReleasedModel
from privsvm.tables.schema import Column

_MLMODEL = """\
flavors:
  python_function:
    loader_module: privsvm.release.predicting.mlflow_loader
    data: data
    python_version: {python}
    env: {{virtualenv: python_env.yaml, conda: conda.yaml}}
signature: {signature}
saved_input_example_info: {example}
"""
# MLflow's server runs in the environment of the model.
_REQUIREMENTS = "wheels/{wheel}\nmlflow-skinny>=3.17\npandas>=2.3\n"
_PYTHON_ENV = "python: {python}\ndependencies:\n- -r requirements.txt\n"
_CONDA = "channels:\n- conda-forge\ndependencies:\n- python={python}\n- pip\n- pip:\n  - -r requirements.txt\n"
_PARAMS = [
    {"name": "method", "type": "string", "default": METHODS[0], "shape": None},
    {"name": "coverage", "type": "double", "default": COVERAGE, "shape": None},
]
_EXAMPLE = {"artifact_path": "input_example.json", "serving_input_path": "serving_input_example.json"}
# What pyproject.toml puts into the package, and the metadata that an installation needs.
_PACKAGED = {".py", ".pyi", ".json", ".jinja", ".typed"}
_METADATA = ("METADATA", "WHEEL", "entry_points.txt", "licenses/LICENSE")


def write_mlflow_folder(folder: Path, out: Path, model: ReleasedModel) -> None:
    """Write a folder that MLflow loads by `mlflow_loader`: files of text and a wheel around the model's own."""
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
        (part / "wheels").mkdir()
        # Any other file is not released.
        for name in filter(lambda name: (folder / name).is_file(), (ARRAYS, RECORD, CARD, PAGE)):
            shutil.copyfile(folder / name, part / "data" / name)
        wheel, packed = _wheel()
        (part / "wheels" / wheel).write_bytes(packed)
        texts = _input_files(model, python) | {
            "python_env.yaml": _PYTHON_ENV.format(python=python),
            "conda.yaml": _CONDA.format(python=python),
            "requirements.txt": _REQUIREMENTS.format(wheel=wheel),
        }
        for name, text in texts.items():
            (part / name).write_text(text, encoding="utf-8")
        os.rename(part, out)


def _input_files(model: ReleasedModel, python: str) -> dict[str, str]:
    """Write the files that declare the input, with one row made of the schema alone; JSON is YAML too."""
    example: Any = [[0.0] * model.n_features_in_]
    inputs: list[Any] = [{"type": "tensor", "tensor-spec": {"dtype": "float64", "shape": [-1, model.n_features_in_]}}]
    form, key = {"type": "ndarray"}, "inputs"
    if model.schema_ is not None:
        columns = model.schema_.features
        example = {"columns": [*columns], "data": [[*map(_example, columns.values())]]}
        inputs = [{"type": "string", "name": name, "required": True} for name in columns]
        form, key = {"type": "dataframe", "pandas_orient": "split"}, "dataframe_split"
    signature = canonical_json({"inputs": canonical_json(inputs), "params": canonical_json(_PARAMS)})
    return {
        "MLmodel": _MLMODEL.format(python=python, signature=signature, example=canonical_json(_EXAMPLE | form)),
        "input_example.json": canonical_json(example),
        "serving_input_example.json": canonical_json({key: example}),
    }


def _example(column: Column) -> Any:
    if column.kind == "categories":
        return column.words[0]
    if column.kind == "date":
        return str(column.bounds[0])
    return True if column.kind == "boolean" else column.fill_number


@functools.cache
def _wheel() -> tuple[str, bytes]:
    """Pack the running package as a wheel, since no index has it; return the name of the file and its bytes."""
    installed, source = distribution("privsvm"), Path(__file__).parents[2]
    stem = f"privsvm-{installed.version}"
    files = {f"{stem}.dist-info/{name}": text.encode() for name in _METADATA if (text := installed.read_text(name))}
    for path in sorted(source.rglob("*")):
        if path.suffix in _PACKAGED and path.is_file():
            files[f"privsvm/{path.relative_to(source).as_posix()}"] = path.read_bytes()
    record = f"{stem}.dist-info/RECORD"
    lines = [f"{record},,"]
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(data)}")
    with io.BytesIO() as packed:
        with zipfile.ZipFile(packed, "w") as wheel:
            for name, data in (files | {record: "\n".join([*lines, ""]).encode()}).items():
                # Without the time of the day, so that one version is one file.
                wheel.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
        return f"{stem}-py3-none-any.whl", packed.getvalue()
