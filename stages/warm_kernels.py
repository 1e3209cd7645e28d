"""Compile all Numba kernels into the cache folder of the present sources, and drop folders of older ones."""

from __future__ import annotations

import argparse
import os
import re
import shutil
from pathlib import Path

from privsvm.errors import PrivSVMError
from privsvm.pipeline.stage import die_with_parent, run
from privsvm.solvers import KERNEL_MODULES, LOCK, compile_once

# Names of cache folders (`privsvm.pipeline.sources.compiled_code_key`).
_KEY = re.compile("[0-9a-f]{16}")


def remove_older_caches(cache: Path) -> None:
    """Remove the cache folders of older sources beside this one, and nothing that is not certainly one of them.

    Parameters
    ----------
    cache : path-like
        Cache folder in use. Where its own name is no key, somebody has chosen the place, and all its neighbours stay.
    """
    if not _KEY.fullmatch(cache.name):
        return
    for folder in cache.parent.iterdir():
        if folder != cache and _KEY.fullmatch(folder.name) and (folder / LOCK).is_file():
            shutil.rmtree(folder, ignore_errors=True)


def main(arguments: list[str] | None = None) -> None:
    """Compile into ``NUMBA_CACHE_DIR``."""
    argparse.ArgumentParser(description=__doc__).parse_args(arguments)
    die_with_parent()
    if "NUMBA_CACHE_DIR" not in os.environ:
        raise PrivSVMError("NUMBA_CACHE_DIR: not set; run `snakemake warm_kernels`, which sets it")
    cache = Path(os.environ["NUMBA_CACHE_DIR"])

    compiled = compile_once()
    remove_older_caches(cache)
    print(f"warm_kernels: {'compiled' if compiled else 'already compiled'}: {', '.join(KERNEL_MODULES)}")


if __name__ == "__main__":
    run(main)
