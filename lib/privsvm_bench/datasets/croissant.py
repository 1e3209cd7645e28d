"""Hand on a prepared table: its rows as CSV, described in Croissant 1.0 (JSON-LD)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from privsvm.digests import sha256_of_file
from privsvm.errors import PrivSVMError
from privsvm.files import read_json, write_json, write_text
from privsvm.numerics.rows.rows import is_sparse
from privsvm_bench.datasets.catalogue import load_catalogue
from privsvm_bench.datasets.prepared import load_prepared

DESCRIPTION = "croissant.json"
_TABLE, _LABEL = "table.csv", "class"


def describe_table(name: str, out: str | os.PathLike[str], folder: str | os.PathLike[str] = "data/prepared") -> Path:
    """Write ``table.csv`` and ``croissant.json`` for a prepared dataset of the catalogue, and return the latter's path.

    `folder` holds the prepared data. Own data are not described: only their owner may publish the rows. Raises
    PrivSVMError if the dataset is not in the catalogue, not prepared, or sparse.
    """
    import pandas as pd

    entry = load_catalogue().get(name)
    if entry is None:
        raise PrivSVMError(
            f"{name}: not in the catalogue; `python -m privsvm_bench datasets` lists what is; your own data are not "
            "written out"
        )
    prepared = load_prepared(Path(folder) / f"{name}.npz")
    if is_sparse(prepared.X):
        raise PrivSVMError(f"{name}: sparse rows have no table; hand on data/raw/{name}")
    features = [f"x{column}" for column in range(1, prepared.X.shape[1] + 1)]
    table = Path(out) / _TABLE
    table.parent.mkdir(parents=True, exist_ok=True)
    rows = pd.DataFrame(prepared.X, columns=features)
    rows[_LABEL] = [prepared.classes[code] for code in prepared.y]
    write_text(table, rows.to_csv(index=False, lineterminator="\n"))
    write_json(
        Path(out) / DESCRIPTION,
        {
            "@context": read_json(Path(__file__).with_name("croissant_context.json")), "@type": "sc:Dataset",
            "name": name, "conformsTo": "http://mlcommons.org/croissant/1.0",
            "description": f"{entry.note or name} Rows in the units of the source; {entry.source}".strip(),
            "license": entry.licence_words, "version": "1.0.0",
            "distribution": [{
                "@type": "cr:FileObject", "@id": _TABLE, "name": _TABLE, "contentUrl": _TABLE,
                "encodingFormat": "text/csv", "sha256": sha256_of_file(table),
            }],
            "recordSet": [{
                "@type": "cr:RecordSet", "@id": "rows", "name": "rows", "description": "One record for each row.",
                "field": [_field(column, "sc:Float") for column in features] + [_field(_LABEL, "sc:Text")],
            }],
        },
    )  # fmt: skip
    return Path(out) / DESCRIPTION


def _field(column: str, kind: str) -> dict[str, Any]:
    return {
        "@type": "cr:Field", "@id": f"rows/{column}", "name": column, "dataType": kind,
        "description": "The class." if column == _LABEL else f"Feature {column[1:]}.",
        "source": {"fileObject": {"@id": _TABLE}, "extract": {"column": column}},
    }  # fmt: skip
