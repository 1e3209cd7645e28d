"""Compile all jit functions into the cache folder of the present sources, and remove the folders of older ones."""

from __future__ import annotations

import argparse
import os
import re
import shutil
from pathlib import Path

from privsvm.errors import PrivSVMError
from privsvm.pipeline.stage import die_with_parent, run
from privsvm.solvers import JIT_MODULES, LOCK, compile_once

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
        if folder != cache and _KEY.fullmatch(folder.name) and (folder / LOCK).is_file():
            shutil.rmtree(folder, ignore_errors=True)


def main(arguments: list[str] | None = None) -> None:
    """Compile into ``NUMBA_CACHE_DIR``."""
    argparse.ArgumentParser(description=__doc__).parse_args(arguments)
    die_with_parent()
    if "NUMBA_CACHE_DIR" not in os.environ:
        raise PrivSVMError("NUMBA_CACHE_DIR: not set; run `snakemake compile`, which sets it")
    cache = Path(os.environ["NUMBA_CACHE_DIR"])

    compiled = compile_once()
    remove_older_caches(cache)
    print(f"compile: {'compiled' if compiled else 'already compiled'}: {', '.join(JIT_MODULES)}")


if __name__ == "__main__":
    run(main)
