"""Time fits of the recommended estimator: ``python bench/utility/times.py``.

``reports/utility/times.csv`` has a row for each set: the processor seconds of the best of five warm fits at epsilon 1,
replace_one, on the first split.
"""

from __future__ import annotations

from run_ours import code_of, private_row
from sets import OLDER, load
from verdicts import TABLES

from privsvm.files import write_text
from privsvm_bench.evidence import Sources

FIELDS = ("set", "rows", "features", "fit_processor_seconds")
_FITS = 5


def main() -> None:
    """Time all sets of the page."""
    lines = [",".join(FIELDS)]
    for name in OLDER:
        data = load(name)
        # The first fit compiles and does not count.
        seconds = [private_row("recommended", data, "replace_one", 1.0, 0)["seconds"] for _ in range(1 + _FITS)]
        lines.append(f"{name},{len(data.splits[0][0])},{data.X.shape[1]},{min(seconds[1:]):.3f}")
        print(lines[-1], flush=True)
        Sources(TABLES).measure("times", "recommended", code_of("recommended"), name)
    write_text(TABLES / "times.csv", "\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
