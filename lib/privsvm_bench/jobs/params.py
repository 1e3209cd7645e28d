"""Typed model of params.yaml, which the workflow passes on."""

from __future__ import annotations

import functools
import math
import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Any

import pydantic

from privsvm.constraints import FLAG, LINE, POSITIVE, PRINTED, Constraint, one_of, optional, text, whole
from privsvm.errors import PrivSVMError, nearest_name, printable, without_passwords
from privsvm.models import Obeys, check_model, show_value
from privsvm.plain_yaml import Places, read_yaml, with_place
from privsvm.registry import check_installed, estimator_class, is_foreign
from privsvm_bench.datasets.settings import ParsedProtocol, Section
from privsvm_bench.jobs.job import Epsilons, Privacy, distinct
from privsvm_bench.records import Condense

OWN_FOLDER = "data/own"

_EXPONENT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+")


# Names become folders and file names, which hold at most 255 bytes. YAML readers may take a name of digits alone for a
# number. Timings beside the results end in .train and .evaluate.
_NAME = r"(?=.{1,64}\Z)(?=.*[A-Za-z])"
_METHOD_NAME = text(
    "the name becomes a folder; use at most 64 letters, digits, - and _, among them a letter",
    rf"{_NAME}[A-Za-z0-9][A-Za-z0-9_-]*",
)
_DATASET_NAME = text(
    "the name becomes a folder; use at most 64 letters, digits, _ . + and -, among them a letter, and not .train or "
    ".evaluate at the end",
    rf"{_NAME}(?!.*\.(train|evaluate)\Z)[A-Za-z0-9][A-Za-z0-9._+-]*",
)
_EXPERIMENT = text(
    "must be a name of at most 64 letters, digits, _ . -, among them a letter", rf"{_NAME}[A-Za-z0-9][A-Za-z0-9_.-]*"
)
_DATABASE = text(
    "must be a database or server address such as sqlite:///mlflow.db or http://127.0.0.1:5000",
    rf"(sqlite|postgresql|mysql|http|https)[+a-z0-9]*://{PRINTED}",
)
# Neither a host nor a query, which can name another file.
_SQLITE_FILE = re.compile(r"sqlite[+a-z0-9]*:///((?!file:)[^?]+)")


class Data(Section):
    """Where raw files come from."""

    mirror: Annotated[str | None, Obeys(optional(LINE))]


class MethodEntry(Section):
    """A method and its datasets; further keys are estimator parameters."""

    model_config = pydantic.ConfigDict(extra="allow")

    implementation: Annotated[str, Obeys(text("must be a file of lib/privsvm/methods, or package.module:Class"))]
    datasets: Annotated[
        tuple[str, ...] | None,
        distinct("must be a list of different datasets of the benchmark; leave it out for all"),
    ] = None
    # Why the method does not run on a dataset.
    except_: Annotated[dict[str, Annotated[str, Obeys(LINE)]] | None, pydantic.Field(alias="except")] = None
    per_dataset: dict[str, dict[str, Any]] | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of the estimator for all datasets."""
        return dict(self.model_extra or {})


class Audit(Section):
    """How the released models of private methods are audited."""

    draws: Annotated[int, Obeys(whole(400))]
    epsilons: Epsilons


class Report(Section):
    """Settings of the report."""

    reference_epsilon: Annotated[float, Obeys(POSITIVE)]


class MLflow(Section):
    """Where runs are logged."""

    tracking_uri: Annotated[str, Obeys(_DATABASE)]
    # Every pydantic model has a method `register`.
    registers: Annotated[bool, Obeys(FLAG)] = pydantic.Field(False, alias="register")

    @property
    def file(self) -> Path | None:
        """The SQLite file, or None where a server keeps the runs."""
        written = _SQLITE_FILE.fullmatch(self.tracking_uri)
        return None if written is None else Path(written[1])


_Dataset = Annotated[dict[str, Any], pydantic.BeforeValidator(lambda value: {} if value is None else value)]


class Params(Section):
    """The whole of params.yaml; `read_params` reads and checks it."""

    experiment: Annotated[str, Obeys(_EXPERIMENT)]
    seed: Annotated[int, Obeys(whole(0, 2**63 - 1))]
    data: Data
    datasets: Annotated[dict[Annotated[str, Obeys(_DATASET_NAME)], _Dataset], pydantic.Field(min_length=1)]
    protocol: ParsedProtocol
    condense: Annotated[Condense, Obeys(one_of("none", "ci", "fcm"))]
    privacy: Privacy
    methods: Annotated[dict[Annotated[str, Obeys(_METHOD_NAME)], MethodEntry], pydantic.Field(min_length=1)]
    audit: Audit
    report: Report
    mlflow: MLflow

    def dataset_settings(self, dataset: str) -> dict[str, Any]:
        """Return a dataset's settings, with the full path of own data."""
        settings, path = self.datasets[dataset], self.own_file(dataset)
        return settings if path is None else {**settings, "path": path}

    def own_file(self, dataset: str) -> str | None:
        """Return the path of a dataset's own file in `OWN_FOLDER`, or None."""
        path = self.datasets[dataset].get("path")
        return None if path is None else f"{OWN_FOLDER}/{str(path).removeprefix(f'{OWN_FOLDER}/')}"

    def is_private(self, dataset: str) -> bool:
        """Tell whether a dataset is own data without ``share: true``."""
        return self.own_file(dataset) is not None and not self.datasets[dataset].get("share")

    def train_jobs(self) -> list[tuple[str, str]]:
        """List all (method, dataset) pairs of the benchmark, in the order of params.yaml."""
        pairs = ((name, dataset) for name in self.methods for dataset in self.datasets)
        return [pair for pair in pairs if self.why_left_out(*pair) is None]

    def why_left_out(self, method: str, dataset: str) -> str | None:
        """Say why a method does not run on a dataset; None where it runs."""
        entry = self.methods[method]
        if entry.datasets is not None and dataset not in entry.datasets:
            return f"datasets in params.yaml: {', '.join(entry.datasets)}"
        return (entry.except_ or {}).get(dataset)

    def left_out(self) -> list[str]:
        """Write a line for the methods that leave out a dataset for the same reason."""
        groups: dict[tuple[str, str], list[str]] = {}
        for dataset in self.datasets:
            for method in self.methods:
                if (reason := self.why_left_out(method, dataset)) is not None:
                    groups.setdefault((dataset, reason), []).append(method)
        return [f"{dataset}: {', '.join(names)} ({reason})" for (dataset, reason), names in groups.items()]

    def models_to_register(self) -> list[tuple[str, str]]:
        """List the jobs with models for MLflow's registry; of private rows, one with seeded noise would tell all."""
        chosen = {name for name, entry in self.methods.items() if entry.implementation == "recommended"}
        public = {name for name in self.datasets if not self.is_private(name)}
        return [job for job in self.train_jobs() if self.mlflow.registers and job[0] in chosen and job[1] in public]

    def methods_to_audit(self) -> list[str]:
        """List the entries that state an epsilon."""
        return [name for name in self.methods if self.reads_privacy(name)]

    def method_parameters(self, method: str, dataset: str = "") -> dict[str, Any]:
        """Return a method's parameters for all datasets, or for one, overridden by `per_dataset`."""
        entry = self.methods[method]
        return {**entry.parameters, **(entry.per_dataset or {}).get(dataset, {})}

    def reads_privacy(self, method: str, dataset: str = "") -> bool:
        """Tell whether a method states an epsilon, so that its jobs depend on `privacy`."""
        implementation = self.methods[method].implementation
        return states_epsilon(implementation) or "states_epsilon" in self.method_parameters(method, dataset)


def states_epsilon(implementation: str) -> bool:
    """Tell whether a method of this package has a parameter epsilon."""
    return not is_foreign(implementation) and "epsilon" in _import_parameters(implementation)


@functools.cache
def _import_parameters(implementation: str) -> Mapping[str, Any]:
    """Import the class of a method and return its declared parameters."""
    try:
        declared: Mapping[str, Any] = estimator_class(implementation).declared  # type: ignore[attr-defined]
    except PrivSVMError:
        raise
    except Exception as error:
        problem = " ".join(f"{type(error).__name__}: {error}".split())
        raise PrivSVMError(
            f"implementation: {implementation!r} cannot be imported ({problem}); correct it in lib/privsvm/methods"
        ) from error
    return declared


def _merge(values: Any, changes: Any) -> Any:
    """Override values by the changes of ``snakemake --config``, mapping by mapping."""
    if isinstance(changes, Mapping):
        base = values if isinstance(values, Mapping) else {}
        return {**base, **{key: _merge(base.get(key), value) for key, value in changes.items()}}
    if isinstance(changes, list):
        return [_merge(None, value) for value in changes]
    # Snakemake's YAML 1.1 parses 1e-5 as text.
    return float(changes) if isinstance(changes, str) and _EXPONENT.fullmatch(changes) else changes


def read_params(path: str | Path = "params.yaml", changes: Mapping[str, Any] | None = None) -> Params:
    """Read and check params.yaml; `changes` are overrides from ``snakemake --config``, mapping by mapping.

    Raises PrivSVMError, in one line, for the first problem: file, key, value, remedy and position.
    """
    values, positions = read_yaml(path)
    return check_params(_merge(values, changes or {}), str(path), positions)


def check_params(values: Mapping[str, Any], source: str = "params.yaml", positions: Places | None = None) -> Params:
    """Check the parsed content of params.yaml.

    `source` and `positions` (see `read_yaml`) name the file and the places of its keys in messages. Raises PrivSVMError
    as `read_params` does.
    """
    from privsvm_bench.datasets.catalogue import resolve

    try:
        _check_finite(values)
        params = check_model(Params, values)
        _check_tracking_file(params.mlflow)
        for name in params.datasets:
            _check_own_file(params, name)
            resolve(name, params.dataset_settings(name))
        for method in params.methods:
            _check_entry(params, method)
    except PrivSVMError as error:
        message = without_passwords(with_place(str(error), positions or {}))
        raise PrivSVMError(f"{source}: {printable(message)}") from None
    return params


def _check_finite(value: Any, key: str = "") -> None:
    """Refuse NaN and infinities at any depth."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            _check_finite(item, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list):
        for position, item in enumerate(value):
            _check_finite(item, f"{key}.{position}")
    elif isinstance(value, float) and not math.isfinite(value):
        raise PrivSVMError(f"{key}: {value!r} is not valid; must be a finite number")


def _check_tracking_file(mlflow: MLflow) -> None:
    """Refuse an SQLite file outside of this folder and of the one that the environment names."""
    uri, file = mlflow.tracking_uri, mlflow.file
    if uri.startswith("sqlite") and file is None:
        raise PrivSVMError(f"mlflow.tracking_uri: {uri!r} names no file; write a path, as in sqlite:///mlflow.db")
    # An empty name is this folder too.
    folders = map(os.path.abspath, (".", os.environ.get("PRIVSVM_TRACKING_FOLDER", "")))
    if file is not None and not any(Path(os.path.abspath(file)).is_relative_to(folder) for folder in folders):
        raise PrivSVMError(
            f"mlflow.tracking_uri: {uri!r} is outside of this folder; use sqlite:///mlflow.db, or allow another folder "
            f"(export PRIVSVM_TRACKING_FOLDER={shlex.quote(os.path.abspath(file.parent))})"
        )


def _check_own_file(params: Params, dataset: str) -> None:
    """Refuse an own file outside `OWN_FOLDER`."""
    written = params.datasets[dataset].get("path") or ""
    if written and not LINE.accepts(written):
        raise PrivSVMError(f"datasets.{dataset}.path: {show_value(written)} is not valid; {LINE.wish}")
    path = PurePosixPath(written)
    if path.is_absolute() or ".." in path.parts:
        file = shlex.quote(os.path.abspath(path))
        raise PrivSVMError(
            f"datasets.{dataset}.path: {str(path)!r} is outside of {OWN_FOLDER}; move it there (mv {file} "
            f"{OWN_FOLDER}/) or link it (ln -s {file} {OWN_FOLDER}/), and write `path: {path.name}`"
        )


def _check_entry(params: Params, method: str) -> None:
    """Check the implementation, parameters and datasets of a method's entry."""
    where, entry = f"methods.{method}", params.methods[method]
    try:
        if is_foreign(entry.implementation):
            check_installed(entry.implementation)
        else:
            _import_parameters(entry.implementation)
    except PrivSVMError as error:
        raise PrivSVMError(f"{where}.{error}") from None
    if entry.implementation == "ppsvm" and params.condense != "none":
        raise PrivSVMError(
            f"condense: {params.condense!r} cannot go with {where}: a condensed row needs the columns of all entities "
            "in one place; set it to none, or take the method out"
        )
    _check_parameters(where, entry.implementation, entry.parameters)
    for dataset, changes in (entry.per_dataset or {}).items():
        _check_dataset(dataset, params, f"{where}.per_dataset")
        _check_parameters(f"{where}.per_dataset.{dataset}", entry.implementation, changes)
    for dataset in entry.datasets or ():
        _check_dataset(dataset, params, f"{where}.datasets")
    if entry.datasets is not None and entry.except_ is not None:
        raise PrivSVMError(f"{where}.except: there is `datasets` too; keep one of them")
    for dataset in entry.except_ or ():
        _check_dataset(dataset, params, f"{where}.except")


def _check_parameters(where: str, implementation: str, values: Mapping[str, Any]) -> None:
    """Refuse the first parameter that is unknown or has a wrong value."""
    if is_foreign(implementation):
        # The job that imports a class of another package checks its other parameters.
        name = values.get("states_epsilon")
        if name is not None and (not isinstance(name, str) or not name.isidentifier()):
            raise PrivSVMError(f"{where}.states_epsilon: {name!r} is not valid; must name a parameter of the class")
        return
    constraints: dict[str, Constraint] = {
        name: item.constraint for name, item in _import_parameters(implementation).items() if not item.common
    }
    for name, value in values.items():
        if name not in constraints:
            keys = [field.alias or key for key, field in MethodEntry.model_fields.items()]
            raise PrivSVMError(f"{where}.{name} is not a known key; {nearest_name(name, (*keys, *constraints))}")
        if not constraints[name].accepts(value):
            wish = constraints[name].problem(value).replace("None", "null")
            raise PrivSVMError(f"{where}.{name}: {show_value(value)} is not valid; {wish}")


def _check_dataset(dataset: str, params: Params, where: str) -> None:
    from privsvm_bench.datasets.catalogue import load_catalogue

    # A dataset of the catalogue that was taken out, or comes later, is no mistake.
    if dataset not in params.datasets and dataset not in load_catalogue():
        hint = nearest_name(dataset, params.datasets)
        raise PrivSVMError(f"{where}: {dataset!r} is not one of the benchmark's datasets; {hint}")
