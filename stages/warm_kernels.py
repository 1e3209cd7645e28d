"""Compile all Numba kernels into the cache folder of the present sources, and drop folders of older ones."""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path

from privsvm.files import write_text
from privsvm.stage import die_with_parent, run


def main(arguments: list[str] | None = None) -> None:
    """Compile, then write the key of the sources as a marker."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--key", required=True, help="name of the cache folder: the hash of the sources")
    parser.add_argument("--output", required=True, type=Path, help="marker to write")
    options = parser.parse_args(arguments)
    die_with_parent()

    from privsvm.solvers import warm_up

    names = warm_up()
    cache = os.environ.get("NUMBA_CACHE_DIR")
    if cache and Path(cache).name == options.key:
        for folder in Path(cache).parent.iterdir():
            if folder.is_dir() and folder.name != options.key:
                shutil.rmtree(folder, ignore_errors=True)
    write_text(options.output, options.key + "\n")
    print(f"warm_kernels: compiled {', '.join(names)}")


if __name__ == "__main__":
    run(main)
