"""Resources of a running job: data of the catalogue, random streams, partial results kept across interruptions."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from privsvm.digests import sha256_of_json
from privsvm.errors import PrivSVMError, without_absolute_paths
from privsvm.files import read_json, write_json
from privsvm.numerics.noise.streams import seeded_stream
from privsvm.numerics.rows.rows import is_sparse
from privsvm_bench.datasets.catalogue import resolve
from privsvm_bench.datasets.download import download_raw
from privsvm_bench.datasets.prepare import treat_missing
from privsvm_bench.datasets.readers import read_part


class MissingError(Exception):
    """A job lacks something that it needs, such as its data."""


class Rows(NamedTuple):
    """Features (n, d), dense or CSR, and signs (n,) of one part of a two-class dataset, in the file's order."""

    X: Any
    signs: np.ndarray


class ClassRows(NamedTuple):
    """Features (n, d), dense or CSR, class codes (n,) and the labels they stand for, in the file's order."""

    X: Any
    codes: np.ndarray
    labels: tuple[str, ...]


class Context:
    """Resources of a running job.

    `experiment` is part of the key of its random streams and partial results. `folder` holds raw data and partial
    results. `code` is the digest of the code that the results depend on.
    """

    def __init__(self, experiment: str, folder: str | Path, code: str):
        self.experiment = experiment
        self.folder = Path(folder)
        self.code = code
        # Processor time of the partial results that were stored.
        self.saved = 0.0

    def part(self, key: Mapping[str, Any], compute: Callable[[], Any]) -> Any:
        """Return a partial result of JSON values; compute it only if it is not stored.

        `key` holds everything besides the code that the result depends on. The result is as read from JSON, even if
        just computed.
        """
        identity, path = self._place(key)
        if not path.exists():
            began = time.process_time()
            write_json(path, {**identity, "result": compute(), "seconds": time.process_time() - began}, indent=None)
            return read_json(path)["result"]
        stored = read_json(path)
        self.saved += stored["seconds"]
        return stored["result"]

    def has(self, key: Mapping[str, Any]) -> bool:
        """Whether a partial result is stored."""
        return self._place(key)[1].exists()

    def _place(self, key: Mapping[str, Any]) -> tuple[dict[str, Any], Path]:
        identity = {"code": self.code, "experiment": self.experiment, "key": dict(key)}
        name = sha256_of_json(identity)[:24]
        return identity, self.folder / "parts" / self.experiment / f"{name}.json"

    def parts(self, parameters: Mapping[str, Any], count: str, name: str, compute: Callable[[int], Any]) -> list[Any]:
        """Return partial results, as many as the parameter `count` says; one more costs only itself.

        `name` stands for the number of a partial result in its key, and `compute` gives the result of a number.
        """
        key = {field: value for field, value in parameters.items() if field != count}
        return [
            self.part({**key, name: number}, functools.partial(compute, number)) for number in range(parameters[count])
        ]

    def stream(self, seed: int, *purpose: str | int | float) -> np.random.Generator:
        """Open the random stream of one purpose of this experiment."""
        return seeded_stream(seed, "reproduce", self.experiment, *purpose)

    def rows(self, dataset: str, part: str, positive: str = "1") -> Rows:
        """Read one part of a dataset of the catalogue, in the order of its file.

        The label `positive` becomes +1, all others -1. Raises MissingError if the files are not available.
        """
        return _read(dataset, part, positive, str(self.folder / "raw" / dataset))

    def class_rows(self, dataset: str, *parts: str) -> ClassRows:
        """Read parts of a dataset of the catalogue in order, with all their classes.

        Missing values follow the catalogue's rule. Codes number the labels in the catalogue's order. Raises
        MissingError if the files are not available.
        """
        return _read_classes(dataset, parts, str(self.folder / "raw" / dataset))


def _read_raw(dataset: str, part: str, folder: str) -> tuple[Any, np.ndarray]:
    """Features and labels of one part, got if need be."""
    try:
        entry = resolve(dataset)
        for name in entry.parts[part].files:
            target = Path(folder) / name
            if not target.exists():
                download_raw(dataset, name, target)
        X: Any
        X, labels = read_part(entry, part, folder)
    except PrivSVMError as error:
        # Keep the cause and the remedy.
        clauses = without_absolute_paths(str(error).splitlines()[0]).split("; ")
        raise MissingError("; ".join(dict.fromkeys((clauses[0], clauses[-1])))) from None
    # Rows as LIBSVM has them: dense where most numbers are not zero.
    if is_sparse(X) and X.nnz > 0.5 * X.shape[0] * X.shape[1]:
        X = X.toarray()
    return X, np.asarray(labels)


@functools.lru_cache(maxsize=4)
def _read(dataset: str, part: str, positive: str, folder: str) -> Rows:
    X, labels = _read_raw(dataset, part, folder)
    signs = np.where(labels == positive, 1.0, -1.0)
    if np.unique(signs).size < 2:
        raise MissingError(f"dataset {dataset}: no row, or every row, has the label {positive}")
    return Rows(X, signs)


@functools.lru_cache(maxsize=2)
def _read_classes(dataset: str, parts: tuple[str, ...], folder: str) -> ClassRows:
    pieces = [_read_raw(dataset, part, folder) for part in parts]
    labels, entry = np.concatenate([piece for _, piece in pieces]), resolve(dataset)
    order = tuple(entry.classes or dict.fromkeys(sorted(str(label) for label in labels)))
    code_of = {label: code for code, label in enumerate(order)}
    matrices = [X for X, _ in pieces]
    if any(is_sparse(X) for X in matrices):
        X: Any = scipy.sparse.vstack([scipy.sparse.csr_array(X) for X in matrices]).tocsr()
    else:
        X = np.vstack(matrices)
    X, kept, _ = treat_missing(entry, X)
    labels = labels[kept]
    return ClassRows(X, np.array([code_of[str(label)] for label in labels], dtype=np.int64), order)
