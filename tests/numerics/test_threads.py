import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from privsvm.numerics.threads import count_threads, one_blas_thread


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_the_last_user_lifts_the_limit():
    before = blas_threads()

    def other():
        with one_blas_thread():
            pass

    with one_blas_thread():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        with one_blas_thread():
            pass
        # Neither of them was the last.
        assert set(blas_threads()) == {1}
    assert blas_threads() == before


def test_numbers_of_threads():
    assert count_threads(None) == 1
    assert count_threads(3) == count_threads(np.int64(3)) == 3
    assert count_threads(-1) >= 1
    assert count_threads(-1000) == 1
    for value in (0, True, 1.5, "two"):
        with pytest.raises(ValueError, match="n_jobs="):
            count_threads(value)
