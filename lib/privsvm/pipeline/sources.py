"""What a script or a module depends on inside the repository: the closure of its imports, read from the sources.

Nothing is imported to find out. An import inside a function counts like any other; one under ``if TYPE_CHECKING:``
does not, but for a name that the package's ``__getattr__`` imports when it is first used; its stub ``__init__.pyi``
tells where such a name comes from, if there is one. The ``__init__.py`` of every
parent package counts, and so does package data that a module names (``"catalogue.json"``, a folder of templates). A
module whose name is put together at run time is for the caller to name as a further entry.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import importlib.metadata
import json
import os
import posixpath
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from privsvm.errors import PrivSVMError

__all__ = ["closure", "closure_digest", "compiled_code_folder", "compiled_code_key", "compiled_modules"]

ROOT = Path(__file__).resolve().parents[3]

# Where modules are looked for, below the root; the folder of an entry's script comes first.
_SEARCH = ("lib", ".")

_FILE_NAME = re.compile(r"[\w][\w./-]*")
_SKIPPED = ("__pycache__",)

# Of so many states of files is kept what they import: of all present ones, and of some that may come back.
_MOST_KEPT = 1500

# Compiles functions for the modules that import it.
_DECORATORS = "privsvm.numerics.jit"

# An import: the package it is relative to ("." for each level), the module, the names taken from it.
_Import = tuple[int, str, list[str]]


def _is_type_checking(test: ast.expr) -> bool:
    return ast.unparse(test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


class _Facts(ast.NodeVisitor):
    """What one module imports and names, before anything is looked up."""

    def __init__(self) -> None:
        self.imports: list[_Import] = []
        self.for_types: list[_Import] = []
        self.literals: set[str] = set()
        self.lazy = False
        # Names bound to what may be a module, and the attributes asked of names.
        self.bound: dict[str, tuple[int, str]] = {}
        self.attributes: set[tuple[str, str]] = set()

    def visit_If(self, node: ast.If) -> None:
        if not _is_type_checking(node.test):
            self.generic_visit(node)
            return
        inner = _Facts()
        for statement in node.body:
            inner.visit(statement)
        self.for_types += inner.imports
        for statement in node.orelse:
            self.visit(statement)

    def visit_Import(self, node: ast.Import) -> None:
        for item in node.names:
            self.imports.append((0, item.name, []))
            self.bound[item.asname or item.name.partition(".")[0]] = (
                0,
                item.name if item.asname else item.name.partition(".")[0],
            )

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        self.imports.append((node.level, module, [item.name for item in node.names]))
        for item in node.names:
            self.bound[item.asname or item.name] = (node.level, f"{module}.{item.name}".strip("."))

    def visit_Call(self, node: ast.Call) -> None:
        name = ast.unparse(node.func) if isinstance(node.func, (ast.Name, ast.Attribute)) else ""
        if name in ("importlib.import_module", "import_module") and node.args:
            argument = node.args[0]
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                self.imports.append((0, argument.value, []))
        self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.lazy |= node.name == "__getattr__"
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.value, ast.Name):
            self.attributes.add((node.value.id, node.attr))
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str) and len(node.value) < 100 and _FILE_NAME.fullmatch(node.value):
            self.literals.add(node.value)

    def summary(self) -> dict[str, Any]:
        """As JSON holds it. What is asked of an imported module is taken for imported from it."""
        asked: dict[str, set[str]] = {}
        for name, attribute in self.attributes:
            asked.setdefault(name, set()).add(attribute)
        imports = [
            *self.imports,
            *((*self.bound[name], sorted(found)) for name, found in sorted(asked.items()) if name in self.bound),
        ]
        return {
            "imports": imports,
            "lazy": self.for_types if self.lazy else [],
            "literals": sorted(self.literals),
        }


@functools.cache
def _analysis() -> bytes:
    """Content of this module: what was read by another version of it is not used."""
    return Path(__file__).read_bytes()


def _seal(facts: bytes) -> bytes:
    """Return the first line of the file of kept facts: a damaged name of a module would leave stale results."""
    return hashlib.sha256(_analysis() + facts).hexdigest().encode()


class _Sources:
    """The sources below one root. Files are read once for each state of them; what they import is kept on disk."""

    def __init__(self, root: Path):
        self.root = root
        self.kept = root / ".cache" / "imports"
        self.facts: dict[str, dict[str, Any]] = self._read_kept()
        self.changed = False
        self.states: dict[str, tuple[tuple[int, int], str]] = {}
        # What each file needs next, by its name and where modules are looked for.
        self.needs: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        # The same by the name alone, with the places of all packages looked for: most searches differ in none of them.
        self.answers: dict[str, list[tuple[dict[str, tuple[str, ...]], list[str]]]] = {}
        self.asked: set[str] = set()
        self.modules: dict[tuple[str, tuple[str, ...]], list[str]] = {}
        self.places: dict[tuple[str, tuple[str, ...]], tuple[str, ...]] = {}
        # What a folder holds, and whether that is a folder.
        self.listings: dict[str, dict[str, bool]] = {}

    def _read_kept(self) -> dict[str, dict[str, Any]]:
        try:
            seal, _, facts = self.kept.read_bytes().partition(b"\n")
        except OSError:
            return {}
        return json.loads(facts) if seal == _seal(facts) else {}

    def keep(self) -> None:
        """Write what was found; a folder that cannot be written only makes the next start slower."""
        if not self.changed:
            return
        self.changed = False
        # Another process may have read other files.
        known = {**self._read_kept(), **self.facts}
        present = {digest for _, digest in self.states.values()} & set(known)
        facts = {
            key: known[key] for key in [*sorted(present), *(key for key in known if key not in present)][:_MOST_KEPT]
        }
        text = json.dumps(facts).encode()
        temporary = self.kept.with_name(f".imports.{os.getpid()}.part")
        with contextlib.suppress(OSError):
            self.kept.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_bytes(_seal(text) + b"\n" + text)
            os.replace(temporary, self.kept)

    def digest(self, name: str) -> str:
        """Compute the SHA-256 of a file; read it again only if its time or size has changed."""
        path = os.path.join(self.root, name)
        try:
            status = os.stat(path)
            state = (status.st_mtime_ns, status.st_size)
            known = self.states.get(name)
            if known is None or known[0] != state:
                if known is not None:
                    for known_before in (self.needs, self.answers, self.modules, self.places):
                        known_before.clear()
                known = self.states[name] = (state, hashlib.sha256(Path(path).read_bytes()).hexdigest())
        except OSError as error:
            raise PrivSVMError(f"{path}: cannot be read ({error.strerror}); restore it") from None
        return known[1]

    def facts_of(self, name: str) -> dict[str, Any]:
        digest = self.digest(name)
        if digest not in self.facts:
            found = _Facts()
            text = (self.root / name).read_text(encoding="utf-8")
            try:
                found.visit(ast.parse(text))
            except SyntaxError as error:
                raise PrivSVMError(f"{self.root / name}: line {error.lineno}: {error.msg}; correct it") from None
            self.facts[digest] = found.summary()
            self.changed = True
        return self.facts[digest]

    def held_by(self, folder: str) -> dict[str, bool]:
        """Name all that a folder holds, and whether it is a folder; nothing if there is no such folder."""
        if folder not in self.listings:
            try:
                with os.scandir(os.path.join(self.root, folder)) as found:
                    self.listings[folder] = {entry.name: entry.is_dir() for entry in found}
            except OSError:
                self.listings[folder] = {}
        return self.listings[folder]

    def kind_of(self, name: str) -> bool | None:
        """Tell whether a name is that of a folder; None if there is nothing of that name."""
        folder, _, last = name.rstrip("/").rpartition("/")
        return self.held_by(folder).get(last)

    def is_file(self, name: str) -> bool:
        return self.kind_of(name) is False

    def is_folder(self, name: str) -> bool:
        return self.kind_of(name) is True

    def below(self, folder: str) -> list[str]:
        """Every file of a folder but for compiled code."""
        found, folders = [], [posixpath.normpath(folder)]
        for place in folders:
            with os.scandir(os.path.join(self.root, place)) as held:
                for entry in held:
                    name = f"{place}/{entry.name}"
                    if entry.is_dir(follow_symlinks=False):
                        folders += [] if entry.name in _SKIPPED else [name]
                    elif entry.is_file():
                        found.append(name)
        return sorted(found, key=lambda name: name.split("/"))

    def files_of_module(self, module: str, search: tuple[str, ...]) -> list[str]:
        """Files that importing a module runs: the ``__init__.py`` of its parents and its own; none if not ours."""
        if (module, search) not in self.modules:
            self.modules[module, search] = self._find_module(module, search)
        return self.modules[module, search]

    def _find_module(self, module: str, search: tuple[str, ...]) -> list[str]:
        parts = module.split(".")
        for place in self.places_of(parts[0], search):
            top = "" if place == "." else f"{place}/"
            base = top + "/".join(parts)
            own = [name for name in (f"{base}/__init__.py", f"{base}.py") if self.is_file(name)]
            # A folder without __init__.py is a package too.
            if own or self.is_folder(base):
                parents = [f"{top}{'/'.join(parts[:end])}/__init__.py" for end in range(1, len(parts))]
                return [*filter(self.is_file, parents), *own[:1]]
        return []

    def places_of(self, top: str, search: tuple[str, ...]) -> tuple[str, ...]:
        """Where modules can be whose names have this first part: nowhere for packages of others."""
        if (top, search) not in self.places:
            held = [(place, self.held_by("" if place == "." else place)) for place in search]
            self.places[top, search] = tuple(place for place, names in held if top in names or f"{top}.py" in names)
        return self.places[top, search]

    def is_ours(self, module: str, search: tuple[str, ...]) -> bool:
        """Tell whether a module can be in the repository, by the first part of its name."""
        top = module.split(".")[0]
        self.asked.add(top)
        return bool(self.places_of(top, search))

    def package_of(self, name: str) -> tuple[str, ...]:
        """Dotted package that holds a file, as a tuple; for a package's ``__init__.py`` the package itself."""
        parts = tuple(posixpath.dirname(name).split("/"))
        return parts[1:] if parts[0] == "lib" else parts

    def absolute(self, name: str, level: int, module: str) -> str:
        if not level:
            return module
        package = self.package_of(name)
        return ".".join([*package[: len(package) - level + 1], *([module] if module else [])])

    def imported(self, name: str, found: Iterable[_Import], search: tuple[str, ...]) -> Iterator[str]:
        """Files that a file's imports run."""
        for level, written, names in found:
            module = self.absolute(name, level, written)
            if not self.is_ours(module, search):
                continue
            files = self.files_of_module(module, search)
            yield from files
            for item in names:
                submodule = self.files_of_module(f"{module}.{item}", search)
                if submodule:
                    yield from submodule
                elif files and files[-1].endswith("/__init__.py"):
                    yield from self.lazily_imported(files[-1], item, search)

    def lazily_imported(self, package: str, item: str, search: tuple[str, ...]) -> Iterator[str]:
        """Files behind a name that a package imports when it is first used."""
        stub = f"{package}i"
        facts = self.facts_of(package)
        for level, module, names in self.facts_of(stub)["imports"] if self.is_file(stub) else facts["lazy"]:
            if item in names:
                yield from self.imported(package, [(level, module, [item])], search)

    def named_data(self, name: str) -> Iterator[str]:
        """Package data that a module names: files beside it, or folders that are no packages."""
        folder = posixpath.dirname(name)
        beside = self.held_by(folder)
        for literal in self.facts_of(name)["literals"]:
            # Most words name nothing.
            if literal.partition("/")[0] not in beside:
                continue
            path = posixpath.join(folder, literal)
            if "." in literal:
                if not literal.endswith(".py") and self.is_file(path):
                    yield path
            elif self.is_folder(path) and not any((self.root / path).glob("*.py")) and literal not in _SKIPPED:
                yield from self.below(path)

    def entry_files(self, entry: str) -> list[str]:
        """Files that an entry names: itself, all of a folder, or a module given by its dotted name."""
        if self.is_file(entry):
            return [posixpath.normpath(entry)]
        if self.is_folder(entry):
            return self.below(entry)
        files = list(self.files_of_module(entry, _SEARCH)) if "/" not in entry else []
        if not files:
            raise PrivSVMError(f"{entry}: neither a file nor a module of {self.root}; correct the name")
        return files

    def needed_next(self, name: str, search: tuple[str, ...]) -> Iterator[str]:
        """Files that one file needs: parents' ``__init__.py``, what it imports, data that it names."""
        if not name.endswith(".py"):
            return
        parts = name.split("/")
        parents = ["/".join([*parts[:end], "__init__.py"]) for end in range(1, len(parts))]
        yield from filter(self.is_file, parents)
        yield from self.imported(name, self.facts_of(name)["imports"], search)
        yield from self.named_data(name)

    def all_needed_next(self, name: str, search: tuple[str, ...]) -> list[str]:
        """Those files, found once for all searches that lead to the same places."""
        for places, needed in self.answers.get(name, []):
            if all(self.places_of(top, search) == found for top, found in places.items()):
                return needed
        self.asked.clear()
        needed = sorted(set(self.needed_next(name, search)))
        self.answers.setdefault(name, []).append(({top: self.places_of(top, search) for top in self.asked}, needed))
        return needed

    def closure(self, entries: tuple[str, ...]) -> list[str]:
        self.listings.clear()
        found: set[str] = set()
        for entry in entries:
            waiting = self.entry_files(entry)
            # Python looks beside the script first.
            beside = [posixpath.dirname(name) or "." for name in waiting if not name.startswith("lib/")]
            search = tuple(dict.fromkeys([*beside, *_SEARCH]))
            seen: set[str] = set()
            while waiting:
                name = waiting.pop()
                if name in seen:
                    continue
                seen.add(name)
                self.digest(name)
                if (name, search) not in self.needs:
                    self.needs[name, search] = self.all_needed_next(name, search)
                waiting += self.needs[name, search]
            found |= seen
        self.keep()
        return sorted(found)


@functools.cache
def _sources(root: Path) -> _Sources:
    return _Sources(root)


def closure(*entries: str, root: str | os.PathLike[str] | None = None) -> list[str]:
    """List every file of the repository that an entry point needs.

    Parameters
    ----------
    *entries : str
        Scripts, modules or folders, as paths below the root (``"stages/train.py"``) or as dotted names
        (``"privsvm.methods.svm"``).
    root : path-like, default=None
        Folder of the repository; None for the one that holds this file.

    Returns
    -------
    list of str
        Paths below the root, sorted; the entries are among them.

    Raises
    ------
    PrivSVMError
        If an entry does not exist or a source cannot be read.
    """
    return _sources(ROOT if root is None else Path(root).resolve()).closure(entries)


def closure_digest(*entries: str, root: str | os.PathLike[str] | None = None) -> str:
    """Digest of the content of all files that an entry point needs.

    Parameters
    ----------
    *entries, root
        See `closure`.

    Returns
    -------
    str
        32 hexadecimal digits over names and contents. Times do not count.
    """
    sources = _sources(ROOT if root is None else Path(root).resolve())
    digest = hashlib.sha256()
    for name in sources.closure(entries):
        digest.update(f"{name}\0{sources.digest(name)}\n".encode())
    return digest.hexdigest()[:32]


def compiled_modules(root: str | os.PathLike[str] | None = None) -> list[str]:
    """Modules of the library that hold compiled functions: those that import Numba, or the decorators that wrap it.

    Parameters
    ----------
    root : path-like, default=None
        See `closure`.

    Returns
    -------
    list of str
        Paths below the root, sorted.
    """
    sources = _sources(ROOT if root is None else Path(root).resolve())
    return [
        name
        for name in sources.below("lib")
        if name.endswith(".py")
        and any(
            not level and (module.split(".")[0] == "numba" or module == _DECORATORS)
            for level, module, _ in sources.facts_of(name)["imports"]
        )
    ]


def compiled_code_key(root: str | os.PathLike[str] | None = None) -> str:
    """Name of the Numba cache folder that fits the present sources.

    Numba's own cache does not notice that a function called from another file has changed; a folder for each state of
    the compiled modules, and of all that they import, does.

    Parameters
    ----------
    root : path-like, default=None
        See `closure`.

    Returns
    -------
    str
        16 hexadecimal digits of a hash over these sources and Numba's version.
    """
    sources = closure_digest(*compiled_modules(root), root=root)
    return hashlib.sha256(f"{importlib.metadata.version('numba')}\n{sources}".encode()).hexdigest()[:16]


def compiled_code_folder(root: str | os.PathLike[str] | None = None) -> Path:
    """Path of the Numba cache folder in the working folder, see `compiled_code_key`."""
    return Path(".cache/numba").resolve() / compiled_code_key(root)
