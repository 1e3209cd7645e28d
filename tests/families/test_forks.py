"""Processes that are copied (`os.fork`) while other threads fit and predict."""

import concurrent.futures
import os

import numpy as np
import pytest
from tests.numerics.test_threads import blas_threads
from tests.processes import run_python
from threadpoolctl import threadpool_limits

from privsvm.registry import estimator_class, implementations

# Exact, recommended, out of kernel values, of random features, of landmarks, condensed, by steps.
NAMES = ("svm", "recommended", "rsvm", "private_svm_rbf", "landmark_dual", "fcm_svm", "softmax_dpsgd")
PROGRAM = """
import os, signal, sys, threading
from threadpoolctl import threadpool_limits
from tests.families.test_forks import fit, table

# Whatever the number of cores is; and another thread than those that fit controls OpenBLAS.
limit = threadpool_limits(2, user_api="blas")
X, y = table(600)
# All that is compiled is loaded before a thread starts.
models = {name: fit(name, X, y) for name in sys.argv[1:]}
for name, model in models.items():
    work = [lambda: fit(name, X, y), lambda: model.predict(X)]
    for run in work:
        run()
    done = threading.Event()
    threads = [threading.Thread(target=lambda run=run: [run() for _ in iter(done.is_set, True)]) for run in work]
    for thread in threads:
        thread.start()
    for _ in range(2):
        child = os.fork()
        if child == 0:
            # A copy that hangs is ended.
            signal.alarm(60)
            for run in work:
                run()
            os._exit(0)
        if os.waitpid(child, 0)[1]:
            print(name, flush=True)
            os._exit(1)
    done.set()
    for thread in threads:
        thread.join()
"""


def table(n_rows):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, 20))
    return X, np.digitize(X[:, 0] + rng.normal(size=n_rows), [-1.0, 1.0])


def fit(name, X, y):
    """Fit a method that is named like that, with a budget that all accept."""
    method = estimator_class(name)
    settings = {
        "classes": [0, 1, 2], "n_rows": len(y), "data_norm": 20.0, "bounds": (-5.0, 5.0), "allow_unsound": True,
        "random_state": 0, "kernel": "gaussian" if name in ("one_norm_svm", "ppsvm", "rsvm") else "rbf",
    }  # fmt: skip
    return method(**{key: value for key, value in settings.items() if key in method.declared}).fit(X, y)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_copy_made_beside_fits_and_predictions_works():
    """BLAS runs with its default number of threads, not with the tests' single one."""
    variables = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    run_python("-c", PROGRAM, *NAMES, env=variables)


@pytest.mark.parametrize("name", implementations())
def test_fits_and_predictions_keep_blas_to_one_thread(name, monkeypatch):
    """Also where another thread controls OpenBLAS for threadpoolctl."""
    seen = []

    def watch(owner, name):
        original = getattr(owner, name)

        def watch_call(*arguments, **options):
            seen.append(set(blas_threads()))
            return original(*arguments, **options)

        monkeypatch.setattr(owner, name, watch_call)

    method = estimator_class(name)
    watch(method, "_release" if hasattr(method, "_release") else "_train")
    with threadpool_limits(2, user_api="blas"), concurrent.futures.ThreadPoolExecutor(1) as pool:
        model = pool.submit(fit, name, *table(60)).result()
        for scores in {"scores", "pair_values"} & {*dir(model._path)}:
            watch(type(model._path), scores)
        before = len(seen)
        pool.submit(model.predict, table(60)[0]).result()
        assert 1 <= before < len(seen)
        assert seen == len(seen) * [{1}]
        assert set(blas_threads()) == {2}
