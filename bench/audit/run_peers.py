"""Audit private estimators of other packages, each in an environment of its own: ``make audit-peers``.

`privsvm.audit` needs NumPy and SciPy alone, so that it runs in the environment of the audited package. Writes
reports/audit_peers.csv and its table in docs/audits.md. `--only NAME ...` audits some again and keeps the other rows.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import importlib.metadata
import json
import os
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from peer_environments import peer_python
from sections import csv_text, markdown_table, with_section

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CSV, PAGE = ROOT / "reports" / "audit_peers.csv", ROOT / "docs" / "audits.md"
BEGIN, END = "<!-- peers: written by bench/audit/run_peers.py -->", "<!-- end of peers -->"
# Environments of the files in peers/.
ENVIRONMENTS = {
    "autodp": "mechanisms",
    "datasynthesizer": "mechanisms",
    "diffprivlib": "diffprivlib",
    "dp_accounting": "mechanisms",
    "interpret": "interpret",
    "jax_privacy": "jax_privacy",
    "mbi": "mbi",
    "opacus": "opacus",
    "opendp": "mechanisms",
    "pipeline_dp": "mechanisms",
    "published": "mechanisms",
    "pure_ldp": "mechanisms",
    "pure_ldp_earlier": "earlier",
    "python_dp": "mechanisms",
    "sacroml": "sacroml",
    "smartnoise_sql": "smartnoise",
    "smartnoise_synth": "smartnoise",
    "smartnoise_synth_earlier": "earlier",
}


def run_cases(name: str) -> None:
    """Audit the cases of a file in this process, and print a line of JSON for each."""
    sys.path[:0] = [str(ROOT / "lib"), str(HERE / "peers")]
    from privsvm.auditing.estimators import audit

    warnings.simplefilter("ignore")
    module: Any = importlib.import_module(f"on_{name}")
    for case in module.CASES:
        result = audit(case.make, **{"epsilon": 1.0, "draws": case.draws, **case.options})
        best = max(result.bounds, key=lambda bound: bound.epsilon)
        row = {
            "package": module.PACKAGE, "version": importlib.metadata.version(module.PACKAGE), "case": case.name,
            "relation": result.relation, "epsilon": f"{result.epsilon:g}", "delta": f"{result.delta:g}",
            "draws": result.draws, "low": f"{best.epsilon:.4g}", "sure": f"{best.sure:.4g}",
            "ceiling": f"{best.ceiling:.4g}", "refuted": result.refuted, "expected": bool(case.source),
            "source": case.source, "pair": result.pair.words,
        }  # fmt: skip
        print(json.dumps(row), flush=True)


def audit_package(name: str) -> list[dict[str, Any]]:
    """Audit the cases of a file in its environment; print verdicts as they come."""
    rows = []
    command = [peer_python(ENVIRONMENTS[name]), __file__, "--here", name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            # Some packages print.
            if line.startswith('{"package"'):
                rows.append(json.loads(line))
                print(f"{name}: {rows[-1]['case']}: refuted: {rows[-1]['refuted']}, at least {rows[-1]['low']}")
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return rows


def write_results(rows: list[dict[str, Any]]) -> None:
    """Write CSV and table."""
    CSV.write_text(csv_text(list(rows[0]), rows), encoding="utf-8")
    PAGE.write_text(with_section(PAGE.read_text(encoding="utf-8"), BEGIN, END, tables(rows)), encoding="utf-8")


def tables(rows: list[dict[str, Any]]) -> str:
    """Write a table of refuted claims with their sources, and one of the other claims."""
    refuted, others = [], []
    for row in rows:
        first = [f"{row['package']} {row['version']}", row["case"]]
        if str(row["refuted"]) == "True":
            refuted.append([*first, f"**{row['low']}**", row["source"] or "unexpected", row["pair"]])
        else:
            others.append([*first, f"{int(row['draws']):,}", row["low"], row["ceiling"]])
    return "\n\n".join([
        markdown_table(["package", "what", "epsilon is at least", "why", "the two tables"], refuted),
        markdown_table(["package", "what", "draws", "epsilon is at least", "ceiling"], others),
    ])  # fmt: skip


def main() -> int:
    """Audit all packages; return 1 if one cannot be had, or a verdict differs from the expected one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=ENVIRONMENTS, default=list(ENVIRONMENTS), metavar="NAME")
    parser.add_argument("--here", choices=ENVIRONMENTS, metavar="NAME", help="audit in this environment and print rows")
    options = parser.parse_args()
    if options.here:
        run_cases(options.here)
        return 0
    with CSV.open(encoding="utf-8", newline="") as file:
        rows: list[dict[str, Any]] = list(csv.DictReader(file))
    failed = False
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        jobs = {name: pool.submit(audit_package, name) for name in options.only}
        for name, job in jobs.items():
            try:
                found = job.result()
            except subprocess.CalledProcessError as error:
                print(f"{name}: not audited: {error}", file=sys.stderr)
                failed = True
                continue
            made = {(row["package"], row["version"]) for row in found}
            rows = [row for row in rows if (row["package"], row["version"]) not in made] + found
            rows.sort(key=lambda row: (row["package"], row["version"]))
            write_results(rows)
    return int(failed or any(str(row["refuted"]) != str(row["expected"]) for row in rows))


if __name__ == "__main__":
    sys.exit(main())
