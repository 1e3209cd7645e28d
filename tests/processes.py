"""Processes that run at the same time."""

import multiprocessing
from collections.abc import Callable, Iterable
from multiprocessing.context import BaseContext
from typing import Any


def exit_codes(
    function: Callable[..., Any], calls: Iterable[tuple[Any, ...]], context: BaseContext | str = "fork"
) -> list[int]:
    """Run a function at once in a process for each tuple of arguments; return how each process ended."""
    if isinstance(context, str):
        context = multiprocessing.get_context(context)
    processes = [context.Process(target=function, args=arguments) for arguments in calls]  # type: ignore[attr-defined]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    return [process.exitcode for process in processes]
