"""Rows in any form reach the compiled code in one: a form compiles nothing that another has not compiled."""

import sys

import numpy as np
import pytest
from numba.core.dispatcher import Dispatcher
from tests.test_drawn_benchmark import load_bench

from privsvm import SVMClassifier

FORMS = load_bench("first_fit").forms


def variants():
    """All compiled functions of the package, each with its types."""
    modules = [module for name, module in sys.modules.items() if name.startswith("privsvm.")]
    functions = {id(f): f for module in modules for f in vars(module).values() if isinstance(f, Dispatcher)}.values()
    return {(f.py_func.__qualname__, str(signature)) for f in functions for signature in f.signatures}


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("sparse", [False, True])
def test_every_form_of_rows_has_the_same_compiled_code(n_classes, sparse):
    rng = np.random.default_rng(0)
    y = np.arange(330) % n_classes
    X = rng.normal(size=(330, 40)) + y[:, None]
    forms = [(form, rows) for form, rows in FORMS(X, rng) if form.startswith("CS") == sparse]
    assert len(forms) == (5 if sparse else 9)

    def fit(rows):
        SVMClassifier(gamma=0.02).fit(rows, y).predict(rows)

    fit(forms[0][1])
    before = variants()
    assert any("_solve_some" in name for name, _ in before)
    for form, rows in forms[1:]:
        fit(rows)
        assert variants() == before, form
