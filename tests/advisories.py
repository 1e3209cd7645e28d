"""Ask pip-audit for published advisories on the versions of the two locks; a part of ``make lint``.

Ends with code 1 where there is one, and with 0, saying so, where no source of advisories can be reached.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

LOCKS = ["requirements.lock", "requirements-dev.lock"]
SECONDS = 300


def report(answer: Mapping[str, Any]) -> tuple[int, list[str]]:
    """Turn what pip-audit found into an exit code and lines."""
    packages = answer["dependencies"]
    lines = [
        f"{package['name']} {package['version']}: {found['id']}; "
        + (f"mended in {', '.join(found['fix_versions'])}: run `make lock`" if found["fix_versions"] else "not mended")
        for package in packages
        for found in package.get("vulns", ())
    ]
    asked = [package for package in packages if "skip_reason" not in package]
    if not asked:
        return 0, ["pip-audit: no source of advisories knows these packages from here, so nothing was checked"]
    lines.append(f"pip-audit: {len(asked)} of {len(packages)} packages checked, {len(lines)} advisories")
    return int(len(lines) > 1), lines


def main() -> None:
    """Print what is known, and end with its code."""
    command = [
        sys.executable,
        "-m",
        "pip_audit",
        *(f"--requirement={lock}" for lock in LOCKS),
        "--no-deps",
        "--disable-pip",
    ]
    command += ["--format", "json", "--progress-spinner", "off", "--timeout", "10"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
        code, lines = report(json.loads(done.stdout))
    except (subprocess.TimeoutExpired, ValueError, KeyError):
        code, lines = 0, ["pip-audit: no source of advisories can be reached from here, so nothing was checked"]
    print("\n".join(lines))
    sys.exit(code)


if __name__ == "__main__":
    main()
