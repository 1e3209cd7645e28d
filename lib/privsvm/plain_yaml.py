"""YAML that people write, params.yaml and schemas of tables: YAML 1.2, with line and column of every key.

Snakemake's own reader is one of YAML 1.1, which takes ``no`` for false, ``010`` for 8 and ``1e-5`` for text, and it
evaluates Python expressions that a file may hold. This reader agrees with DVC's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from privsvm.errors import PrivSVMError

Places = Mapping[tuple[str, ...], tuple[int, int]]
"""Line and column, from 1, of every key and list item."""

# A value takes 20 microseconds to read on a fast machine. Aliases count as often as they are written, so that a short
# file cannot stand for millions of values.
_LARGEST_FILE = 512 << 10
_MOST_VALUES = 100_000
_DEEPEST = 30
_BEYOND = f"more than {_DEEPEST} levels or {_MOST_VALUES} values"
_LONGEST_NUMBER = 40
_TAG = "tag:yaml.org,2002:"
_MERGE, _TEXT = f"{_TAG}merge", f"{_TAG}str"
_HALF_PAIR = re.compile("[\ud800-\udfff]")
_RESTORE = "restore it (git checkout {source})"


def _error(source: str, line: str, problem: str) -> PrivSVMError:
    return PrivSVMError(f"{source}: {line}{' '.join(problem.split())[:200]}; correct it")


def _line(mark: Any) -> str:
    return "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: "


def _compose(text: str, source: str, reader: Any) -> Any:
    """Compose the nodes of a document, within the limits and without tags."""
    from ruamel.yaml.composer import Composer

    class BoundedComposer(Composer):
        nodes = levels = 0

        def compose_document(self) -> Any:
            start = self.parser.peek_event()
            if start.version or start.tags:
                raise _error(
                    source, _line(start.start_mark), "directives are not read; remove the lines that begin by %"
                )
            return super().compose_document()

        def compose_node(self, parent: Any, index: Any) -> Any:
            event = self.parser.peek_event()
            self.nodes += 1
            self.levels += 1
            for wrong, problem in (
                (self.nodes > _MOST_VALUES or self.levels > _DEEPEST + 1, _BEYOND),
                (getattr(event, "tag", None), "tags are not read; write the value alone"),
                (
                    parent is not None and index is None and event.anchor,
                    "a key has no anchor and is no alias; write the key",
                ),
                (_HALF_PAIR.search(getattr(event, "value", "")), "half a surrogate pair is no text"),
            ):
                if wrong:
                    raise _error(source, _line(event.start_mark), problem)
            node = super().compose_node(parent, index)
            self.levels -= 1
            return node

    reader.Composer = BoundedComposer
    # A second anchor of one name is right.
    reader.composer.warn_double_anchors = False
    return reader.compose(text)


def _collect_places(node: Any, path: tuple[str, ...], positions: dict[tuple[str, ...], Any], source: str) -> None:
    """Collect the places of all keys and items below a node."""
    if len(path) > _DEEPEST or len(positions) > _MOST_VALUES:
        raise _error(source, _line(node.start_mark), _BEYOND)
    if node.tag in (f"{_TAG}timestamp", f"{_TAG}value", _MERGE):
        # Dates are texts, and so is "=".
        node.tag = _TEXT
    if node.tag == f"{_TAG}int" and len(node.value) > _LONGEST_NUMBER:
        raise _error(source, _line(node.start_mark), f"a number of more than {_LONGEST_NUMBER} digits")
    for index, item in enumerate(() if node.id == "scalar" else node.value):
        key, value = item if node.id == "mapping" else (item, item)
        if node.id == "mapping":
            if key.id != "scalar":
                raise _error(source, _line(key.start_mark), "a key must be a word")
            # A key is the text that is written: 010 is no 10, and ~ is not None.
            key.tag = _MERGE if key.tag == _MERGE else _TEXT
        below = (*path, key.value if node.id == "mapping" else str(index))
        if below in positions:
            raise _error(source, _line(key.start_mark), f'found duplicate key "{key.value}"')
        positions[below] = (key.start_mark.line + 1, key.start_mark.column + 1)
        _collect_places(value, below, positions, source)


def parse_yaml(text: str, source: str, remedy: str = _RESTORE) -> tuple[dict[str, Any], Places]:
    """Read YAML text.

    It is one document without tags and directives, a mapping of mappings, lists, texts, numbers, truth values and None;
    keys are the texts that are written. `source` says where it comes from, for messages, and `remedy` what to do where
    there is nothing to read; ``{source}`` is filled in. Also returns line and column of every key, from 1. Raises
    PrivSVMError, one line with file, line, column and remedy.
    """
    # Imported late: few commands of the library read YAML.
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError
    from ruamel.yaml.reader import ReaderError

    if len(text.encode("utf-8", "replace")) > _LARGEST_FILE:
        raise PrivSVMError(f"{source}: larger than {_LARGEST_FILE >> 10} kB; shorten it")
    reader, positions, params = YAML(typ="safe", pure=True), dict[tuple[str, ...], tuple[int, int]](), None
    try:
        if (root := _compose(text, source, reader)) is not None:
            _collect_places(root, (), positions, source)
            params = reader.constructor.construct_document(root)
    except MarkedYAMLError as error:
        mark, problem = error.problem_mark or error.context_mark, error.problem or error.context or "not YAML"
        raise _error(source, _line(mark), problem) from None
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise _error(source, f"line {line}: ", f"the character {chr(error.character)!r} is not YAML") from None
    except PrivSVMError:
        raise
    except Exception as error:
        # Constructors of values raise errors of every kind.
        raise _error(source, "", f"not YAML ({error})") from None
    if not isinstance(params, dict):
        raise PrivSVMError(f"{source}: holds no keys; {remedy.format(source=source)}")
    return params, positions


def read_yaml(path: str | os.PathLike[str] = "params.yaml", remedy: str = _RESTORE) -> tuple[dict[str, Any], Places]:
    """Read a file; see `parse_yaml`.

    Raises PrivSVMError also if the file is missing, cannot be read or is not UTF-8.
    """
    # Imported late: it imports NumPy.
    from privsvm.untrusted import read_regular_file

    try:
        data = read_regular_file(path, _LARGEST_FILE, f"give a readable file of at most {_LARGEST_FILE >> 10} kB")
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise PrivSVMError(f"{path}: line {line}: not UTF-8 text; save it as UTF-8") from None
    except FileNotFoundError:
        raise PrivSVMError(f"{path}: file not found; {remedy.format(source=path)}") from None
    return parse_yaml(text, str(path), remedy)


def with_place(message: str, positions: Places) -> str:
    """Add line and column to a message that begins with a key such as ``privacy.delta``.

    It is the place of the longest key that the message begins with, by the positions of `parse_yaml`.
    """
    best: tuple[int, tuple[int, int]] | None = None
    for path, position in positions.items():
        # A name that cannot be one is the value of its mapping.
        for begin, ends in ((".".join(path), (":", ".", " ", "")), (f"{'.'.join(path[:-1])}: {path[-1]!r}", (" ",))):
            follows = message[len(begin) : len(begin) + 1]
            if message.startswith(begin) and follows in ends and (best is None or len(begin) > best[0]):
                best = (len(begin), position)
    return message if best is None else f"{message} (line {best[1][0]}, column {best[1][1]})"
