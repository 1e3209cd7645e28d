"""Write tests/privacy/jax_privacy_values.csv: bounds on epsilon from counts, by the auditing module of jax_privacy.

Run it where jax_privacy is installed: `python tests/privacy/jax_privacy_values.py`. Nothing of PrivSVM is imported.
"""

import csv
import importlib.metadata
import io
import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np

VALUES = Path(__file__).with_suffix(".csv")
HEAD = (
    "version", "bound", "hits", "runs", "other_hits", "other_runs", "delta", "significance", "thresholds", "epsilon"
)  # fmt: skip

# Hits and runs on either dataset: near and far apart, none and all, few runs and many, unequal numbers of runs.
COUNTS = (
    (900, 1000, 100, 1000), (1000, 1000, 0, 1000), (30, 1000, 2, 1500), (700, 1000, 500, 1000), (500, 1000, 500, 1000),
    (0, 200, 3, 200), (25, 25, 3, 40), (99_000, 100_000, 4, 100_000), (2658, 500_000, 1750, 500_000),
    (400_000, 500_000, 100, 500_000),
)  # fmt: skip
DELTAS = (1e-5, 1e-2)
SIGNIFICANCES = (0.05, 1e-3)


def bounds(hits: int, runs: int, others: int, other_runs: int, delta: float, significance: float) -> Iterator[tuple]:
    """Compute the bounds of one pair of counts, and the number of thresholds that they correct for."""
    from jax_privacy.auditing import CanaryScoreAuditor, Explicit

    auditor = CanaryScoreAuditor(
        (np.arange(runs) < hits).astype(np.float64), (np.arange(other_runs) < others).astype(np.float64)
    )
    at = Explicit(0.5)
    yield "counts", 1, auditor.epsilon_clopper_pearson(significance, delta, threshold_strategy=at)
    if runs + other_runs <= 20_000:
        yield "one_run", 1, auditor.epsilon_one_run(significance, delta, threshold_strategy=at)
    # A score of two values has three thresholds; all are corrected for, and the two at the ends show nothing.
    yield "f_dp", auditor._fn_counts.size, auditor.epsilon_from_gdp(significance, delta, eps_tol=1e-9)


def rows() -> Iterator[dict[str, str]]:
    """List the values of all cases, as text."""
    version = f"jax_privacy {importlib.metadata.version('jax_privacy')}"
    for counts, delta, significance in itertools.product(COUNTS, DELTAS, SIGNIFICANCES):
        for bound, thresholds, epsilon in bounds(*counts, delta, significance):
            fields = (version, bound, *counts, delta, significance, thresholds, f"{float(epsilon):.12g}")
            yield dict(zip(HEAD, map(str, fields), strict=True))


if __name__ == "__main__":
    text = io.StringIO()
    writer = csv.DictWriter(text, HEAD, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows())
    VALUES.write_text(text.getvalue(), encoding="utf-8")
