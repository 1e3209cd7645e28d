"""Readers refuse files that were changed after they were written, even with their old time and size."""

import hashlib
import json
import os
import re

import numpy as np
import pytest
from tests.refusals import refusal

from privsvm.base.released import ConstantPath
from privsvm.files import read_json, write_npz
from privsvm.privacy.gate import Guarantee
from privsvm_bench.jobs.model_files import check_arrays, collect_fields, load_paths, save_paths
from privsvm_bench.records import SavedModels, read, seal, write

NONE = Guarantee(status="none", mechanism="none", reason="no noise", reference="test")
PATH = ConstantPath(
    epsilons=(float("inf"),), guarantees=(NONE,), n_classes=2, class_scores=np.array([[[0.25, 0.75]]])
)  # fmt: skip


@pytest.fixture
def models(tmp_path):
    """Arrays and record of one model."""
    arrays, record = tmp_path / "m.npz", tmp_path / "m.json"
    save_paths(
        [PATH], arrays, record, SavedModels(implementation="majority", classes=("a", "b"), **collect_fields([PATH]))
    )
    return arrays, record


def keep_time(path, content):
    """Change the content of a file and keep its times."""
    before = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_what_is_written_is_read(models):
    paths, record = load_paths(*models, SavedModels)
    np.testing.assert_array_equal(paths[0].class_scores, PATH.class_scores)
    assert record.arrays_sha256 == hashlib.sha256(models[0].read_bytes()).hexdigest()
    again = models[1].with_name("again.json")
    write(again, record)
    assert again.read_bytes() == models[1].read_bytes()
    assert read(SavedModels, again) == record


def test_models_cut_short_or_edited(models):
    arrays, record = models
    content = arrays.read_bytes()
    middle = len(content) // 2
    flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    for edited in (content[:-1], content[:middle], flipped, b""):
        keep_time(arrays, edited)
        assert re.search(r"m\.npz: not the arrays that .*m\.json is of", refusal(load_paths, *models, SavedModels))
    # A complete file of another run.
    write_npz(arrays, {"0.class_scores": np.array([[[0.5, 0.5]]])})
    assert "not the arrays" in refusal(load_paths, *models, SavedModels)
    arrays.unlink()
    assert "file not found" in refusal(check_arrays, arrays, read(SavedModels, record), record)


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text.replace('"majority"', '"majoritx"'),
        lambda text: text.replace('"repeats": 1', '"repeats": 2'),
        lambda text: text.replace("no noise", "No noise"),
        lambda text: text.replace('"n_classes": 2', '"n_classes": 2.5'),
    ],
)
def test_a_record_edited_by_hand(models, edit):
    _, record = models
    text = record.read_text()
    assert edit(text) != text
    keep_time(record, edit(text).encode())
    assert "m.json: was changed after it was written" in refusal(read, SavedModels, record)


def test_a_record_without_its_digest(models):
    _, record = models
    content = read_json(record)
    del content["record_sha256"]
    record.write_text(json.dumps(content))
    assert "'record_sha256' is missing" in refusal(read, SavedModels, record)
    # Order of keys and white space do not count.
    record.write_text(json.dumps(dict(reversed(seal(content).items()))))
    assert read(SavedModels, record).implementation == "majority"
