"""Audit every private method for all its relations.

`python bench/audit/run.py` writes reports/audits.csv and the tables of docs/audits.md.
Each row is one bound of one cell. Methods whose steps may sample rows are audited with batches too. A stopped run
resumes: results are kept as long as the method's sources are unchanged.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "lib"))

from sections import markdown_table, sources_table, with_section

from privsvm.auditing.methods import Claims, audit_method, relations_of
from privsvm.files import write_text
from privsvm.registry import estimator_class, implementations
from privsvm_bench.evidence import Sources
from privsvm_bench.jobs.auditing import audit_record
from privsvm_bench.records import AuditRecord
from privsvm_bench.workflow.sources import closure_digest

EPSILONS = (0.5, 1.0, 4.0, 8.0)
DELTA = 1e-5
CSV = Path("reports/audits.csv")
PAGE, PICTURE = Path("docs/audits.md"), Path("docs/images/audits.svg")
CACHE = Path(".cache/audits")
BEGIN, END = "<!-- table: written by bench/audit/run.py -->", "<!-- end of table -->"

# Kind of release in which every draw has fresh noise.
TRAININGS = "Gaussian noise, a training for each draw"

# Further audits of methods with such a parameter.
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "scaling=centre": {"scaling": "centre"},
    "batches of 32 of 256 rows": {"batch_size": 32, "epochs": 4},
}


def jobs() -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """List implementation, variant, relation and parameters of every audit."""
    variants: dict[str, Mapping[str, Any]] = {"": {}, **VARIANTS}
    for (variant, changes), name in itertools.product(variants.items(), implementations()):
        declared = getattr(estimator_class(name), "declared", {})
        if relations_of(estimator_class(name)) and all(key in declared for key in changes):
            # Auditing a false claim requires consent to it.
            common = {"allow_unsound": True} if "allow_unsound" in declared else {}
            for relation in relations_of(estimator_class(name)):
                yield name, variant, relation, {**common, **changes}


def code_of(name: str) -> str:
    """Digest the code of the audits of a method."""
    return closure_digest(estimator_class(name).__module__, "privsvm_bench.jobs.auditing")[:12]


def cache_path(job: tuple[str, str, str, dict[str, Any]], draws: int) -> Path:
    """Return the file that keeps the rows of an audit."""
    name, variant, relation, _ = job
    return CACHE / f"{name}-{variant.replace(' ', '_')}-{relation}-{draws}-{code_of(name)}.json"


def audit(job: tuple[Any, ...]) -> list[dict[str, Any]]:
    """Audit one method and return its rows."""
    name, variant, relation, parameters, draws, _ = job
    claims = Claims(EPSILONS, DELTA, [relation])
    try:
        cells = audit_method(estimator_class(name), parameters, claims, draws=draws, key=f"{name} {variant}")
        return list(rows_of(variant, audit_record(name, name, cells, parameters)))
    except ValueError as error:
        raise ValueError(f"{name} {variant}: {error}") from None


def run(job: tuple[Any, ...]) -> float:
    """Audit one method and keep its rows; return processor time."""
    started = time.process_time()
    rows = audit(job)
    seconds = time.process_time() - started
    CACHE.mkdir(parents=True, exist_ok=True)
    write_text(job[-1], json.dumps({"seconds": seconds, "rows": rows}))
    return seconds


def rows_of(variant: str, record: AuditRecord) -> Iterator[dict[str, Any]]:
    """Yield one row for each bound of each cell."""
    for cell in record.cells:
        for bound in cell.bounds:
            yield {
                "method": record.method, "variant": variant, "status": cell.status, "relation": cell.relation,
                "epsilon": f"{cell.epsilon:g}", "delta": f"{cell.delta:g}",
                "proved": f"{cell.epsilon_with_system_noise:.6g}", "draws": cell.draws, "bound": bound.kind,
                "low": f"{bound.epsilon:.4g}", "sure": f"{bound.sure:.4g}",
                "estimate": f"{bound.estimate:.4g}", "ceiling": f"{bound.ceiling:.4g}",
                "reachable": f"{cell.reachable:.4g}", "looks_at": cell.looks_at, "refuted": cell.refuted,
                "pair": cell.pair,
            }  # fmt: skip


def read_rows() -> pd.DataFrame:
    """Read the present rows as text."""
    return pd.read_csv(CSV, dtype=str, keep_default_na=False)


def list_cells(rows: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each method, variant, relation and stated epsilon, with its `largest` bound."""
    rows = rows.assign(
        claimed=rows.status == "claimed", refuted=rows.refuted == "True", stated=rows.epsilon.astype(float),
        gaussian=rows.bound == "gaussian", largest=rows.low.astype(float),
    )  # fmt: skip
    kept = ["claimed", "refuted", "stated", "draws", "looks_at", "reachable"]
    cells = rows.groupby(["method", "variant", "relation", "epsilon"], as_index=False)
    return cells.agg(dict.fromkeys(kept, "first") | {"gaussian": "any", "largest": "max"})


def stated_epsilons(cells: pd.DataFrame) -> list[str]:
    """List the stated epsilons."""
    return sorted(set(cells.epsilon), key=float)


def audit_table(cells: pd.DataFrame) -> str:
    """Write the largest bound of each cell; bold where it refutes."""
    lines, epsilons = [], stated_epsilons(cells)
    for (claimed, method, variant, relation), audit in cells.groupby(["claimed", "method", "variant", "relation"]):
        texts = {
            one.epsilon: f"**{one.largest:.3g}**" if one.refuted else f"{one.largest:.3g}" for one in audit.itertuples()
        }
        name = f"`{method}`" + (f", {variant}" if variant else "") + (", claimed" if claimed else "")
        draws = " to ".join(f"{count:,}" for count in sorted(set(audit.draws.astype(int))))
        lines.append([name, relation, draws, *(texts.get(epsilon, "–") for epsilon in epsilons)])
    return markdown_table(["method", "neighbours", "draws", *(f"stated {epsilon}" for epsilon in epsilons)], lines)


def group_of(cell: Any) -> str:
    """Name the mechanism of a cell's releases, and how they are drawn."""
    if cell.claimed:
        return "false claims"
    if cell.looks_at == "every selection":
        return "selections by the exponential mechanism"
    if "batches" in cell.variant:
        return "Gaussian noise on steps that sample rows"
    if not cell.gaussian:
        return "Laplace noise"
    if cell.reachable == "inf":
        return TRAININGS
    names = {
        "all noisy numbers": "Gaussian noise on every step",
        "all noisy numbers, replayed": "Gaussian noise on sums that depend on it",
    }
    return names.get(cell.looks_at, "Gaussian noise on a solution")


def summary(cells: pd.DataFrame) -> str:
    """Write for each kind of release the share of the stated epsilon that audits show."""
    lines, epsilons = [], stated_epsilons(cells)
    shares = cells.largest / cells.stated
    for name, members in cells.groupby([group_of(cell) for cell in cells.itertuples()]):
        shown = shares[members.index].groupby(members.epsilon)
        texts = [
            f"{shown.min()[one]:.0%}, {shown.median()[one]:.0%}" if one in shown.groups else "–" for one in epsilons
        ]
        lines.append([name, f"{members.refuted.sum()} of {len(members)}", *texts])
    return markdown_table(["releases", "refuted", *(f"stated {epsilon}" for epsilon in epsilons)], lines)


def picture(cells: pd.DataFrame) -> str:
    """Draw the largest bound of every method for a stated epsilon of 1."""
    from privsvm_bench.charts import BLUE, AuditBar, audit_bars
    from privsvm_bench.palette import CLAIMED

    highest = cells[cells.stated == 1.0].sort_values(["claimed", "method", "largest", "refuted"])
    bars = [
        AuditBar(one.method, CLAIMED if one.claimed else BLUE, one.claimed, one.largest, one.refuted)
        for one in highest.groupby(["claimed", "method"]).tail(1).itertuples()
    ]
    return audit_bars(bars, 1.0, "Largest lower bound on epsilon of every audited method, where epsilon 1 is stated")


def main() -> None:
    """Run all audits, cheap ones first, and write the table after each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--draws", type=int, default=1_000_000, help="draws of both datasets together, if one draw is cheap"
    )
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=[], help="implementations")
    parser.add_argument("--table", action="store_true", help="only write CSV and page from kept audits")
    parser.add_argument("--confirm", action="store_true", help="run one audit of each method whose code has changed")
    options = parser.parse_args()
    everything = [(*job, options.draws, cache_path(job, options.draws)) for job in jobs()]
    chosen = [job for job in everything if not options.only or job[0] in options.only]
    holds = confirm(chosen) if options.confirm else True
    wanted = [] if options.table or options.confirm else [job for job in chosen if not job[-1].exists()]
    # New audits first, then by earlier draws, as many draws are cheap.
    earlier = {key: int(rows.draws.iloc[-1]) for key, rows in earlier_rows().items()}
    wanted.sort(key=lambda job: -earlier.get(job[:3], sys.maxsize))
    with multiprocessing.get_context("forkserver").Pool(options.jobs, maxtasksperchild=4) as pool:
        for job, seconds in zip(wanted, pool.imap(run, wanted, chunksize=1), strict=True):
            print(f"audit: {' '.join(job[:3])}: {seconds:.0f} s of processor time", flush=True)
            Sources(CSV.parent).measure("audits", job[0], code_of(job[0]), part_of(job), round(seconds, 1))
            write(everything)
    write(everything)
    sys.exit(not holds)


def part_of(job: tuple[Any, ...]) -> str:
    """Name an audited part of a method: variant and relation."""
    return " ".join(filter(None, job[1:3]))


def confirm(chosen: list[Any]) -> bool:
    """Run one audit of every method whose code has changed, and return whether all give the bounds of the table."""
    earlier, holds = earlier_rows(), True

    def compare(job: tuple[Any, ...]) -> tuple[int, float]:
        # Not kept: it would replace the rows that it confirms.
        rows = audit(job)
        pairs = zip(rows, earlier[job[:3]].low, strict=True)
        return len(rows), max(abs(float(row["low"]) - float(stated)) for row, stated in pairs)

    for name, group in itertools.groupby(sorted(chosen, key=lambda job: job[0]), lambda job: job[0]):
        audits = [job for job in group if job[:3] in earlier]
        draws = [int(earlier[job[:3]].draws.iloc[0]) for job in audits]
        # Few draws are quick.
        candidates = [job for job, count in zip(audits, draws, strict=True) if count == min(draws)]
        holds &= Sources(CSV.parent).confirm_sample(
            "audits", name, code_of(name), candidates, compare, number=1, tolerance=0.01
        )
    return holds


def earlier_rows() -> dict[tuple[str, ...], pd.DataFrame]:
    """Read the rows of the present CSV by method, variant and relation."""
    return dict(iter(read_rows().groupby(["method", "variant", "relation"])))


def write(everything: list[Any]) -> None:
    """Write CSV and page from kept audits; others keep their earlier rows."""
    rows_by_audit = earlier_rows()
    for job in everything:
        if job[-1].exists():
            rows_by_audit[job[:3]] = pd.DataFrame(json.loads(job[-1].read_text(encoding="utf-8"))["rows"])
    rows = [rows_by_audit[job[:3]] for job in everything if job[:3] in rows_by_audit]
    write_text(CSV, pd.concat(rows).to_csv(index=False))
    cells = list_cells(read_rows())
    write_text(PICTURE, picture(cells))
    template = jinja2.Template(
        Path(__file__).with_name("audits.md.jinja").read_text(encoding="utf-8"), trim_blocks=True
    )
    text = template.render(
        proved=cells[~cells.claimed],
        claimed=cells[cells.claimed],
        summary=summary(cells),
        table=audit_table(cells),
        sources=sources_table(Sources(CSV.parent), ["audits"]),
        missing=[" ".join(filter(None, job[:3])) for job in everything if job[:3] not in rows_by_audit],
    )
    write_text(PAGE, with_section(PAGE.read_text(encoding="utf-8"), BEGIN, END, text.rstrip()))


if __name__ == "__main__":
    try:
        main()
    except ValueError as error:
        sys.exit(f"error: {error}")
