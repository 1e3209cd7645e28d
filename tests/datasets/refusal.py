"""Files that a reader must refuse, and arrays in one."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from tests.archives import content_of

from privsvm.errors import PrivSVMError
from privsvm_bench.datasets.catalogue import DatasetEntry
from privsvm_bench.datasets.readers import read_part


def npz(**arrays: np.ndarray) -> bytes:
    """Return the content of an .npz file."""
    return content_of(np.savez, **arrays)


def refused(entry: DatasetEntry, folder: Path, *words: str) -> None:
    """Read all of an entry; it must be refused in one line that begins with its folder and holds these words."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(PrivSVMError) as caught:
            read_part(entry, "all", folder)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{folder}/")
    for word in words:
        assert word in message, message
