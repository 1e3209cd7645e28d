"""Prepare `.venv` for `make run`; `dev` adds packages for tests, checks and pages, `ui` those for MLflow's page.

`look` prepares nothing, and says so if there is no environment yet.

An environment lies in `.cache/venvs`, named by a digest of its requirements, and `.venv` links to the current one. The
link moves when the new environment is complete, so that a running workflow keeps its packages. `make clean` removes old
environments. Packages of the user's own, listed in `requirements-own.txt`, go into every environment.

This script imports the standard library alone, because it runs before any installation.
"""

import contextlib
import fcntl
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

if sys.version_info < (3, 11) or importlib.util.find_spec("ensurepip") is None:
    sys.exit(f"error: {sys.executable} is not Python 3.11 or newer with venv; run make PYTHON=<path of such a one>")

import tomllib
import venv

STARTED = time.monotonic()
ROOT = Path(__file__).resolve().parents[1]
FOLDER, LINK = ROOT / ".cache/venvs", ROOT / ".venv"
LOCK, DEV_LOCK = ROOT / "requirements.lock", ROOT / "requirements-dev.lock"
ALL = ["--require-hashes", "-r", LOCK, "-r", DEV_LOCK]
# Packages of the user's methods, as for pip; packages of the locks keep their versions.
OWN = ROOT / "requirements-own.txt"
# Requirements of each group; uv reads versions and hashes of constraints too.
GROUPS = {"run": [], "ui": ["mlflow", "--constraints", LOCK, "--constraints", DEV_LOCK], "dev": ALL}


def digest(*texts):
    """Return a short name for texts."""
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


def say(text):
    """Print one line of progress with the seconds so far."""
    print(f"{time.monotonic() - STARTED:4.0f} s  {text}", flush=True)


def call(*command):
    """Run a command that inherits the lock and so outlives this process."""
    variables = {**os.environ, "UV_COMPILE_BYTECODE": "1"}
    # Jobs start three times slower without bytecode.
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    subprocess.run(command, cwd=ROOT, check=True, close_fds=False, env=variables)


def build(environment, lock, group):
    """Install the run's packages if missing, then the group's."""
    python = environment / "bin/python"
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    uv = [environment / "bin/uv", "pip", "install", "--quiet", "--python", python]

    def install(requirements, by_pip):
        try:
            call(*uv, *requirements)
        except (OSError, subprocess.CalledProcessError):
            call(*pip, *by_pip)

    if not (environment / "ready").exists():
        print(f"Preparing .venv with {sys.executable} (one to three minutes, once)", flush=True)
        say("1 of 4  a new environment")
        # Remove the leftovers of a killed preparation.
        shutil.rmtree(environment, ignore_errors=True)
        venv.create(environment, with_pip=True)
        (environment / "uv.lock").write_text(re.search(r"^uv==(.*\\\n)*.*", lock, re.MULTILINE)[0], encoding="utf-8")
        call(*pip, "--require-hashes", "--no-deps", "-r", environment / "uv.lock")
        say(f"2 of 4  {lock.count('==')} packages of requirements.lock (1.2 GB)")
        install(ALL[:3], ALL[:3])
        say("3 of 4  PrivSVM itself")
        call(*pip, "--no-deps", "--no-build-isolation", "--editable", ROOT)
        (environment / "ready").touch()
    if GROUPS[group]:
        print(f"Adding to .venv what `make {group}` needs" if group == "ui" else "Adding tools to .venv", flush=True)
        install(GROUPS[group], ALL)
    if OWN.exists():
        print(f"Installing {OWN.name}", flush=True)
        own = ["-r", OWN, "--constraint", LOCK, "--constraint", DEV_LOCK]
        install(own, own)


def main(group="run"):
    """Make and link the missing parts, one process at a time."""
    if group == "look":
        sys.exit(None if (LINK / "ready").exists() else "error: no environment yet: run make run")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    declared = json.dumps([project["build-system"], project["project"], project["tool"]["setuptools"]])
    lock = LOCK.read_text(encoding="utf-8")
    environment = FOLDER / digest(lock, declared, sys.version, sys.base_prefix, str(ROOT))
    read = [DEV_LOCK] * bool(GROUPS[group]) + [OWN] * OWN.exists()
    added, content = environment / f"ready-{group}", digest(*(path.read_text(encoding="utf-8") for path in read))

    def is_complete():
        return added.exists() and added.read_text() == content

    def is_linked():
        return LINK.exists() and LINK.samefile(environment)

    if is_complete() and is_linked():
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    with open(FOLDER / "lock", "w") as file:
        os.set_inheritable(file.fileno(), True)
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_EX)
        if not is_complete():
            build(environment, lock, group)
            added.write_text(content)
        if not is_linked():
            if LINK.is_dir() and not LINK.is_symlink():
                LINK.rename(FOLDER / f"former-{os.getpid()}")
            (FOLDER / "link").unlink(missing_ok=True)
            (FOLDER / "link").symlink_to(os.path.relpath(environment, ROOT))
            (FOLDER / "link").replace(LINK)
            say("4 of 4  compiling what jobs run")
            call(LINK / "bin/python", "-m", "privsvm.warm_up")
            say("ready")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except subprocess.CalledProcessError as error:
        sys.exit(f"error: {Path(error.cmd[0]).name} ended with {error.returncode}: read what it said, then start again")
