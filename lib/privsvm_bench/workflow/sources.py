"""Source files of a script or module: all modules of the repository that it imports, directly or not.

Grimp builds the graph of imports from the sources without importing them. Imports inside functions count, those under
``if TYPE_CHECKING:`` do not. The caller must name modules that are imported by a computed name.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from privsvm.digests import sha256_of_code
from privsvm.errors import PrivSVMError

if TYPE_CHECKING:
    import grimp

ROOT = Path(__file__).resolve().parents[3]

# Files of the repository that a module reads besides its imports.
PACKAGE_DATA = {
    "privsvm_bench.datasets.catalogue": ("lib/privsvm_bench/datasets/catalogue.json",),
    "privsvm_bench.datasets.croissant": ("lib/privsvm_bench/datasets/croissant_context.json",),
    "privsvm.release.documents.dossier": ("lib/privsvm/release/documents/audits.json",),
    "privsvm.release.documents.rendering": ("lib/privsvm/release/documents/templates/*.jinja",),
    "privsvm.release.training.planning": ("lib/privsvm/release/training/utility.json",),
    "privsvm_bench.reporting.glossary": ("lib/privsvm_bench/reporting/glossary.toml",),
    "privsvm_bench.reporting.page": ("lib/privsvm_bench/reporting/templates/*.jinja",),
    "reproduce.engine.rendering": (
        "lib/privsvm_bench/reporting/templates/*.jinja",
        "reproduce/engine/templates/*.jinja",
    ),
    # The papers' settings.
    **{
        f"reproduce.{path.parent.name}.experiments": (path.relative_to(ROOT).as_posix(),)
        for path in sorted(ROOT.glob("reproduce/*/settings.yaml"))
    },
}


@functools.cache
def _graph() -> grimp.ImportGraph:
    import grimp

    # Prefer the library of this working copy to an installed one.
    for folder in (ROOT, ROOT / "lib"):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    packages = [
        name for name in ("privsvm", "privsvm_bench", "reproduce") if importlib.util.find_spec(name) is not None
    ]
    return grimp.build_graph(*packages, exclude_type_checking_imports=True, cache_dir=None)


def _file_of(module: str) -> Path:
    home = ROOT if module.partition(".")[0] == "reproduce" else ROOT / "lib"
    path = home.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _imports_of_script(path: Path) -> set[str]:
    """Return the modules that a script or its siblings import."""
    modules: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{item.name}" for item in node.names)]
        elif isinstance(node, ast.Import):
            names = [item.name for item in node.names]
        else:
            continue
        modules.update(name for name in names if name in _graph().modules)
        for name in names:
            sibling = path.with_name(f"{name}.py")
            if sibling.is_file():
                modules |= _imports_of_script(sibling)
    return modules


def closure(*entries: str) -> list[str]:
    """List every file of the repository that entry points need, sorted, as paths below the root.

    Entries are scripts, as paths below the root (``"stages/train.py"``), or modules (``"privsvm.methods.svm"``), and
    are among the files. Raises PrivSVMError if one does not exist.
    """
    graph, files, modules = _graph(), set(), set()
    for entry in entries:
        # Modules of tests and bench count as scripts.
        script = ROOT / (entry if "/" in entry else f"{entry.replace('.', '/')}.py")
        if entry in graph.modules:
            modules.add(entry)
        elif script.is_file():
            files.add(script)
            modules |= _imports_of_script(script)
        else:
            raise PrivSVMError(f"{entry}: neither a file nor a module of {ROOT}; correct the name")
    for module in list(modules):
        modules |= graph.find_upstream_modules(module)
    for module in modules:
        packages = module.split(".")
        files.update(_file_of(".".join(packages[:end])) for end in range(1, len(packages) + 1))
        for pattern in PACKAGE_DATA.get(module, ()):
            files.update(ROOT.glob(pattern))
    return sorted(path.relative_to(ROOT).as_posix() for path in files)


@functools.cache
def _digest_of_file(name: str) -> str:
    return sha256_of_code(ROOT / name)


def closure_digest(*entries: str) -> str:
    """Digest names and code of all files of a `closure`, in 32 hexadecimal digits."""
    digest = hashlib.sha256()
    for name in closure(*entries):
        digest.update(f"{name}\0{_digest_of_file(name)}\n".encode())
    return digest.hexdigest()[:32]
