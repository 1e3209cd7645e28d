"""Compile all Numba kernels into the cache folder of the present sources, and drop folders of older ones."""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path

from privsvm.errors import PrivSVMError
from privsvm.pipeline.stage import die_with_parent, run


def main(arguments: list[str] | None = None) -> None:
    """Compile into ``NUMBA_CACHE_DIR``."""
    argparse.ArgumentParser(description=__doc__).parse_args(arguments)
    die_with_parent()
    if "NUMBA_CACHE_DIR" not in os.environ:
        raise PrivSVMError("NUMBA_CACHE_DIR: not set; run `snakemake warm_kernels`, which sets it")
    cache = Path(os.environ["NUMBA_CACHE_DIR"])

    from privsvm.solvers import KERNEL_MODULES, compile_once

    compiled = compile_once()
    for folder in cache.parent.iterdir():
        if folder.is_dir() and folder != cache:
            shutil.rmtree(folder, ignore_errors=True)
    print(f"warm_kernels: {'compiled' if compiled else 'already compiled'}: {', '.join(KERNEL_MODULES)}")


if __name__ == "__main__":
    run(main)
