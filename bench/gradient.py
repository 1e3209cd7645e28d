"""Time noisy gradient steps against Opacus, each library in subprocesses.

Both train a linear model by DP-SGD with Poisson sampling, an expected batch of 128 rows and a clipping norm of 1, on
synthetic rows in the shapes of six data sets. A step samples rows, computes and clips gradients, adds noise and
updates. Figures are processor time on one thread, which depends little on the load of the machine. For comparison,
NumPy's BLAS computes the two matrix products of a step.
"""

from __future__ import annotations

import contextlib
import functools
import json
import statistics
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import scipy.sparse
from measuring import time_call
from peer_environments import peer_python, single_threaded
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


def draw_rows(case: str) -> tuple[np.ndarray, np.ndarray, int]:
    """Draw rows of norm about 1, class codes, and return the number of classes."""
    n, d, c, density, _ = CASES[case]
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < density) / np.sqrt(d * density)
    return X, rng.integers(0, c, n), c


def our_steps(case: str) -> Callable[[int], object]:
    """Prepare our steps: hinge loss, float64."""
    from privsvm.numerics.noise.noise_source import NoiseSource
    from privsvm.solvers.gradients import noisy_gradient

    noisy_gradient.warm_up()
    X, codes, n_classes = draw_rows(case)
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
        return noisy_gradient.noisy_gradient_steps(rows, codes, n_classes, steps, NoiseSource(bytes(32)))

    return run


def opacus_steps(case: str) -> Callable[[int], object]:
    """Prepare steps of Opacus: a linear layer, the hinge loss of torch, float32."""
    import torch
    from opacus import PrivacyEngine

    torch.set_num_threads(1)
    torch.manual_seed(0)
    X, codes, n_classes = draw_rows(case)
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


def measure(library: str) -> dict[str, float]:
    """Measure the seconds of processor time of one step of every case in this process."""
    warnings.simplefilter("ignore")
    step_seconds, count = {}, STEPS[library]
    for case in CASES:
        run = CANDIDATES[library](case)
        run(5)
        step_seconds[case] = min(time_call(functools.partial(run, count), 0.0)[1] for _ in range(ROUNDS)) / count
    return step_seconds


def run_once(python: str | Path, library: str) -> dict[str, float]:
    """Measure in a new process."""
    command = [python, __file__, library]
    result = subprocess.run(command, env=single_threaded(), capture_output=True, text=True, check=False)
    if result.returncode:
        raise RuntimeError(f"{library}: {(result.stderr.strip().splitlines() or ['no output'])[-1]}")
    return json.loads(result.stdout.splitlines()[-1])


def gradient_rows() -> Iterator[list[str]]:
    """Measure every case in alternating processes, and write their medians; dashes where Opacus cannot be installed."""
    pythons: dict[str, str | Path] = {"PrivSVM": sys.executable, "BLAS": sys.executable}
    with contextlib.suppress(subprocess.CalledProcessError):
        pythons["Opacus"] = peer_python("opacus")
    runs: dict[str, list[dict[str, float]]] = {library: [] for library in pythons}
    for _ in range(REPETITIONS):
        for library, python in pythons.items():
            runs[library].append(run_once(python, library))
    for case, (n, d, c, *_) in CASES.items():
        times = {library: 1e3 * statistics.median(run[case] for run in runs[library]) for library in pythons}
        peer = times.get("Opacus")
        peer_cells = [f"{peer:.2f}", f"**{peer / times['PrivSVM']:.0f}**"] if peer else ["–", "–"]
        yield [case, f"{n} x {d}, {c}", peer_cells[0], f"{times['PrivSVM']:.3f}", peer_cells[1], f"{times['BLAS']:.3f}"]


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))
