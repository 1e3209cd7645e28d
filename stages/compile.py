"""Compile all jit functions into the cache folder of the present sources, and remove the folders of older ones."""

from __future__ import annotations

import argparse
import gc
import os
import re
import shutil
from pathlib import Path

from privsvm.errors import PrivSVMError
from privsvm.pipeline.stage import die_with_parent, run
from privsvm.solvers import EARLY_MODULES, JIT_GROUPS, MARKER, compile_once

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


def main(arguments: list[str] | None = None) -> None:
    """Compile into ``NUMBA_CACHE_DIR``."""
    argparse.ArgumentParser(description=__doc__).parse_args(arguments)
    die_with_parent()
    if "NUMBA_CACHE_DIR" not in os.environ:
        raise PrivSVMError("NUMBA_CACHE_DIR: not set; run `snakemake compile`, which sets it")
    cache = Path(os.environ["NUMBA_CACHE_DIR"])
    # Most of what a compiler makes lives on; to look for garbage among it took a twentieth of the time.
    gc.set_threshold(100_000, 50, 1000)

    compiled = compile_once(*EARLY_MODULES)
    (cache / MARKER).touch()
    remove_older_caches(cache)
    print(f"compile: {', '.join(compiled) or 'nothing left'} compiled here, the rest by others")


if __name__ == "__main__":
    run(main)
