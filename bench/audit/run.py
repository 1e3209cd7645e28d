"""Audit every private method for all its relations.

`python bench/audit/run.py` writes reports/audits.csv and the tables of docs/audits.md.
Each row is one bound of one cell. Methods whose steps may sample rows are audited with batches too. A stopped run
resumes: results are kept as long as the method's sources are unchanged.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "lib"))

from sections import csv_text, markdown_table, sources_table, with_section

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
HEAD = ("method", "variant", "status", "relation", "epsilon", "delta", "proved", "draws", "bound", "low", "sure",
        "estimate", "ceiling", "reachable", "looks_at", "refuted", "pair")  # fmt: skip
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


def run(job: tuple[str, str, str, dict[str, Any], int, Path]) -> tuple[str, float]:
    """Audit one method and keep its rows; return an error and processor time."""
    name, variant, relation, parameters, draws, path = job
    started = time.process_time()
    try:
        cells = audit_method(
            estimator_class(name), parameters, Claims(EPSILONS, DELTA, [relation]), draws=draws, key=f"{name} {variant}"
        )  # fmt: skip
        record = audit_record(name, name, cells, parameters)
    except ValueError as error:
        return f"{name} {variant}: {error}", 0.0
    seconds = time.process_time() - started
    CACHE.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps({"seconds": seconds, "rows": list(rows_of(variant, record))}))
    return "", seconds


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


def group_rows(rows: list[dict[str, str]], key: Callable[[dict[str, str]], Any]) -> dict[Any, list[dict[str, str]]]:
    """Group rows by a key, in its order."""
    return {value: list(group) for value, group in itertools.groupby(sorted(rows, key=key), key)}


def cells_of(rows: list[dict[str, str]]) -> list[list[dict[str, str]]]:
    """Group bounds by cell: method, variant, relation and stated epsilon."""
    names = ("method", "variant", "relation", "epsilon")
    return list(group_rows(rows, lambda row: tuple(row[name] for name in names)).values())


def largest(bounds: list[dict[str, str]]) -> float:
    """Return the largest bound of a cell."""
    return max(float(row["low"]) for row in bounds)


def stated_epsilons(rows: list[dict[str, str]]) -> list[str]:
    """List the stated epsilons."""
    return sorted({row["epsilon"] for row in rows}, key=float)


def audit_table(rows: list[dict[str, str]]) -> str:
    """Write the largest bound of each cell; bold where it refutes."""
    lines, epsilons = [], stated_epsilons(rows)
    audits = group_rows(rows, lambda row: (row["status"] == "claimed", row["method"], row["variant"], row["relation"]))
    for (claimed, method, variant, relation), audit_rows in audits.items():
        texts = dict.fromkeys(epsilons, "–")
        for bounds in cells_of(audit_rows):
            text = f"{largest(bounds):.3g}"
            texts[bounds[0]["epsilon"]] = f"**{text}**" if bounds[0]["refuted"] == "True" else text
        name = f"`{method}`" + (f", {variant}" if variant else "") + (", claimed" if claimed else "")
        draws = " to ".join(f"{count:,}" for count in sorted({int(row["draws"]) for row in audit_rows}))
        lines.append([name, relation, draws, *texts.values()])
    return markdown_table(["method", "neighbours", "draws", *(f"stated {epsilon}" for epsilon in epsilons)], lines)


def group_of(bounds: list[dict[str, str]]) -> str:
    """Name the mechanism of a cell's releases, and how they are drawn."""
    first = bounds[0]
    if first["status"] == "claimed":
        return "false claims"
    if first["looks_at"] == "every selection":
        return "selections by the exponential mechanism"
    if "batches" in first["variant"]:
        return "Gaussian noise on steps that sample rows"
    if not any(row["bound"] == "gaussian" for row in bounds):
        return "Laplace noise"
    if first["reachable"] == "inf":
        return TRAININGS
    names = {
        "all noisy numbers": "Gaussian noise on every step",
        "all noisy numbers, replayed": "Gaussian noise on sums that depend on it",
    }
    return names.get(first["looks_at"], "Gaussian noise on a solution")


def answer(rows: list[dict[str, str]]) -> str:
    """Sum up the table in two sentences."""
    proved, claimed = ([cell for cell in cells_of(rows) if (cell[0]["status"] == "claimed") == kind] for kind in (0, 1))
    broken, caught = (sum(cell[0]["refuted"] == "True" for cell in cells) for cells in (proved, claimed))
    if broken:
        return f"**{broken} of {len(proved)} audits refute a proof.** The tables below name them."
    shown = statistics.median(largest(cell) / float(cell[0]["epsilon"]) for cell in proved)
    methods = len({cell[0]["method"] for cell in claimed})
    return (
        f"None of {len(proved)} audits refutes a proof, and the median audit of a proved method shows {shown:.0%} of "
        f"the stated epsilon. Of the {len(claimed)} audits of {methods} methods with a false claim, {caught} refute it."
    )


def summary(rows: list[dict[str, str]]) -> str:
    """Write for each kind of release the share of the stated epsilon that audits show."""
    groups: dict[str, list[list[dict[str, str]]]] = {}
    for bounds in cells_of(rows):
        groups.setdefault(group_of(bounds), []).append(bounds)
    lines, epsilons = [], stated_epsilons(rows)
    for name, members in sorted(groups.items()):
        texts = []
        for epsilon in epsilons:
            shares = [largest(bounds) / float(epsilon) for bounds in members if bounds[0]["epsilon"] == epsilon]
            texts.append(f"{min(shares):.0%}, {statistics.median(shares):.0%}" if shares else "–")
        refuted = sum(bounds[0]["refuted"] == "True" for bounds in members)
        lines.append([name, f"{refuted} of {len(members)}", *texts])
    return markdown_table(["releases", "refuted", *(f"stated {epsilon}" for epsilon in epsilons)], lines)


def picture(rows: list[dict[str, str]]) -> str:
    """Draw the largest bound of every method for a stated epsilon of 1."""
    from privsvm_bench.charts import BLUE, AuditBar, audit_bars
    from privsvm_bench.palette import CLAIMED

    found: dict[tuple[bool, str], tuple[float, bool]] = {}
    for bounds in cells_of(rows):
        if float(bounds[0]["epsilon"]) == 1.0:
            name = (bounds[0]["status"] == "claimed", bounds[0]["method"])
            refuted = bounds[0]["refuted"] == "True"
            found[name] = max(found.get(name, (0.0, False)), (largest(bounds), refuted))
    bars = [
        AuditBar(name, CLAIMED if claimed else BLUE, claimed, *found[claimed, name]) for claimed, name in sorted(found)
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
    earlier = {key: int(rows[-1]["draws"]) for key, rows in earlier_rows().items()}
    wanted.sort(key=lambda job: -earlier.get(job[:3], sys.maxsize))
    with multiprocessing.get_context("forkserver").Pool(options.jobs, maxtasksperchild=4) as pool:
        for job, (error, seconds) in zip(wanted, pool.imap(run, wanted, chunksize=1), strict=True):
            if error:
                sys.exit(f"error: {error}")
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
        # Apart from kept audits, which would replace the rows that they confirm.
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "audit.json"
            error, _ = run((*job[:-1], path))
            if error:
                sys.exit(f"error: {error}")
            rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
        pairs = zip(rows, earlier[job[:3]], strict=True)
        return len(rows), max(abs(float(row["low"]) - float(stated["low"])) for row, stated in pairs)

    for name, group in itertools.groupby(sorted(chosen, key=lambda job: job[0]), lambda job: job[0]):
        audits = [job for job in group if job[:3] in earlier]
        draws = [int(earlier[job[:3]][0]["draws"]) for job in audits]
        # Few draws are quick.
        candidates = [job for job, count in zip(audits, draws, strict=True) if count == min(draws)]
        holds &= Sources(CSV.parent).confirm_sample(
            "audits", name, code_of(name), candidates, compare, number=1, tolerance=0.01
        )
    return holds


def earlier_rows() -> dict[tuple[str, ...], list[dict[str, str]]]:
    """Read the rows of the present CSV by method, variant and relation."""
    if not CSV.exists():
        return {}
    with CSV.open(encoding="utf-8", newline="") as file:
        return group_rows(list(csv.DictReader(file)), lambda row: (row["method"], row["variant"], row["relation"]))


def write(everything: list[Any]) -> None:
    """Write CSV and page from kept audits; others keep their earlier rows."""
    rows_by_audit: dict[tuple[str, ...], list[dict[str, Any]]] = earlier_rows()
    for job in everything:
        if job[-1].exists():
            rows_by_audit[job[:3]] = json.loads(job[-1].read_text(encoding="utf-8"))["rows"]
    write_text(CSV, csv_text(HEAD, itertools.chain(*(rows_by_audit.get(job[:3], []) for job in everything))))
    rows = list(itertools.chain(*earlier_rows().values()))
    write_text(PICTURE, picture(rows))
    sections = [
        answer(rows),
        "![Epsilon that an audit shows for each method: proved methods end at the stated 1, claimed ones far beyond]"
        "(images/audits.svg)",
        "Share of the stated epsilon that the largest bound shows, as smallest and median over the audits of a kind:",
        summary(rows),
        "Largest bound of each audit, with 95 % confidence. Bold: refuted, and confirmed by fresh draws.",
        audit_table(rows),
        sources_table(Sources(CSV.parent), ["audits"]),
    ]
    missing = [" ".join(filter(None, job[:3])) for job in everything if job[:3] not in rows_by_audit]
    if missing:
        sections.append(f"Not run yet: {', '.join(missing)}.")
    write_text(PAGE, with_section(PAGE.read_text(encoding="utf-8"), BEGIN, END, "\n\n".join(sections)))


if __name__ == "__main__":
    main()
