"""pyproject.toml, the locks and environment.yml agree, and nothing private is in the repository."""

import ast
import importlib
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import privsvm
from tests.advisories import report
from tests.scripts import REPOSITORY, copy_files
from tests.wheel.check import call, oldest_versions, pythons

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
LOCK = (REPOSITORY / "requirements.lock").read_text()
# Further locks by extra, installed on top of LOCK.
MORE = {
    extra: (REPOSITORY / name).read_text()
    for name, extras in {
        "requirements-dev.lock": ["dev", "docs", "export", "rows", "dask", "ui"],
        "bench/requirements.lock": ["bench"],
        "profiles/slurm/requirements.lock": ["slurm"],
    }.items()
    for extra in extras
}


def read_pins(lock: str = LOCK) -> dict[str, list[Requirement]]:
    pins: dict[str, list[Requirement]] = {}
    for line in lock.splitlines():
        if re.match(r"[A-Za-z0-9]", line):
            pin = Requirement(line.rstrip("\\").strip())
            pins.setdefault(canonicalize_name(pin.name), []).append(pin)
    return pins


def test_conda_recipe_asks_for_what_the_wheel_asks_for():
    recipe = yaml.safe_load((REPOSITORY / "conda/recipe.yaml").read_text())
    build = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["build-system"]["requires"]
    assert PROJECT["requires-python"] == f">={recipe['context']['python_min']}"
    plain = [line.replace(">=", " >=") for line in PROJECT["dependencies"]]
    assert recipe["requirements"]["run"] == ["python >=${{ python_min }}", *plain]
    host = ["python ${{ python_min }}.*", "pip", *(line.replace(">=", " >=") for line in build)]
    assert recipe["requirements"]["host"] == host
    assert recipe["context"]["version"] == PROJECT["version"]
    assert recipe["about"]["summary"] == PROJECT["description"]
    assert recipe["about"]["license"] == PROJECT["license"]
    commands = [f"{name} = {target}" for name, target in PROJECT["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == commands


def test_the_wheel_holds_the_library_alone(tmp_path):
    """Build the wheel from tracked files, as from a clean checkout."""
    names = (path.relative_to(REPOSITORY).as_posix() for path in list_tracked())
    wanted = ("lib/", "setup.py", "pyproject.toml", "README.md", "LICENSE")
    copy_files((name for name in names if name.startswith(wanted)), tmp_path)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    call([*pip, "--wheel-dir", tmp_path, tmp_path], tmp_path)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if ".dist-info/" not in name}
        texts = [archive.read(f"privsvm/{name}__init__.pyi").decode() for name in ("", "methods/")]
    data = {
        "py.typed",
        "__init__.pyi",
        "methods/__init__.pyi",
        "release/documents/audits.json",
        *(f"release/documents/templates/{name}.jinja" for name in ("card.html", "card.txt", "dossier.md")),
        "release/training/utility.json",
    }
    modules = (REPOSITORY / "lib/privsvm").rglob("*.py")
    assert inside == {f"privsvm/{name}" for name in data} | {
        path.relative_to(REPOSITORY / "lib").as_posix() for path in modules
    }
    library, methods = (set(re.findall(r"^from [\w.]+ import (\w+) as \1$", text, re.MULTILINE)) for text in texts)
    assert (library, methods) == (set(privsvm.__all__) | set(privsvm.methods.__all__), set(privsvm.methods.__all__))
    for module, name in re.findall(r"^from ([\w.]+) import (\w+) as ", texts[0], re.MULTILINE):
        assert getattr(importlib.import_module(module), name) is getattr(privsvm, name)


def test_stubs_are_written_without_any_package():
    """An isolated build has setuptools alone."""
    code = "import privsvm.methods; print(len(privsvm.methods.__all__))"
    found = call([sys.executable, "-S", "-c", code], REPOSITORY, {"PYTHONPATH": str(REPOSITORY / "lib")})
    assert int(found) == len(privsvm.methods.__all__)


def test_every_requirement_is_locked_at_an_allowed_version():
    wanted = [(item, "") for item in PROJECT["dependencies"]]
    # S3 requires older packages than the workflow, in a separate environment.
    extras = {name: items for name, items in PROJECT["optional-dependencies"].items() if name != "s3"}
    wanted += [(item, MORE.get(name, "")) for name, extra in extras.items() for item in extra]
    for item, more in wanted:
        requirement = Requirement(item)
        pins = read_pins(LOCK + more).get(canonicalize_name(requirement.name))
        assert pins, f"{requirement.name} is missing in its lock; run `make lock`"
        for pin in pins:
            (version,) = pin.specifier
            assert requirement.specifier.contains(version.version), f"{requirement} against {pin}; run `make lock`"


@pytest.mark.parametrize("extra", ["dev", "bench", "slurm"])
def test_what_is_installed_on_top_replaces_nothing(extra):
    assert not read_pins().keys() & read_pins(MORE[extra]).keys()


@pytest.mark.parametrize("lock", [LOCK, *(MORE[extra] for extra in ("dev", "bench", "slurm"))])
def test_lock_has_hashes_and_no_address(lock):
    assert "://" not in lock
    assert not re.search(r"--(extra-)?index|--find-links|^-e|^-f", lock, re.MULTILINE)
    blocks = re.split(r"\n(?=[A-Za-z0-9])", lock)
    assert all("--hash=sha256:" in block for block in blocks if re.match(r"[A-Za-z0-9]", block))


def test_conda_installs_the_same_lock():
    environment = yaml.safe_load((REPOSITORY / "environment.yml").read_text())
    pip = next(item for item in environment["dependencies"] if isinstance(item, dict))["pip"]
    assert pip == ["-r requirements.lock"]
    (python,) = (item for item in environment["dependencies"] if isinstance(item, str) and item.startswith("python="))
    lowest = PROJECT["requires-python"].removeprefix(">=")
    assert python.removeprefix("python=") == lowest
    assert environment["channels"] == ["conda-forge", "nodefaults"]


def list_tracked() -> list[Path]:
    listing = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if listing.returncode:
        pytest.skip("not a git checkout")
    return [REPOSITORY / name for name in listing.stdout.splitlines() if (REPOSITORY / name).is_file()]


def test_no_data_and_no_machine_paths_are_tracked():
    for path in list_tracked():
        # The largest has every cell of the leaderboard.
        assert path.stat().st_size < 1_500_000, f"{path.name} is over 1.5 MB; data belongs to DVC"
        # data/own must exist before the first run, because DVC watches it.
        name = path.relative_to(REPOSITORY).as_posix()
        assert not name.startswith("data/") or name == "data/own/.gitignore"
        # Tests contain hostile paths.
        if "tests" not in path.relative_to(REPOSITORY).parts:
            text = path.read_text(encoding="utf-8", errors="ignore")
            assert not re.search(r"(^|[^\w.])/(home|root|work|Users)/\w", text), f"an absolute path in {path.name}"
            # PrivSVM is not on an index: such a command would install somebody else's package.
            assert not re.search(r"pip install ['\"]?privsvm\b", text), f"{path.name} installs privsvm by its name"


def test_no_pickle_and_no_eval_in_the_product():
    for room in ("lib", "stages"):
        for path in (REPOSITORY / room).rglob("*.py"):
            text = path.read_text()
            forbidden = r"import pickle|from joblib import|joblib\.(dump|load)|allow_pickle=True|\beval\(|\bexec\("
            assert not re.search(forbidden, text), path.name


POSIX_ONLY = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "termios", "tty"}


def list_unguarded(tree: ast.AST) -> set[str]:
    """Return the modules that importing the file needs."""
    modules: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            modules |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules.add((node.module or "").split(".")[0])
        elif isinstance(node, (ast.If, ast.ClassDef)):
            modules |= list_unguarded(node)
    return modules


def test_every_module_can_be_imported_without_posix():
    for path in (REPOSITORY / "lib").rglob("*.py"):
        assert not list_unguarded(ast.parse(path.read_text(encoding="utf-8"))) & POSIX_ONLY, path


def test_clean_environments_are_those_that_pyproject_allows():
    allowed = [Requirement(line) for line in PROJECT["dependencies"]]
    for oldest in map(Requirement, oldest_versions()):
        if oldest.name in {requirement.name for requirement in allowed}:
            (declared,) = (requirement for requirement in allowed if requirement.name == oldest.name)
            version = str(oldest.specifier).removeprefix("==").removesuffix(".*")
            assert version in declared.specifier
            assert f">={version}" == str(declared.specifier)
    assert any(
        ".".join(map(str, sys.version_info[:2])) in call([python, "--version"], REPOSITORY) for python in pythons()
    )


@pytest.mark.parametrize(
    ("packages", "code", "message"),
    [
        ([{"name": "a", "skip_reason": "not found"}], 0, "nothing was checked"),
        ([{"name": "a", "version": "1", "vulns": []}, {"name": "b", "skip_reason": "x"}], 0, "1 of 2 packages checked"),
        ([{"name": "a", "version": "1", "vulns": [{"id": "X-1", "fix_versions": ["2"]}]}], 1, "a 1: X-1; fixed in 2"),
    ],
)
def test_advisories_are_errors_and_their_absence_is_said(packages, code, message):
    exit_code, lines = report({"dependencies": packages})
    assert exit_code == code
    assert message in "\n".join(lines)
