"""Crafted models, cards and ledgers with right digests: one line each, in little memory and time.

Each run has a sample; ``PRIVSVM_FUZZ_CASES=1000`` has them all.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
# Of the processor, and of a whole process.
SECONDS, MEGABYTES = 2.0, 200


def test_crafted_files_are_one_line_each():
    cases = max(66, int(os.environ.get("PRIVSVM_FUZZ_CASES", "66")))
    command = [sys.executable, "-m", "tests.fuzz.crafted", str(cases)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == cases
    refused = [case for case in found if case["code"]]
    print(
        f"{len(found)} cases, {len(refused)} refused; at most {max(case['seconds'] for case in found):.2f} s and "
        f"{max(case['megabytes'] for case in found)} MB"
    )
    assert [case for case in refused if (case["code"], case["lines"]) != (1, 1)] == []
    assert [case for case in found if case["seconds"] > SECONDS or case["megabytes"] > MEGABYTES] == []
    # What is verified was changed in nothing that is shown as proved.
    verified = [case for case in found if not case["code"] and case["command"] == "verify"]
    assert [case for case in verified if "epsilon 2 per row, delta 1e-05" not in case["out"]] == []
    assert len(refused) > 0.5 * cases
