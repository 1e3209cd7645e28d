"""Condense the training rows of one dataset, or pass them on as they are."""

from __future__ import annotations

import argparse

import numpy as np

from privsvm.errors import PrivSVMError, nearest_name
from privsvm.files import write_npz
from privsvm.stage import die_with_parent, json_argument, run


def main(arguments: list[str] | None = None) -> None:
    """Write the condensed rows of every split; for ``none`` only the word."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prepared", required=True, metavar="NPZ", help="the prepared dataset")
    parser.add_argument("--output", required=True, metavar="NPZ")
    parser.add_argument("--parameters", required=True, type=json_argument, metavar="JSON", help='{"condense": "none"}')
    options = parser.parse_args(arguments)
    die_with_parent()

    kind = options.parameters["condense"]
    if kind != "none":
        raise PrivSVMError(f"params.yaml: condense: {kind!r} is unknown; {nearest_name(kind, ['none'])}")
    # The train stage reads the prepared rows themselves: no copy of them.
    write_npz(options.output, {"condense": np.array(kind)})


if __name__ == "__main__":
    run(main)
