"""Build and check the packages, install the wheel into clean environments and release a model there.

Every installed Python is tried with the oldest versions that pyproject.toml allows, and with the newest ones.
"""

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
VERSIONS = ("oldest", "newest")

SCHEMA = """\
name: wards
label: died
classes: ["no", "yes"]
prescaled: false
columns:
  age: {bounds: [0, 100], fill: 50}
  ward: {categories: [a, b]}
"""
ROWS = "age,ward,died\n" + "".join(f"{i % 100},{'ab'[i % 2]},{'yes' if i % 100 > 60 else 'no'}\n" for i in range(400))
# Modules that Windows lacks.
ABSENT = ("fcntl", "grp", "pwd", "resource", "termios")
PROGRAM = f"""
import sys
for name in {ABSENT!r}:
    sys.modules[name] = None
import numpy as np, sklearn, privsvm
from sklearn.pipeline import make_pipeline
for name in [*privsvm.__all__, *privsvm.methods.__all__]:
    try:
        getattr(privsvm, name)
    except ImportError as error:
        # Linear programs.
        assert "pip install highspy" in str(error), error
X, y = np.random.default_rng(0).uniform(-1, 1, size=(200, 3)), np.arange(200) % 2
X[:, 0] = np.where(y, 0.5, -0.5)
model = privsvm.make_private_pipeline(privsvm.SVMClassifier(C=1.0)).fit(X, y)
assert (model.predict(X) == y).all()
private = privsvm.PrivateLinearClassifier(classes=[0, 1], epsilon=2.0, n_rows=200).fit(X, y)
assert private.guarantee_.status == "proved", private.guarantee_
assert str(privsvm.load("model").predict({{"age": [90], "ward": ["a"]}})[0]) in ("no", "yes")
print(f"scikit-learn {{sklearn.__version__}}, NumPy {{np.__version__}}")
"""
AUDITED = """
import numpy as np
class Count:
    epsilon = 1.0
    def fit(self, X, y):
        self.count_ = y.sum() + np.random.default_rng().laplace()
        return self
    def predict(self, X):
        return np.zeros(len(X))
def test_epsilon(privsvm_audit):
    privsvm_audit(Count(), draws=100)
"""
COMMANDS = (
    ("schema", "wards.csv", "--label", "died"),
    ("inspect", "wards.csv", "--schema", "schema.yaml"),
    ("release", "--data", "wards.csv", "--schema", "schema.yaml", "--epsilon=1", "--out", "model", "--sign", "k.pem"),
    ("verify", "model", "--key", "k.pub"),
    ("card", "model"),
    ("predict", "model", "wards.csv"),
    ("ledger",),
)  # fmt: skip


class FailedError(Exception):
    """A command failed."""


def call(command: Sequence[str | Path], folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """Run a command; return its output, or raise an error with it."""
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if result.returncode:
        shown = " ".join(map(str, command))[:200]
        raise FailedError(f"{shown}\n{result.stdout}{result.stderr}".rstrip())
    return result.stdout


def pythons() -> list[str]:
    """List interpreters from 3.11 on, one per version."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    names = [shutil.which(f"python3.{minor}") for minor in range(11, 20)]
    interpreters: dict[tuple[int, int], str] = {}
    for path in (sys.executable, *filter(None, names), *map(str, sorted(pyenv.glob("3.*/bin/python")))):
        with contextlib.suppress(FailedError):
            version = call([path, "-c", "import sys; print(*sys.version_info[:2])"], REPOSITORY).split()
            interpreters.setdefault((int(version[0]), int(version[1])), path)
    return [path for version, path in sorted(interpreters.items()) if version >= (3, 11)]


def build_wheel(folder: Path) -> Path:
    """Build the source distribution and the wheel; check their metadata and contents."""
    sources, built = folder / "sources", folder / "built"
    sources.mkdir()
    # Build from a copy, because building writes into the tree.
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, sources / name)
    shutil.copytree(REPOSITORY / "lib", sources / "lib", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    call(["uv", "build", "--quiet", "--out-dir", built, sources], folder)
    (wheel,), (archive,) = built.glob("*.whl"), built.glob("*.tar.gz")
    call(["uv", "tool", "run", "--quiet", "twine", "check", "--strict", wheel, archive], folder)
    call(["uv", "tool", "run", "--quiet", "check-wheel-contents", wheel], folder)
    return wheel


def contents(wheel: Path) -> str:
    """Check that a wheel holds the library alone; return its size and its lines of Python."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        folders = {name.partition("/")[0] for name in names}
        if len(folders) != 2 or "privsvm" not in folders:
            raise FailedError(f"{wheel.name}: holds {', '.join(sorted(folders))}")
        lines = sum(archive.read(name).count(b"\n") for name in names if name.endswith(".py"))
    return f"{wheel.stat().st_size / 1e3:.0f} kB, {len(names)} files, {lines} lines of Python"


def write_inputs(folder: Path) -> None:
    """Write a table, its schema and a pair of keys."""
    (folder / "wards.csv").write_text(ROWS)
    (folder / "schema.yaml").write_text(SCHEMA)
    call(["openssl", "genpkey", "-algorithm", "ed25519", "-out", "k.pem"], folder)
    call(["openssl", "pkey", "-in", "k.pem", "-pubout", "-out", "k.pub"], folder)


def use(python: str | Path, folder: Path, environment: Mapping[str, str]) -> str:
    """Release a model with an interpreter that has the wheel; return its versions."""
    write_inputs(folder)
    for arguments in COMMANDS:
        call([python, "-I", "-m", "privsvm", *arguments], folder, environment)
    # The wheel brings the fixture.
    (folder / "test_audited.py").write_text(AUDITED)
    call([python, "-I", "-m", "pytest", "-q", "test_audited.py"], folder, environment)
    call([python, "-I", REPOSITORY / "tests/wheel/use.py"], folder, environment)
    return call([python, "-I", "-c", PROGRAM], folder, environment).strip()


def oldest_versions() -> list[str]:
    """List requirements that pin the oldest minor versions of pyproject.toml."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = [*project["dependencies"], *project["optional-dependencies"]["sign"]]
    return [f"{line.replace('>=', '==')}.*" for line in declared]


def check(python: str, versions: str, wheel: Path) -> str:
    """Make an environment, install and use the wheel; return the versions."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        interpreter = folder / "environment" / ("Scripts" if os.name == "nt" else "bin") / "python"
        call(["uv", "venv", "--quiet", "--python", python, "environment"], folder)
        requirements = [f"privsvm[sign] @ {wheel.as_uri()}", "pytest"]
        install = ["uv", "pip", "install", "--quiet", "--python", interpreter, *requirements]
        call([*install, *(oldest_versions() if versions == "oldest" else [])], folder)
        variables = {name: value for name, value in os.environ.items() if not name.startswith(("PRIVSVM", "PYTHON"))}
        environment = {
            **variables,
            "PRIVSVM_LEDGER": str(folder / "ledger.jsonl"),
            "NUMBA_CACHE_DIR": str(folder / "numba"),
        }
        return use(interpreter, folder, environment)


def main() -> None:
    """Check every environment; exit with 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=VERSIONS, help="one of the two")
    parser.add_argument("--build", action="store_true", help="build and check the packages alone")
    options = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        wheel = build_wheel(Path(folder))
        print(f"{wheel.name}: {contents(wheel)}", flush=True)
        for python in [] if options.build else pythons():
            for versions in [options.only] if options.only else VERSIONS:
                try:
                    outcome = check(python, versions, wheel)
                except FailedError as error:
                    failed, outcome = True, f"failed: {error}"
                print(f"{python}, {versions}: {outcome}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
