"""Audit every private method for all its relations.

`make audit` writes reports/audits.csv and the table of docs/auditing.md.
Every row is one bound of one cell. Methods whose steps may draw rows are audited with batches too.
"""

from __future__ import annotations

import argparse
import csv
import io
import multiprocessing
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "lib"))

from privsvm.auditing.methods import audit_method, is_audited
from privsvm.files import write_text
from privsvm.pipeline.auditing import audit_record
from privsvm.pipeline.methods import estimator_class, implementations
from privsvm.records import AuditRecord

EPSILONS = (0.5, 1.0, 4.0, 8.0)
DELTA = 1e-5
CSV = Path("reports/audits.csv")
PAGE = Path("docs/auditing.md")
HEAD = ("method", "variant", "status", "relation", "epsilon", "delta", "proved", "draws", "bound", "low", "sure",
        "estimate", "ceiling", "refuted", "pair")  # fmt: skip
BEGIN, END = "<!-- table: written by make audit -->", "<!-- end of table -->"

# What else is audited of methods that have such a parameter.
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "scaling=centre": {"scaling": "centre"},
    "batches of 32 of 256 rows": {"batch_size": 32, "epochs": 4},
}


def jobs() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """List implementation, variant and parameters of every audit."""
    for name in implementations():
        declared = getattr(estimator_class(name), "declared", {})
        if not is_audited(estimator_class(name)):
            continue
        # Whoever audits a claim consents to it.
        common = {"allow_unsound": True} if "allow_unsound" in declared else {}
        yield name, "", common
        for variant, changes in VARIANTS.items():
            if all(key in declared for key in changes):
                yield name, variant, {**common, **changes}


def run(job: tuple[str, str, dict[str, Any], int]) -> tuple[str, AuditRecord | str]:
    """Audit one method; return its record, or why there is none."""
    name, variant, parameters, draws = job
    try:
        cells = audit_method(
            estimator_class(name), parameters, epsilons=EPSILONS, delta=DELTA, draws=draws, key=f"{name} {variant}"
        )
        return variant, audit_record(name, name, cells, parameters)
    except ValueError as error:
        return variant, f"{name} {variant}: {error}"


def rows_of(variant: str, record: AuditRecord) -> Iterator[dict[str, Any]]:
    """One row for each bound of each cell."""
    for cell in record.cells:
        for bound in cell.bounds:
            yield {
                "method": record.method, "variant": variant, "status": cell.status, "relation": cell.relation,
                "epsilon": f"{cell.epsilon:g}", "delta": f"{cell.delta:g}", "proved": f"{cell.epsilon_proved:.6g}",
                "draws": cell.draws, "bound": bound.kind, "low": f"{bound.epsilon:.4g}", "sure": f"{bound.sure:.4g}",
                "estimate": f"{bound.estimate:.4g}", "ceiling": f"{bound.ceiling:.4g}", "refuted": cell.refuted,
                "pair": cell.pair,
            }  # fmt: skip


def table(rows: list[dict[str, str]]) -> str:
    """Write the largest bound of each cell as a table, and whether it is refuted."""
    epsilons = sorted({row["epsilon"] for row in rows}, key=float)
    head = ["method", "neighbours", "draws", *(f"stated {epsilon}" for epsilon in epsilons)]
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    names = dict.fromkeys((row["status"] != "proved", row["method"], row["variant"], row["relation"]) for row in rows)
    for claimed, method, variant, relation in sorted(names):
        own = [row for row in rows if (row["method"], row["variant"], row["relation"]) == (method, variant, relation)]
        cells = []
        for epsilon in epsilons:
            bounds = [row for row in own if row["epsilon"] == epsilon]
            best = max(bounds, key=lambda row: float(row["low"]), default=None)
            counts = next((row for row in bounds if row["bound"] == "counts"), None)
            if best is None or counts is None:
                cells.append("–")
                continue
            text = f"{float(best['low']):.3g} ({best['bound']})"
            if best["bound"] != "counts":
                text += f", counts {float(counts['low']):.3g} of {float(counts['ceiling']):.3g}"
            else:
                text = f"{float(best['low']):.3g} of {float(best['ceiling']):.3g}"
            cells.append(f"**{text}**" if best["refuted"] == "True" else text)
        name = f"`{method}`" + (f", {variant}" if variant else "") + (", claimed" if claimed else "")
        lines.append("| " + " | ".join([name, relation, own[0]["draws"], *cells]) + " |")
    return "\n".join(lines)


def main() -> None:
    """Run all audits, at most two at a time, and write the table after each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1_000_000, help="of either dataset together, where one is cheap")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=[], help="implementations")
    parser.add_argument("--table", action="store_true", help="only write the page's table from the CSV")
    options = parser.parse_args()
    if not options.table:
        wanted = [(*job, options.draws) for job in jobs() if not options.only or job[0] in options.only]
        rows: list[dict[str, Any]] = []
        with multiprocessing.get_context("forkserver").Pool(options.jobs, maxtasksperchild=1) as pool:
            for variant, record in pool.imap(run, wanted, chunksize=1):
                if isinstance(record, str):
                    sys.exit(f"error: {record}")
                rows += rows_of(variant, record)
                text = io.StringIO()
                writer = csv.DictWriter(text, HEAD, lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
                write_text(CSV, text.getvalue())
                print(f"audit: {record.method} {variant}: {len(record.cells)} cells", flush=True)
    with CSV.open(encoding="utf-8", newline="") as handle:
        found = list(csv.DictReader(handle))
    page = PAGE.read_text(encoding="utf-8")
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    write_text(PAGE, f"{before}{BEGIN}\n{table(found)}\n{END}{after}")


if __name__ == "__main__":
    main()
