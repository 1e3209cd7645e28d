"""Describe every dataset: where its files are, how to read them, and which of its facts are public.

Light, because the workflow reads the catalogue at every start.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import re
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

import pydantic

from privsvm.errors import PrivSVMError, nearest_name, without_passwords
from privsvm.models import KeyedError
from privsvm.tables.schema import Schema, parse_schema
from privsvm_bench.datasets.settings import (
    FORMATS,
    MOST_BYTES,
    Bounds,
    OwnSettings,
    Protocol,
    Settings,
    check_settings,
)

PACKING_SUFFIXES = (".xz", ".bz2", ".gz", ".zip", ".Z")
_SUFFIX_FORMATS = {
    **dict.fromkeys((".csv", ".tsv", ".data", ".txt"), "csv"),
    **dict.fromkeys((".libsvm", ".svm", ".svmlight"), "libsvm"),
    **{f".{name}": name for name in ("parquet", "npz", "mat")},
}


@dataclass(frozen=True)
class DataFile:
    """One raw file of a dataset."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    name: str  # File name below ``data/raw/<dataset>/``.
    urls: tuple[str, ...] = ()  # Addresses to try, in order.
    sha256: str | None = None  # Hash of the unpacked file; None if unknown.
    # Sets bundled with scikit-learn: hash of values and labels, however the ``.npz`` is packed.
    content_sha256: str | None = None
    size: int | None = None  # Bytes to fetch, if known.
    max_bytes: int = MOST_BYTES  # Limit on the download and on the unpacked file.
    mirror_path: str | None = None  # Path below the mirror folder.
    path: str | None = None  # Own data: the file on this machine.
    user_supplied: bool = False  # Own data are not kept in the cache of downloads.


@dataclass(frozen=True)
class DataPart:
    """One part (``all``, ``train``, ``test``, ``validation`` or ``remaining``) and how to read it."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    role: str  # Name of the part.
    files: tuple[str, ...]  # File names, read one after the other.
    format: str  # One of `FORMATS`.
    label: int | str | None = None  # Label column by position or name; for ``mat`` and ``npz`` the variable.
    features: str | None = None  # ``mat`` and ``npz``: the variable that holds the features.
    table: str | None = None  # ``mat``: one variable that holds label column and features.
    transpose: bool = False  # ``mat`` and ``npz``: features are stored with one column for each row.
    header_rows: int = 0  # Lines to skip; the last of them names the columns.
    header_assumed: bool = False  # An assumed header that looks like data is refused.
    delimiter: str | None = None  # ``","``, ``"whitespace"``, ``"tab"`` or any character; None: the format's own.
    encoding: str | None = None  # Python's name for the encoding of a text file; None: UTF-8.
    max_bytes: int = MOST_BYTES  # Limit on the unpacked size of a file.
    drop_columns: tuple[int | str, ...] = ()  # Columns that are neither label nor feature.
    rows: tuple[int, int] | None = None  # First row and end row inside a file shared with other parts.
    member: str | None = None  # File inside a zip (``outer.zip/inner/file`` for nested ones).
    label_member: str | None = None  # As `member`, for a file of labels only.
    # From this part's labels to the labels of the other parts.
    label_map: Mapping[str, str] = field(default_factory=dict)
    n_rows: int | None = None  # Expected in the file, as are the next three; None if unknown.
    n_features: int | None = None
    missing_values: int | None = None
    class_counts: Mapping[str, int] | None = None  # Rows of each label, after `label_map`.


@dataclass(frozen=True)
class DatasetEntry:
    """A dataset with the settings it is used with."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    name: str  # Name in the catalogue or in params.yaml.
    files: Mapping[str, DataFile]  # Every raw file by name.
    parts: Mapping[str, DataPart]  # Every part by role.
    labels: tuple[str, ...] | None = None  # Labels that may occur in the files; None: not declared.
    classes: tuple[str, ...] | None = None  # Public class list after `groups`; None: taken from the data.
    positive: str | None = None  # Two classes: the one that gets code 1.
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # Class made of several labels; empty for none.
    missing: str = "error"  # One of `MISSING_RULES`.
    bounds: Bounds | None = None  # Declared public bounds.
    # ``declared``: by the user, or by how the features are made; ``published``: `bounds_note` names the source;
    # ``observed``: no source is known.
    bounds_origin: str | None = None
    scaling: str = "none"  # One of `SCALINGS`.
    fit_on: str = "training_rows"  # One of `FIT_ON`; matters for ``min_max`` and ``z_score``.
    target_range: tuple[float, float] = (-1.0, 1.0)  # Range of the features after ``bounds`` or ``min_max``.
    pool: tuple[str, ...] = ()  # Parts whose rows are used by protocols that draw their own splits.
    protocol: Protocol | None = None  # The dataset's own protocol, which overrides the experiment's.
    bundled: str | None = None  # Loader function of ``sklearn.datasets``.
    verified: bool = True  # False if no hash is known.
    user_supplied: bool = False  # True for data declared in params.yaml.
    # Declared columns (`privsvm.tables.schema.Schema.to_json`); None if all are numbers.
    schema: Mapping[str, Any] | None = None
    declared_rows: int | None = None  # Own data: the public number of rows. Row counts of the catalogue are public.
    note: str = ""  # Caveats; `bounds_note` has those on the bounds.
    bounds_note: str = ""
    licence: str = ""  # Of the data, if stated.
    # Whether the published file was scaled by statistics of its own rows; None: unknown.
    prescaled: bool | None = False

    @property
    def source(self) -> str:
        """Where the data come from, in a sentence."""
        if self.bundled is not None:
            return f"Bundled with scikit-learn ({self.bundled})."
        urls = [url for file in self.files.values() for url in file.urls[:1]]
        return f"From {without_passwords(urls[0])}." if urls else "From a mirror only."

    @property
    def licence_words(self) -> str:
        """The licence of the data, or a note that none is stated."""
        return self.licence or "No licence is stated: ask at the source before you hand the data on."


def label_order(labels: Sequence[str]) -> tuple[str, ...]:
    """Order labels by number if all are whole numbers, else by text."""
    try:
        return tuple(sorted(labels, key=int))
    except ValueError:
        return tuple(sorted(labels))


@functools.cache
def load_catalogue() -> Mapping[str, DatasetEntry]:
    """Load every dataset of the catalogue, by name in alphabetical order."""
    records = json.loads(Path(__file__).with_name("catalogue.json").read_text(encoding="utf-8"))
    for name, record in records.items():
        record["name"] = name
        for key, names in (("files", "name"), ("parts", "role")):
            record[key] = {own: {names: own, **item} for own, item in record[key].items()}
    return MappingProxyType(pydantic.TypeAdapter(dict[str, DatasetEntry]).validate_python(records))


def _own_entry(name: str, settings: OwnSettings) -> DatasetEntry:
    """Build the entry of a dataset declared in params.yaml."""
    where, file_name = _own_file(settings)
    schema = None if settings.schema_ is None else _own_schema(name, settings)
    if schema is not None:
        settings = settings.model_copy(update={"label": schema.label, "header": True, "n_rows": schema.rows})
    format_ = settings.format or _guess_format(file_name, settings.member)
    header = settings.header if settings.header is not None else format_ == "csv"
    if schema is not None and format_ != "csv":
        raise KeyedError("path", f"{file_name!r} is {format_}, and `schema` reads CSV in UTF-8; save the table so")
    _check_label(settings.label, format_, header, file_name)
    for key, formats in (("delimiter", ("csv", "data")), ("encoding", ("csv", "data"))):
        if getattr(settings, key) is not None and format_ not in formats:
            raise KeyedError(key, f"has no effect with format {format_!r}; remove it")
    delimiter = settings.delimiter
    if delimiter is None and file_name.removesuffix(".gz").lower().endswith(".tsv"):
        delimiter = "tab"
    part = DataPart(
        role="all",
        files=(file_name,),
        format=format_,
        label=settings.label if settings.label is not None or format_ == "libsvm" else "y",
        features=settings.features or "X" if format_ in ("mat", "npz") else None,
        header_rows=int(header) if format_ in ("csv", "data") else 0,
        header_assumed=settings.header is None,
        delimiter=delimiter,
        encoding=settings.encoding,
        max_bytes=settings.max_bytes or MOST_BYTES,
        drop_columns=settings.drop_columns,
        member=settings.member,
        n_features=settings.n_features,
    )
    file = DataFile(
        name=file_name,
        urls=() if settings.url is None else (where,),
        sha256=settings.sha256,
        path=settings.path,
        user_supplied=True,
        max_bytes=settings.max_bytes or MOST_BYTES,
    )
    entry = DatasetEntry(
        name=name,
        files={file_name: file},
        parts={"all": part},
        labels=None if settings.groups else settings.classes,
        classes=settings.classes,
        pool=("all",),
        verified=settings.sha256 is not None,
        user_supplied=True,
        declared_rows=settings.n_rows,
        prescaled=settings.prescaled,
    )
    if schema is None:
        return entry
    return dataclasses.replace(
        entry,
        labels=schema.class_order,
        classes=schema.class_order,
        positive=schema.positive,
        prescaled=schema.prescaled,
        scaling="bounds",
        bounds=Bounds((-1.0,), (1.0,)),
        bounds_origin="declared",
        schema=schema.to_json(),
    )


# Keys that a schema replaces, or that mean nothing with one.
_BESIDE_SCHEMA = (
    "label", "classes", "positive", "groups", "bounds", "scaling", "range", "missing", "delimiter", "header",
    "encoding", "drop_columns", "features", "member", "n_features", "n_rows", "prescaled", "format",
)  # fmt: skip


def _own_schema(name: str, settings: OwnSettings) -> Schema:
    """Read the public schema of own data."""
    for key in _BESIDE_SCHEMA:
        if getattr(settings, key) not in (None, ()):
            if key in Schema.model_fields:
                raise KeyedError(key, "is the schema's to say; move it into `schema`, or remove it")
            raise KeyedError(key, "does not go with `schema`, whose table is CSV in UTF-8; save it so, without the key")
    if not isinstance(settings.schema_, Mapping):
        raise KeyedError("schema", f"{settings.schema_!r} is not a mapping; write the keys of a schema below it")
    try:
        schema = parse_schema({"name": name, **settings.schema_})
    except PrivSVMError as error:
        # The message already begins with the word schema.
        raise ValueError(str(error)) from None
    if schema.person is not None:
        raise KeyedError(
            "schema.person",
            "splits and epsilons of a benchmark are of rows: remove it, or train with `privsvm release`, whose "
            "guarantee is of persons",
        )
    return schema


def _own_file(settings: OwnSettings) -> tuple[str, str]:
    """Return path or address of an own file, and its name."""
    path, url = settings.path, settings.url
    if path is not None and url is not None:
        raise ValueError("both `path` and `url` given; keep one")
    if path is not None:
        if not os.path.isfile(path):
            what = "is a folder" if os.path.isdir(path) else "no such file"
            raise KeyedError("path", f"{path!r}: {what}; correct the path or use `url`")
        return path, Path(path).name
    address = urllib.parse.urlsplit(str(url))
    if address.scheme not in ("http", "https"):
        raise KeyedError("url", f"{url!r} is not an http(s) address; use `path` for a local file")
    file_name = Path(urllib.parse.unquote(address.path)).name
    if not file_name:
        raise KeyedError("url", f"{url!r} names no file; give the address of a file")
    return str(url), file_name


def _guess_format(file_name: str, member: str | None) -> str:
    """Return the format that belongs to a file's ending."""
    bare = file_name if member is None else member
    for suffix in PACKING_SUFFIXES:
        bare = bare.removesuffix(suffix)
    format_ = _SUFFIX_FORMATS.get(Path(bare).suffix.lower())
    if format_ is None:
        raise KeyedError("format", f"cannot be told from {file_name!r}; set it to one of {', '.join(FORMATS)}")
    return format_


def _check_label(label: int | str | None, format_: str, header: bool, file_name: str) -> None:
    """Refuse a label column that cannot be found."""
    if label is None and format_ in ("csv", "data", "parquet"):
        raise KeyedError("label", f"missing; name the label column of {file_name!r} (or its position)")
    if format_ in ("csv", "data") and not header and isinstance(label, str):
        raise KeyedError("label", f"{label!r} is a name but `header` is false; give the position")


def resolve(name: str, settings: Mapping[str, Any] | None = None) -> DatasetEntry:
    """Find a dataset of the catalogue or own data, and apply its settings from params.yaml.

    `Settings` has the keys of `settings`, `OwnSettings` those of own data. Raises PrivSVMError for an unknown dataset,
    key or value, or if the file of own data is missing.
    """
    settings = {} if settings is None else settings
    if not isinstance(settings, Mapping):
        raise PrivSVMError(f"datasets.{name}: {settings!r} is not a mapping; write `{name}: {{}}` for the defaults")
    user_supplied = "path" in settings or "url" in settings
    catalogue = load_catalogue()
    if user_supplied and name in catalogue:
        raise PrivSVMError(f"datasets.{name}: that name belongs to the catalogue; give your data another name")
    if not user_supplied and name not in catalogue:
        hint = nearest_name(name, catalogue)
        if hint.startswith("known:"):
            hint = "`python -m privsvm_bench datasets` lists them"
        raise PrivSVMError(f"datasets.{name}: unknown dataset {name!r}; {hint} (own data needs `path` or `url`)")
    if user_supplied and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]*", name):
        raise PrivSVMError(f"datasets.{name}: the name becomes a folder; use letters, digits, '.', '_', '-' and '+'")
    checked = check_settings(name, settings, user_supplied)
    try:
        return _apply(_own_entry(name, checked) if isinstance(checked, OwnSettings) else catalogue[name], checked)
    except KeyedError as error:
        raise PrivSVMError(f"datasets.{name}.{error.key}: {error}") from None
    except ValueError as error:
        raise PrivSVMError(f"datasets.{name}: {error}") from None


def _apply(entry: DatasetEntry, settings: Settings) -> DatasetEntry:
    """Apply the settings of any dataset to an entry."""
    changes: dict[str, Any] = {}
    _apply_groups(entry, settings, changes)
    _apply_positive(entry, settings, changes)
    _apply_scaling(entry, settings, changes)
    if settings.missing is not None:
        changes["missing"] = settings.missing
    if settings.protocol is not None:
        changes["protocol"] = settings.protocol
    for role in settings.parts or ():
        if role not in entry.parts:
            raise KeyedError("parts", f"the set has no part {role!r}; {nearest_name(str(role), entry.parts)}")
    if settings.parts is not None:
        changes["pool"] = settings.parts
    return dataclasses.replace(entry, **changes)


def _apply_groups(entry: DatasetEntry, settings: Settings, changes: dict[str, Any]) -> None:
    """Merge labels into classes."""
    groups = settings.groups
    if groups is None:
        return
    changes["groups"] = groups
    unknown = [label for members in groups.values() for label in members if label not in (entry.labels or [label])]
    if unknown:
        hint = nearest_name(unknown[0], entry.labels or ())
        raise KeyedError("groups", f"no label {unknown[0]!r} in this set; {hint}")
    changes["classes"] = label_order(list(groups)) if groups else entry.labels
    # A default of the catalogue may name a class that the new groups do not have.
    if changes["classes"] is None or entry.positive not in changes["classes"] or len(changes["classes"]) != 2:
        changes["positive"] = None
    if isinstance(settings, OwnSettings) and "classes" in settings.model_fields_set:
        if groups and set(entry.classes or ()) != set(groups):
            raise KeyedError(
                "classes",
                f"{list(entry.classes or ())!r} differ from the groups {sorted(groups)!r}; make them agree",
            )
        changes["classes"] = entry.classes


def _apply_positive(entry: DatasetEntry, settings: Settings, changes: dict[str, Any]) -> None:
    """Choose the class that gets code 1."""
    positive, classes = settings.positive, changes.get("classes", entry.classes)
    if positive is None:
        return
    if classes is not None and (problem := positive_problem(positive, classes)):
        raise KeyedError("positive", problem)
    changes["positive"] = positive


def positive_problem(positive: str, classes: Sequence[str]) -> str | None:
    """Return why a class cannot be the positive one of these; None if it can."""
    if positive not in classes:
        return f"no class {positive!r}; {nearest_name(positive, classes)}"
    return None if len(classes) == 2 else f"the set has {len(classes)} classes; use `groups` to make it two first"


def _apply_scaling(entry: DatasetEntry, settings: Settings, changes: dict[str, Any]) -> None:
    """Choose how features are scaled."""
    if settings.bounds is not None:
        changes["bounds"], changes["bounds_origin"] = settings.bounds, "declared"
        if entry.user_supplied:
            changes["scaling"] = "bounds"
    if settings.scaling is not None:
        changes["scaling"] = settings.scaling
    scaling = changes.get("scaling", entry.scaling)
    if scaling == "bounds" and changes.get("bounds", entry.bounds) is None:
        raise KeyedError(
            "scaling",
            "'bounds' needs public bounds and none are declared; add `bounds: [low, high]` or choose none, min_max or "
            "z_score",
        )
    if settings.fit_on is not None:
        changes["fit_on"] = settings.fit_on
        if scaling not in ("min_max", "z_score"):
            raise KeyedError("fit_on", f"has no effect with scaling {scaling!r}; remove it or use min_max or z_score")
    if settings.range is not None:
        changes["target_range"] = settings.range
        if scaling not in ("bounds", "min_max"):
            raise KeyedError("range", f"has no effect with scaling {scaling!r}; remove it or choose bounds or min_max")


def raw_files(name: str, settings: Mapping[str, Any] | None = None) -> list[str]:
    """List the raw files of a dataset; raises PrivSVMError as `resolve` does."""
    return list(resolve(name, settings).files)
