"""Time noisy gradient steps against Opacus, each library in subprocesses.

Both train a linear model by DP-SGD with Poisson sampling, an expected batch of 128 rows and a clipping norm of 1, on
synthetic rows in the shapes of six data sets. A step samples rows, computes and clips gradients, adds noise and
updates. Figures are processor time on one thread, which depends little on the load of the machine. For comparison,
NumPy's BLAS computes the two matrix products of a step.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse
from peer_environments import peer_python, peer_version
from threadpoolctl import threadpool_limits

# Rows, features, classes, density, whether our rows are CSR.
CASES: dict[str, tuple[int, int, int, float, bool]] = {
    "Cornell, CSR rows": (661, 4134, 7, 0.023, True),
    "Cornell, dense rows": (661, 4134, 7, 0.023, False),
    "HHAR": (8183, 561, 6, 1.0, False),
    "USPS": (7438, 256, 10, 1.0, False),
    "ISOLET": (1248, 617, 26, 1.0, False),
    "Dermatology": (292, 34, 6, 1.0, False),
    "Vehicle": (676, 18, 4, 1.0, False),
}
BATCH = 128
# Steps per timing, timings per process (the fastest counts), and processes (the median counts).
STEPS = {"PrivSVM": 500, "Opacus": 50, "BLAS": 500}
ROUNDS = 5
REPETITIONS = 3


def made_up_rows(case: str) -> tuple[np.ndarray, np.ndarray, int]:
    """Draw rows of norm about 1, class codes, and return the number of classes."""
    n, d, c, density, _ = CASES[case]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < density) / np.sqrt(d * density)
    return X, rng.integers(0, c, n), c


def our_steps(case: str) -> Callable[[int], object]:
    """Prepare our steps: hinge loss, float64."""
    from privsvm.solvers.gradients import noisy_gradient

    noisy_gradient.warm_up()
    X, codes, n_classes = made_up_rows(case)
    rows = scipy.sparse.csr_array(X) if CASES[case][4] else X

    def run(n_steps: int) -> object:
        steps = noisy_gradient.GradientSteps(
            loss="hinge",
            max_grad_norm=1.0,
            noise_scale=1.0,
            sample_rate=BATCH / len(X),
            expected_batch=BATCH,
            learning_rate=0.1,
            n_steps=n_steps,
        )
        rng = np.random.default_rng(0)
        return noisy_gradient.noisy_gradient_steps(rows, codes, n_classes, steps, rng)

    return run


def opacus_steps(case: str) -> Callable[[int], object]:
    """Prepare steps of Opacus: a linear layer, the hinge loss of torch, float32."""
    import torch
    from opacus import PrivacyEngine

    torch.set_num_threads(1)
    torch.manual_seed(0)
    X, codes, n_classes = made_up_rows(case)
    data = torch.utils.data.TensorDataset(torch.from_numpy(X.astype(np.float32)), torch.from_numpy(codes))
    layer = torch.nn.Linear(X.shape[1], n_classes)
    model, optimizer, loader = PrivacyEngine(accountant="rdp").make_private(
        module=layer,
        optimizer=torch.optim.SGD(layer.parameters(), lr=0.1),
        data_loader=torch.utils.data.DataLoader(data, batch_size=BATCH),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        poisson_sampling=True,
    )
    loss = torch.nn.MultiMarginLoss()

    def run(n_steps: int) -> None:
        done = 0
        while True:
            for rows, labels in loader:
                if done == n_steps:
                    return
                optimizer.zero_grad()
                loss(model(rows), labels).backward()
                optimizer.step()
                done += 1

    return run


def two_products(case: str) -> Callable[[int], object]:
    """Prepare the products of a step in float64: rows by weights, and slopes by rows."""
    _, d, c, *_ = CASES[case]
    rng = np.random.default_rng(0)
    rows, weights, slopes = rng.normal(size=(BATCH, d)), rng.normal(size=(c, d)), rng.normal(size=(BATCH, c))
    scores, gradient = np.empty((BATCH, c)), np.empty((c, d))

    def run(n_steps: int) -> None:
        with threadpool_limits(1):
            for _ in range(n_steps):
                np.dot(rows, weights.T, out=scores)
                np.dot(slopes.T, rows, out=gradient)

    return run


CANDIDATES = {"PrivSVM": our_steps, "Opacus": opacus_steps, "BLAS": two_products}


def measure(library: str, cases: list[str]) -> dict[str, float]:
    """Measure the seconds of processor time of one step of every case in this process."""
    warnings.simplefilter("ignore")
    step_seconds = {}
    for case in cases:
        run = CANDIDATES[library](case)
        count = STEPS[library]
        run(5)
        step_seconds[case] = float("inf")
        for _ in range(ROUNDS):
            started = time.process_time()
            run(count)
            step_seconds[case] = min(step_seconds[case], (time.process_time() - started) / count)
    return step_seconds


def run_once(python: str | Path, library: str, cases: list[str]) -> dict[str, float]:
    """Measure in a new process."""
    limits = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    command = [python, __file__, "--measure", library, "--cases", *cases]
    result = subprocess.run(command, env={**os.environ, **limits}, capture_output=True, text=True, check=False)
    if result.returncode:
        raise RuntimeError(f"{library}: {(result.stderr.strip().splitlines() or ['no output'])[-1]}")
    return json.loads(result.stdout.splitlines()[-1])


def table_rows(cases: list[str], opacus: Path | None) -> list[str]:
    """Write the table: medians of alternating processes."""
    pythons: dict[str, str | Path] = {"PrivSVM": sys.executable, "BLAS": sys.executable}
    if opacus is not None:
        pythons["Opacus"] = opacus
    runs: dict[str, list[dict[str, float]]] = {library: [] for library in pythons}
    for _ in range(REPETITIONS):
        for library, python in pythons.items():
            runs[library].append(run_once(python, library, cases))
    rows = []
    for case in cases:
        times = {library: 1e3 * statistics.median(run[case] for run in runs[library]) for library in pythons}
        n, d, c, *_ = CASES[case]
        peer, ratio = "not asked for", ""
        if "Opacus" in times:
            peer, ratio = f"{times['Opacus']:.2f}", f"**{times['Opacus'] / times['PrivSVM']:.0f}**"
        cells = [case, f"{n} x {d}, {c}", peer, f"{times['PrivSVM']:.3f}", ratio, f"{times['BLAS']:.3f}"]
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def gradient_section(cases: list[str] | None = None, with_opacus: bool = False) -> list[str]:
    """Write the section on noisy gradient steps.

    Parameters
    ----------
    cases : list of str or None, default=None
        Names in `CASES`; None for all.
    with_opacus : bool, default=False
        Also measure Opacus, in a separate environment that is built on first use.

    Returns
    -------
    list of str
        Lines of Markdown. Without Opacus, its columns say so.
    """
    opacus = peer_python("opacus") if with_opacus else None
    versions = (
        [f"{name} {peer_version(opacus, name.lower())}" for name in ("Opacus", "torch")] if opacus else ["Opacus"]
    )
    peer = ", ".join(versions)
    return [
        "## Noisy gradient steps against Opacus",
        "",
        "Milliseconds of processor time on one thread for one step of DP-SGD for a linear model: Poisson sampling with "
        f"{BATCH} expected rows, clipping, noise, update. {peer} trains a linear layer with the hinge loss in float32, "
        "PrivSVM PMSVM's hinge loss in float64. The rows are synthetic, in the shapes (rows x features, classes) of "
        "six datasets; Cornell is 98 % zeros, and Opacus has no sparse rows. "
        f"Times are medians of {REPETITIONS} alternating processes. For comparison, the last column is the time of "
        "NumPy's BLAS for the two matrix products of a dense step.",
        "",
        "| data | shape | Opacus, ms | PrivSVM, ms | ratio | products, ms |",
        "| --- | --- | --- | --- | --- | --- |",
        *table_rows(cases or list(CASES), opacus),
        "",
    ]


def main() -> None:
    """Measure for the parent process, or print the section."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--measure", metavar="LIBRARY", choices=list(CANDIDATES))
    parser.add_argument("--opacus", action="store_true", help="also measure Opacus, in a separate environment")
    parser.add_argument("--cases", nargs="*", choices=list(CASES), default=list(CASES))
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure, options.cases)))
        return
    print("\n".join(gradient_section(options.cases, options.opacus)))


if __name__ == "__main__":
    main()
