"""pyproject.toml, requirements.lock and environment.yml say the same, and nothing private is in the repository."""

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from setuptools import Distribution

from tests.advisories import report
from tests.wheel.check import call, oldest_versions, pythons

REPOSITORY = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
LOCK = (REPOSITORY / "requirements.lock").read_text()
# Extras that most people do not want: locked apart, the last one with other versions.
OTHER_LOCKS = {
    extra: (REPOSITORY / name).read_text()
    for extra, name in [
        ("bench", "bench/requirements.lock"), ("slurm", "profiles/slurm/requirements.lock"),
        ("s3", "tests/cluster/s3.lock"),
    ]
}  # fmt: skip


def locked(lock: str = LOCK) -> dict[str, list[Requirement]]:
    pins: dict[str, list[Requirement]] = {}
    for line in lock.splitlines():
        if re.match(r"[A-Za-z0-9]", line):
            pin = Requirement(line.rstrip("\\").strip())
            pins.setdefault(canonicalize_name(pin.name), []).append(pin)
    return pins


def test_conda_recipe_asks_for_what_the_wheel_asks_for():
    recipe = yaml.safe_load((REPOSITORY / "conda/recipe.yaml").read_text())
    build = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["build-system"]["requires"]
    python = f"python {PROJECT['requires-python']}"
    plain = [line.replace(">=", " >=") for line in PROJECT["dependencies"]]
    assert recipe["requirements"]["run"] == [python, *plain]
    assert recipe["requirements"]["host"] == [python, "pip", *(line.replace(">=", " >=") for line in build)]
    assert recipe["context"]["version"] == PROJECT["version"]
    assert recipe["about"]["summary"] == PROJECT["description"]
    assert recipe["about"]["license"] == PROJECT["license"]
    commands = [f"{name} = {target}" for name, target in PROJECT["scripts"].items()]
    assert recipe["build"]["python"]["entry_points"] == commands


def test_the_wheel_holds_the_library_alone(monkeypatch):
    monkeypatch.chdir(REPOSITORY)
    # What `pip wheel` packs: modules and package data.
    distribution = Distribution({"script_name": "setup.py", "include_package_data": False})
    distribution.parse_config_files(["pyproject.toml"])
    build = distribution.get_command_obj("build_py")
    build.ensure_finalized()
    files = [file for *_, file in build.find_all_modules()]
    files += [f"{folder}/{name}" for _, folder, _, names in build.data_files for name in names]
    inside = {Path(file).relative_to("lib/privsvm").as_posix() for file in files}
    assert {"py.typed", "data/catalogue.json", "reproduction/templates/index.html.jinja"} <= inside
    engine = {Path(name).stem for name in inside if name.startswith("reproduction/") and name.endswith(".py")}
    assert engine == {path.stem for path in (REPOSITORY / "lib/privsvm/reproduction").glob("*.py")}
    papers = {path.parent.name for path in (REPOSITORY / "reproduce").glob("*/experiments.py")}
    assert len(papers) >= 5
    assert all(package.split(".")[0] == "privsvm" for package in distribution.packages)
    folders = {part for name in inside for part in Path(name).parts[:-1]}
    assert not folders & {"reproduce", *papers}
    names = {Path(name).name for name in inside}
    assert not names & {"published.csv", *(f"{paper}_runs.py" for paper in papers)}


def test_every_requirement_is_locked_at_an_allowed_version():
    wanted = [(item, LOCK) for item in PROJECT["dependencies"]]
    for name, extra in PROJECT["optional-dependencies"].items():
        # A few machines' own, which brings its versions along.
        if name == "dask":
            continue
        wanted += [(item, OTHER_LOCKS.get(name, LOCK)) for item in extra]
    for item, lock in wanted:
        requirement = Requirement(item)
        found = locked(lock).get(canonicalize_name(requirement.name))
        assert found, f"{requirement.name} is missing in its lock; run `make lock`"
        for pin in found:
            (version,) = pin.specifier
            assert requirement.specifier.contains(version.version), f"{requirement} against {pin}; run `make lock`"


@pytest.mark.parametrize("extra", ["bench", "slurm"])
def test_extras_that_are_installed_beside_the_product_share_every_pin_with_it(extra):
    pins, peers = locked(), locked(OTHER_LOCKS[extra])
    assert {Requirement(item).name for item in PROJECT["optional-dependencies"][extra]} <= set(peers)
    for name, found in peers.items():
        for pin in found:
            assert name not in pins or pin.specifier in [own.specifier for own in pins[name]], f"{pin}; run `make lock`"


@pytest.mark.parametrize("lock", [LOCK, *OTHER_LOCKS.values()], ids=["product", *OTHER_LOCKS])
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


def tracked() -> list[Path]:
    listing = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if listing.returncode:
        pytest.skip("not a git checkout")
    return [REPOSITORY / name for name in listing.stdout.splitlines() if (REPOSITORY / name).is_file()]


def test_no_data_and_no_machine_paths_are_tracked():
    for path in tracked():
        assert path.stat().st_size < 1_000_000, f"{path.name} is over 1 MB; data belongs to DVC"
        # Folders that DVC watches must be there before anything has run.
        name = path.relative_to(REPOSITORY).as_posix()
        assert not name.startswith("data/") or name == "data/own/.gitignore"
        # Tests hold hostile paths on purpose.
        if path.suffix != ".png" and "tests" not in path.parts:
            text = path.read_text(encoding="utf-8")
            assert not re.search(r"(^|[^\w.])/(home|root|work|Users)/\w", text), f"an absolute path in {path.name}"


def test_no_pickle_and_no_eval_in_the_product():
    for room in ("lib", "stages"):
        for path in (REPOSITORY / room).rglob("*.py"):
            text = path.read_text()
            forbidden = r"import pickle|(import|from) joblib|joblib\.(dump|load)|allow_pickle=True|\beval\(|\bexec\("
            assert not re.search(forbidden, text), path.name


def test_servers_bind_to_the_loopback_address():
    assert "0.0.0.0" not in "".join(path.read_text() for path in (REPOSITORY / "stages").glob("*.py"))
    assert '"127.0.0.1"' in (REPOSITORY / "stages" / "ui.py").read_text()


# What a Python says of its build, and of its version. Only the system's has the module to make environments with.
PYTHON = """#!/bin/sh
case "$2 $0" in
    *CONFIG_ARGS*) exit {plain} ;;
    *ensurepip*python3) exit 1 ;;
    *version_info*) echo "{version}" ;;
esac
"""


@pytest.mark.parametrize(
    ("plain", "version", "system", "chosen"),
    [
        (1, "(3, 11)", "(3, 11)", "system"),
        # Another version only if it is asked for.
        (1, "(3, 12)", "(3, 11)", "python3"),
        # No module to make environments with, or no such Python.
        (1, "(3, 11)", "", "python3"),
        (1, "(3, 11)", None, "python3"),
        (0, "(3, 11)", "(3, 11)", "python3"),
    ],
)
def test_of_two_builds_of_a_python_the_environment_gets_the_faster_one(tmp_path, plain, version, system, chosen):
    builds = {"python3": (plain, version)} | ({} if system is None else {"system": (1, system)})
    for name, (build, says) in builds.items():
        (tmp_path / name).write_text(PYTHON.format(plain=build, version=says))
        (tmp_path / name).chmod(0o755)
    shutil.copy(REPOSITORY / "Makefile", tmp_path)
    (tmp_path / "requirements.lock").touch()
    (tmp_path / "pyproject.toml").touch()

    def made_with(*arguments):
        own = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
        known = {name: value for name, value in os.environ.items() if name not in ("PYTHON", "MAKEFLAGS")} | own
        command = ["make", "--dry-run", ".venv/ready", f"SYSTEM_PYTHON={tmp_path / 'system'}", *arguments]
        printed = subprocess.run(command, cwd=tmp_path, env=known, capture_output=True, text=True, check=True).stdout
        return re.search(r"^(.*) -m venv \.venv$", printed, re.MULTILINE)[1]

    assert Path(made_with()).name == chosen
    assert made_with("PYTHON=python3.12") == "python3.12"


def test_what_a_user_may_choose_of_a_target_has_no_other_meaning_in_the_makefile():
    text = (REPOSITORY / "Makefile").read_text()
    choices = set(re.findall(r"\b([A-Z_]{2,})=", " ".join(re.findall(r"^[a-z0-9-]+:.*## (.*)", text, re.MULTILINE))))
    assert {"VERSION", "PAPER", "KILLS"} <= choices
    assert not choices & set(re.findall(r"^(?:export )?([A-Z_]+) *[:?+]?=", text, re.MULTILINE))


def test_links_between_the_pages_exist():
    pages = [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_the_hooks_of_commits_are_checks_of_make_lint_and_need_no_network():
    config = yaml.safe_load((REPOSITORY / ".pre-commit-config.yaml").read_text())
    (repository,) = config["repos"]
    assert repository["repo"] == "local"
    recipe = re.search(r"^lint:.*\n((?:\t.*\n)+)", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)[1]
    checks = {line.split()[0] for line in recipe.splitlines()}
    assert {hook["entry"].split()[0] for hook in repository["hooks"]} == checks - {"snakemake", "python"}
    assert {hook["language"] for hook in repository["hooks"]} == {"system"}


POSIX_ONLY = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "termios", "tty"}


def unguarded(tree: ast.AST) -> set[str]:
    """Modules that an import of the file needs, outside of functions and of `try`."""
    found: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            found |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").split(".")[0])
        elif isinstance(node, (ast.If, ast.ClassDef)):
            found |= unguarded(node)
    return found


def test_every_module_can_be_imported_without_posix():
    for path in (REPOSITORY / "lib").rglob("*.py"):
        assert not unguarded(ast.parse(path.read_text(encoding="utf-8"))) & POSIX_ONLY, path


def test_clean_environments_are_those_that_pyproject_allows():
    allowed = [Requirement(line) for line in PROJECT["dependencies"]]
    for oldest in map(Requirement, oldest_versions()):
        if oldest.name in {requirement.name for requirement in allowed}:
            (declared,) = (requirement for requirement in allowed if requirement.name == oldest.name)
            version = str(oldest.specifier).removeprefix("==").removesuffix(".*")
            assert version in declared.specifier
            assert f">={version}" == str(declared.specifier)
    assert any(
        ".".join(map(str, sys.version_info[:2])) in call([place, "--version"], REPOSITORY) for place in pythons()
    )


@pytest.mark.parametrize(
    ("packages", "code", "said"),
    [
        ([{"name": "a", "skip_reason": "not found"}], 0, "nothing was checked"),
        ([{"name": "a", "version": "1", "vulns": []}, {"name": "b", "skip_reason": "x"}], 0, "1 of 2 packages checked"),
        ([{"name": "a", "version": "1", "vulns": [{"id": "X-1", "fix_versions": ["2"]}]}], 1, "a 1: X-1; mended in 2"),
    ],
)
def test_advisories_are_errors_and_their_absence_is_said(packages, code, said):
    found, lines = report({"dependencies": packages})
    assert found == code
    assert said in "\n".join(lines)
