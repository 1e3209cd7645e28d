"""Worker in an entry's environment: read one task per line, answer each with one line; it needs NumPy alone.

A task is JSON: the training rows ``X`` and ``y``, rows without labels ``X_test``, the public arguments of ``fit``, and
``seeds``. The answer holds an ``error``, and for each seed the class ``codes`` and, where the model has them, the
``scores`` of the test rows, and all ``numbers`` that the model holds. Every task runs in a fork of the process that
imported the entry, so that no fit knows the rows of another task.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import pickle  # nosec B403 (walks a model, and reads no file)
import resource
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


class _Reader(pickle.Pickler):
    """Lets pickle walk a model, and keeps its numbers; what cannot be pickled is left out."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO())
        self.numbers = [np.zeros(0)]

    def persistent_id(self, value: object) -> str | None:
        """Keep numbers, and go no further into them, types, modules and random states."""
        if isinstance(value, (int, float, complex, np.number, np.bool_, np.ndarray)):
            array = np.asarray(value)
            for part in [array[name] for name in array.dtype.names or ()] or [array]:
                if part.dtype.kind in "biufc":
                    self.numbers.append(np.real(np.ravel(part)).astype(float))
            return None if array.dtype == object else "numbers"
        closed = isinstance(value, (type, types.ModuleType))
        return "closed" if closed or type(value).__module__.startswith("numpy.random") else None

    def reducer_override(self, value: object) -> tuple:
        """Go into variables of functions, tensors, and the state of objects."""
        try:
            if isinstance(value, types.FunctionType):
                cells = [cell.cell_contents for cell in value.__closure__ or ()]
                # As a state: a function may refer to itself.
                return tuple, (), [cells, value.__defaults__, value.__kwdefaults__, value.__dict__]
            if hasattr(value, "detach"):
                return tuple, (), [value.detach().cpu().numpy()]
            reduced = value.__reduce_ex__(4)
        except Exception:
            reduced = ""
        # A string names a variable of a module.
        return (tuple, ()) if isinstance(reduced, str) else reduced


def list_numbers(model: object) -> list[float]:
    """List the numbers that a model holds, the first ones of very many, after a count of them."""
    reader = _Reader()
    with contextlib.suppress(Exception):
        reader.dump(model)
    flat = np.concatenate(reader.numbers)
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
        answers.append({"codes": np.asarray(codes).tolist(), "scores": scores, "numbers": list_numbers(model)})
    return answers


def main() -> None:
    """Run tasks until the input ends, with output on the error stream."""
    # Every fork has so many bytes, and so many seconds of processor time.
    for name, most in ((resource.RLIMIT_DATA, 8 * 2**30), (resource.RLIMIT_CPU, 600)):
        resource.setrlimit(name, (most, most))
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
