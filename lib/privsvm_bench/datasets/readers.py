"""Read every format of the catalogue. A file is data, never code: nothing here unpickles or evaluates."""

from __future__ import annotations

import codecs
import faulthandler
import hashlib
import io
import itertools
import math
import multiprocessing
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import numpy as np

from privsvm.errors import PrivSVMError, list_names, nearest_name
from privsvm.numerics.rows.rows import is_sparse
from privsvm.numerics.rows.well_formed import canonical_rows, check_sparse
from privsvm.tables.delimited import MISSING, DelimitedText, Malformed, parse_number
from privsvm.tables.labels import normalise_label
from privsvm.tables.schema import parse_schema
from privsvm.tables.tables import parse_numbers, read_labelled_table
from privsvm_bench.datasets.catalogue import DataPart, DatasetEntry
from privsvm_bench.datasets.packing import is_html, is_zip, read_member, unpack
from privsvm_bench.datasets.prepared import Features

# Rows of sparse formats are kept sparse from this number of features. Their numbers of non-zero values, which are
# private, must not decide: methods get the bounds of dense rows alone.
_SPARSE_FEATURES = 100
# Most features of a LIBSVM file that declares no number: one wrong index would exhaust the memory.
_MOST_FEATURES = 10_000_000
# Longest label: NumPy's text arrays are as wide as their longest item.
_LONGEST_LABEL = 1000
# Rows of text whose cells are in memory at once.
_BLOCK = 5000
# Characters of a value in a message.
_SHOWN = 80
# UTF-8 whose leading mark, if there is one, is no part of the text.
_UTF8 = "utf-8-sig"
# Bytes that SciPy's reader takes besides: it unpacks 128 kB at once, which are at most 135 MB, and copies them.
_MAT_READER = 512 << 20
_HDF5 = b"\x89HDF\r\n\x1a\n"


def content_hash(X: np.ndarray, labels: np.ndarray) -> str:
    """Hash features (n, d) and labels independently of their file format.

    Returns the SHA-256 of the little-endian float64 values, row by row, followed by the labels one a line.
    """
    values = np.ascontiguousarray(X, dtype="<f8").tobytes()
    return hashlib.sha256(values + "\n".join(str(label) for label in labels).encode()).hexdigest()


def read_part(entry: DatasetEntry, part: str, folder: str | os.PathLike[str]) -> tuple[Features, np.ndarray]:
    """Read one part of a dataset, for example "train", from ``data/raw/<dataset>`` and check it against the catalogue.

    Returns features (n, d) in the units of the file, NaN where a value is missing, and labels as `normalise_label`
    writes them, after the part's `label_map`. Features are CSR only for ``libsvm`` files and sparse ``mat`` variables
    with at least 100 features. Raises PrivSVMError if a file is missing, cut short, a web page or not of its format; if
    the label column is missing, a feature is not a number, a value is missing and the rule for that is ``error``, only
    one class occurs, or rows, features, classes or missing values differ from the catalogue.
    """
    if part not in entry.parts:
        raise PrivSVMError(f"dataset {entry.name}: no part {part!r}; {nearest_name(part, entry.parts)}")
    recipe = entry.parts[part]
    if entry.schema is not None:
        path, schema = Path(folder) / recipe.files[0], parse_schema(entry.schema)
        if entry.user_supplied:
            return read_labelled_table(path, schema)
        # Columns are declared in the order of a file that does not name them, the label last.
        X, labels = read_labelled_table(path, schema, None if recipe.header_rows else (*schema.columns, schema.label))
        _check_expected(entry, recipe, str(path), X, labels, 0)
        return X, labels
    pieces = [_read_file(Path(folder) / name, recipe) for name in recipe.files]
    where = str(Path(folder) / recipe.files[0]) + (f" .. {recipe.files[-1]}" if len(recipe.files) > 1 else "")
    widths = {piece[0].shape[1] for piece in pieces}
    if len(widths) > 1:
        raise PrivSVMError(f"{where}: files have {sorted(widths)} features; delete them and run again")
    X = stack_rows([piece[0] for piece in pieces])
    columns = pieces[0][2]
    labels = np.concatenate([piece[1] for piece in pieces])
    if recipe.rows is not None:
        start, stop = recipe.rows
        X, labels = X[start:stop], labels[start:stop]
    if X.shape[0] == 0:
        raise PrivSVMError(f"{where}: no rows; the file is empty, get it again")
    # Rows without features take no bytes of a file, however many it claims.
    if X.shape[1] == 0:
        raise PrivSVMError(f"{where}: no features beside the label; check `label` and `delimiter`")
    labels = _normalise_labels(labels, recipe, where)
    _check_labels(where, labels)
    missing, infinite = count_not_finite(X)
    if infinite:
        raise PrivSVMError(f"{where}: {infinite} infinite values among the features; replace them by numbers")
    _check_expected(entry, recipe, where, X, labels, int(missing.sum()))
    if entry.missing == "error" and missing.any():
        column = int(np.argmax(missing > 0))
        name = columns[column] if columns else f"feature {column + 1}"
        raise PrivSVMError(
            f"{where}: {int(missing.sum())} missing values, {int(missing[column])} of them in column {name!r}; "
            f"set `missing: drop_rows`, `drop_columns` or `zero` for dataset {entry.name}"
        )
    file = entry.files[recipe.files[0]]
    if file.content_sha256 is not None and content_hash(np.asarray(X), labels) != file.content_sha256:
        raise PrivSVMError(
            f"{where}: values differ from the catalogue's; delete it and run again with the locked scikit-learn"
        )
    return X, labels


def _read_file(path: Path, recipe: DataPart) -> tuple[Features, np.ndarray, list[str]]:
    """Read one file into features, raw labels and column names (empty where there are none)."""
    data = _content(path, recipe, recipe.member)
    name = f"{path}" if recipe.member is None else f"{path}/{recipe.member}"
    X, labels, columns = _READERS[recipe.format](data, name, recipe)
    if recipe.label_member is not None:
        text = _content(path, recipe, recipe.label_member)
        labels = np.array(decode_text(text, f"{path}/{recipe.label_member}", recipe.encoding).split())
        if len(labels) != X.shape[0]:
            raise PrivSVMError(f"{name}: {X.shape[0]} rows but {len(labels)} labels; delete it and download it again")
    return X, labels, columns


def _content(path: Path, recipe: DataPart, member: str | None) -> bytes:
    """Read the bytes of a file, unpacked, after the checks that all formats share."""
    most = recipe.max_bytes
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise PrivSVMError(f"{path}: file not found; run `snakemake --cores 8` to download it") from None
    if not data:
        raise PrivSVMError(f"{path}: empty file; delete it and download it again")
    if len(data) > most:
        raise PrivSVMError(f"{path}: {len(data)} bytes, more than {most}; declare `max_bytes` for the dataset")
    data = unpack(data, str(path), most)
    # An .npz is a zip itself.
    if recipe.format != "npz" and is_zip(data[:4]):
        data = read_member(data, str(path), member, most)
    elif member is not None:
        raise PrivSVMError(f"{path}: not a zip, so it has no member {member!r}; remove `member` or get the zip")
    if not data.strip():
        raise PrivSVMError(f"{path}: holds only white space; delete it and download it again")
    if is_html(data[:512]):
        raise PrivSVMError(f"{path}: an HTML page instead of data; delete it and get the data file itself")
    return data


def stack_rows(blocks: list[Any]) -> Features:
    """Stack blocks of rows; sparse where any is."""
    if len(blocks) == 1:
        return blocks[0]
    if all(not is_sparse(block) for block in blocks):
        return np.vstack(blocks)
    from scipy.sparse import csr_array, vstack

    return csr_array(vstack([csr_array(block) for block in blocks], format="csr"))


def _dense_or_sparse(X: Any) -> Features:
    """Keep a matrix that was read as sparse, or make it dense; see `read_part`. ValueError if it is none."""
    check_sparse(X)
    X = canonical_rows(X)
    X.eliminate_zeros()
    return X if X.shape[1] >= _SPARSE_FEATURES else X.toarray()


def _normalise_labels(labels: np.ndarray, recipe: DataPart, where: str) -> np.ndarray:
    distinct, codes = np.unique(np.asarray(labels), return_inverse=True)
    try:
        texts = [normalise_label(value.decode() if isinstance(value, bytes) else value) for value in distinct]
        "".join(texts).encode()
    except UnicodeError:
        raise PrivSVMError(f"{where}: a label is not UTF-8 text; store texts or numbers") from None
    if distinct.dtype.kind == "f" and (np.abs(distinct) >= 2**53).any():
        raise PrivSVMError(f"{where}: labels of 2^53 and more are not told apart as numbers; store them as texts")
    mapped = np.array([recipe.label_map.get(text, text) for text in texts], dtype=np.str_)
    return mapped[codes.ravel()] if len(mapped) else np.array([], dtype=np.str_)


def _check_labels(where: str, labels: np.ndarray) -> None:
    empty = np.flatnonzero(np.isin(labels, ["", "nan", "NaN"]))
    if len(empty):
        raise PrivSVMError(f"{where}: no label in row {int(empty[0]) + 1} ({len(empty)} such rows); remove those rows")
    distinct = np.unique(labels)
    if len(distinct) == 1:
        raise PrivSVMError(
            f"{where}: one class only, {str(distinct[0])!r}; a classifier needs at least two, check `label`"
        )


def count_not_finite(X: Any) -> tuple[np.ndarray, int]:
    """Count the missing values of each column, and the infinite values."""
    if is_sparse(X):
        infinite = int(np.isinf(X.data).sum())
        return np.bincount(X.indices[np.isnan(X.data)], minlength=X.shape[1]), infinite
    return np.isnan(X).sum(axis=0), int(np.isinf(X).sum())


def _check_expected(
    entry: DatasetEntry, recipe: DataPart, where: str, X: Any, labels: np.ndarray, missing: int
) -> None:
    """Compare what was read with the catalogue."""
    remedy = "delete it and download it again"
    read = {"rows": X.shape[0], "features": X.shape[1], "missing values": missing}
    expected = {"rows": recipe.n_rows, "features": recipe.n_features, "missing values": recipe.missing_values}
    for what, count in expected.items():
        if count is not None and read[what] != count:
            raise PrivSVMError(f"{where}: {read[what]} {what}, but {entry.name} ({recipe.role}) has {count}; {remedy}")
    counts = dict(Counter(labels.tolist()))
    if recipe.class_counts is not None and counts != dict(recipe.class_counts):
        label = next(
            key for key in sorted({*counts, *recipe.class_counts}) if counts.get(key) != recipe.class_counts.get(key)
        )
        raise PrivSVMError(
            f"{where}: {counts.get(label, 0)} rows of class {label!r}, but {entry.name} ({recipe.role}) "
            f"has {recipe.class_counts.get(label, 0)}; {remedy}"
        )


def _read_libsvm(data: bytes, name: str, recipe: DataPart) -> tuple[Features, np.ndarray, list[str]]:
    from sklearn.datasets import load_svmlight_file

    _check_libsvm_numbers(data, name)
    try:
        X, y = load_svmlight_file(io.BytesIO(data), n_features=recipe.n_features, zero_based=False)
    except (ValueError, OverflowError) as error:
        reason = str(error).split("\n")[0].removesuffix(".")
        raise PrivSVMError(
            f"{name}: not readable as LIBSVM text ({reason}); lines are `label index:value ...`, indices from 1 upwards"
        ) from None
    if recipe.n_features is None and X.shape[1] > _MOST_FEATURES:
        raise PrivSVMError(
            f"{name}: the largest index is {X.shape[1]}; declare `n_features` if that is right, or mend the line"
        )
    return _dense_or_sparse(X), y, []


def _check_libsvm_numbers(data: bytes, name: str) -> None:
    """Refuse numbers that only Python reads in a LIBSVM file: 1_0 is ten for it, as a label, an index or a value."""
    if b"_" not in data:
        return
    for number, line in enumerate(data.splitlines(), 1):
        for word in line.partition(b"#")[0].split():
            if b"_" in word:
                raise PrivSVMError(
                    f"{name}: line {number}: {_show(word.decode(errors='replace'))} is not a number; mend that line"
                )


def _show(value: Any) -> str:
    """Write a value for a message: as Python does, and cut where it is long."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def decode_text(data: bytes, name: str, encoding: str | None) -> str:
    """Decode a text file; a byte outside its encoding is an error, not a question mark.

    Without an `encoding` it is UTF-8, with or without its leading mark. Raises PrivSVMError, by this `name`, if the
    file has another encoding, or is no text.
    """
    used = _UTF8 if encoding is None or codecs.lookup(encoding).name == "utf-8" else encoding
    try:
        text = data.decode(used)
    except UnicodeError as error:
        line = data[: getattr(error, "start", 0)].count(b"\n") + 1
        remedy = "set `encoding`, for example to latin-1" if encoding is None else "correct `encoding` or the file"
        raise PrivSVMError(f"{name}: line {line} is not {encoding or 'UTF-8'} text; {remedy}") from None
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise PrivSVMError(f"{name}: line {line} holds a zero byte, so it is no text; set `format` or `encoding`")
    return text


def _position(key: int | str, columns: list[str], name: str, what: str) -> int:
    """Find the position of a column given by name or number."""
    if isinstance(key, int):
        if not -len(columns) <= key < len(columns):
            raise PrivSVMError(f"{name}: {what} column {key} missing; there are {len(columns)} columns, counted from 0")
        return key % len(columns)
    if key not in columns:
        close = nearest_name(key, columns)
        hint = f"{close} " if close.startswith("did") else ""
        if len(columns) == 1 and key in re.split(r"\W", columns[0]):
            hint = "set `delimiter` to the character between the names; "
        raise PrivSVMError(f"{name}: {what} column {key!r} missing; {hint}columns: {list_names(columns)}")
    return columns.index(key)


def _feature_number(value: Any) -> float:
    """Read a feature, NaN where it is missing; ValueError if it is no number."""
    if value is None:
        return np.nan
    text = str(value)
    try:
        return parse_number(text)
    except ValueError:
        word = text.strip().lower()
        if word in MISSING:
            return np.nan
        if word in ("true", "false"):
            return float(word == "true")
        raise


def _choose_columns(columns: list[str], name: str, recipe: DataPart) -> tuple[int | None, list[int]]:
    """Return the position of the label, None where other files hold labels, and those of the features."""
    for column, times in Counter(column for column in columns if column).items():
        if times > 1:
            # A setting that names it would mean either.
            raise PrivSVMError(f"{name}: {times} columns are called {column!r}; give every column a name of its own")
    dropped = {_position(key, columns, name, "dropped") for key in recipe.drop_columns}
    label: int | None = None
    if recipe.label_member is None:
        if recipe.label is None:
            raise PrivSVMError(f"{name}: no label column named; set `label` to one of: {', '.join(columns[:20])}")
        label = _position(recipe.label, columns, name, "label")
    features = [index for index in range(len(columns)) if index not in dropped and index != label]
    for index in features:
        if not columns[index]:
            # Row numbers, as pandas and R write them, would be a feature.
            raise PrivSVMError(f"{name}: column {index} has no name; name it, or add {index} to `drop_columns`")
    return label, features


def _read_cells(cells: Sequence[Any], columns: list[str], name: str, first: int = 0) -> np.ndarray:
    """Read the cells of some columns, row by row from the row `first`; refuse the first one that is no number."""
    values = np.empty(len(cells))
    for position, cell in enumerate(cells):
        try:
            values[position] = _feature_number(cell)
        except ValueError:
            row, column = divmod(position, len(columns))
            raise PrivSVMError(
                f"{name}: column {columns[column]!r} is not numeric ({_show(cell)} in row {first + row + 1}); encode "
                "it as numbers or add it to `drop_columns`"
            ) from None
    return values


def _split_frame(frame: Any, name: str, recipe: DataPart) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Split a pandas frame into numeric features and labels."""
    import pandas as pd

    columns = [str(column) for column in frame.columns]
    label, features = _choose_columns(columns, name, recipe)
    X = np.empty((len(frame), len(features)))
    for target, index in enumerate(features):
        series = frame.iloc[:, index]
        if pd.api.types.is_numeric_dtype(series.dtype) or pd.api.types.is_bool_dtype(series.dtype):
            X[:, target] = series.to_numpy(dtype=np.float64, na_value=np.nan)
        else:
            cells = series.astype("object").where(series.notna(), None).tolist()
            X[:, target] = _read_cells(cells, [columns[index]], name)
    if label is None:
        labels = np.zeros(len(frame))
    else:
        series = frame.iloc[:, label]
        labels = _label_texts(series.astype("object").where(series.notna(), "").tolist(), name)
    return X, labels, [columns[index] for index in features]


def _split_records(
    records: Iterable[list[str]], columns: list[str], name: str, recipe: DataPart
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """Split records of text into numeric features and labels."""
    label, features = _choose_columns(columns, name, recipe)
    names = [columns[index] for index in features]
    blocks, labels, n_rows = [np.empty((0, len(features)))], [], 0
    iterator = iter(records)
    while block := list(itertools.islice(iterator, _BLOCK)):
        cells = [record[index] for record in block for index in features]
        try:
            X = parse_numbers(cells)
        except ValueError:
            X = _read_cells(cells, names, name, n_rows)
        blocks.append(X.reshape(len(block), len(features)))
        labels += ["" if label is None else record[label] for record in block]
        n_rows += len(block)
    return np.concatenate(blocks), np.zeros(n_rows) if label is None else _label_texts(labels, name), names


def _label_texts(values: Sequence[Any], name: str) -> np.ndarray:
    try:
        texts = [value.decode() if isinstance(value, bytes) else str(value) for value in values]
    except UnicodeDecodeError:
        raise PrivSVMError(f"{name}: a label is not UTF-8 text; store texts or numbers") from None
    longest = max(map(len, texts), default=0)
    if longest > _LONGEST_LABEL:
        raise PrivSVMError(f"{name}: a label has {longest} characters, more than {_LONGEST_LABEL}; check `label`")
    return np.array(texts, dtype=np.str_)


def _read_text(data: bytes, name: str, recipe: DataPart) -> tuple[Features, np.ndarray, list[str]]:
    """Read delimited text, with or without a header."""
    text = DelimitedText(
        io.StringIO(decode_text(data, name, recipe.encoding), newline="\n"),
        name,
        recipe.delimiter,
        default="," if recipe.format == "csv" else "whitespace",
        header_rows=recipe.header_rows,
    )
    columns = text.first if recipe.header_rows else [str(index) for index in range(len(text.first))]
    if recipe.header_rows and recipe.header_assumed and not isinstance(recipe.label, str):
        label = None if recipe.label is None else _position(recipe.label, columns, name, "label")
        _check_header([cell for index, cell in enumerate(columns) if index != label], name)
    return _split_records(_rows(text, name), columns, name, recipe)


def _rows(text: DelimitedText, name: str) -> Iterator[list[str]]:
    """Return the records; blank ones are left out, and others that are malformed refused."""
    for record in text:
        if not isinstance(record, Malformed):
            yield record
        elif not record.blank:
            raise PrivSVMError(f"{name}: {record}; mend that line, or check `delimiter` and `header`")


def _check_header(cells: list[str], name: str) -> None:
    """Refuse a header whose feature names are all numbers: it is a row of data, which would be lost."""
    try:
        [float(cell) for cell in cells]
    except ValueError:
        return
    raise PrivSVMError(
        f"{name}: the first line may be data, its features are numbers; set `header: false` (or `true` if it is one)"
    )


def _read_parquet(data: bytes, name: str, recipe: DataPart) -> tuple[Features, np.ndarray, list[str]]:
    try:
        from pyarrow import parquet, types
    except ImportError:
        raise PrivSVMError(
            f"{name}: Parquet needs pyarrow; add it to requirements-own.txt and run `make run`"
        ) from None

    try:
        file = parquet.ParquetFile(io.BytesIO(data))
        schema, n_rows = file.schema_arrow, file.metadata.num_rows
        kinds = (types.is_string, types.is_binary, types.is_large_string, types.is_large_binary)
        texts = [field.name for field in schema if any(kind(field.type) for kind in kinds)]
        # A row that is stored once may count for millions.
        size = 8 * n_rows * max(1, len(schema))
        if size <= recipe.max_bytes:
            # No thread of Arrow's, as its data sets have: it would still read when all else of a damaged file is gone.
            alone: dict[str, Any] = {"pre_buffer": False, "page_checksum_verification": True}
            again = parquet.ParquetFile(io.BytesIO(data), read_dictionary=texts, **alone)
            table = again.read(use_threads=False)
            # Places may lie outside of what they point into.
            table.validate(full=True)
            size = table.nbytes
        if size <= recipe.max_bytes:
            frame = table.to_pandas(use_threads=False)
    except Exception as error:
        # Damaged files and pandas' metadata raise errors of every kind.
        raise _unreadable("as Parquet", error, name) from None
    if size > recipe.max_bytes:
        raise _too_large(f"the table of {n_rows} rows", name, recipe)
    return _split_frame(frame, name, recipe)


def _from_variables(variables: dict[str, Any], name: str, recipe: DataPart) -> tuple[Features, np.ndarray, list[str]]:
    """Read features and labels from named arrays (``mat``, ``npz``)."""

    def array(key: str | int | None, what: str) -> Any:
        if key not in variables:
            close = nearest_name(str(key), variables)
            raise PrivSVMError(f"{name}: {what} variable {key!r} missing; {close}")
        return variables[key]

    if recipe.table is not None:
        table = np.asarray(array(recipe.table, "table"))
        if table.ndim != 2 or table.dtype.kind not in "fiub":
            raise PrivSVMError(
                f"{name}: variable {recipe.table!r} has {table.ndim} dimensions and holds {table.dtype}; store a table "
                "of numbers"
            )
        column = _position(
            recipe.label if recipe.label is not None else 0, [str(i) for i in range(table.shape[1])], name, "label"
        )
        X: Any = np.delete(table, column, axis=1)
        labels = table[:, column]
    else:
        X = array(recipe.features, "features")
        labels = np.asarray(array(recipe.label, "label"))
    if recipe.transpose:
        X = X.T
    if X.dtype.kind not in "fiub":
        raise PrivSVMError(f"{name}: variable {recipe.features!r} is not numeric; store it as a matrix of numbers")
    if X.ndim != 2:
        raise PrivSVMError(f"{name}: variable {recipe.features!r} has {X.ndim} dimensions; store rows x features")
    if labels.dtype.hasobject:
        # Cell arrays of text, as MATLAB stores class names.
        labels = np.array([str(np.asarray(item).ravel()[0]) if np.size(item) else "" for item in labels.ravel()])
    labels = labels.ravel()
    if X.shape[0] != len(labels):
        raise PrivSVMError(f"{name}: {X.shape[0]} rows of features but {len(labels)} labels; check the two variables")
    # Every number takes 8 bytes from here on, however short it is in the file.
    dense = isinstance(X, np.ndarray) or X.shape[1] < _SPARSE_FEATURES
    if 8 * (math.prod(X.shape) if dense else X.size) > recipe.max_bytes:
        raise _too_large(f"variable {recipe.features or recipe.table!r}", name, recipe)
    if isinstance(X, np.ndarray):
        return np.ascontiguousarray(X, dtype=np.float64), labels, []
    try:
        return _dense_or_sparse(X), labels, []
    except ValueError as error:
        raise PrivSVMError(f"{name}: variable {recipe.features!r}: {error}") from None


def _read_mat(data: bytes, name: str, recipe: DataPart) -> tuple[Features, np.ndarray, list[str]]:
    if data.startswith(b"MATLAB 7.3") or _HDF5 in data[:2048]:
        raise PrivSVMError(
            f"{name}: MATLAB 7.3 (HDF5) file; save it with `save(file, vars, '-v7')` or convert it to .npz"
        )

    # Some damaged files crash SciPy's compiled reader (docs/upstream.md), which ends its process.
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    try:
        with ProcessPoolExecutor(1, context, initializer=_confine, initargs=(recipe.max_bytes,)) as pool:
            return pool.submit(_parse_mat, data, name, recipe).result()
    except BrokenProcessPool:
        raise PrivSVMError(
            f"{name}: not readable as a MATLAB file (its reader crashed); delete it and get it again"
        ) from None


def _too_large(what: str, name: str, recipe: DataPart) -> PrivSVMError:
    return PrivSVMError(
        f"{name}: {what} takes more than {recipe.max_bytes} bytes in memory; declare `max_bytes` for the dataset"
    )


def _unreadable(form: str, error: Exception, name: str) -> PrivSVMError:
    reason = " ".join(str(error).split())[:200] or type(error).__name__
    return PrivSVMError(f"{name}: not readable {form} ({reason}); write it again, or get it again")


def _confine(max_bytes: int) -> None:
    """Print no trace where this process crashes, and give it memory for a few copies of what may be read."""
    faulthandler.disable()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    if sys.platform == "linux":
        import resource

        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 4 * max_bytes + _MAT_READER,) * 2)


def _parse_mat(data: bytes, name: str, recipe: DataPart) -> tuple[Features, np.ndarray, list[str]]:
    from scipy.io import loadmat, whosmat

    try:
        # Zeros stored as bytes and compressed are a thousandth of the numbers that they become.
        shapes = [shape for _, shape, kind in whosmat(io.BytesIO(data)) if kind != "sparse"]
        if 8 * sum(abs(math.prod(map(int, shape))) for shape in shapes) > recipe.max_bytes:
            raise _too_large("what it holds", name, recipe)
        stored = loadmat(io.BytesIO(data))
        variables = {key: value for key, value in stored.items() if not key.startswith("__")}
        return _from_variables(variables, name, recipe)
    except PrivSVMError:
        raise
    except MemoryError:
        raise _too_large("what it holds", name, recipe) from None
    except Exception as error:
        # A damaged file makes SciPy fail in every way that Python knows.
        raise _unreadable("as a MATLAB file", error, name) from None


def _read_npz(data: bytes, name: str, recipe: DataPart) -> tuple[Features, np.ndarray, list[str]]:
    import zipfile

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            size = sum(info.file_size for info in archive.infolist())
        if size > recipe.max_bytes:
            raise _too_large("what it holds", name, recipe)
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            variables = {key: stored[key] for key in stored.files}
            if len(variables) < len(stored.files):
                raise ValueError("two arrays have the same name")
    except PrivSVMError:
        raise
    except Exception as error:
        # Headers of arrays are expressions, which fail in every way that Python knows.
        raise _unreadable("as .npz without Python objects", error, name) from None
    return _from_variables(variables, name, recipe)


_READERS: dict[str, Callable[[bytes, str, DataPart], tuple[Any, np.ndarray, list[str]]]] = {
    "libsvm": _read_libsvm,
    "csv": _read_text,
    "data": _read_text,
    "parquet": _read_parquet,
    "mat": _read_mat,
    "npz": _read_npz,
}
