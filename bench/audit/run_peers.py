"""Audit private estimators of other packages, each in its environment: ``python bench/audit/run_peers.py``.

`privsvm.audit` needs NumPy and SciPy alone, so that it runs in the environment of the audited package. Writes
reports/audit_peers.csv and its table in docs/audits.md.
"""

from __future__ import annotations

import csv
import importlib
import importlib.metadata
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from peer_environments import peer_python

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CSV, PAGE = ROOT / "reports" / "audit_peers.csv", ROOT / "docs" / "audits.md"
BEGIN, END = "<!-- peers: written by bench/audit/run_peers.py -->", "<!-- end of peers -->"
PACKAGES = ("diffprivlib", "sacroml")
FIELDS = ("package", "version", "case", "relation", "epsilon", "draws", "low", "sure", "ceiling", "refuted",
          "expected", "pair")  # fmt: skip


def run_cases(name: str) -> None:
    """Audit the cases of a package in this process, and print a line of JSON for each."""
    sys.path[:0] = [str(ROOT / "lib"), str(HERE / "peers")]
    from privsvm.auditing.estimators import audit

    cases: Any = importlib.import_module(f"on_{name}")
    with cases.quiet():
        for case, make, rows, draws, expected in cases.CASES:
            result = audit(make, *(rows or ()), draws=draws, epsilon=1.0)
            best = max(result.bounds, key=lambda bound: bound.epsilon)
            row = {
                "package": name, "version": importlib.metadata.version(name), "case": case,
                "relation": result.relation, "epsilon": f"{result.epsilon:g}", "draws": result.draws,
                "low": f"{best.epsilon:.4g}", "sure": f"{best.sure:.4g}", "ceiling": f"{best.ceiling:.4g}",
                "refuted": result.refuted, "expected": expected, "pair": result.pair.words,
            }  # fmt: skip
            print(json.dumps(row), flush=True)


def main() -> int:
    """Audit all packages; return 1 if a verdict differs from the expected one."""
    rows: list[dict[str, Any]] = []
    started = [
        (name, subprocess.Popen([peer_python(name), __file__, name], stdout=subprocess.PIPE, text=True))
        for name in PACKAGES
    ]
    for name, process in started:
        with process:
            assert process.stdout is not None
            for line in process.stdout:
                rows.append(json.loads(line))
                print(f"{name}: {rows[-1]['case']}: refuted: {rows[-1]['refuted']}, at least {rows[-1]['low']}")
        if process.returncode:
            return 1
    text = io.StringIO()
    writer = csv.DictWriter(text, FIELDS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    CSV.write_text(text.getvalue(), encoding="utf-8")
    lines = [
        "| package | what | draws | epsilon is at least | ceiling | refuted | the two tables |",
        "|" + " --- |" * 7,
    ]
    lines += [
        f"| {row['package']} {row['version']} | {row['case']} | {row['draws']:,} | {row['low']} | {row['ceiling']} | "
        f"{'**yes**' if row['refuted'] else 'no'} | {row['pair']} |"
        for row in rows
    ]
    page = PAGE.read_text(encoding="utf-8")
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{after}", encoding="utf-8")
    return int(any(row["refuted"] != row["expected"] for row in rows))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        run_cases(sys.argv[1])
    else:
        sys.exit(main())
