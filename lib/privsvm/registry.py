"""The methods that an entry of params.yaml may name: the files of `privsvm.methods`, and classes of other packages."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import importlib.machinery
import importlib.metadata
import importlib.util
import pkgutil
import re
import sys
import sysconfig
from pathlib import Path

from privsvm.digests import sha256_of_code, sha256_of_file
from privsvm.errors import PrivSVMError, nearest_name

_FOLDER = Path(__file__).with_name("methods")
_FOREIGN = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)


def implementations() -> list[str]:
    """List the names of the method files, or folders, in alphabetical order."""
    return sorted(module.name for module in pkgutil.iter_modules([str(_FOLDER)]))


def module_name(implementation: str) -> str:
    """Full name of the module of a method of this package."""
    return f"privsvm.methods.{implementation}"


def is_foreign(implementation: str) -> bool:
    """Whether an implementation is a class of another package, written ``package.module:Class``."""
    return _FOREIGN.fullmatch(implementation) is not None


def estimator_class(implementation: str) -> type:
    """Import the class of a method.

    It is one of `implementations`, or ``package.module:Class``. Raises PrivSVMError if there is no such file, module or
    class, or it is no classifier or of the standard library: nothing is constructed before.
    """
    if not is_foreign(implementation):
        if implementation not in implementations():
            raise PrivSVMError(
                f"implementation: {implementation!r} is unknown; {nearest_name(implementation, implementations())}, or "
                "package.module:Class for a class of an installed package"
            )
        return importlib.import_module(module_name(implementation)).ESTIMATOR
    home, class_name = implementation.split(":")
    check_installed(implementation)
    try:
        module = importlib.import_module(home)
    except (Exception, SystemExit) as error:
        raise PrivSVMError(
            f"implementation: {implementation!r} cannot be imported ({' '.join(str(error).split())}); install its "
            "package where the workflow runs, or correct the name"
        ) from None
    estimator = getattr(module, class_name, None)
    if not isinstance(estimator, type):
        names = [name for name, value in vars(module).items() if isinstance(value, type)]
        raise PrivSVMError(
            f"implementation: {implementation!r}: {home} has no class {class_name!r}; {nearest_name(class_name, names)}"
        )
    # Another module may hand on a class of the standard library.
    _check_home(implementation, str(estimator.__module__))
    if not all(callable(getattr(estimator, name, None)) for name in ("fit", "predict")):
        raise PrivSVMError(f"implementation: {implementation!r}: has no methods fit and predict; name a classifier")
    return estimator


def _check_home(implementation: str, module: str, home: str = "") -> None:
    """Refuse the standard library, whose classes run commands and write files, without importing it.

    It is told by its names, and by its folder `home`: Python's own tests are in no list of names.
    """
    package = module.partition(".")[0]
    library = sysconfig.get_path("stdlib")
    if package in (*sys.stdlib_module_names, "__main__") or home in (library, f"{library}/lib-dynload"):
        raise PrivSVMError(
            f"implementation: {implementation!r}: {package!r} is of Python's standard library, which has no "
            "classifiers; name a class of an installed package"
        )


@dataclasses.dataclass(frozen=True)
class ForeignSource:
    """Identification of the code of a class of another package.

    `package` is the top-level package or module; `version` belongs to its distribution, "" where there is none.
    `digest` is the SHA-256 over the names of its Python files and their code, or all bytes where there is a version.
    """

    package: str
    version: str
    digest: str


def check_installed(implementation: str) -> importlib.machinery.ModuleSpec:
    """Find the package behind ``package.module:Class``, without importing it.

    Raises PrivSVMError if it is not installed, or is the standard library.
    """
    package = implementation.split(":")[0].split(".")[0]
    _check_home(implementation, package)
    spec = importlib.util.find_spec(package)
    if spec is None:
        raise PrivSVMError(
            f"implementation: {implementation!r}: no package {package!r} is installed; install it where the workflow "
            "runs, or correct the name"
        )
    # A package is a folder, a module a file.
    origin = Path(spec.origin or "")
    _check_home(
        implementation, package, str(origin.parent.parent if spec.submodule_search_locations else origin.parent)
    )
    return spec


def foreign_files(implementation: str) -> list[tuple[Path, Path]]:
    """List the Python files of the package behind ``package.module:Class``, without importing it.

    Each has its name below its package, and where it is; sorted. Raises PrivSVMError if the package is not installed.
    """
    spec = check_installed(implementation)
    folders = [Path(folder) for folder in spec.submodule_search_locations or ()]
    files = [(path.relative_to(folder), path) for folder in folders for path in folder.rglob("*.py")]
    if not folders and spec.origin is not None and Path(spec.origin).is_file():
        files = [(Path("module.py"), Path(spec.origin))]
    return sorted(files)


def foreign_source(implementation: str) -> ForeignSource:
    """Identify the code behind ``package.module:Class``, without importing it.

    Raises PrivSVMError if the package is not installed.
    """
    package = implementation.split(":")[0].split(".")[0]
    version, digest = version_of_package(package), hashlib.sha256()
    # Nobody edits an installed package, and a large one takes seconds to parse.
    digest_of = sha256_of_file if version else sha256_of_code
    for name, path in foreign_files(implementation):
        digest.update(f"{name.as_posix()}\0{digest_of(path)}\0".encode())
    return ForeignSource(package, version, digest.hexdigest())


def version_of_package(package: str) -> str:
    """Find the version of the distribution that installs a package.

    The same as by `importlib.metadata.packages_distributions`, which looks at every file of every distribution; empty
    if no distribution says that it installs the package.
    """
    for distribution in importlib.metadata.distributions():
        names = (distribution.read_text("top_level.txt") or "").split()
        files = [] if names else (distribution.read_text("RECORD") or "").splitlines()
        if package in names or any(file.startswith((f"{package}/", f"{package}.py,")) for file in files):
            return distribution.version
    return ""
