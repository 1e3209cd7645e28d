"""A reader that crashes is one line."""

import os
import signal

import numpy as np
import pytest

from privsvm.data.children import arrays_of_child
from privsvm.errors import PrivSVMError


def test_answers():
    X = np.arange(1e5).reshape(-1, 4)
    found = arrays_of_child(lambda: {"X": X, "labels": np.array(["ä", "b"])})
    assert found is not None
    np.testing.assert_array_equal(found["X"], X)
    assert found["labels"].tolist() == ["ä", "b"]

    def refuse():
        raise PrivSVMError("x: no; do y")

    with pytest.raises(PrivSVMError, match="x: no; do y"):
        arrays_of_child(refuse)


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL])
def test_crashes(capfd, number):
    assert arrays_of_child(lambda: os.kill(os.getpid(), number)) is None
    assert capfd.readouterr().err == ""


def test_any_other_error_is_no_answer():
    assert arrays_of_child(lambda: 1 // 0) is None
