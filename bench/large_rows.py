"""Measure processor time and peak memory of every private linear method on many rows, each fit in a subprocess.

The rows are synthetic: a dense table, and a sparse one that would not fit into memory as a dense table. Memory is
anonymous memory with the rows (RssAnon), sampled every few milliseconds. ``--limits`` measures the recommended method
alone, with two classes and with ten, on the numbers of rows that it has limits for; memory is then the peak of all
resident memory (getrusage).
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from sections import with_section

N_CLASSES = 5
# Rows, features, density, classes.
SETS: dict[str, tuple[int, int, float, int]] = {
    "dense": (1_000_000, 20, 1.0, N_CLASSES),
    "sparse": (200_000, 2_000, 0.01, N_CLASSES),
}
# The same for the limits of the recommended method, which are in seconds and gigabytes.
LIMITS = {
    f"{n:,} x 20, {c} classes": ((n, 20, 1.0, c), seconds, 4)
    for n, seconds in ((50_000, 3), (1_000_000, 60))
    for c in (2, 10)
}
# Divisor of the number of rows with --small.
SMALL = 20
# Limits for every fit.
MEGABYTES, SECONDS = 2000, 120

# Name, implementation, parameters.
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "recommended": ("recommended", {}),
    "dp_least_squares": ("dp_least_squares", {}),
    "dp_feature_covariance": ("dp_feature_covariance", {}),
    "dp_newton": ("dp_newton", {}),
    "softmax_dpsgd": ("softmax_dpsgd", {}),
    "softmax_dpsgd, centred": ("softmax_dpsgd", {"scaling": "centre"}),
    "softmax_dpadam": ("softmax_dpadam", {}),
    "pmsvm_gp": ("pmsvm_gp", {}),
    "pmsvm_gp, centred": ("pmsvm_gp", {"scaling": "centre"}),
    "pmsvm_gp, centred, offsets": ("pmsvm_gp", {"scaling": "centre", "fit_intercept": True}),
    "pmsvm_gp, whitened": ("pmsvm_gp", {"scaling": "whiten"}),
    "pmsvm_agp, centred": ("pmsvm_agp", {"scaling": "centre"}),
    "grpua": ("grpua", {}),
    "pmsvm_wp": ("pmsvm_wp", {"C": 0.005}),
    "ovr_joint_gaussian": ("ovr_joint_gaussian", {"C": 0.005}),
    "opera": ("opera", {"C": 0.005}),
    "private_svm": ("private_svm", {"C": 0.005}),
    "private_svm_laplace": ("private_svm_laplace", {"C": 0.005}),
    "objective_perturbation": ("objective_perturbation", {"C": 0.005}),
    "dp_frank_wolfe": ("dp_frank_wolfe", {"radius": 10.0, "n_steps": 80}),
    "private_svm_rbf": ("private_svm_rbf", {"C": 0.005}),
    "landmark_dual": ("landmark_dual", {"C": 0.005, "n_landmarks": 200}),
}
# Cases without a form for sparse rows.
DENSE_ONLY = ("pmsvm_gp, whitened",)


def made_up_rows(kind: str, small: bool) -> tuple[Any, np.ndarray]:
    """Draw rows in [-1, 1] around the centres of the classes, and class codes."""
    n, d, density, n_classes = SETS[kind] if kind in SETS else LIMITS[kind][0]
    n = n // SMALL if small else n
    rng = np.random.default_rng(0)
    codes = rng.integers(0, n_classes, n)
    if density == 1.0:
        X = rng.standard_normal((n, d))
        X *= 0.2
        X += rng.uniform(-0.3, 0.3, (n_classes, d))[codes]
        np.clip(X, -1.0, 1.0, out=X)
        return X, codes
    per_row = round(d * density)
    # Half of a row's features are those of its class.
    columns = rng.integers(0, d, (n, per_row))
    class_width = d // n_classes
    columns[:, : per_row // 2] = columns[:, : per_row // 2] % class_width + class_width * codes[:, None]
    values = rng.uniform(0.1, 1.0, columns.size)
    X = scipy.sparse.csr_array((values, columns.ravel(), np.arange(n + 1) * per_row), shape=(n, d))
    X.sum_duplicates()
    np.clip(X.data, 0.0, 1.0, out=X.data)
    return X, codes


class Peak:
    """Peak of anonymous memory, sampled by a thread."""

    def __init__(self) -> None:
        self.megabytes, self._done = 0.0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def _watch(self) -> None:
        while not self._done.wait(0.005):
            self.sample()

    def sample(self) -> None:
        """Sample once."""
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        now = int(next(line for line in lines if line.startswith("RssAnon")).split()[1]) / 1024
        self.megabytes = max(self.megabytes, now)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()
        self.sample()


def measure(kind: str, case: str, small: bool) -> dict[str, float]:
    """Fit once in this process, after a small fit that compiles."""
    from privsvm.registry import estimator_class

    implementation, parameters = CASES[case]
    method = estimator_class(implementation)
    X, codes = made_up_rows(kind, small)
    labels = list(range(codes.max() + 1))
    common = {"epsilon": 1.0, "classes": labels, "random_state": 0, **parameters}
    declared = method.declared
    common |= {"n_jobs": 2} if "n_jobs" in declared else {}
    # Below one over the rows: a larger one proves nothing.
    common |= {"delta": 1e-7} if "delta" in declared else {}
    common |= {"bounds": (-1, 1)} if kind in LIMITS else {}
    # The fewest rows that a fit accepts, of every class; to compile what the recommended method tries, more.
    least = 1000 if kind in LIMITS else 40
    warm_up_rows = np.concatenate([np.flatnonzero(codes == k)[:least] for k in labels])
    method(**common).fit(X[warm_up_rows], codes[warm_up_rows])
    with Peak() as peak:
        started, processor = time.perf_counter(), time.process_time()
        model = method(**common).fit(X, codes)
        seconds, processor = time.perf_counter() - started, time.process_time() - processor
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    score = float(np.mean(model.predict(X[:5000]) == codes[:5000]))
    figures = {"seconds": seconds, "processor": processor, "megabytes": peak.megabytes, "accuracy": score}
    return figures | {"resident": resident}


def measured(kind: str, case: str, small: bool) -> subprocess.CompletedProcess[str]:
    """Measure a case in a subprocess, which prints figures last."""
    arguments = [sys.executable, __file__, "--set", kind, "--case", case, *(["--small"] if small else [])]
    return subprocess.run(arguments, capture_output=True, text=True, check=False)


def line(kind: str, case: str, small: bool) -> str:
    """Return a line of the table."""
    done = measured(kind, case, small)
    if done.returncode:
        message = done.stderr.strip().splitlines()[-1:] or [f"exit code {done.returncode}"]
        return f"| {case} | {kind} | {message[0][:150]} | | | |"
    figures = json.loads(done.stdout.splitlines()[-1])
    # Processor time bounds the wall time on an idle machine, whatever the number of threads.
    mark = "" if figures["megabytes"] <= MEGABYTES and figures["processor"] <= SECONDS else " **over**"
    return (
        f"| {case} | {kind} | {figures['seconds']:.1f} | {figures['processor']:.1f} | "
        f"{figures['megabytes']:.0f}{mark} | {figures['accuracy']:.3f} |"
    )


TITLE = "| method | rows | seconds | processor time, s | memory, MB | accuracy |\n| --- | --- | --- | --- | --- | --- |"
BEGIN, END = "<!-- large rows: written by bench/large_rows.py -->", "<!-- end of large rows -->"
TEXT = f"""One fit of every private linear method at epsilon 1 on {N_CLASSES} made-up classes, in its own process, on
two threads where a method uses them. Sparse rows: 200,000 x 2,000, of which 1 % are not zero; as a dense table they
would take 3.2 GB. Dense rows: 1,000,000 x 20. Memory is the peak of anonymous memory, rows included. Seconds were
measured on a busy machine; an idle one needs no more than the processor time.
`python bench/large_rows.py --page docs/large-tables.md` measures them again.
"""


LIMITS_TITLE = (
    "| rows | seconds | processor time, s | resident memory, GB | accuracy |\n| --- | --- | --- | --- | --- |"
)
LIMITS_BEGIN, LIMITS_END = "<!-- limits: written by bench/large_rows.py -->", "<!-- end of limits -->"
LIMITS_TEXT = """A fit of `PrivateLinearClassifier` at epsilon 1, on two threads, in its own process and once compiled.
Memory is the peak of all resident memory, with Python and the rows. "Over" marks what exceeds 3 s for 50,000 rows, 60 s
for a million, or 4 GB. `python bench/large_rows.py --limits docs/large-tables.md` measures it again.
"""


def limits(page: Path, small: bool) -> None:
    """Measure the recommended method where it has limits, and write the table into the page."""
    lines = []
    for kind, (_, most_seconds, most_gigabytes) in LIMITS.items():
        figures = json.loads(measured(kind, "recommended", small).stdout.splitlines()[-1])
        over = figures["seconds"] > most_seconds or figures["resident"] > most_gigabytes
        lines.append(
            f"| {kind} | {figures['seconds']:.1f} | {figures['processor']:.1f} | {figures['resident']:.2f}"
            f"{' **over**' if over else ''} | {figures['accuracy']:.3f} |"
        )
        print(lines[-1], flush=True)
    text = "\n".join([LIMITS_TEXT, LIMITS_TITLE, *lines])
    page.write_text(with_section(page.read_text(encoding="utf-8"), LIMITS_BEGIN, LIMITS_END, text), encoding="utf-8")


def write_page(page: Path, lines: list[str]) -> None:
    """Write the table into the page, and keep its lines of other methods."""
    before = page.read_text(encoding="utf-8")
    old = before.split(BEGIN)[1].split(END)[0]
    lines_by_case = {
        tuple(text.split(" | ")[:2]): text
        for text in old.splitlines() + lines
        if text.startswith("| ") and " | " in text
    }
    order = [(f"| {case}", kind) for kind in SETS for case in CASES]
    table = [lines_by_case[key] for key in order if key in lines_by_case]
    page.write_text(with_section(before, BEGIN, END, "\n".join([TEXT, TITLE, *table])), encoding="utf-8")


def main() -> None:
    """Measure one case, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--set", choices=[*SETS, *LIMITS], action="append", dest="sets", help="which rows; all by default"
    )
    parser.add_argument("--case", choices=list(CASES), help="measure this one in this process, and print JSON")
    parser.add_argument("--methods", nargs="*", default=list(CASES), help="cases of the table")
    parser.add_argument("--page", type=Path, help="write the table there too")
    parser.add_argument("--limits", type=Path, help="measure the recommended method's limits, and write them there")
    parser.add_argument("--small", action="store_true", help=f"one row in {SMALL}, for a quick look")
    options = parser.parse_args()
    sets = options.sets or list(SETS)
    if options.case:
        print(json.dumps(measure(sets[0], options.case, options.small)))
        return
    if options.limits:
        limits(options.limits, options.small)
        return
    print(TITLE)
    for kind in sets:
        for case in options.methods:
            if kind == "dense" or case not in DENSE_ONLY:
                text = line(kind, case, options.small)
                print(text, flush=True)
                if options.page:
                    write_page(options.page, [text])


if __name__ == "__main__":
    main()
