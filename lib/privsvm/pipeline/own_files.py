"""Files of one's own stay private: what is made from them lies in folders that their owner alone can enter.

This is a property of folders and not of a list of files: with own data in params.yaml, every folder that a run writes
to is closed to others, and whatever the run makes is readable for its owner alone. DVC's cache keeps its modes inside.
No output is pushed then either: models, results and reports hold numbers of all data sets together.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from privsvm.errors import PrivSVMError
from privsvm.files import write_text
from privsvm.pipeline.params import OWN_FOLDER, Params
from privsvm.plain_yaml import load_lock

__all__ = [
    "FOLDERS",
    "close_folders",
    "dataset_of",
    "forget",
    "has_own_data",
    "is_pushed",
    "released_file",
    "set_push",
    "shared_datasets",
    "take_release",
]

FOLDERS = (
    "private",
    "data",
    "logs",
    "reports",
    "mlruns",
    "mlartifacts",
    ".cache",
    ".snakemake",
    ".dvc/cache",
    ".dvc/tmp",
)
_OTHERS = ("mlflow.db",)
# What `snakemake release --config` takes: options of `privsvm release`.
_RELEASE = (
    "accuracy",
    "budget",
    "dataset",
    "delta",
    "epsilon",
    "hold_back",
    "ledger",
    "neighbours",
    "out",
    "sign",
    "yes",
)
# Where the files of single data sets lie: how many folders below which of `data`. All else is made from several.
_BY_DATASET = {"raw": 0, "prepared": 0, "condensed": 1, "models": 1, "results": 1, "timings": 1}
_ENDINGS = (".evaluate.json", ".train.json", ".json", ".npz")
_PUSH = re.compile(r"^(  - push: &push )(true|false)$", re.MULTILINE)


def has_own_data(params: Params) -> bool:
    """Whether a benchmark has data sets of the user's own, and does not say `share: true` of all of them."""
    return any(map(params.is_private, params.datasets))


def shared_datasets(params: Params) -> frozenset[str]:
    """Names of the data sets that others may have: those of the catalogue, and one's own with `share: true`."""
    return frozenset(name for name in params.datasets if not params.is_private(name))


def dataset_of(path: PurePosixPath) -> str | None:
    """Name the one data set that a file was made from, by where it lies.

    Parameters
    ----------
    path : PurePosixPath
        Relative to the working copy.

    Returns
    -------
    str or None
        None for a file of several data sets, or of none that is known.
    """
    parts = path.parts
    deep = _BY_DATASET.get(parts[1]) if len(parts) > 2 and parts[0] == "data" else None
    if deep is None or len(parts) < 3 + deep:
        return None
    name, inside = parts[2 + deep], parts[3 + deep :]
    if parts[1] == "raw":
        return name if inside else None
    if inside:
        return None
    for ending in _ENDINGS:
        if name.endswith(ending):
            return name.removesuffix(ending)
    return None


def close_folders(params: Params, root: str | os.PathLike[str] = ".", is_versioned: bool = True) -> None:
    """Keep others out of what this process and those that it starts make from own data, and `dvc push` away from it.

    Parameters
    ----------
    params : Params
        The benchmark's.
    root : path-like, default="."
        The working folder.
    is_versioned : bool, default=True
        Whether it is the working copy: the ``dvc.yaml`` of another folder is not ours.
    """
    if not has_own_data(params):
        return
    if is_versioned and (Path(root) / "dvc.yaml").exists():
        set_push(False, root)
    if os.name != "posix":
        return
    os.umask(0o077)
    for name in FOLDERS:
        folder = Path(root) / name
        # DVC's folders are there where DVC is used, and the user's where it is.
        if folder.exists() or not name.startswith((".dvc", "private")):
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o700)
    for name in _OTHERS:
        if (Path(root) / name).exists():
            (Path(root) / name).chmod(0o600)


def is_pushed(root: str | os.PathLike[str] = ".") -> bool:
    """Whether dvc.yaml lets `dvc push` send outputs.

    Parameters
    ----------
    root : path-like, default="."
        The working copy.

    Returns
    -------
    bool

    Raises
    ------
    PrivSVMError
        If dvc.yaml does not say.
    """
    path = Path(root) / "dvc.yaml"
    found = _PUSH.findall(path.read_text(encoding="utf-8"))
    if len(found) != 1:
        raise PrivSVMError(
            f"{path}: lacks its `vars: - push`, so `dvc push` would send what is made from data of your own; restore "
            "the file (git checkout dvc.yaml)"
        )
    return bool(found[0][1] == "true")


def set_push(pushed: bool, root: str | os.PathLike[str] = ".") -> bool:
    """Say in dvc.yaml whether `dvc push` sends outputs; see `is_pushed`. Returns whether that is new."""
    if is_pushed(root) == pushed:
        return False
    path = Path(root) / "dvc.yaml"
    write_text(path, _PUSH.sub(rf"\g<1>{str(pushed).lower()}", path.read_text(encoding="utf-8")))
    return True


def take_release(config: dict[str, Any]) -> dict[str, Any]:
    """Take the settings of one release out of what `snakemake --config` was given.

    Parameters
    ----------
    config : dict
        Loses them.

    Returns
    -------
    dict
    """
    return {name: config.pop(name) for name in _RELEASE if name in config}


def released_file(params: Params, settings: Mapping[str, Any]) -> str:
    """Return the path of the data set that is to be released.

    Parameters
    ----------
    params : Params
        The benchmark's.
    settings : mapping
        As `take_release` returns them.

    Returns
    -------
    str

    Raises
    ------
    PrivSVMError
        If the settings name no data set of one's own, or lack an epsilon or a folder.
    """
    missing = [name for name in ("dataset", "epsilon", "out") if name not in settings]
    if missing:
        raise PrivSVMError(
            f"release: --config lacks {', '.join(missing)}; write `snakemake release --cores 1 --config dataset=name "
            "epsilon=1 out=private/model`"
        )
    dataset = str(settings["dataset"])
    path = params.own_file(dataset) if dataset in params.datasets else None
    if path is None:
        raise PrivSVMError(f"release: dataset={dataset} is no data set of your own with `path` in params.yaml")
    return path


def forget(dataset: str, root: str | os.PathLike[str] = ".") -> list[str]:
    """Remove every copy that was made from a data set, also from DVC's cache, and the files of what was computed.

    MLflow's database stays: it holds the runs of other data sets too.

    Parameters
    ----------
    dataset : str
        Its name in params.yaml.
    root : path-like, default="."
        The working copy.

    Returns
    -------
    list of str
        What was removed, relative to the root.

    Raises
    ------
    PrivSVMError
        If the name cannot be one.
    """
    if not dataset or "/" in dataset or dataset.startswith("."):
        raise PrivSVMError(f"DATASET={dataset!r}: must be the name of a data set in params.yaml")
    root = Path(root)
    removed: list[str] = []
    hashes, kept = _hashes(root, dataset)
    for digest in sorted(hashes - kept):
        path = root / ".dvc/cache/files/md5" / digest[:2] / digest[2:]
        if path.exists():
            path.chmod(0o600)
            path.unlink()
            removed.append(path.relative_to(root).as_posix())
    for folder in ("data", "logs"):
        for path in sorted((root / folder).rglob("*"), reverse=True) if (root / folder).exists() else []:
            if path.is_relative_to(root / OWN_FOLDER):
                continue
            if _is_of(path.relative_to(root / folder), dataset) and path.exists() | path.is_symlink():
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
                removed.append(path.relative_to(root).as_posix())
    for name in ("reports/index.html", "reports/pages", "reports/curves.csv", "reports/metrics.json"):
        # They hold numbers of all data sets; a run writes them again without this one.
        if removed and (root / name).exists():
            shutil.rmtree(root / name) if (root / name).is_dir() else (root / name).unlink()
            removed.append(name)
    return removed


def _is_of(path: Path, dataset: str) -> bool:
    """Whether a path is a data set's: one of its parts is the name, or the name with a suffix."""
    known = (".json", ".npz", ".log", ".train.json", ".evaluate.json")
    return any(part == dataset or part in {dataset + suffix for suffix in known} for part in path.parts)


def _locks(root: Path) -> Iterator[dict[str, Any]]:
    """Yield all that DVC wrote down about stages: lock files of all commits, and its cache of runs."""
    here = [root / "dvc.lock", *sorted((root / ".dvc/cache/runs").rglob("*"))]
    texts = [(path.read_text(encoding="utf-8"), str(path)) for path in here if path.is_file()]
    log = ["git", "-C", str(root), "log", "--all", "--format=%H", "--", "dvc.lock"]
    commits = subprocess.run(log, capture_output=True, text=True, check=False).stdout.split()
    for commit in commits:
        shown = subprocess.run(
            ["git", "-C", str(root), "show", f"{commit}:dvc.lock"], capture_output=True, text=True, check=False
        )
        texts.append((shown.stdout, f"{commit}:dvc.lock"))
    for text, source in dict(texts).items():
        found = load_lock(text, source)
        yield from (found.get("stages") or {"run": found}).values()


def _hashes(root: Path, dataset: str) -> tuple[set[str], set[str]]:
    """Collect the hashes of a data set's files in DVC's cache, and those of all others."""
    own: set[str] = set()
    others: set[str] = set()
    for stage in _locks(root):
        for out in [*(stage.get("outs") or []), *(stage.get("deps") or [])]:
            digest, path = str(out.get("md5") or ""), Path(str(out.get("path")))
            target = own if _is_of(path, dataset) else others
            target.add(digest)
            listing = root / ".dvc/cache/files/md5" / digest[:2] / digest[2:]
            if digest.endswith(".dir") and listing.exists():
                children = json.loads(listing.read_text(encoding="utf-8"))
                mine = {str(child["md5"]) for child in children if _is_of(path / child["relpath"], dataset)}
                own |= mine
                others |= {str(child["md5"]) for child in children} - mine
                if mine:
                    own.add(digest)
                    others.discard(digest)
    return own - {""}, others
