"""Worker in an entry's environment: read one task per line, answer each with one line; it needs NumPy alone.

A task is JSON: the training rows ``X`` and ``y``, rows without labels ``X_test``, the public arguments of ``fit``, and
``seeds``. The answer holds an ``error``, and for each seed the class ``codes`` and, where the model has them, the
``scores`` of the test rows, and all ``numbers`` that the model holds. Every task runs in a fork of the process that
imported the entry, so that no fit knows the rows of another task.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import traceback
import types
import warnings

import numpy as np

# Numbers of a release that an audit looks at.
MOST_NUMBERS = 1024


def load_entry(path: str) -> types.ModuleType:
    """Import the file of an entry."""
    spec = importlib.util.spec_from_file_location("entry", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["entry"] = module
    spec.loader.exec_module(module)
    return module


def _parts(value: object) -> list | None:
    """List the parts of a released value: None for a number or an array of numbers, nothing where none is released."""
    if isinstance(value, (bool, int, float, complex, np.number, np.bool_)):
        return None
    if isinstance(value, (str, bytes, type, types.ModuleType)) or type(value).__module__.startswith("numpy.random"):
        return []
    if isinstance(value, np.ndarray):
        if value.dtype.names:
            return [value[name] for name in value.dtype.names]
        return list(value.flat) if value.dtype == object else None if value.dtype.kind in "biufc" else []
    if isinstance(value, dict):
        return [value[key] for key in sorted(value, key=str)]
    if isinstance(value, (list, tuple)):
        return list(value)
    if isinstance(value, types.FunctionType):
        return [*(cell.cell_contents for cell in value.__closure__ or ()), *(value.__defaults__ or ())]
    if hasattr(value, "detach"):
        return [value.detach().cpu().numpy()]
    # What pickle would write.
    return [getattr(value, "__getstate__", lambda: None)()]


def list_numbers(model: object) -> list[float]:
    """List the numbers that a model holds, the first ones of very many, after a count of them."""
    # Values are kept, lest another one gets the address of an earlier one.
    numbers, seen, waiting = [], {}, [model]
    while waiting:
        value = waiting.pop()
        if value is None or id(value) in seen:
            continue
        try:
            parts = _parts(value)
        except Exception:
            parts = []
        if parts is None:
            numbers.append(np.real(np.ravel(value)).astype(float))
            continue
        seen[id(value)] = value
        waiting.extend(reversed(parts))
    flat = np.concatenate([np.zeros(0), *numbers])
    return [float(flat.size), *flat[: MOST_NUMBERS - 1].tolist()]


def run_task(entry: types.ModuleType, task: dict) -> list[dict]:
    """Fit and predict once for each seed."""
    X, y, X_test = np.array(task["X"], dtype=float), np.array(task["y"]), np.array(task["X_test"], dtype=float)
    bounds = tuple(np.array(side, dtype=float) for side in task["bounds"])
    terms, answers = (task["classes"], task["epsilon"], task["delta"], task["neighbours"]), []
    for seed in task["seeds"]:
        model = entry.fit(X.copy(), y.copy(), bounds, *terms, np.random.RandomState(seed))
        codes = entry.predict(model, X_test) if hasattr(entry, "predict") else model.predict(X_test)
        scorer = getattr(model, "predict_proba", None)
        scores = None if scorer is None else np.asarray(scorer(X_test), dtype=float).tolist()
        numbers = list_numbers(model) if task["with_numbers"] else []
        answers.append({"codes": np.asarray(codes).tolist(), "scores": scores, "numbers": numbers})
    return answers


def main() -> None:
    """Run tasks until the input ends, with output on the error stream."""
    # A group of its own ends with its children.
    os.setsid()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    error = ""
    try:
        entry = load_entry(sys.argv[1])
    except Exception:
        error = traceback.format_exc(limit=-1).strip().splitlines()[-1]
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            try:
                answer = {"error": error, "fits": [] if error else run_task(entry, json.loads(line))}
            except Exception:
                answer = {"error": traceback.format_exc(limit=-1).strip().splitlines()[-1]}
            print(json.dumps(answer), file=answers, flush=True)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        if status:
            print(json.dumps({"error": f"ended with status {status}"}), file=answers, flush=True)


if __name__ == "__main__":
    main()
