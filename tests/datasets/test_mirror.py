"""Every file in the mirror, fetched and read: rows, features, classes and missing values as the manifest has them."""

import json
from collections import Counter

import numpy as np
import pytest

from privsvm.numerics.rows.rows import is_sparse
from privsvm_bench.datasets.catalogue import load_catalogue
from privsvm_bench.datasets.download import fetch_file
from privsvm_bench.datasets.readers import read_part

CATALOGUE = load_catalogue()
# Tables that a package of the index ships are in no mirror; their notes name the script that unpacks them.
PACKAGED = [name for name, entry in CATALOGUE.items() if "bench/utility/packaged.py" in entry.note]
IN_MIRROR = [name for name, entry in CATALOGUE.items() if entry.verified and not entry.bundled and name not in PACKAGED]


@pytest.mark.parametrize("name", IN_MIRROR)
def test_entry_reads_as_the_manifest_says(mirror, tmp_path, name):
    records = [record for record in json.loads((mirror / "MANIFEST.json").read_text()) if record["name"] == name]
    assert records, f"{name} is in the catalogue but not in the manifest"
    # The reader compares with the catalogue, and this test with the manifest.
    entry = CATALOGUE[name]
    for file in entry.files.values():
        assert fetch_file(file, tmp_path / file.name, str(mirror), dataset=name).startswith(str(mirror))
    assert {record["role"] for record in records} == set(entry.parts)
    for record in records:
        X, labels = read_part(entry, record["role"], tmp_path)
        assert X.shape == (record["n_rows"], record["n_features"])
        assert X.dtype == np.float64
        label_map = record.get("label_map", {})
        expected = {str(label_map.get(label, label)): count for label, count in record["classes"].items()}
        assert dict(Counter(labels.tolist())) == expected
        values = X.data if is_sparse(X) else X
        assert int(np.isnan(values).sum()) == record["missing_values"]
        low, high = record["value_range"]
        value_range = (
            (min(np.nanmin(values), 0.0), max(np.nanmax(values), 0.0))
            if is_sparse(X)
            else (np.nanmin(values), np.nanmax(values))
        )
        np.testing.assert_allclose(value_range, (low, high), rtol=1e-4)
        bounds = entry.bounds
        if bounds is not None and not is_sparse(X):
            inside = (np.nan_to_num(X) >= bounds.lower) & (np.nan_to_num(X) <= bounds.upper)
            assert inside.all(), f"{name}: declared bounds do not hold"
        elif bounds is not None:
            assert bounds.lower[0] <= values.min()
            assert values.max() <= bounds.upper[0]


def test_every_manifest_entry_is_covered(mirror):
    names = {record["name"] for record in json.loads((mirror / "MANIFEST.json").read_text())}
    assert names == set(IN_MIRROR)
