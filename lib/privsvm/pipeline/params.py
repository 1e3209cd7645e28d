"""params.yaml: coerced, validated, and turned into jobs."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from privsvm.errors import PrivSVMError, nearest_name
from privsvm.files import read_json

__all__ = [
    "check_params",
    "coerce_numbers",
    "entity_names",
    "implementation_parameters",
    "method_parameters",
    "protocol_methods",
    "read_params",
    "train_jobs",
]

_EXPONENT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+")

# Keys of a method's entry that are not parameters of its estimator.
_ENTRY_KEYS = ("implementation", "datasets", "per_dataset")

# Implementations that run as a protocol between several parties, by rules of their own.
_PROTOCOLS = ("ppsvm",)


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
    if isinstance(value, str) and _EXPONENT.fullmatch(value):
        return float(value)
    return value


def read_params(path: str | Path = "params.yaml") -> dict[str, Any]:
    """Read params.yaml, coerce and validate it; see `check_params`."""
    import yaml

    try:
        params = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise PrivSVMError(f"{path}: cannot be read ({' '.join(str(error).split())}); correct it") from None
    if not isinstance(params, dict):
        raise PrivSVMError(f"{path}: holds no keys; restore it (git checkout {path})")
    return check_params(params, str(path))


@functools.cache
def _schema() -> dict[str, Any]:
    return read_json(Path(__file__).with_name("params.schema.json"))


def implementation_parameters(implementation: str) -> dict[str, Any]:
    """JSON schemas of one implementation's parameters, by name."""
    return _schema()["$defs"]["implementations"][implementation]["properties"]


def check_params(params: Mapping[str, Any], source: str = "params.yaml") -> dict[str, Any]:
    """Coerce and validate the whole of params.yaml.

    Parameters
    ----------
    params : mapping
        As parsed from YAML.
    source : str, default="params.yaml"
        Name of the file, for messages.

    Returns
    -------
    dict
        The coerced parameters.

    Raises
    ------
    PrivSVMError
        One line with the file, the key, the value and the remedy, for the first problem found.
    """
    import jsonschema

    checked = coerce_numbers(dict(params))
    _raise_first(jsonschema.Draft202012Validator(_schema()).iter_errors(checked), source, ())
    from privsvm.data.catalogue import resolve

    for name, settings in checked["datasets"].items():
        try:
            resolve(name, settings or {})
        except PrivSVMError as error:
            raise PrivSVMError(f"{source}: {error}") from None
    schemas = _schema()["$defs"]["implementations"]
    for method, entry in checked["methods"].items():
        name = entry["implementation"]
        if name not in schemas:
            raise PrivSVMError(
                f"{source}: methods.{method}.implementation: {name!r} is unknown; {nearest_name(name, schemas)}"
            )
        schema = {**schemas[name], "additionalProperties": False, "$defs": _schema()["$defs"]}
        validator = jsonschema.Draft202012Validator(schema)
        own = {key: value for key, value in entry.items() if key not in _ENTRY_KEYS}
        _raise_first(validator.iter_errors(own), source, ("methods", method))
        # Changes need not repeat what the entry must say.
        validator = jsonschema.Draft202012Validator({key: schema[key] for key in schema if key != "required"})
        for dataset, changes in (entry.get("per_dataset") or {}).items():
            _known_dataset(dataset, checked, f"{source}: methods.{method}.per_dataset")
            _raise_first(validator.iter_errors(changes), source, ("methods", method, "per_dataset", dataset))
        for dataset in entry.get("datasets") or ():
            _known_dataset(dataset, checked, f"{source}: methods.{method}.datasets")
    try:
        protocol_methods(checked)
    except PrivSVMError as error:
        raise PrivSVMError(f"{source}: {error}") from None
    return checked


def _known_dataset(dataset: str, params: Mapping[str, Any], where: str) -> None:
    if dataset not in params["datasets"]:
        hint = nearest_name(dataset, params["datasets"])
        raise PrivSVMError(f"{where}: {dataset!r} is not one of the benchmark's datasets; {hint}")


def _raise_first(errors, source: str, prefix: tuple[str, ...]) -> None:
    """Raise the first JSON-schema error as one line a user can act on."""
    found = sorted(errors, key=lambda error: [str(part) for part in error.absolute_path])
    if not found:
        return
    error = found[0]
    path = [*prefix, *(str(part) for part in error.absolute_path)]
    where = f"{source}: {'.'.join(path)}" if path else source
    if error.validator == "additionalProperties":
        known = error.schema.get("properties", {})
        unknown = sorted(set(error.instance) - set(known))[0]
        key = ".".join([*path, str(unknown)])
        raise PrivSVMError(f"{source}: {key} is not a known key; {nearest_name(unknown, known)}")
    if error.validator == "required":
        missing = sorted(set(error.validator_value) - set(error.instance))[0]
        raise PrivSVMError(f"{where}: the key {missing!r} is missing; add it (see docs/parameters.md)")
    if "propertyNames" in error.absolute_schema_path:
        raise PrivSVMError(f"{where}: the name {error.instance!r} becomes a folder; use letters, digits, - and _")
    wish = error.schema.get("description")
    detail = wish or error.message
    if error.validator == "enum":
        detail = nearest_name(str(error.instance), [str(item) for item in error.validator_value])
    raise PrivSVMError(f"{where}: {error.instance!r} is not valid; {detail}")


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
    own = {key: value for key, value in entry.items() if key not in _ENTRY_KEYS}
    return {**own, **((entry.get("per_dataset") or {}).get(dataset) or {})}


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
