"""Write what DVC's stages depend on: a small file for each method and dataset, and links to files outside.

DVC sees whole files. Where a stage depends on part of params.yaml, on the closure of a script's imports, or on files
that other stages made for many methods, one of these files holds just that part: it changes when, and only when, the
stage is to run again. `write_inputs` holds what is known before anything runs, `write_jobs` what a method's jobs read
of the data.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from privsvm.digests import canonical_json
from privsvm.files import write_json, write_text
from privsvm.pipeline.graph import (
    SCRIPTS,
    audit_code,
    audit_parameters,
    condense_parameters,
    download_parameters,
    file_digest,
    one_method_code,
    prepare_parameters,
    report_parameters,
    rule_code,
    track_parameters,
    train_parameters,
)
from privsvm.pipeline.methods import foreign_files, is_foreign
from privsvm.pipeline.params import Params
from privsvm.pipeline.sources import closure_digest

__all__ = ["link_outside", "write_inputs", "write_jobs"]


def _code(*rules: str) -> dict[str, str]:
    """Compute the digests of the code that the jobs of some rules run, and of the text of the rules."""
    found = {rule: rule_code(rule) for rule in rules}
    texts = [SCRIPTS[rule].replace(".py", ".smk") for rule in rules]
    return {**found, "rules": closure_digest(*texts)}


def _write_exactly(folder: Path, contents: Mapping[str, Any]) -> None:
    """Write these JSON files into a folder and remove all others; a file with the right content is not touched."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(folder.rglob("*"), reverse=True):
        name = path.relative_to(folder).as_posix()
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()
        elif not path.is_dir() and name not in contents:
            path.unlink()
    for name, content in contents.items():
        path = folder / name
        if not path.is_file() or path.read_text(encoding="utf-8") != canonical_json(content, indent=1) + "\n":
            write_json(path, content)


def write_inputs(params: Params, folder: str | os.PathLike[str] = "data/inputs") -> None:
    """Write what every DVC stage depends on besides the outputs of other stages.

    Parameters
    ----------
    params : Params
        The benchmark's.
    folder : path-like
        Folder to write to. All other files in it are removed.
    """
    contents: dict[str, Any] = {
        "condense.json": {"code": _code("condense"), "parameters": condense_parameters(params)},
        "report.json": {
            "code": _code("report", "track"),
            "parameters": [report_parameters(params), track_parameters(params)],
            "jobs": params.train_jobs(),
            "audits": params.audited_methods(),
        },
    }
    contents["audit.json"] = {
        "rules": closure_digest("stages/audit.smk"),
        "methods": {
            method: {
                "code": audit_code(params.methods[method].implementation),
                "parameters": audit_parameters(params, method),
            }
            for method in params.audited_methods()
        },
    }
    download, prepare = _code("download"), _code("prepare")
    for dataset in params.datasets:
        path = params.own_file(dataset)
        contents[f"download/{dataset}.json"] = {
            "code": download,
            "own": None if path is None else file_digest(path),
            "parameters": download_parameters(params, dataset),
        }
        contents[f"prepare/{dataset}.json"] = {"code": prepare, "parameters": prepare_parameters(params, dataset)}
    code = _code("train", "evaluate")
    for method, entry in params.methods.items():
        contents[f"train/{method}.json"] = {
            "code": {**code, "train": one_method_code(entry.implementation)},
            "jobs": {},
        }
    for method, dataset in params.train_jobs():
        contents[f"train/{method}.json"]["jobs"][dataset] = train_parameters(params, method, dataset)
    _write_exactly(Path(folder), contents)


def write_jobs(params: Params, folder: str | os.PathLike[str] = "data/jobs") -> None:
    """Write, for each method, what its jobs depend on: its own inputs, and the data of its datasets.

    Parameters
    ----------
    params : Params
        The benchmark's. The data must be prepared and condensed.
    folder : path-like
        Folder to write to. All other files in it are removed.
    """
    contents: dict[str, Any] = {
        f"{method}.json": {"inputs": file_digest(f"data/inputs/train/{method}.json"), "data": {}}
        for method in params.methods
    }
    for method, dataset in params.train_jobs():
        contents[f"{method}.json"]["data"][dataset] = {
            name: file_digest(name)
            for folder_name in ("data/prepared", f"data/condensed/{params.condense}")
            for name in (f"{folder_name}/{dataset}.npz", f"{folder_name}/{dataset}.json")
        }
    _write_exactly(Path(folder), contents)


def _outside(params: Params) -> Iterable[tuple[str, Path]]:
    """List name and path of every file outside the repository, or of the user's own, that jobs depend on."""
    for dataset in params.datasets:
        path = params.own_file(dataset)
        if path is not None:
            yield f"datasets/{dataset}/{Path(path).name}", Path(path)
    for implementation in sorted({entry.implementation for entry in params.methods.values()}):
        if is_foreign(implementation):
            package = implementation.split(":")[0].split(".")[0]
            for name, source in foreign_files(implementation):
                yield f"packages/{package}/{name.as_posix()}", source


def link_outside(params: Params, folder: str | os.PathLike[str] = "data/outside") -> None:
    """Renew the links through which DVC watches the user's own data files and the packages of outside methods.

    Parameters
    ----------
    params : Params
        The benchmark's.
    folder : path-like
        Folder to write to. All other links in it are removed.
    """
    top = Path(folder)
    here = Path.cwd()
    write_text(top / ".gitignore", "*\n!.gitignore\n")
    wanted: dict[Path, str] = {}
    for name, path in _outside(params):
        link = top / name
        absolute = Path(os.path.abspath(path))
        # A link within the working copy stays right when the copy is moved.
        inside = absolute.is_relative_to(here)
        wanted[link] = os.path.relpath(absolute, link.parent) if inside else str(absolute)
    for path in sorted(top.rglob("*"), reverse=True):
        if path.is_symlink() or path.is_file():
            if path.name != ".gitignore" and not (path.is_symlink() and os.readlink(path) == wanted.get(path)):
                path.unlink()
        elif not any(path.iterdir()):
            shutil.rmtree(path)
    for link, target in wanted.items():
        if not link.is_symlink():
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(target)
