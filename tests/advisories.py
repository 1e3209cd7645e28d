"""Ask pip-audit for advisories on the versions of the two locks; ``make lint`` runs this.

The exit code is 1 if there is one, and 0 with a note if no source of advisories can be reached.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

LOCKS = ["requirements.lock", "requirements-dev.lock"]
SECONDS = 600


def report(answer: Mapping[str, Any]) -> tuple[int, list[str]]:
    """Turn the answer of pip-audit into an exit code and lines."""
    packages = answer["dependencies"]
    lines = [
        f"{package['name']} {package['version']}: {advisory['id']}; "
        + (f"fixed in {', '.join(advisory['fix_versions'])}: run `make lock`" if advisory["fix_versions"] else "no fix")
        for package in packages
        for advisory in package.get("vulns", ())
    ]
    checked = [package for package in packages if "skip_reason" not in package]
    if not checked:
        return 0, ["pip-audit: no source of advisories knows these packages from here, so nothing was checked"]
    lines.append(f"pip-audit: {len(checked)} of {len(packages)} packages checked, {len(lines)} advisories")
    return int(len(lines) > 1), lines


def main() -> None:
    """Print the advisories and exit."""
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
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS)
        code, lines = report(json.loads(result.stdout))
    except (subprocess.TimeoutExpired, ValueError, KeyError):
        code, lines = 0, ["pip-audit: no source of advisories can be reached from here, so nothing was checked"]
    print("\n".join(lines))
    sys.exit(code)


if __name__ == "__main__":
    main()
