"""Crafted models, cards and ledgers with valid digests end with one line, in little memory and with little work.

Each run has a sample; ``PRIVSVM_FUZZ_CASES=1000`` runs more.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
# Limits of the calls of functions, of Python and of C, and of the memory of a process.
CALLS, MEGABYTES = 10_000_000, 200


def test_crafted_files_are_one_line_each():
    cases = max(66, int(os.environ.get("PRIVSVM_FUZZ_CASES", "66")))
    command = [sys.executable, "-m", "tests.fuzz.crafted", str(cases)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(outcomes) == cases
    refused = [case for case in outcomes if case["code"]]
    print(
        f"{len(outcomes)} cases, {len(refused)} refused; at most {max(case['calls'] for case in outcomes)} calls and "
        f"{max(case['megabytes'] for case in outcomes)} MB"
    )
    assert [case for case in refused if (case["code"], case["lines"]) != (1, 1)] == []
    assert [case for case in outcomes if case["calls"] > CALLS or case["megabytes"] > MEGABYTES] == []
    # Files that verify show the unchanged proved epsilon.
    verified = [case for case in outcomes if not case["code"] and case["command"] == "verify"]
    assert [case for case in verified if "epsilon 2 per row, delta 1e-05" not in case["out"]] == []
    assert len(refused) > 0.5 * cases
