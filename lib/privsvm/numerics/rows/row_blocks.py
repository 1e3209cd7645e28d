"""Rows that are read block by block, from files or from memory.

A source reads rows between two row numbers. `RowsByBlock` are the rows of a source after steps that map each row by
itself, and sums over them in whole numbers. Such sums are the same bits for any size of blocks, any number of threads
and any machines that share the work: additions of int64 have one result in any order, those that wrap around too.
"""

from __future__ import annotations

import abc
import collections
import contextlib
import copy
import dataclasses
import functools
import mmap
import os
import threading
import tokenize
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from privsvm.errors import PrivSVMError
from privsvm.numerics.compiled.threads import allocate_aligned, memory_of_machine
from privsvm.numerics.rows.well_formed import (
    canonical_rows,
    check_sparse,
    plain_csr,
    plain_sparse,
    refuse_masked,
    sort_entries,
)

# Numbers of a block that is read, and of the pieces of it that are worked on, in their widest form.
_READ_NUMBERS, _WORK_NUMBERS = 2**20, 2**19
# Direct I/O: files of more than this share of the machine's memory bypass the page cache, through which reading takes
# three times as long, in seconds and in processor time.
_CACHED_SHARE = 0.5
# Blocks read ahead, and reading threads: with one, the disk waits for the processor.
_AHEAD, _READERS = 2, 2
# Memory for the results of steps on rows in memory; whole numbers of up to 24 bits are stored in single precision.
_KEPT_BYTES = 7 * 2**28
# Alignment of blocks: the sampling's work space has so many words.
_MULTIPLE = 1024


class RowBlocks(abc.ABC):
    """A source of rows.

    Parameters
    ----------
    shape : (int, int)
        Numbers of rows n and features d.
    block_rows : int or None, default=None
        Rows that are read at a time, rounded up to a multiple of 1024; None: about 8 MB. No result depends on it.

    Attributes
    ----------
    labels : array-like of length n or None
        Labels that are stored with the rows.
    client : distributed.Client or None
        Whose workers compute sums; see `on`.
    """

    def __init__(self, shape: tuple[int, int], block_rows: int | None = None) -> None:
        self.shape = (int(shape[0]), int(shape[1]))
        rows = _READ_NUMBERS // max(self.shape[1], 1) if block_rows is None else int(block_rows)
        if rows < 1 and block_rows is not None:
            raise ValueError(f"block_rows={block_rows!r}: must be at least 1, or None")
        self.block_rows = max(1, -(-rows // _MULTIPLE)) * _MULTIPLE
        self.labels: Any = None
        self.client: Any = None

    in_memory = False

    def __len__(self) -> int:
        return self.shape[0]

    @abc.abstractmethod
    def read(self, start: int, stop: int) -> Any:
        """Read rows (stop - start, d) as float64: an array of their own, or a CSR matrix."""

    def blocks(self) -> Iterator[tuple[int, int]]:
        """First row of every block, and the row behind its last."""
        for start in range(0, self.shape[0], self.block_rows):
            yield start, min(start + self.block_rows, self.shape[0])

    def on(self, client: Any) -> RowBlocks:
        """Let the workers of a `distributed.Client` compute sums.

        They must be able to read the files.

        The noise of a release is drawn once, where the model is trained. A sum that a lost worker had begun is computed
        again elsewhere, from the same rows and the same public numbers: it has the same bits, and is no new release.
        """
        other = copy.copy(self)
        other.client = client
        return other


class ArrayBlocks(RowBlocks):
    """Rows in memory: an array, possibly memory-mapped, or a CSR matrix (n, d)."""

    in_memory = True

    def __init__(self, X: Any, block_rows: int | None = None) -> None:
        refuse_masked("X", X)
        X = np.asarray(X) if isinstance(X, np.ndarray) else plain_sparse(X)
        super().__init__(X.shape, block_rows)
        self._X = X if isinstance(X, np.ndarray) else plain_csr(X) if X.format == "csr" else sort_entries(X)

    def read(self, start: int, stop: int) -> Any:
        rows = self._X[start:stop]
        return np.ascontiguousarray(rows, dtype=np.float64) if isinstance(rows, np.ndarray) else rows


class NpyBlocks(RowBlocks):
    """Rows in an ``.npy`` file of numbers, in C order.

    `labels` names an ``.npy`` file of n labels. See `RowBlocks` for `block_rows`.
    """

    def __init__(self, path: Any, labels: Any = None, block_rows: int | None = None) -> None:
        self._path = str(path)
        array = _map_npy(path, "bfiu")
        if array.ndim != 2 or not array.flags.c_contiguous:
            raise PrivSVMError(f"{path}: holds an array of shape {array.shape}; must be rows (n, d) in C order")
        super().__init__(array.shape, block_rows)
        self._offset, self._kind = int(array.offset), array.dtype
        if labels is not None:
            self.labels = _map_npy(labels, "bfiuUS")
            if self.labels.shape != self.shape[:1]:
                raise PrivSVMError(
                    f"{labels}: holds labels of shape {self.labels.shape} for {self.shape[0]} rows of {path}"
                )

    def read(self, start: int, stop: int) -> np.ndarray:
        row_bytes = self.shape[1] * self._kind.itemsize
        offset, size = self._offset + start * row_bytes, (stop - start) * row_bytes
        view = None
        if self._offset + self.shape[0] * row_bytes > memory_of_machine() * _CACHED_SHARE:
            # Not every file system supports direct I/O.
            with contextlib.suppress(OSError):
                view = _bytes_at(self._path, offset, size, past_cache=True)
        if view is None:
            view = _bytes_at(self._path, offset, size)
        if len(view) < size:
            raise PrivSVMError(f"{self._path}: ends within row {start + len(view) // max(row_bytes, 1)}")
        return np.ndarray((stop - start, self.shape[1]), dtype=self._kind, buffer=view).astype(np.float64)


class _Buffer(threading.local):
    """A read buffer that each thread reuses, since allocation is slow."""

    def __init__(self) -> None:
        self.held = memoryview(b"")

    def of(self, size: int) -> memoryview:
        """Return the thread's page-aligned memory of so many bytes.

        A forked process has its own.
        """
        if len(self.held) < size:
            self.held = allocate_aligned(size, mmap.PAGESIZE).data
        return self.held[:size]


_BUFFER = _Buffer()


def _past_cache(path: str, flags: int) -> int:
    """Open a file for direct I/O, which bypasses the page cache."""
    return os.open(path, flags | getattr(os, "O_DIRECT", 0))


def _bytes_at(path: str, offset: int, size: int, past_cache: bool = False) -> memoryview:
    """Read so many bytes of a file, fewer at its end, into memory that this thread's next call overwrites."""
    # Direct I/O: offsets, lengths and memory must be multiples of a page.
    unit = mmap.PAGESIZE if past_cache else 1
    skipped = offset % unit
    view, done = _BUFFER.of(-(-(skipped + size) // unit) * unit), 0
    with open(path, "rb", buffering=0, opener=_past_cache if past_cache else None) as file:
        file.seek(offset - skipped)
        while done < skipped + size and (count := file.readinto(view[done:])):
            done += count
    return view[skipped : max(skipped, min(done, skipped + size))]


def _line(error: Exception) -> str:
    """Return a library's error message in one line."""
    return " ".join(str(error).split())[:200] or type(error).__name__


def _map_npy(path: Any, kinds: str) -> Any:
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    # NumPy parses the file's header with Python's own parser.
    except (OSError, ValueError, EOFError, TypeError, OverflowError, SyntaxError, tokenize.TokenError) as error:
        raise PrivSVMError(f"{path}: cannot be read as .npy ({_line(error)}); write it with numpy.save") from None
    if not isinstance(array, np.memmap) or array.dtype.kind not in kinds:
        raise PrivSVMError(f"{path}: holds {getattr(array, 'dtype', 'no array')}; must be one array of plain values")
    return array


class ParquetBlocks(RowBlocks):
    """Rows in a Parquet file, or in all files of a folder in the order of their names.

    `label` is the column of the labels. All other columns are features, and hold numbers without missing values. Row
    groups of no more than `block_rows` rows are read fastest.
    """

    def __init__(self, path: Any, label: str | None = None, block_rows: int | None = None) -> None:
        parquet = _parquet()
        files = sorted(Path(path).glob("*.parquet")) if Path(path).is_dir() else [Path(path)]
        if not files:
            raise PrivSVMError(f"{path}: no *.parquet file in this folder")
        # First row of each row group, its file, and its number there.
        self._groups: list[tuple[int, str, int]] = []
        names: list[str] = []
        n_rows = 0
        for file in files:
            with _readable(file):
                parquet_file = parquet.ParquetFile(file)
            if names and parquet_file.schema_arrow.names != names:
                raise PrivSVMError(f"{file}: its columns are not those of {files[0]}")
            names = parquet_file.schema_arrow.names
            _check_columns(file, parquet_file.schema_arrow, label)
            with _readable(file):
                for number in range(parquet_file.metadata.num_row_groups):
                    self._groups.append((n_rows, str(file), number))
                    n_rows += parquet_file.metadata.row_group(number).num_rows
            parquet_file.close()
        self._names = [name for name in names if name != label]
        super().__init__((n_rows, len(self._names)), block_rows)
        # Last row group that was read: blocks and groups need not have the same ends.
        self._last: tuple[int, np.ndarray] | None = None
        if label is not None:
            if not self._groups:
                raise PrivSVMError(f"{files[0]}: holds no rows")
            self.labels = np.concatenate([self._columns(group, [label])[:, 0] for group in self._groups])

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"_last": None}

    def _columns(self, group: tuple[int, str, int], names: list[str]) -> np.ndarray:
        with _readable(group[1]), _parquet().ParquetFile(group[1]) as file:
            table = file.read_row_group(group[2], columns=names, use_threads=False)
            columns = [table.column(name).to_numpy() for name in names]
            if table.num_rows != file.metadata.row_group(group[2]).num_rows:
                raise PrivSVMError(f"{group[1]}: row group {group[2]} ends too early; get the file again")
        return np.stack(columns, axis=1)

    def read(self, start: int, stop: int) -> np.ndarray:
        rows = np.empty((stop - start, self.shape[1]))
        ends = [group[0] for group in self._groups[1:]] + [self.shape[0]]
        first = int(np.searchsorted(ends, start, side="right"))
        for index in range(first, len(self._groups)):
            group = self._groups[index]
            if group[0] >= stop:
                break
            last = self._last
            group_rows = last[1] if last is not None and last[0] == index else self._columns(group, self._names)
            self._last = (index, group_rows)
            low, high = max(start, group[0]), min(stop, ends[index])
            rows[low - start : high - start] = group_rows[low - group[0] : high - group[0]]
        return rows


@contextlib.contextmanager
def _readable(file: Any) -> Iterator[None]:
    """Name the file in what Arrow says of one that it cannot read."""
    import pyarrow

    try:
        yield
    except (OSError, ValueError, KeyError, pyarrow.ArrowException, MemoryError) as error:
        raise PrivSVMError(
            f"{file}: cannot be read as Parquet ({_line(error)}); get the file again, or write rows to .npy"
        ) from None


def _check_columns(file: Any, schema: Any, label: str | None) -> None:
    import pyarrow

    if label is not None and label not in schema.names:
        raise PrivSVMError(f"label={label!r}: {file} has no such column")
    if len(set(schema.names)) < len(schema.names):
        raise PrivSVMError(f"{file}: two columns have one name")
    kinds = pyarrow.types
    for name in schema.names:
        kind = schema.field(name).type
        if name != label and not (kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_boolean(kind)):
            raise PrivSVMError(f"{file}: column {name!r} holds {kind}; must hold numbers")


def _parquet() -> Any:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise PrivSVMError("Parquet needs the package pyarrow: run `pip install pyarrow`") from None
    return parquet


def open_rows(path: Any, labels: Any = None, block_rows: int | None = None) -> RowBlocks:
    """Open rows on disk, for training and prediction in little memory.

    Parameters
    ----------
    path : path-like
        An ``.npy`` file of rows (n, d), or a Parquet file or folder of them.
    labels : path-like, str or None, default=None
        For ``.npy`` rows a file of n labels, for Parquet the name of their column. Estimators take these where `fit` is
        given no labels.
    block_rows : int or None, default=None
        See `RowBlocks`.

    Returns
    -------
    RowBlocks

    Raises
    ------
    PrivSVMError
        If a file cannot be read, or holds other things than numbers.
    """
    if not Path(path).exists():
        raise PrivSVMError(f"{path}: file not found; check the path")
    if str(path).endswith(".npy"):
        return NpyBlocks(path, labels, block_rows)
    return ParquetBlocks(path, labels, block_rows)


# --- steps and sums -------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Table:
    """Numbers that belong to rows by code: ``table[codes]`` of any slice."""

    table: np.ndarray
    codes: np.ndarray

    def __getitem__(self, rows: slice) -> np.ndarray:
        values: np.ndarray = self.table[self.codes[rows]]
        return values


def _widen(values: np.ndarray) -> np.ndarray:
    """Return codes, which may be stored in one byte each, as int64; other values stay."""
    return values.astype(np.int64) if values.dtype.kind in "iu" else values


def _check_rows(rows: Any) -> Any:
    if not isinstance(rows, np.ndarray):
        check_sparse(rows)
        # Entries stored twice add up, which bounds on the stored numbers would miss.
        rows = canonical_rows(rows)
    values = rows if isinstance(rows, np.ndarray) else rows.data
    if not np.isfinite(values).all():
        raise ValueError("X holds a number that is not finite (NaN or infinity)")
    return rows


def _add(total: Any, addend: Any) -> Any:
    """Add up sums: arrays of int64, or tuples of those."""
    if total is None:
        return addend
    if isinstance(addend, tuple):
        return tuple(_add(one, other) for one, other in zip(total, addend, strict=True))
    return total + addend


def _apply_steps(rows: Any, steps: tuple[Callable[[Any], Any], ...]) -> Any:
    for step in steps:
        rows = step(rows)
    return rows


def _pieces(start: int, stop: int, width: int) -> Iterator[tuple[int, int]]:
    size = max(1, _WORK_NUMBERS // max(width, 1) // _MULTIPLE) * _MULTIPLE
    for low in range(start, stop, size):
        yield low, min(low + size, stop)


@dataclasses.dataclass(frozen=True, eq=False)
class _Summand:
    """A function that is summed over rows after steps, see `RowsByBlock.total`; workers get a pickled copy."""

    steps: tuple[Callable[[Any], Any], ...]
    width: int
    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    def of(self, rows: Any, aligned: tuple[Any, ...], first: int) -> Any:
        """Evaluate at rows after the steps, with the values `aligned` to them.

        `first` is the first row's number.
        """
        # Some steps return tuples.
        rows = rows if isinstance(rows, tuple) else dense_rows(rows)
        return self.function(rows, *map(_widen, aligned), *self.arguments, first)

    def of_block(self, rows: Any, start: int, aligned: tuple[Any, ...]) -> Any:
        """Sum over the rows of a block, piece by piece; `aligned` belongs to the block."""
        total = None
        for low, high in _pieces(0, rows.shape[0], self.width):
            piece = _apply_steps(_check_rows(rows[low:high]), self.steps)
            total = _add(total, self.of(piece, tuple(values[low:high] for values in aligned), start + low))
        return total


def _sum_of_source(source: RowBlocks, start: int, stop: int, aligned: tuple[Any, ...], summand: _Summand) -> Any:
    """Read a block and sum over it, on a worker."""
    return summand.of_block(source.read(start, stop), start, aligned)


def _single(array: Any) -> Any:
    """Convert rows to single precision where that is exact; other arrays stay."""
    if isinstance(array, tuple):
        return tuple(_single(item) for item in array)
    if not isinstance(array, np.ndarray) or array.ndim != 2:
        return array
    single = array.astype(np.float32)
    return single if np.array_equal(single, array) else array


def _double(array: Any) -> Any:
    if isinstance(array, tuple):
        return tuple(_double(item) for item in array)
    return array.astype(np.float64, copy=False) if isinstance(array, np.ndarray) else array


def _bytes(array: Any) -> int:
    return sum(_bytes(item) for item in array) if isinstance(array, tuple) else int(array.nbytes)


@dataclasses.dataclass(frozen=True, eq=False)
class RowsByBlock:
    """Rows of a source after steps, each of which maps every row by itself.

    Functions that take an array of rows take these, too, where they dispatch on `is_by_block`. `shape` is the shape of
    the rows after the `steps`, which can be pickled and map rows to rows: the result of a row depends on that row
    alone, bit for bit. `width` counts the numbers of a row in its widest form. `kept` has pieces of the first rows as
    the first `kept_steps` steps have made them, by their first row and the row behind their last.
    """

    source: RowBlocks
    shape: tuple[int, int]
    steps: tuple[Callable[[Any], Any], ...] = ()
    width: int = 0
    n_threads: int = 1
    kept: Mapping[tuple[int, int], Any] = dataclasses.field(default_factory=dict)
    kept_steps: int = 0

    @classmethod
    def of(cls, X: Any, n_threads: int = 1, sparse: bool = False) -> RowsByBlock:
        """Rows in memory or of a source, dense piece by piece.

        If `sparse`, sparse rows reach the steps as they are.
        """
        source = X if isinstance(X, RowBlocks) else ArrayBlocks(X)
        return cls(source, source.shape, () if sparse else (dense_rows,), source.shape[1], n_threads)

    def then(self, step: Callable[[Any], Any], n_features: int | None = None) -> RowsByBlock:
        """Rows after one more step, with so many features; None: as many as before."""
        n_features = self.shape[1] if n_features is None else n_features
        # Cached pieces are found by their ends, which depend on the width.
        width = self.width if self.kept else max(self.width, n_features)
        return dataclasses.replace(self, shape=(self.shape[0], n_features), steps=(*self.steps, step), width=width)

    def keep(self) -> RowsByBlock:
        """Cache the results of the steps, for as many rows as fit into memory."""
        if not self.source.in_memory or self.source.client is not None or self.shape[0] == 0:
            return self
        pieces = list(_pieces(0, self.shape[0], self.width))
        first = _single(self._apply(pieces[0]))
        # The others are as large.
        pieces = pieces[: max(1, _KEPT_BYTES // max(1, _bytes(first)))]
        with ThreadPoolExecutor(self.n_threads) as pool:
            others = pool.map(lambda piece: _single(self._apply(piece)), pieces[1:])
            kept = dict(zip(pieces, [first, *others], strict=True))
        return dataclasses.replace(self, kept=kept, kept_steps=len(self.steps))

    def _apply(self, piece: tuple[int, int]) -> Any:
        """Rows of a source in memory after all steps."""
        if piece in self.kept:
            return _apply_steps(_double(self.kept[piece]), self.steps[self.kept_steps :])
        return _apply_steps(_check_rows(self.source.read(*piece)), self.steps)

    def sum(self, axis: int, dtype: type) -> np.ndarray:
        """Sum of whole numbers over the rows (d,), as int64; as NumPy's method."""
        if axis != 0 or dtype is not np.int64:
            raise ValueError(f"axis={axis!r}, dtype={dtype!r}: sums go over rows, in int64")
        sums: np.ndarray = self.total(_sum_of_rows)
        return sums

    def total(self, function: Callable[..., Any], *aligned: Any, arguments: tuple[Any, ...] = ()) -> Any:
        """Sum a function of rows over all of them.

        `function` takes some rows, the same rows of everything in `aligned` (of length n), `arguments` and the number
        of the first row, and returns an array of int64, or a tuple of those. It can be pickled, and adds up over rows.
        Sums that do not fit into int64 wrap around.
        """
        summand = _Summand(self.steps, self.width, function, arguments)
        if self.shape[0] == 0:
            empty = _apply_steps(np.empty((0, self.source.shape[1])), self.steps)
            return summand.of(empty, tuple(values[0:0] for values in aligned), 0)
        if self.source.client is not None:
            return self._by_workers(summand, aligned)
        if self.source.in_memory:
            return self._from_memory(summand, aligned)
        return self._read_ahead(summand, aligned)

    def _from_memory(self, summand: _Summand, aligned: tuple[Any, ...]) -> Any:
        def work(piece: tuple[int, int]) -> Any:
            low, high = piece
            return summand.of(self._apply(piece), tuple(values[low:high] for values in aligned), low)

        pieces = list(_pieces(0, self.shape[0], self.width))
        if self.n_threads == 1 or len(pieces) == 1:
            return functools.reduce(_add, map(work, pieces))
        with ThreadPoolExecutor(self.n_threads) as pool:
            return functools.reduce(_add, pool.map(work, pieces))

    def _read_ahead(self, summand: _Summand, aligned: tuple[Any, ...]) -> Any:
        """Sum over a file: threads read blocks while others work."""
        total = None
        waiting: collections.deque[Future[Any]] = collections.deque()
        with ThreadPoolExecutor(_READERS) as reader, ThreadPoolExecutor(self.n_threads) as workers:
            # Limit on blocks in memory: those read ahead, and those that are worked on.
            room = threading.Semaphore(_AHEAD + self.n_threads)

            def work(read: Future[Any], start: int, stop: int) -> Any:
                try:
                    return summand.of_block(read.result(), start, tuple(values[start:stop] for values in aligned))
                finally:
                    room.release()

            try:
                for start, stop in self.source.blocks():
                    room.acquire()
                    read = reader.submit(self.source.read, start, stop)
                    waiting.append(workers.submit(work, read, start, stop))
                    del read
                    while waiting and (waiting[0].done() or len(waiting) > 2 * (_AHEAD + self.n_threads)):
                        total = _add(total, waiting.popleft().result())
                while waiting:
                    total = _add(total, waiting.popleft().result())
            finally:
                for future in waiting:
                    future.cancel()
        return total

    def _by_workers(self, summand: _Summand, aligned: tuple[Any, ...]) -> Any:
        total = None
        for _, addend in _on_workers(
            self.source,
            _sum_of_source,
            lambda start, stop: (tuple(values[start:stop] for values in aligned), summand),
        ):
            total = _add(total, addend)
        return total


def _on_workers(
    source: RowBlocks, function: Callable[..., Any], arguments: Callable[[int, int], tuple[Any, ...]]
) -> Iterator[tuple[tuple[int, int], Any]]:
    """Let a client's workers call a function of a source, of each of its blocks and of arguments for it."""
    client, sent = source.client, copy.copy(source)
    sent.client, sent.labels = None, None
    blocks = list(source.blocks())
    jobs = [client.submit(function, sent, *block, *arguments(*block), pure=False) for block in blocks]
    for block, job in zip(blocks, jobs, strict=True):
        yield block, job.result()
        job.release()


def blocks_in_order(source: RowBlocks, function: Callable[[Any], np.ndarray], none: np.ndarray) -> np.ndarray:
    """Call a function on every block of rows, and join its results.

    `none` is its result for no rows. One block is read ahead; a client's workers do all but the joining.
    """
    if source.shape[0] == 0:
        return none
    results = np.empty((source.shape[0], *none.shape[1:]), dtype=none.dtype)
    if source.client is not None:
        for (start, stop), labels in _on_workers(source, _of_block, lambda *_: (function,)):
            results[start:stop] = labels
        return results
    blocks = list(source.blocks())
    with ThreadPoolExecutor(1) as reader:
        ahead = reader.submit(source.read, *blocks[0])
        for (start, stop), following in zip(blocks, [*blocks[1:], None], strict=True):
            rows = _check_rows(ahead.result())
            if following is not None:
                ahead = reader.submit(source.read, *following)
            results[start:stop] = function(rows)
    return results


def _of_block(source: RowBlocks, start: int, stop: int, function: Any) -> np.ndarray:
    result: np.ndarray = function(_check_rows(source.read(start, stop)))
    return result


def _sum_of_rows(rows: np.ndarray, first: int) -> np.ndarray:
    total: np.ndarray = rows.sum(axis=0, dtype=np.int64)
    return total


def dense_rows(rows: Any) -> np.ndarray:
    """Return rows of any kind as an array."""
    array: np.ndarray = rows if isinstance(rows, np.ndarray) else rows.toarray()
    return array


def is_by_block(rows: Any) -> bool:
    """Tell whether rows are `RowsByBlock`, or an array."""
    return isinstance(rows, RowsByBlock)


def cache_rows(rows: Any) -> Any:
    """Cache the results of `RowsByBlock`, see `RowsByBlock.keep`; return an array unchanged."""
    return rows.keep() if isinstance(rows, RowsByBlock) else rows


def map_rows(rows: Any, step: Callable[..., Any], *arguments: Any, n_features: int | None = None) -> Any:
    """Take a step, by an array at once and by `RowsByBlock` when they are needed.

    See `RowsByBlock.then`.
    """
    if isinstance(rows, RowsByBlock):
        return rows.then(functools.partial(_step, step, arguments), n_features)
    return step(rows, *arguments)


def _step(step: Callable[..., Any], arguments: tuple[Any, ...], rows: Any) -> Any:
    return step(rows, *arguments)


def dense_bytes(X: Any, n_features: int | None = None) -> int:
    """Return the bytes of rows as a dense table of float64."""
    return 8 * X.shape[0] * (X.shape[1] if n_features is None else n_features)
