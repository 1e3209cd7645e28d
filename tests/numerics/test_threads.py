import os
import threading
import time

import numpy as np
import pytest
from tests.waits import PATIENCE
from threadpoolctl import threadpool_info, threadpool_limits

from privsvm.base import budget
from privsvm.numerics.compiled import threads
from privsvm.numerics.compiled.threads import (
    allocate_aligned,
    count_threads,
    one_blas_thread,
    share_out,
    thread_pool,
    threads_worth,
)


def blas_threads():
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_the_last_user_lifts_the_limit():
    """Whichever thread that is, and whichever controls OpenBLAS for threadpoolctl."""
    entered, done = threading.Event(), threading.Event()

    def other():
        with one_blas_thread():
            entered.set()
            done.wait(PATIENCE)

    thread = threading.Thread(target=other, daemon=True)
    with threadpool_limits(2, user_api="blas"):
        assert set(blas_threads()) == {2}
        thread.start()
        entered.wait(PATIENCE)
        assert set(blas_threads()) == {1}
        with one_blas_thread():
            done.set()
            thread.join()
            with one_blas_thread():
                pass
            # Neither of them was the last.
            assert set(blas_threads()) == {1}
        assert set(blas_threads()) == {2}


def test_numbers_of_threads():
    assert count_threads(None) == 1
    assert count_threads(3) == count_threads(np.int64(3)) == 3
    assert count_threads(-1) >= 1
    assert count_threads(-1000) == 1
    for value in (0, True, 1.5, "two"):
        with pytest.raises(ValueError, match="n_jobs="):
            count_threads(value)


def test_short_work_is_done_by_one_thread():
    assert threads_worth(4, 1e-6) == 1
    assert threads_worth(4, 1.0) == 4
    assert threads_worth(1, 1.0) == 1


def threads_of(n_threads):
    """Numbers of the threads of a pool that all work at the same time."""
    barrier = threading.Barrier(n_threads)

    def work():
        barrier.wait(PATIENCE)
        return threading.get_ident()

    with thread_pool(n_threads) as pool:
        return pool, {job.result() for job in [pool.submit(work) for _ in range(n_threads)]}


def test_threads_are_kept_and_lent_to_one_at_a_time():
    pool, threads = threads_of(2)
    assert len(threads) == 2
    assert threads_of(2) == (pool, threads)
    with thread_pool(2) as first, thread_pool(2) as second:
        assert first is not second
    with thread_pool(1) as none:
        assert none is None


def test_a_pool_that_failed_is_not_lent_again():
    with pytest.raises(ZeroDivisionError), thread_pool(2) as pool:
        pool.submit(lambda: 1 // 0).result()
    with thread_pool(2) as other:
        assert other is not pool


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_copy_of_the_process_has_threads_of_its_own():
    threads_of(2)
    child = os.fork()
    if child == 0:
        os._exit(0 if len(threads_of(2)[1]) == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert len(threads_of(2)[1]) == 2


@pytest.mark.parametrize("n_threads", [1, 3])
def test_a_task_is_done_once_for_each_part(n_threads):
    done, this_thread = [], threading.get_ident()

    def task(task_index, wrong):
        if task_index == wrong:
            raise ValueError("this task")
        done.append((task_index, threading.get_ident()))

    with thread_pool(n_threads) as pool:
        share_out(pool, task, [(task_index, None) for task_index in range(5)])
    assert sorted(task_index for task_index, _ in done) == list(range(5))
    assert (0, this_thread) in done
    assert n_threads == 1 or {thread for task_index, thread in done if task_index} - {this_thread}
    for wrong in (0, 4):
        with pytest.raises(ValueError, match="this task"), thread_pool(n_threads) as pool:
            share_out(pool, task, [(task_index, wrong) for task_index in range(5)])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("held", [budget._opening, threads._OneThread.lock], ids=["budget", "blas"])
def test_a_copy_of_this_process_can_take_every_lock(held):
    """Another thread holds the lock while the process is copied; the copy would wait for it for ever."""
    ready = threading.Event()

    def hold():
        with held:
            ready.set()
            time.sleep(0.2)

    thread = threading.Thread(target=hold)
    thread.start()
    ready.wait(PATIENCE)
    child = os.fork()
    if child == 0:
        os._exit(0 if held.acquire(timeout=PATIENCE) else 1)
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
    assert held.acquire(timeout=PATIENCE)
    held.release()


@pytest.mark.parametrize("unit", [1, 64, 4096])
@pytest.mark.parametrize("size", [1, 63, 10_000])
def test_memory_begins_at_a_multiple_of_the_unit(size, unit):
    # Kept, so that every one lies somewhere else.
    kept = [allocate_aligned(size, unit) for _ in range(20)]
    for number, memory in enumerate(kept):
        assert memory.shape == (size,)
        assert memory.ctypes.data % unit == 0
        memory[:] = number
    assert all((memory == number).all() for number, memory in enumerate(kept))
