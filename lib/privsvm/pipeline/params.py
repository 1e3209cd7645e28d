"""params.yaml: coerced, validated, and turned into jobs."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import pydantic
from pydantic_core import PydanticCustomError

from privsvm.constraints import FLAG, FOLDS, POSITIVE, REPEATS, SHARE, Constraint, one_of, optional, real, text, whole
from privsvm.errors import PrivSVMError, nearest_name, without_passwords
from privsvm.files import read_json
from privsvm.models import Model, Obeys, check_model, shown_value
from privsvm.pipeline.methods import check_installed, estimator_class, implementations, is_foreign
from privsvm.plain_yaml import Places, read_yaml, with_place

__all__ = [
    "audited_methods",
    "check_params",
    "coerce_numbers",
    "entity_names",
    "entry_parameters",
    "implementation_parameters",
    "method_parameters",
    "params_schema",
    "protocol_methods",
    "read_params",
    "train_jobs",
]

_EXPONENT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+")

# Implementations that run as a protocol between several parties, by rules of their own, and what these must be told.
_PROTOCOLS: Mapping[str, tuple[str, ...]] = {"ppsvm": ("entities",)}


# Names become folders and parts of the names of files, which hold 255 bytes at most. A name of digits alone is a number
# to some readers of YAML; the ends that are not allowed are those of files beside the results.
_NAME = r"(?=.{1,64}\Z)(?=.*[A-Za-z])"
_METHOD_NAME = text(
    "the name becomes a folder; use at most 64 letters, digits, - and _, among them a letter",
    rf"{_NAME}[A-Za-z0-9][A-Za-z0-9_-]*",
)
_DATASET_NAME = text(
    "the name becomes a folder; use at most 64 letters, digits, _ . + and -, among them a letter, and not .attacks, "
    ".train or .evaluate at the end",
    rf"{_NAME}(?!.*\.(attacks|train|evaluate)\Z)[A-Za-z0-9][A-Za-z0-9._+-]*",
)
_EXPERIMENT = text(
    "must be a name of at most 64 letters, digits, _ . -, among them a letter", rf"{_NAME}[A-Za-z0-9][A-Za-z0-9_.-]*"
)
_EPSILON = real("every epsilon must be a number above 0 (from 1e-6 to 1000)", least=1e-6, most=1000)
_FOLDER = optional(text("must be a folder"))
_DATABASE = text(
    "must be a database or server address such as sqlite:///mlflow.db or http://127.0.0.1:5000",
    r"(sqlite|postgresql|mysql|http|https)[+a-z0-9]*://.*",
)


class Data(Model):
    """Where raw files come from."""

    mirror: Annotated[str | None, Obeys(_FOLDER)]


class Protocol(Model):
    """How rows are split; which keys go with which kind, `normalise_protocol` says."""

    kind: Annotated[str, Obeys(one_of("holdout", "k_fold", "given", "resubstitution"))]
    repeats: Annotated[int | None, Obeys(REPEATS)] = None
    test_size: Annotated[float | None, Obeys(SHARE)] = None
    stratified: Annotated[bool | None, Obeys(FLAG)] = None
    folds: Annotated[int | None, Obeys(FOLDS)] = None


class Privacy(Model):
    """What all private methods are asked for."""

    epsilons: Annotated[list[Annotated[float, Obeys(_EPSILON)]], pydantic.Field(min_length=1, max_length=1000)]
    delta: Annotated[float, Obeys(SHARE)]
    neighbours: Annotated[str, Obeys(one_of("replace_one", "add_remove"))]
    repeats: Annotated[int, Obeys(REPEATS)]

    @pydantic.field_validator("epsilons")
    @classmethod
    def _different(cls, values: list[float]) -> list[float]:
        return _all_different(values, "must be a list of different epsilons")


class MethodEntry(pydantic.BaseModel):
    """A method: what it is, where it is used, and the parameters of its estimator."""

    model_config = pydantic.ConfigDict(extra="allow")

    implementation: Annotated[str, Obeys(text("must be a file of lib/privsvm/methods, or package.module:Class"))]
    datasets: Annotated[list[str] | None, pydantic.Field(min_length=1)] = None
    per_dataset: dict[str, dict[str, Any]] | None = None

    @pydantic.field_validator("datasets")
    @classmethod
    def _different(cls, values: list[str] | None) -> list[str] | None:
        wish = "must be a list of different datasets of the benchmark; leave it out for all"
        return None if values is None else _all_different(values, wish)

    @property
    def parameters(self) -> dict[str, Any]:
        """Parameters of the estimator."""
        return self.model_extra or {}


class Audit(Model):
    """How the released models of private methods are audited."""

    draws: Annotated[int, Obeys(whole(400))]
    epsilons: Annotated[list[Annotated[float, Obeys(_EPSILON)]], pydantic.Field(min_length=1)]

    @pydantic.field_validator("epsilons")
    @classmethod
    def _different(cls, values: list[float]) -> list[float]:
        return _all_different(values, "must be a list of different epsilons")


class Report(Model):
    """What the report shows."""

    reference_epsilon: Annotated[float, Obeys(POSITIVE)]


class MLflow(Model):
    """Where runs are logged."""

    tracking_uri: Annotated[str, Obeys(_DATABASE)]


class Params(Model):
    """The whole of params.yaml."""

    experiment: Annotated[str, Obeys(_EXPERIMENT)]
    seed: Annotated[int, Obeys(whole(0, 2**63 - 1))]
    data: Data
    datasets: Annotated[dict[Annotated[str, Obeys(_DATASET_NAME)], dict[str, Any] | None], pydantic.Field(min_length=1)]
    protocol: Protocol
    condense: Annotated[str, Obeys(one_of("none", "ci", "fcm"))]
    privacy: Privacy
    methods: Annotated[dict[Annotated[str, Obeys(_METHOD_NAME)], MethodEntry], pydantic.Field(min_length=1)]
    audit: Audit
    report: Report
    mlflow: MLflow


def _all_different(values: list[Any], wish: str) -> list[Any]:
    if len(set(values)) != len(values):
        raise PydanticCustomError("constraint", "{wish}", {"wish": wish})
    return values


# Keys of a method's entry that are not parameters of its estimator.
_ENTRY_KEYS = tuple(MethodEntry.model_fields)


def coerce_numbers(value: Any) -> Any:
    """Read ``1e-5`` as a number wherever it stands.

    Parameters
    ----------
    value : object
        Parsed YAML. YAML 1.1 (Snakemake) takes ``1e-5`` for text and YAML 1.2 (DVC) for a number.

    Returns
    -------
    object
        The same with such texts as floats.
    """
    if isinstance(value, Mapping):
        return {key: coerce_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [coerce_numbers(item) for item in value]
    if isinstance(value, str) and len(value) < 400 and _EXPONENT.fullmatch(value):
        return float(value)
    return value


def read_params(path: str | Path = "params.yaml") -> dict[str, Any]:
    """Read params.yaml, coerce and validate it; see `read_yaml` and `check_params`."""
    params, places = read_yaml(path)
    return check_params(params, str(path), places)


def params_schema() -> dict[str, Any]:
    """JSON schema of params.yaml, but for the parameters of the methods."""
    return Params.model_json_schema()


@functools.cache
def _generated() -> dict[str, Any]:
    return read_json(Path(__file__).with_name("params.schema.json"))["$implementations"]


@functools.cache
def implementation_parameters(implementation: str) -> Mapping[str, Constraint]:
    """Constraints of one implementation's parameters, by name.

    They are read from the generated schema, so that the workflow starts without importing any method; of a file that
    the schema does not know yet, from its class.
    """
    if implementation in _generated():
        properties = _generated()[implementation]["properties"]
        return {name: Constraint.from_schema(schema) for name, schema in properties.items()}
    return _imported_parameters(implementation)


def _imported_parameters(implementation: str) -> Mapping[str, Constraint]:
    declared = estimator_class(implementation).declared  # type: ignore[attr-defined]
    return {name: item.constraint for name, item in declared.items() if not item.common}


def _check_finite(value: Any, key: str = "") -> None:
    """Refuse what is no finite number, wherever it stands."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            _check_finite(item, f"{key}.{name}" if key else str(name))
    elif isinstance(value, list):
        for position, item in enumerate(value):
            _check_finite(item, f"{key}.{position}")
    elif isinstance(value, float) and not math.isfinite(value):
        raise PrivSVMError(f"{key}: {value!r} is not valid; must be a finite number")


def check_params(
    params: Mapping[str, Any], source: str = "params.yaml", places: Places | None = None
) -> dict[str, Any]:
    """Coerce and validate the whole of params.yaml.

    Parameters
    ----------
    params : mapping
        As parsed from YAML.
    source : str, default="params.yaml"
        Name of the file, for messages.
    places : mapping, optional
        Where its keys are, for messages; see `read_yaml`.

    Returns
    -------
    dict
        The coerced parameters.

    Raises
    ------
    PrivSVMError
        One line with the file, the key, the value and the remedy, for the first problem found.
    """
    from privsvm.data.catalogue import resolve

    checked = coerce_numbers(dict(params))
    try:
        _check_finite(checked)
        model = check_model(Params, checked)
        for name, settings in checked["datasets"].items():
            resolve(name, settings or {})
        for method, entry in model.methods.items():
            _check_entry(method, entry, checked["datasets"])
        protocol_methods(checked)
    except PrivSVMError as error:
        raise PrivSVMError(f"{source}: {without_passwords(with_place(str(error), places or {}))}") from None
    return checked


def _check_entry(method: str, entry: MethodEntry, datasets: Mapping[str, Any]) -> None:
    """Check what one method's entry says of its implementation and of datasets."""
    where, name = f"methods.{method}", entry.implementation
    if not is_foreign(name) and name not in _generated() and name not in implementations():
        raise PrivSVMError(f"{where}.implementation: {name!r} is unknown; {nearest_name(name, implementations())}")
    for required in _PROTOCOLS.get(name, ()):
        if required not in entry.parameters:
            raise PrivSVMError(f"{where}: the key {required!r} is missing; add it (see docs/parameters.md)")
    if is_foreign(name):
        try:
            check_installed(name)
        except PrivSVMError as error:
            raise PrivSVMError(f"{where}.{error}") from None
    _check_parameters(where, name, entry.parameters)
    for dataset, changes in (entry.per_dataset or {}).items():
        _known_dataset(dataset, datasets, f"{where}.per_dataset")
        _check_parameters(f"{where}.per_dataset.{dataset}", name, changes)
    for dataset in entry.datasets or ():
        _known_dataset(dataset, datasets, f"{where}.datasets")


def _check_parameters(where: str, implementation: str, values: Mapping[str, Any]) -> None:
    """Raise PrivSVMError for the first parameter that an implementation does not have, or not with this value."""
    if is_foreign(implementation):
        # Another package's class has the last word on its own, in the job that imports it.
        name = values.get("states_epsilon")
        if name is not None and (not isinstance(name, str) or not name.isidentifier()):
            raise PrivSVMError(f"{where}.states_epsilon: {name!r} is not valid; must name a parameter of the class")
        return
    known = implementation_parameters(implementation)
    if not all(name in known and known[name].accepts(value) for name, value in values.items()):
        # The class has the last word: its file may be newer than the generated schema.
        known = _imported_parameters(implementation)
    for name, value in values.items():
        if name not in known:
            raise PrivSVMError(f"{where}.{name} is not a known key; {nearest_name(name, (*_ENTRY_KEYS, *known))}")
        if not known[name].accepts(value):
            wish = known[name].problem(value).replace("None", "null")
            raise PrivSVMError(f"{where}.{name}: {shown_value(value)} is not valid; {wish}")


def _known_dataset(dataset: str, known: Mapping[str, Any], where: str) -> None:
    if dataset not in known:
        hint = nearest_name(dataset, known)
        raise PrivSVMError(f"{where}: {dataset!r} is not one of the benchmark's datasets; {hint}")


def method_parameters(params: Mapping[str, Any], method: str, dataset: str) -> dict[str, Any]:
    """Parameters of one method on one dataset.

    Parameters
    ----------
    params : mapping
        Checked params.yaml.
    method, dataset : str
        Keys of ``methods`` and ``datasets``.

    Returns
    -------
    dict
        The entry's parameters with those of ``per_dataset`` over them.
    """
    entry = params["methods"][method]
    return {**entry_parameters(params, method), **((entry.get("per_dataset") or {}).get(dataset) or {})}


def entry_parameters(params: Mapping[str, Any], method: str) -> dict[str, Any]:
    """Parameters of one method that its entry gives for all datasets."""
    return {key: value for key, value in params["methods"][method].items() if key not in _ENTRY_KEYS}


def audited_methods(params: Mapping[str, Any]) -> list[str]:
    """Names of the entries whose implementation states an epsilon and is a file of `privsvm.methods`.

    They are read from the generated schema, as parameters are.
    """
    return [name for name, entry in params["methods"].items() if _states_epsilon(entry["implementation"])]


@functools.cache
def _states_epsilon(implementation: str) -> bool:
    if is_foreign(implementation):
        return False
    if implementation in _generated():
        return bool(_generated()[implementation]["private"])
    return "epsilon" in estimator_class(implementation).declared  # type: ignore[attr-defined]


def train_jobs(params: Mapping[str, Any]) -> list[tuple[str, str]]:
    """All (method, dataset) pairs of the benchmark, in the order of params.yaml."""
    return [
        (method, dataset)
        for method, entry in params["methods"].items()
        for dataset in (entry.get("datasets") or params["datasets"])
    ]


def protocol_methods(params: Mapping[str, Any]) -> list[str]:
    """Names of the methods that run as a protocol between entities, each with columns of its own.

    Parameters
    ----------
    params : mapping
        params.yaml.

    Returns
    -------
    list of str

    Raises
    ------
    PrivSVMError
        If there is one and the rows are condensed: a condensed row mixes the columns of all entities.
    """
    names = [name for name, entry in params["methods"].items() if entry["implementation"] in _PROTOCOLS]
    if names and params["condense"] != "none":
        raise PrivSVMError(
            f"condense: {params['condense']!r} cannot go with {' and '.join(f'methods.{name}' for name in names)}: a "
            "condensed row needs the columns of all entities in one place; set it to none, or take out what is named"
        )
    return names


def entity_names(params: Mapping[str, Any], method: str, dataset: str) -> list[str]:
    """Names of the entities of a method that runs as a protocol.

    Parameters
    ----------
    params : mapping
        Checked params.yaml.
    method, dataset : str
        Keys of ``methods`` and ``datasets``.

    Returns
    -------
    list of str
        ``entity-1`` and so on.
    """
    entities = method_parameters(params, method, dataset)["entities"]
    count = entities if isinstance(entities, int) else len(entities)
    return [f"entity-{number}" for number in range(1, count + 1)]
