"""Compile all jit functions into the cache folder of the present sources, and remove the folders of older ones."""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import os
import re
import shutil
from pathlib import Path

from privsvm.numerics.threads import count_threads
from privsvm.pipeline.sources import compiled_code_folder
from privsvm.pipeline.stage import die_with_parent, run
from privsvm.solvers import EARLY_MODULES, JIT_GROUPS, JIT_MODULES, MARKER, compile_once

# Names of cache folders (`privsvm.pipeline.sources.compiled_code_key`).
_KEY = re.compile("[0-9a-f]{16}")


def remove_older_caches(cache: Path) -> None:
    """Remove the cache folders of older sources beside this one, and nothing else.

    Parameters
    ----------
    cache : path-like
        Cache folder in use. If its name is not a key, a person has chosen it, and nothing beside it is removed.
    """
    if not _KEY.fullmatch(cache.name):
        return
    for folder in cache.parent.iterdir():
        ours = _KEY.fullmatch(folder.name) and any((folder / f"{group}.lock").is_file() for group in JIT_GROUPS)
        if ours and folder != cache:
            shutil.rmtree(folder, ignore_errors=True)


def compile_early(number: int) -> list[str]:
    """Compile the groups that no other process compiles, as one of several processes or alone."""
    return compile_once(*EARLY_MODULES)


def compile_rest(number: int) -> list[str]:
    """Compile, too, what few data lead to: other solvers, sparse rows, double precision."""
    return compile_once(*JIT_MODULES, sparse=True, precise=True)


def main(arguments: list[str] | None = None) -> None:
    """Compile into ``NUMBA_CACHE_DIR``, or where a run looks if it is not set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--everything",
        action="store_true",
        help="also compile what few data lead to, in as many processes as there are cores",
    )
    options = parser.parse_args(arguments)
    die_with_parent()
    cache = Path(os.environ.setdefault("NUMBA_CACHE_DIR", str(compiled_code_folder())))
    # Most of what a compiler makes lives on; to look for garbage among it took a twentieth of the time.
    gc.set_threshold(100_000, 50, 1000)

    if options.everything:
        # Copies of a process that has imported Numba, which takes seconds.
        import numba  # noqa: F401

        processes = count_threads(-1)
        with multiprocessing.get_context("fork").Pool(processes, initializer=die_with_parent) as pool:
            parts = [
                part
                for compile_some in (compile_early, compile_rest)
                for part in pool.map(compile_some, range(processes), chunksize=1)
            ]
    else:
        parts = [compile_early(0)]
    (cache / MARKER).touch()
    remove_older_caches(cache)
    compiled = dict.fromkeys(group for part in parts for group in part)
    print(f"compile: {', '.join(compiled) or 'nothing left'} compiled here, the rest by others")


if __name__ == "__main__":
    run(main)
