"""YAML that people write, params.yaml and schemas of tables: read one way, with the place of every key.

YAML has two readings. Snakemake's takes ``no`` for false, ``010`` for 8 and ``1e-5`` for text; that of DVC takes them
for text, 10 and a number, and when it writes the file (``dvc exp run -S``) it leaves out the quotes that it does not
need. Here the second one holds, that of YAML 1.2. What no reader should have to guess is refused: other ways to write
numbers, tags, a key twice. Snakemake's reader would also run Python code that a file holds, which this one
cannot.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from privsvm.errors import PrivSVMError

__all__ = ["Places", "load_lock", "parse_yaml", "read_yaml", "with_place"]

Places = Mapping[tuple[str, ...], tuple[int, int]]
"""Line and column, from 1, of every key and list item."""

# Far more than thousands of methods need.
_LARGEST_FILE = 4 << 20
_DEEPEST = 30
_MOST_NODES = 400_000
_MOST_ALIASES = 1000

_NULL = ("", "~", "null", "Null", "NULL")
_TRUTH = {word: word.lower() == "true" for word in ("true", "True", "TRUE", "false", "False", "FALSE")}
_WHOLE = re.compile(r"[-+]?(0|[1-9][0-9]*)", re.ASCII)
_REAL = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
# Numbers to one reader and text to another, or other numbers. Dates are texts.
_UNCLEAR = re.compile(
    r"[-+]?(0[0-7_]+|0o[0-7_]+|0x[0-9a-fA-F_]+|0b[01_]+|[0-9][0-9_]*_[0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?)",
    re.ASCII,
)
_LONGEST_NUMBER = 400
_RESTORE = "restore it (git checkout {source})"


class _Reader:
    """Builds what the events of a YAML parser say."""

    def __init__(self, events: Iterator[Any], source: str) -> None:
        self.events, self.source = events, source
        self.places: dict[tuple[str, ...], tuple[int, int]] = {}
        self.anchors: dict[str, tuple[Any, int]] = {}
        self.nodes = self.aliases = 0

    def error(self, event: Any, problem: str) -> PrivSVMError:
        mark = event.start_mark
        return PrivSVMError(f"{self.source}: line {mark.line + 1}, column {mark.column + 1}: {problem}")

    def count(self, event: Any, nodes: int) -> None:
        self.nodes += nodes
        if self.nodes > _MOST_NODES:
            raise self.error(event, f"more than {_MOST_NODES} values, aliases counted; shorten the file")

    def value(self, event: Any, path: tuple[str, ...]) -> Any:
        """Read the value that begins with an event."""
        kind = type(event).__name__
        if kind == "AliasEvent":
            self.aliases += 1
            if event.anchor not in self.anchors:
                raise self.error(event, f"the alias *{event.anchor} stands before or within its anchor; write it out")
            if self.aliases > _MOST_ALIASES:
                raise self.error(event, f"more than {_MOST_ALIASES} aliases; write them out")
            found, nodes = self.anchors[event.anchor]
            self.count(event, nodes)
            return found
        if event.tag not in (None, "!"):
            raise self.error(event, f"the tag {event.tag!r} is not read; remove it")
        if len(path) > _DEEPEST:
            raise self.error(event, f"more than {_DEEPEST} levels; no key is that deep")
        before = self.nodes
        self.count(event, 1)
        if kind == "ScalarEvent":
            found = self.scalar(event)
        elif kind == "SequenceStartEvent":
            found = []
            for item in iter(lambda: next(self.events), None):
                if type(item).__name__ == "SequenceEndEvent":
                    break
                here = (*path, str(len(found)))
                self.place(here, item)
                found.append(self.value(item, here))
        else:
            found = self.mapping(path)
        if event.anchor is not None:
            self.anchors[event.anchor] = (found, self.nodes - before)
        return found

    def mapping(self, path: tuple[str, ...]) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        seen: dict[str, int] = {}
        for event in iter(lambda: next(self.events), None):
            if type(event).__name__ == "MappingEndEvent":
                break
            if type(event).__name__ != "ScalarEvent":
                raise self.error(event, "a key must be a word")
            if event.value == "<<" and event.implicit[0]:
                raise self.error(event, "merge keys (<<) are not read; write the keys out")
            key = self.value(event, path)
            name = str(key)
            if name in seen:
                raise self.error(event, f"the key {name!r} is there twice, first in line {seen[name]}; remove one")
            seen[name] = event.start_mark.line + 1
            self.place((*path, name), event)
            found[key] = self.value(next(self.events), (*path, name))
        return found

    def place(self, path: tuple[str, ...], event: Any) -> None:
        self.places[path] = (event.start_mark.line + 1, event.start_mark.column + 1)

    def scalar(self, event: Any) -> Any:
        text = event.value
        if not event.implicit[0]:
            return text
        if text in _NULL:
            return None
        if text in _TRUTH:
            return _TRUTH[text]
        if _NOT_FINITE.fullmatch(text):
            raise self.error(event, f"{text} is not a finite number; give one")
        if _UNCLEAR.fullmatch(text):
            raise self.error(event, f"{text} is read in several ways; write a decimal number, or text in quotes")
        if not _REAL.fullmatch(text):
            return text
        if len(text) > _LONGEST_NUMBER:
            raise self.error(event, f"a number of {len(text)} digits; shorten it, or write text in quotes")
        if _WHOLE.fullmatch(text):
            return int(text)
        number = float(text)
        if not math.isfinite(number):
            raise self.error(event, f"{text} is too large for a number; give a smaller one")
        return number


def parse_yaml(text: str, source: str, remedy: str = _RESTORE) -> tuple[dict[str, Any], Places]:
    """Read YAML text.

    Parameters
    ----------
    text : str
        One document, a mapping.
    source : str
        Where it comes from, for messages.
    remedy : str
        What to do where there is nothing to read; ``{source}`` is filled in.

    Returns
    -------
    params : dict
        Values are mappings with different keys, lists, texts, finite numbers, truth values and None.
    places : mapping
        Line and column of every key, from 1.

    Raises
    ------
    PrivSVMError
        One line with file, line, column and remedy.
    """
    import yaml

    if len(text.encode("utf-8", "replace")) > _LARGEST_FILE:
        raise PrivSVMError(f"{source}: larger than {_LARGEST_FILE >> 20} MB; shorten it")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    reader = _Reader(iter(yaml.parse(text, Loader=loader)), source)
    params: Any = None
    documents = 0
    try:
        for event in reader.events:
            kind = type(event).__name__
            if kind == "DocumentStartEvent":
                documents += 1
                if documents > 1:
                    raise reader.error(event, "a second document begins; keep one")
            elif kind not in ("StreamStartEvent", "StreamEndEvent", "DocumentEndEvent"):
                params = reader.value(event, ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
        said = " ".join(str(error.problem or error.context or "not YAML").split())
        raise PrivSVMError(f"{source}: {where}{said}; mend that line") from None
    except (yaml.YAMLError, RecursionError) as error:
        said = " ".join(str(error).split())[:200]
        raise PrivSVMError(f"{source}: line {_bad_line(text)}: not YAML ({said}); mend that line") from None
    if not isinstance(params, dict):
        raise PrivSVMError(f"{source}: holds no keys; {remedy.format(source=source)}")
    return params, reader.places


def _bad_line(text: str) -> int:
    """Find the line of the first character that YAML forbids; 1 without one."""
    found = re.search("[^\x09\x0a\x0d\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", text)
    return 1 if found is None else text.count("\n", 0, found.start()) + 1


def read_yaml(path: str | os.PathLike[str] = "params.yaml", remedy: str = _RESTORE) -> tuple[dict[str, Any], Places]:
    """Read a file; see `parse_yaml`.

    Raises
    ------
    PrivSVMError
        Also if the file is missing, cannot be read or is not UTF-8.
    """
    try:
        if Path(path).stat().st_size > _LARGEST_FILE:
            raise PrivSVMError(f"{path}: larger than {_LARGEST_FILE >> 20} MB; shorten it")
        data = Path(path).read_bytes()
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise PrivSVMError(f"{path}: line {line}: not UTF-8 text; save it as UTF-8") from None
    except FileNotFoundError:
        raise PrivSVMError(f"{path}: file not found; {remedy.format(source=path)}") from None
    except OSError as error:
        raise PrivSVMError(f"{path}: cannot be read ({error.strerror}); make it readable") from None
    return parse_yaml(text, str(path), remedy)


def load_lock(text: str, source: str) -> dict[str, Any]:
    """Read what DVC wrote, by the common reading of YAML.

    Parameters
    ----------
    text : str
        A lock file.
    source : str
        Where it comes from, for messages.

    Returns
    -------
    dict

    Raises
    ------
    PrivSVMError
        If it is no mapping, or so deep that the parser would crash.
    """
    import yaml

    loader, depth = getattr(yaml, "CSafeLoader", yaml.SafeLoader), 0
    try:
        for event in yaml.parse(text, Loader=loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > 2 * _DEEPEST:
                raise ValueError(f"more than {2 * _DEEPEST} levels")
        # A safe loader by another name.
        found = yaml.load(text, Loader=loader) or {}  # nosec B506
        if not isinstance(found, dict):
            raise ValueError("holds no keys")
    except (yaml.YAMLError, ValueError, TypeError) as error:
        said = " ".join(str(error).split())[:200]
        raise PrivSVMError(f"{source}: cannot be read ({said}); restore it (git checkout {source})") from None
    return found


def with_place(message: str, places: Places) -> str:
    """Add line and column to a message that begins with a key such as ``privacy.delta``.

    Parameters
    ----------
    message : str
        Of an error.
    places : mapping
        See `parse_yaml`.

    Returns
    -------
    str
        With the place of the longest key that the message begins with; as it is where it begins with none.
    """
    best: tuple[int, tuple[int, int]] | None = None
    for path, place in places.items():
        # A name that cannot be one is the value of its mapping.
        for begin, ends in ((".".join(path), (":", ".", " ", "")), (f"{'.'.join(path[:-1])}: {path[-1]!r}", (" ",))):
            follows = message[len(begin) : len(begin) + 1]
            if message.startswith(begin) and follows in ends and (best is None or len(begin) > best[0]):
                best = (len(begin), place)
    return message if best is None else f"{message} (line {best[1][0]}, column {best[1][1]})"
