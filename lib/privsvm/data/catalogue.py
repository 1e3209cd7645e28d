"""What is known of every dataset: where its files are, how to read them, what is public about it.

Imports the standard library only, because the workflow reads the catalogue at every start.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import math
import re
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from privsvm.errors import PrivSVMError, nearest_name

__all__ = [
    "Bounds",
    "DataFile",
    "DataPart",
    "DatasetEntry",
    "load_catalogue",
    "normalise_label",
    "normalise_protocol",
    "raw_files",
    "resolve",
]

FORMATS = ("csv", "data", "libsvm", "arff", "parquet", "npz", "mat")
MISSING_RULES = ("error", "drop_rows", "drop_columns", "zero")
SCALINGS = ("none", "bounds", "min_max", "z_score")
FIT_ON = ("training_rows", "all_rows")
PROTOCOLS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "holdout": {"repeats": 1, "test_size": 0.2, "stratified": True},
        "k_fold": {"folds": 5, "repeats": 1, "stratified": True},
        "given": {"train": "train", "test": "test"},
        "resubstitution": {},
    }
)

_COMMON_SETTINGS = ("scaling", "fit_on", "range", "bounds", "positive", "groups", "missing", "protocol", "parts")
_OWN_SETTINGS = (
    "path",
    "url",
    "sha256",
    "format",
    "label",
    "features",
    "classes",
    "delimiter",
    "header",
    "drop_columns",
    "member",
    "n_features",
)
PACKING_SUFFIXES = (".xz", ".bz2", ".gz", ".zip", ".Z")
_SUFFIX_FORMATS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".data": "csv",
    ".txt": "csv",
    ".libsvm": "libsvm",
    ".svm": "libsvm",
    ".svmlight": "libsvm",
    ".arff": "arff",
    ".parquet": "parquet",
    ".npz": "npz",
    ".mat": "mat",
}
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class DataFile:
    """One raw file of a dataset.

    Attributes
    ----------
    name : str
        File name below ``data/raw/<dataset>/``.
    urls : tuple of str
        Addresses to try, in order.
    sha256 : str or None
        Hash of the file as it is kept, that is unpacked; None where none is known.
    sha256_packed : str or None
        Hash of the packed copy in the mirror, where it is packed there.
    content_sha256 : str or None
        For sets bundled with scikit-learn: hash of the values and labels, whatever the packing of the ``.npz``.
    size : int or None
        Bytes to fetch, as far as known.
    mirror_path : str or None
        Path below the mirror folder.
    path : str or None
        Own data: the file on this machine.
    canonical_url : str or None
        The original public address.
    canonical_differs : bool
        True where that address serves other bytes (another format or printing), so it is not tried.
    """

    name: str
    urls: tuple[str, ...] = ()
    sha256: str | None = None
    sha256_packed: str | None = None
    content_sha256: str | None = None
    size: int | None = None
    mirror_path: str | None = None
    path: str | None = None
    canonical_url: str | None = None
    canonical_differs: bool = False


@dataclass(frozen=True)
class DataPart:
    """One part (``all``, ``train``, ``test``, ``validation`` or ``remaining``) and how to read it.

    Attributes
    ----------
    role : str
        Name of the part.
    files : tuple of str
        File names, read one after the other.
    format : str
        One of `FORMATS`.
    label : int, str or None
        Label column by position or name; for ``mat`` and ``npz`` the variable.
    features : str or None
        ``mat`` and ``npz``: the variable that holds the features.
    table : str or None
        ``mat``: one variable that holds label column and features.
    transpose : bool
        ``mat`` and ``npz``: features are stored with one column for each row.
    header_rows : int
        Lines to skip; the last of them names the columns.
    header_assumed : bool
        True where nobody said that there is a header; one that looks like data is then refused.
    delimiter : str or None
        ``","``, ``"whitespace"``, ``"tab"`` or any character; None: the format's own.
    drop_columns : tuple of int or str
        Columns that are neither label nor feature.
    rows : tuple of int or None
        First row and end row inside a file shared with other parts.
    member, label_member : str or None
        File inside a zip (``outer.zip/inner/file`` for nested ones); ``label_member`` holds labels only.
    label_map : mapping of str to str
        Labels of this part as the other parts write them.
    n_rows, n_features, missing_values : int or None
        What must be found; None where it is not known.
    class_counts : mapping of str to int or None
        Rows of each label, after `label_map`.
    """

    role: str
    files: tuple[str, ...]
    format: str
    label: int | str | None = None
    features: str | None = None
    table: str | None = None
    transpose: bool = False
    header_rows: int = 0
    header_assumed: bool = False
    delimiter: str | None = None
    drop_columns: tuple[int | str, ...] = ()
    rows: tuple[int, int] | None = None
    member: str | None = None
    label_member: str | None = None
    label_map: Mapping[str, str] = field(default_factory=dict)
    n_rows: int | None = None
    n_features: int | None = None
    missing_values: int | None = None
    class_counts: Mapping[str, int] | None = None


@dataclass(frozen=True)
class Bounds:
    """Public lower and upper bounds of the features, in the units of the file.

    Attributes
    ----------
    lower, upper : tuple of float
        One number for all features, or one for each.
    """

    lower: tuple[float, ...]
    upper: tuple[float, ...]


@dataclass(frozen=True)
class DatasetEntry:
    """A dataset with the settings it is used with.

    Attributes
    ----------
    name : str
        Name in the catalogue or in params.yaml.
    files : mapping of str to DataFile
        Every raw file by name.
    parts : mapping of str to DataPart
        Every part by role.
    labels : tuple of str or None
        Labels that may occur in the files; None: not declared.
    classes : tuple of str or None
        Public class list after `groups`; None: taken from the data.
    positive : str or None
        Two classes: the one that gets code 1.
    groups : mapping of str to tuple of str
        Class made of several labels; empty for none.
    missing : str
        One of `MISSING_RULES`.
    bounds : Bounds or None
        Declared public bounds.
    bounds_origin : str or None
        ``catalogue`` or ``settings``.
    scaling : str
        One of `SCALINGS`.
    fit_on : str
        One of `FIT_ON`; matters for ``min_max`` and ``z_score``.
    target_range : tuple of float
        Where ``bounds`` and ``min_max`` map the features to.
    pool : tuple of str
        Parts whose rows are used by protocols that draw their own splits.
    protocol : mapping or None
        The dataset's own protocol, which overrides the experiment's.
    bundled : str or None
        Loader function of ``sklearn.datasets``.
    verified : bool
        False where no hash is known.
    derived : bool
        True where the files were rebuilt from others, so that only a mirror has them.
    own : bool
        True for data declared in params.yaml.
    prescaled : bool
        True where the published file was scaled by statistics of its own rows.
    note, bounds_note : str
        What to know before using it.
    papers : tuple of str
        Letters of the papers that use it.
    """

    name: str
    files: Mapping[str, DataFile]
    parts: Mapping[str, DataPart]
    labels: tuple[str, ...] | None = None
    classes: tuple[str, ...] | None = None
    positive: str | None = None
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    missing: str = "error"
    bounds: Bounds | None = None
    bounds_origin: str | None = None
    scaling: str = "none"
    fit_on: str = "training_rows"
    target_range: tuple[float, float] = (-1.0, 1.0)
    pool: tuple[str, ...] = ()
    protocol: Mapping[str, Any] | None = None
    bundled: str | None = None
    verified: bool = True
    derived: bool = False
    own: bool = False
    note: str = ""
    bounds_note: str = ""
    prescaled: bool = False
    papers: tuple[str, ...] = ()


def normalise_label(value: Any) -> str:
    """Write a label the one way it is written everywhere here.

    Parameters
    ----------
    value : object
        Text, number or boolean.

    Returns
    -------
    str
        Whole numbers without sign ``+`` and without ``.0`` (``"+1"``, ``1.0`` and ``"1"`` are all ``"1"``);
        other text as it is, without surrounding blanks.
    """
    text = value.decode("utf-8", "replace").strip() if isinstance(value, bytes) else str(value).strip()
    if _NUMBER.fullmatch(text):
        number = float(text)
        if math.isfinite(number) and number == int(number) and abs(number) < 2**53:
            return str(int(number))
    return text


def _label_order(labels: Sequence[str]) -> tuple[str, ...]:
    """Order labels by number if all are whole numbers, else by text."""
    try:
        return tuple(sorted(labels, key=int))
    except ValueError:
        return tuple(sorted(labels))


def _github_raw(source: Mapping[str, str]) -> str:
    """Address of one file of a GitHub repository at a commit."""
    path = urllib.parse.quote(source["path"])
    return f"https://raw.githubusercontent.com/{source['repo']}/{source['commit']}/{path}"


def _catalogue_file(name: str, record: Mapping[str, Any]) -> DataFile:
    canonical, differs = record.get("canonical_url"), bool(record.get("canonical_differs", False))
    urls = [canonical] if canonical and not differs else []
    if "source" in record:
        urls.append(_github_raw(record["source"]))
    return DataFile(
        name=name,
        urls=tuple(urls),
        sha256=record["sha256"],
        sha256_packed=record.get("sha256_packed"),
        content_sha256=record.get("content_sha256"),
        size=record["bytes"],
        mirror_path=record.get("mirror"),
        canonical_url=canonical,
        canonical_differs=differs,
    )


def _catalogue_part(role: str, record: Mapping[str, Any]) -> DataPart:
    values = dict(record)
    values["files"] = tuple(values["files"])
    values["drop_columns"] = tuple(values.get("drop_columns", ()))
    if values.get("rows") is not None:
        values["rows"] = tuple(values["rows"])
    return DataPart(role=role, **values)


def _default_pool(parts: Mapping[str, DataPart]) -> tuple[str, ...]:
    """Parts used where the protocol draws its own splits: everything in one part, else the training part."""
    for role in ("all", "train"):
        if role in parts:
            return (role,)
    return (next(iter(parts)),)


def _catalogue_entry(name: str, record: Mapping[str, Any]) -> DatasetEntry:
    parts = {role: _catalogue_part(role, part) for role, part in record["parts"].items()}
    bounds = None if record.get("bounds") is None else _parse_bounds(name, record["bounds"])
    return DatasetEntry(
        name=name,
        files={file: _catalogue_file(file, item) for file, item in record["files"].items()},
        parts=parts,
        labels=tuple(record.get("labels", record["classes"])),
        classes=tuple(record["classes"]),
        positive=record.get("positive"),
        groups={key: tuple(labels) for key, labels in record.get("groups", {}).items()},
        missing=record["missing"],
        bounds=bounds,
        bounds_origin=None if bounds is None else "catalogue",
        scaling=record["scaling"],
        pool=tuple(record.get("pool", _default_pool(parts))),
        bundled=record.get("bundled"),
        verified=record.get("verified", True),
        derived=any("source" not in file for file in record["files"].values())
        and not record.get("bundled")
        and record.get("verified", True),
        note=record.get("note", ""),
        bounds_note=record.get("bounds_note", ""),
        papers=tuple(record.get("papers", ())),
        prescaled=record.get("prescaled", False),
    )


@functools.cache
def _cached_catalogue() -> Mapping[str, DatasetEntry]:
    text = Path(__file__).with_name("catalogue.json").read_text(encoding="utf-8")
    return MappingProxyType({name: _catalogue_entry(name, record) for name, record in json.loads(text).items()})


def load_catalogue() -> dict[str, DatasetEntry]:
    """Load every dataset of the catalogue.

    Returns
    -------
    dict of str to DatasetEntry
        By name, in alphabetical order. Read once a process; the mapping is a copy, the entries are frozen.
    """
    return dict(_cached_catalogue())


def _number(name: str, key: str, value: Any) -> float:
    # YAML 1.1 reads 1e-5 as text, so text that is a number counts as one.
    try:
        number = float(value) if not isinstance(value, bool) else math.nan
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise PrivSVMError(f"datasets.{name}.{key}: {value!r} is not a finite number; give a number")
    return number


def _parse_bounds(name: str, value: Any) -> Bounds:
    if isinstance(value, Mapping):
        for key in value:
            if key not in ("lower", "upper"):
                raise PrivSVMError(
                    f"datasets.{name}.bounds.{key}: unknown key; {nearest_name(key, ['lower', 'upper'])}"
                )
        pair = [value.get("lower"), value.get("upper")]
    elif isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 2:
        pair = list(value)
    else:
        pair = [None, None]
    sides: list[tuple[float, ...]] = []
    for side in pair:
        if side is None:
            raise PrivSVMError(
                f"datasets.{name}.bounds: {value!r} is not a pair; write [low, high] or {{lower: [...], upper: [...]}}"
            )
        numbers = side if isinstance(side, Sequence) and not isinstance(side, str) else [side]
        sides.append(tuple(_number(name, "bounds", item) for item in numbers))
    lower, upper = sides
    if len(lower) != len(upper):
        raise PrivSVMError(
            f"datasets.{name}.bounds: {len(lower)} lower and {len(upper)} upper bounds; give one of each per feature"
        )
    for index, (low, high) in enumerate(zip(lower, upper, strict=True)):
        if low > high or (low == high and len(lower) == 1):
            raise PrivSVMError(
                f"datasets.{name}.bounds: lower bound {low} of feature {index + 1} is not below upper bound {high}; "
                "swap or widen them"
            )
    return Bounds(lower, upper)


def _choice(name: str, key: str, value: Any, known: Sequence[str]) -> str:
    if value not in known:
        raise PrivSVMError(f"datasets.{name}.{key}: unknown value {value!r}; {nearest_name(str(value), known)}")
    return str(value)


def _parse_groups(name: str, value: Any) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, Mapping):
        raise PrivSVMError(f"datasets.{name}.groups: {value!r} is not a mapping; write {{class: [label, label]}}")
    groups: dict[str, tuple[str, ...]] = {}
    seen: dict[str, str] = {}
    for key, labels in value.items():
        members = labels if isinstance(labels, Sequence) and not isinstance(labels, str) else [labels]
        group = normalise_label(key)
        groups[group] = tuple(normalise_label(label) for label in members)
        for label in groups[group]:
            if label in seen:
                raise PrivSVMError(
                    f"datasets.{name}.groups: label {label!r} is in {seen[label]!r} and {group!r}; keep it in one group"
                )
            seen[label] = group
    if len(groups) == 1:
        raise PrivSVMError(f"datasets.{name}.groups: one class only, {next(iter(groups))!r}; name at least two classes")
    return groups


def normalise_protocol(value: Any, key: str = "protocol") -> dict[str, Any]:
    """Check a protocol and fill in its defaults.

    Parameters
    ----------
    value : mapping or str
        ``{"kind": "holdout", "repeats": 10, "test_size": 0.2, "stratified": true}``,
        ``{"kind": "k_fold", "folds": 5, "repeats": 1, "stratified": true}``,
        ``{"kind": "given", "train": "train", "test": "test"}`` or ``{"kind": "resubstitution"}``; a kind alone
        stands for its defaults.
    key : str
        What to call it in errors.

    Returns
    -------
    dict
        With every key of its kind.

    Raises
    ------
    PrivSVMError
        If the kind or a key is unknown, or a value makes no sense.
    """
    if isinstance(value, str):
        value = {"kind": value}
    if not isinstance(value, Mapping) or "kind" not in value:
        raise PrivSVMError(f"{key}: {value!r} has no `kind`; known: {', '.join(PROTOCOLS)}")
    kind = value["kind"]
    if kind not in PROTOCOLS:
        raise PrivSVMError(f"{key}.kind: unknown protocol {kind!r}; {nearest_name(str(kind), PROTOCOLS)}")
    for item in value:
        if item != "kind" and item not in PROTOCOLS[kind]:
            known = nearest_name(str(item), PROTOCOLS[kind])
            raise PrivSVMError(f"{key}.{item}: unknown key for protocol {kind!r}; {known}")
    result = {"kind": kind, **PROTOCOLS[kind], **value}
    for item, least in (("repeats", 1), ("folds", 2)):
        if item in result and (
            isinstance(result[item], bool) or not isinstance(result[item], int) or result[item] < least
        ):
            raise PrivSVMError(f"{key}.{item}: {result[item]!r} is not a whole number of at least {least}; raise it")
    if "test_size" in result:
        size = result["test_size"]
        fraction = isinstance(size, float) and 0.0 < size < 1.0
        count = isinstance(size, int) and not isinstance(size, bool) and size >= 1
        if not fraction and not count:
            raise PrivSVMError(f"{key}.test_size: {size!r}; give a fraction between 0 and 1 or a number of rows")
    if "stratified" in result and not isinstance(result["stratified"], bool):
        raise PrivSVMError(f"{key}.stratified: {result['stratified']!r}; give true or false")
    return result


def _own_entry(name: str, settings: Mapping[str, Any]) -> DatasetEntry:
    """Build the entry of a dataset declared in params.yaml."""
    path, url = settings.get("path"), settings.get("url")
    if path is not None and url is not None:
        raise PrivSVMError(f"datasets.{name}: both `path` and `url` given; keep one")
    where = str(path) if path is not None else str(url)
    key = "path" if path is not None else "url"
    if path is not None and not Path(where).is_file():
        what = "is a folder" if Path(where).is_dir() else "no such file"
        raise PrivSVMError(f"datasets.{name}.path: {where!r}: {what}; correct the path or use `url`")
    if url is not None and urllib.parse.urlsplit(where).scheme not in ("http", "https"):
        raise PrivSVMError(f"datasets.{name}.url: {where!r} is not an http(s) address; use `path` for a local file")
    file_name = Path(where if path is not None else urllib.parse.unquote(urllib.parse.urlsplit(where).path)).name
    if not file_name:
        raise PrivSVMError(f"datasets.{name}.{key}: {where!r} names no file; give the address of a file")
    member = settings.get("member")
    format_ = settings.get("format")
    if format_ is None:
        bare = str(member) if member is not None else file_name
        for suffix in PACKING_SUFFIXES:
            bare = bare.removesuffix(suffix)
        format_ = _SUFFIX_FORMATS.get(Path(bare).suffix.lower())
        if format_ is None:
            raise PrivSVMError(
                f"datasets.{name}.format: cannot be told from {file_name!r}; set it to one of {', '.join(FORMATS)}"
            )
    format_ = _choice(name, "format", format_, FORMATS)
    label = settings.get("label")
    if isinstance(label, bool) or not isinstance(label, (int, str, type(None))):
        raise PrivSVMError(f"datasets.{name}.label: {label!r}; give a column name or a position (0 is the first)")
    if label is None and format_ in ("csv", "data", "arff", "parquet"):
        raise PrivSVMError(f"datasets.{name}.label: missing; name the label column of {file_name!r} (or its position)")
    header = settings.get("header", format_ == "csv")
    if not isinstance(header, bool):
        raise PrivSVMError(f"datasets.{name}.header: {header!r}; give true or false")
    if format_ in ("csv", "data") and not header and isinstance(label, str):
        raise PrivSVMError(f"datasets.{name}.label: {label!r} is a name but `header` is false; give the position")
    delimiter = settings.get("delimiter")
    if delimiter is None and file_name.removesuffix(".gz").lower().endswith(".tsv"):
        delimiter = "tab"
    sha256 = settings.get("sha256")
    if sha256 is not None:
        sha256 = str(sha256).lower().removeprefix("sha256:")
        if not _SHA256.fullmatch(sha256):
            raise PrivSVMError(f"datasets.{name}.sha256: {sha256!r} is not 64 hexadecimal digits; copy it again")
    n_features = settings.get("n_features")
    if n_features is not None and (isinstance(n_features, bool) or not isinstance(n_features, int) or n_features < 1):
        raise PrivSVMError(f"datasets.{name}.n_features: {n_features!r}; give a whole number of at least 1")
    drop = settings.get("drop_columns", ())
    part = DataPart(
        role="all",
        files=(file_name,),
        format=format_,
        label=label if label is not None or format_ == "libsvm" else "y",
        features=str(settings.get("features", "X")) if format_ in ("mat", "npz") else None,
        header_rows=int(header) if format_ in ("csv", "data") else 0,
        header_assumed="header" not in settings,
        delimiter=delimiter,
        drop_columns=tuple(drop) if isinstance(drop, Sequence) and not isinstance(drop, str) else (drop,),
        member=None if member is None else str(member),
        n_features=n_features,
    )
    file = DataFile(
        name=file_name,
        urls=() if url is None else (where,),
        sha256=sha256,
        path=where if path is not None else None,
        canonical_url=url,
    )
    classes = settings.get("classes")
    if classes is not None:
        if not isinstance(classes, Sequence) or isinstance(classes, str) or len(classes) < 2:
            raise PrivSVMError(f"datasets.{name}.classes: {classes!r}; list every class that may occur, at least two")
        if any(isinstance(item, bool) for item in classes):
            raise PrivSVMError(
                f"datasets.{name}.classes: {list(classes)!r}: YAML reads unquoted yes, no, on and off as true and "
                "false; write them in quotes"
            )
        classes = tuple(normalise_label(item) for item in classes)
        if len(set(classes)) != len(classes):
            raise PrivSVMError(f"datasets.{name}.classes: {list(classes)!r} names a class twice; list each once")
    return DatasetEntry(
        name=name,
        files={file_name: file},
        parts={"all": part},
        labels=None if settings.get("groups") else classes,
        classes=classes,
        pool=("all",),
        verified=sha256 is not None,
        own=True,
    )


def resolve(name: str, settings: Mapping[str, Any] | None = None) -> DatasetEntry:
    """Find a dataset and apply its settings from params.yaml.

    Parameters
    ----------
    name : str
        Name in the catalogue, or of own data declared by `settings`.
    settings : mapping or None
        Keys ``scaling``, ``fit_on``, ``range``, ``bounds``, ``positive``, ``groups``, ``missing``, ``protocol``,
        ``parts`` (whose rows are pooled); for own data also ``path`` or ``url``, ``sha256``, ``format``, ``label``,
        ``features``, ``classes``, ``delimiter``, ``header``, ``drop_columns``, ``member``, ``n_features``.

    Returns
    -------
    DatasetEntry
        The catalogue's entry, or a new one for own data, with the settings in place.

    Raises
    ------
    PrivSVMError
        If the dataset, a key or a value is unknown, or the file of own data is missing.
    """
    settings = {} if settings is None else settings
    if not isinstance(settings, Mapping):
        raise PrivSVMError(f"datasets.{name}: {settings!r} is not a mapping; write `{name}: {{}}` for the defaults")
    own = "path" in settings or "url" in settings
    catalogue = _cached_catalogue()
    if own and name in catalogue:
        raise PrivSVMError(f"datasets.{name}: that name belongs to the catalogue; give your data another name")
    if not own and name not in catalogue:
        hint = nearest_name(name, catalogue)
        if hint.startswith("known:"):
            hint = "`python stages/download.py --list` lists them"
        raise PrivSVMError(f"datasets.{name}: unknown dataset {name!r}; {hint} (own data needs `path` or `url`)")
    if own and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+-]*", name):
        raise PrivSVMError(f"datasets.{name}: the name becomes a folder; use letters, digits, '.', '_', '-' and '+'")
    known = _COMMON_SETTINGS + (_OWN_SETTINGS if own else ())
    for key in settings:
        if key not in known:
            if key in _OWN_SETTINGS:
                raise PrivSVMError(f"datasets.{name}.{key}: only for own data; remove it or add `path` or `url`")
            raise PrivSVMError(f"datasets.{name}.{key}: unknown key; {nearest_name(str(key), known)}")
    entry = _own_entry(name, settings) if own else catalogue[name]
    return _apply(entry, settings)


def _apply(entry: DatasetEntry, settings: Mapping[str, Any]) -> DatasetEntry:
    """Put the settings that every dataset may have over an entry."""
    name, changes = entry.name, {}  # type: tuple[str, dict[str, Any]]
    if settings.get("groups") is not None:
        groups = _parse_groups(name, settings["groups"])
        changes["groups"] = groups
        if entry.labels is not None:
            unknown = [label for members in groups.values() for label in members if label not in entry.labels]
            if unknown:
                hint = nearest_name(unknown[0], entry.labels)
                raise PrivSVMError(f"datasets.{name}.groups: no label {unknown[0]!r} in this set; {hint}")
        changes["classes"] = _label_order(list(groups)) if groups else entry.labels
        # A default of the catalogue may name a class that the new groups do not have.
        if changes["classes"] is None or entry.positive not in changes["classes"] or len(changes["classes"]) != 2:
            changes["positive"] = None
        if entry.own and "classes" in settings:
            if groups and set(entry.classes or ()) != set(groups):
                raise PrivSVMError(
                    f"datasets.{name}.classes: {list(entry.classes or ())!r} differ from the groups "
                    f"{sorted(groups)!r}; make them agree"
                )
            changes["classes"] = entry.classes
    classes = changes.get("classes", entry.classes)
    if settings.get("positive") is not None:
        positive = normalise_label(settings["positive"])
        if classes is not None and positive not in classes:
            raise PrivSVMError(f"datasets.{name}.positive: no class {positive!r}; {nearest_name(positive, classes)}")
        if classes is not None and len(classes) != 2:
            raise PrivSVMError(
                f"datasets.{name}.positive: the set has {len(classes)} classes; use `groups` to make it two first"
            )
        changes["positive"] = positive
    if settings.get("missing") is not None:
        changes["missing"] = _choice(name, "missing", settings["missing"], MISSING_RULES)
    if settings.get("bounds") is not None:
        changes["bounds"] = _parse_bounds(name, settings["bounds"])
        changes["bounds_origin"] = "settings"
        if entry.own:
            changes["scaling"] = "bounds"
    if settings.get("scaling") is not None:
        changes["scaling"] = _choice(name, "scaling", settings["scaling"], SCALINGS)
    scaling = changes.get("scaling", entry.scaling)
    if scaling == "bounds" and changes.get("bounds", entry.bounds) is None:
        raise PrivSVMError(
            f"datasets.{name}.scaling: 'bounds' needs public bounds and none are declared; "
            "add `bounds: [low, high]` or choose none, min_max or z_score"
        )
    if settings.get("fit_on") is not None:
        changes["fit_on"] = _choice(name, "fit_on", settings["fit_on"], FIT_ON)
        if scaling not in ("min_max", "z_score"):
            raise PrivSVMError(
                f"datasets.{name}.fit_on: has no effect with scaling {scaling!r}; remove it or use min_max or z_score"
            )
    if settings.get("range") is not None:
        value = settings["range"]
        if not isinstance(value, Sequence) or isinstance(value, str) or len(value) != 2:
            raise PrivSVMError(f"datasets.{name}.range: {value!r} is not a pair; write [low, high]")
        low, high = (_number(name, "range", item) for item in value)
        if low >= high:
            raise PrivSVMError(f"datasets.{name}.range: {low} is not below {high}; swap them")
        if scaling not in ("bounds", "min_max"):
            raise PrivSVMError(
                f"datasets.{name}.range: has no effect with scaling {scaling!r}; remove it or choose bounds or min_max"
            )
        changes["target_range"] = (low, high)
    if settings.get("protocol") is not None:
        changes["protocol"] = normalise_protocol(settings["protocol"], f"datasets.{name}.protocol")
    if settings.get("parts") is not None:
        value = settings["parts"]
        roles = tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else (value,)
        for role in roles:
            if role not in entry.parts:
                hint = nearest_name(str(role), entry.parts)
                raise PrivSVMError(f"datasets.{name}.parts: the set has no part {role!r}; {hint}")
        if not roles or len(set(roles)) != len(roles):
            raise PrivSVMError(f"datasets.{name}.parts: {value!r}; name each part once")
        changes["pool"] = roles
    return dataclasses.replace(entry, **changes)


def raw_files(name: str, settings: Mapping[str, Any] | None = None) -> list[str]:
    """List the raw files of a dataset.

    Parameters
    ----------
    name : str
        Name of the dataset.
    settings : mapping or None
        Its settings in params.yaml.

    Returns
    -------
    list of str
        File names below ``data/raw/<name>/``.

    Raises
    ------
    PrivSVMError
        As `resolve`.
    """
    return list(resolve(name, settings).files)
