"""Worker in a peer's environment: read one task per line, answer each with one line.

A task is JSON: ``function`` (a module of this folder and a function of it), ``split`` and ``answer`` (files),
``epsilon``, ``delta`` and ``seed``. The split holds ``X_train`` and ``X_test`` in [0, 1] by public bounds,
``indicators`` (features that are declared to be 0 or 1), ``y_train`` and ``n_classes``. A function with an argument
``levels`` gets ``coded_train`` and ``coded_test`` instead: categories as codes from 0, and how many each column has (0
for numbers, in [0, 1]). The answer holds the scores
of the test rows, one column per class, and the processor seconds of fitting. This folder and the library do not import
each other.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import resource
import sys
import time
import traceback
import warnings

import numpy as np


def work(task: dict) -> None:
    """Fit, score and write."""
    with np.load(task["split"]) as arrays:
        X, y, X_test = arrays["X_train"], arrays["y_train"], arrays["X_test"]
        n_classes, indicators = int(arrays["n_classes"]), arrays["indicators"]
        coded = arrays["coded_train"], arrays["coded_test"], arrays["levels"]
    module, function = task["function"].split(".")
    fit = getattr(importlib.import_module(module), function)
    wanted = inspect.signature(fit).parameters
    extra = {"indicators": indicators} if "indicators" in wanted else {}
    if "levels" in wanted:
        X, X_test, extra["levels"] = coded
    start = time.process_time()
    score = fit(X, y, n_classes, task["epsilon"], task["delta"], task["seed"], **extra)
    seconds = time.process_time() - start
    np.savez(task["answer"], scores=np.asarray(score(X_test), dtype=float), seconds=seconds)


def main() -> None:
    """Run tasks until the input ends, with 8 GB and with output on the error stream."""
    resource.setrlimit(resource.RLIMIT_DATA, (8 * 2**30, 8 * 2**30))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        error = ""
        try:
            work(json.loads(line))
        except Exception:
            error = traceback.format_exc(limit=-1).strip().splitlines()[-1]
        print(json.dumps({"error": error}), file=answers, flush=True)


if __name__ == "__main__":
    main()
