"""Audit every private method for all its relations.

`python bench/audit/run.py` writes reports/audits.csv and the table of docs/auditing.md.
Every row is one bound of one cell. Methods whose steps may draw rows are audited with batches too.
A run that was stopped goes on where it was: what was found is kept as long as the method's sources are the same.
"""

from __future__ import annotations

import argparse
import csv
import functools
import io
import json
import math
import multiprocessing
import statistics
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import ndtr

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "lib"))

from privsvm.auditing.methods import audit_method, is_audited, relations_of
from privsvm.files import write_text
from privsvm.privacy.lower_bounds import counts_bound, counts_ceiling, gaussian_signal
from privsvm.registry import estimator_class, implementations
from privsvm_bench.jobs.auditing import audit_record
from privsvm_bench.records import AuditRecord
from privsvm_bench.workflow.sources import closure_digest

EPSILONS = (0.5, 1.0, 4.0, 8.0)
DELTA = 1e-5
CSV = Path("reports/audits.csv")
PAGE = Path("docs/auditing.md")
FOUND = Path(".cache/audits")
HEAD = ("method", "variant", "status", "relation", "epsilon", "delta", "proved", "draws", "bound", "low", "sure",
        "estimate", "ceiling", "reachable", "looks_at", "refuted", "pair")  # fmt: skip
BEGIN, END = "<!-- table: written by bench/audit/run.py -->", "<!-- end of table -->"

# Counts are near their ceiling from such a share of it.
NEAR = 0.9

# Gaussian releases are to show such a share of what is stated, and of little a smaller one.
SHARE, SHARE_OF_LITTLE, LITTLE = 0.95, 0.92, 0.5

# Releases whose noise is their own.
TRAININGS = "Gaussian noise, a training for each draw"

# What else is audited of methods that have such a parameter.
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "scaling=centre": {"scaling": "centre"},
    "batches of 32 of 256 rows": {"batch_size": 32, "epochs": 4},
}


def jobs() -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    """List implementation, variant, relation and parameters of every audit."""
    variants: dict[str, Mapping[str, Any]] = {"": {}, **VARIANTS}
    for variant, changes in variants.items():
        for name in implementations():
            declared = getattr(estimator_class(name), "declared", {})
            if not is_audited(estimator_class(name)) or not all(key in declared for key in changes):
                continue
            # Whoever audits a claim consents to it.
            common = {"allow_unsound": True} if "allow_unsound" in declared else {}
            for relation in relations_of(estimator_class(name)):
                yield name, variant, relation, {**common, **changes}


def kept(job: tuple[str, str, str, dict[str, Any]], draws: int) -> Path:
    """Where the rows of an audit are kept."""
    name, variant, relation, _ = job
    module = estimator_class(name).__module__
    digest = closure_digest(module, "privsvm_bench.jobs.auditing")
    return FOUND / f"{name}-{variant.replace(' ', '_')}-{relation}-{draws}-{digest[:12]}.json"


def run(job: tuple[str, str, str, dict[str, Any], int, Path]) -> tuple[str, float]:
    """Audit one method, and keep its rows; return why there are none, or nothing, and the processor time."""
    name, variant, relation, parameters, draws, path = job
    started = time.process_time()
    try:
        cells = audit_method(
            estimator_class(name), parameters, epsilons=EPSILONS, delta=DELTA, draws=draws, key=f"{name} {variant}",
            relations=[relation],
        )  # fmt: skip
        record = audit_record(name, name, cells, parameters)
    except ValueError as error:
        return f"{name} {variant}: {error}", 0.0
    seconds = time.process_time() - started
    FOUND.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps({"seconds": seconds, "rows": list(rows_of(variant, record))}))
    return "", seconds


def rows_of(variant: str, record: AuditRecord) -> Iterator[dict[str, Any]]:
    """One row for each bound of each cell."""
    for cell in record.cells:
        for bound in cell.bounds:
            yield {
                "method": record.method, "variant": variant, "status": cell.status, "relation": cell.relation,
                "epsilon": f"{cell.epsilon:g}", "delta": f"{cell.delta:g}", "proved": f"{cell.epsilon_proved:.6g}",
                "draws": cell.draws, "bound": bound.kind, "low": f"{bound.epsilon:.4g}", "sure": f"{bound.sure:.4g}",
                "estimate": f"{bound.estimate:.4g}", "ceiling": f"{bound.ceiling:.4g}",
                "reachable": f"{cell.reachable:.4g}", "looks_at": cell.looks_at, "refuted": cell.refuted,
                "pair": cell.pair,
            }  # fmt: skip


def number(text: str) -> str:
    """Shorten a number."""
    value = float(text)
    return "any" if value == math.inf else f"{value:.3g}"


def table(rows: list[dict[str, str]]) -> str:
    """Write the largest bound of each cell, what is reachable, and whether it is refuted."""
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
            text = f"{number(best['low'])} of {number(best['ceiling'])}"
            if best["bound"] != "counts":
                text += f" ({best['bound']}); counts {number(counts['low'])} of {number(counts['ceiling'])}"
            if best["reachable"] != "inf":
                text += f"; pair {number(best['reachable'])}"
            cells.append(f"**{text}**" if best["refuted"] == "True" else text)
        name = f"`{method}`" + (f", {variant}" if variant else "") + (", claimed" if claimed else "")
        draws = " to ".join(dict.fromkeys(f"{count:,}" for count in sorted({int(row["draws"]) for row in own})))
        lines.append("| " + " | ".join([name, relation, draws, *cells]) + " |")
    return "\n".join(lines)


def group_of(bounds: list[dict[str, str]]) -> str:
    """Name what protects the releases of a cell, and how they are drawn."""
    first = bounds[0]
    if first["status"] != "proved":
        return "claims"
    if first["looks_at"] == "every selection":
        return "selections"
    if "batches" in first["variant"]:
        return "steps that draw rows"
    if not any(row["bound"] == "gaussian" for row in bounds):
        return "other noise"
    if first["reachable"] == "inf":
        return TRAININGS
    names = {
        "all noisy numbers": "Gaussian noise on every step",
        "all noisy numbers, replayed": "Gaussian noise on sums that depend on it",
    }
    return names.get(first["looks_at"], "Gaussian noise on a solution")


@functools.cache
def chance(epsilon: float, delta: float, draws: int, shared: bool) -> float:
    """Probability, at most, that counts of so many draws of exact Gaussian noise reach `NEAR` of their ceiling.

    Where both datasets get the same noise, all that is rare on one of them is likely on the other.
    """
    rng = np.random.default_rng([draws, int(1000 * epsilon)])
    move = gaussian_signal(epsilon, delta)
    thresholds = np.linspace(move / 2.0, move + 4.0, 12)
    often, seldom = ndtr(move - thresholds), ndtr(-thresholds)
    others = rng.binomial(draws, seldom, (300, 12))
    if shared:
        hits = others + rng.binomial(draws - others, (often - seldom) / (1.0 - seldom))
    else:
        hits = rng.binomial(draws, often, (300, 12))
    found = counts_bound(hits, draws, others, draws, delta, mixed=True)
    return float((found >= NEAR * counts_ceiling(epsilon, delta, draws)).mean(axis=0).max())


def summary(rows: list[dict[str, str]]) -> str:
    """Write for each kind of release what share of the stated epsilon is shown, and how near counts come to theirs."""
    cells: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in rows:
        cells.setdefault(tuple(row[name] for name in ("method", "variant", "relation", "epsilon")), []).append(row)
    groups: dict[str, list[list[dict[str, str]]]] = {}
    for bounds in cells.values():
        groups.setdefault(group_of(bounds), []).append(bounds)
    epsilons = sorted({row["epsilon"] for row in rows}, key=float)
    lines = [
        "Shares of the stated epsilon that the largest bound of a cell shows: the smallest and the median of all "
        f"cells. *Near*: cells whose counts reach {NEAR:.0%} of their ceiling, and how many of them chance lets at "
        "most, by the best threshold for exact Gaussian noise.",
        "",
        "| releases | cells refuted | " + " | ".join(f"stated {epsilon}" for epsilon in epsilons) + " |",
        "|" + " --- |" * (2 + len(epsilons)),
    ]
    for name, members in sorted(groups.items()):
        texts = []
        for epsilon in epsilons:
            own = [bounds for bounds in members if bounds[0]["epsilon"] == epsilon]
            shares = [max(float(row["low"]) for row in bounds) / float(epsilon) for bounds in own]
            text = f"{min(shares):.0%}, {statistics.median(shares):.0%}" if shares else "–"
            if name.startswith("Gaussian"):
                counts = [row for bounds in own for row in bounds if row["bound"] == "counts"]
                near = sum(float(row["low"]) >= NEAR * float(row["ceiling"]) for row in counts)
                shared = name != TRAININGS
                hoped = sum(chance(float(epsilon), float(row["delta"]), int(row["draws"]), shared) for row in counts)
                text += f"; near {near} of {len(counts)} ({hoped:.0f})"
            texts.append(text)
        refuted = sum(bounds[0]["refuted"] == "True" for bounds in members)
        lines.append("| " + " | ".join([name, f"{refuted} of {len(members)}", *texts]) + " |")
    return "\n".join(lines)


def limited(rows: list[dict[str, str]]) -> str:
    """Name the cells of Gaussian releases that show less than they could, and the pair that is the limit."""
    found: dict[str, list[str]] = {}
    for row in rows:
        share = SHARE_OF_LITTLE if float(row["epsilon"]) <= LITTLE else SHARE
        if row["bound"] != "gaussian" or float(row["low"]) >= share * float(row["epsilon"]):
            continue
        name = " ".join(filter(None, (f"`{row['method']}`", row["variant"], row["relation"])))
        stated, reachable = float(row["epsilon"]), float(row["reachable"])
        why = f" where the pair is {reachable / stated:.1%}" if math.isfinite(reachable) else ""
        found.setdefault(name, []).append(f"{float(row['low']) / stated:.1%} of {row['epsilon']}{why}")
    head = (
        f"Cells whose `gaussian` bound is further than {1 - SHARE:.0%} from what is stated "
        f"({1 - SHARE_OF_LITTLE:.0%} at {LITTLE:g}), and how much of it the two datasets differ by, which no number of "
        "draws exceeds: "
    )
    cells = [f"{name} {', '.join(texts)}" for name, texts in sorted(found.items())]
    return head + ("; ".join(cells) if cells else "none") + "."


def expected_cost(job: tuple[Any, ...], earlier: Mapping[tuple[str, ...], int]) -> tuple[int, int]:
    """Sort by how many draws an audit had before: many are cheap, and show most; unknown ones go first."""
    draws = earlier.get(job[:3])
    return (0, 0) if draws is None else (1, -draws)


def main() -> None:
    """Run all audits, cheap ones first, at most two at a time, and write the table after each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1_000_000, help="of either dataset together, where one is cheap")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="*", default=[], help="implementations")
    parser.add_argument("--table", action="store_true", help="only write CSV and page from what is kept")
    options = parser.parse_args()
    everything = [(*job, options.draws, kept(job, options.draws)) for job in jobs()]
    wanted = [job for job in everything if not options.only or job[0] in options.only]
    wanted = [] if options.table else [job for job in wanted if not job[-1].exists()]
    earlier = {key: int(rows[-1]["draws"]) for key, rows in earlier_rows().items()}
    wanted.sort(key=lambda job: expected_cost(job, earlier))
    with multiprocessing.get_context("forkserver").Pool(options.jobs, maxtasksperchild=4) as pool:
        for job, (error, seconds) in zip(wanted, pool.imap(run, wanted, chunksize=1), strict=True):
            if error:
                sys.exit(f"error: {error}")
            print(f"audit: {' '.join(job[:3])}: {seconds:.0f} s of processor time", flush=True)
            write(everything)
    write(everything)


def earlier_rows() -> dict[tuple[str, ...], list[dict[str, str]]]:
    """Read the rows that are there already, by method, variant and relation."""
    found: dict[tuple[str, ...], list[dict[str, str]]] = {}
    if CSV.exists():
        with CSV.open(encoding="utf-8", newline="") as handle:
            for row in csv.DictReader(handle):
                found.setdefault((row["method"], row["variant"], row["relation"]), []).append(row)
    return found


def write(everything: list[Any]) -> None:
    """Write the CSV and the page's table from what is kept; what is not run again stays as an earlier run left it."""
    earlier = earlier_rows()
    found = {job[:3]: json.loads(job[-1].read_text(encoding="utf-8")) for job in everything if job[-1].exists()}
    missing = [job for job in everything if job[:3] not in found]
    old = [" ".join(filter(None, job[:3])) for job in missing if job[:3] in earlier]
    never = [" ".join(filter(None, job[:3])) for job in missing if job[:3] not in earlier]
    text = io.StringIO()
    writer = csv.DictWriter(text, HEAD, lineterminator="\n")
    writer.writeheader()
    for job in everything:
        writer.writerows(found[job[:3]]["rows"] if job[:3] in found else earlier.get(job[:3], []))
    write_text(CSV, text.getvalue())
    with CSV.open(encoding="utf-8", newline="") as handle:
        rows = list(csv.DictReader(handle))
    page = PAGE.read_text(encoding="utf-8")
    before, after = page.split(BEGIN)[0], page.split(END)[1]
    seconds = sum(part["seconds"] for part in found.values())
    words = f"{len(found)} of {len(everything)} audits, {seconds / 60:.0f} minutes of processor time."
    if old:
        words += f" Of earlier sources: {', '.join(old)}."
    if never:
        words += f" Not run: {', '.join(never)}."
    write_text(PAGE, f"{before}{BEGIN}\n{words}\n\n{summary(rows)}\n\n{limited(rows)}\n\n{table(rows)}\n{END}{after}")


if __name__ == "__main__":
    main()
