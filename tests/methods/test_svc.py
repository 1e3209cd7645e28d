"""`SVMClassifier` in the place of `sklearn.svm.SVC`, in scikit-learn's own tests."""

import importlib.util
import inspect
import sys
from pathlib import Path
from unittest import mock

import pytest
import sklearn.svm
import sklearn.svm.tests

from privsvm import SVMClassifier

# Cases that differ, and why: what scikit-learn keeps in private attributes, and words of its own.
EXCUSED = {
    "test_tweak_params_of_test_svm": "changes the private array _dual_coef_, and expects other predictions",
    "test_svc_raises_error_internal_representation_of_test_svm": "changes the private array _n_support",
    "test_unfitted_of_test_svm": "looks for the class name SVC in the message",
    "test_bad_input_of_test_svm": "refuses sparse rows after a fit of dense ones; here both are predicted",
    "test_svc_nusvc_probA_probB_deprecated_of_test_svm": "reads attributes that scikit-learn is taking away",
}


def _ours(name):
    """The tests of one of scikit-learn's modules that use SVC, read with our class in its place."""
    path = Path(sklearn.svm.tests.__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"{__name__}.{name}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    with mock.patch.object(sklearn.svm, "SVC", SVMClassifier):
        spec.loader.exec_module(module)
    for title, value in vars(module).items():
        if title.startswith("test_") and inspect.isfunction(value) and "svm.SVC" in inspect.getsource(value):
            yield f"{title}_of_{name}", value


@pytest.fixture(autouse=True)
def _in_its_place(monkeypatch):
    monkeypatch.setattr(sklearn.svm, "SVC", SVMClassifier)


@pytest.fixture
def global_random_seed():
    return 42


for _title, _test in [*_ours("test_svm"), *_ours("test_sparse")]:
    if _title not in EXCUSED:
        globals()[_title] = _test
