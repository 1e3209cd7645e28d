"""Time fits of the recommended estimator, and the other work of a cell: ``python bench/utility/times.py``.

``reports/utility/times.csv`` has a row for each set: the best of five warm fits at epsilon 1, replace_one, on the first
split, and the processor time of loading the set and scoring a cell.
"""

from __future__ import annotations

import csv
import io
import time

from run_ours import OURS, TABLES, private_row
from sets import SETS, load

from privsvm.files import write_text

FIELDS = ("set", "rows", "features", "fit_processor_seconds", "fit_wall_seconds", "load_seconds", "scoring_seconds")
_FITS = 5


def time_set(name: str) -> dict[str, object]:
    """Time one set, in seconds."""
    start = time.process_time()
    data = load(name)
    loading = time.process_time() - start
    times = []
    # The first fit compiles and does not count.
    for _ in range(1 + _FITS):
        wall, start = time.perf_counter(), time.process_time()
        fit = private_row("recommended", data, "replace_one", 1.0, 0)["seconds"]
        total = time.process_time() - start
        times.append((fit, total - fit, time.perf_counter() - wall))
    fits, scoring_times, walls = zip(*times[1:], strict=True)
    scoring = min(scoring_times)
    return {
        "set": name,
        "rows": len(data.splits[0][0]),
        "features": data.X.shape[1],
        "fit_processor_seconds": f"{min(fits):.3f}",
        "fit_wall_seconds": f"{min(walls) - scoring:.3f}",
        "load_seconds": f"{loading:.3f}",
        "scoring_seconds": f"{scoring:.3f}",
    }


def main() -> None:
    """Time all sets of the page."""
    text = io.StringIO()
    writer = csv.DictWriter(text, FIELDS, lineterminator="\n")
    writer.writeheader()
    for name in (name for name in SETS if (OURS / f"{name}.csv").exists()):
        row = time_set(name)
        print(row, flush=True)
        writer.writerow(row)
    write_text(TABLES / "times.csv", text.getvalue())


if __name__ == "__main__":
    main()
