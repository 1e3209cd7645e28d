"""Draw the curves as ``dvc plots show`` does, in a page that needs no network."""

from __future__ import annotations

import argparse
from pathlib import Path

from privsvm.errors import PrivSVMError
from privsvm.files import write_text
from privsvm_bench.jobs.params import read_params
from privsvm_bench.workflow.private_outputs import close_folders
from privsvm_bench.workflow.stage import run

# Path in `.dvc/page.html`, and the version of Vega-Lite that the template is written for.
VEGA, VERSION = Path(".cache/vega.js"), "5.21"


def main(arguments: list[str] | None = None) -> int:
    """Write the chart library if it is missing, then the page."""
    from dvc.cli import main as dvc

    argparse.ArgumentParser(description=__doc__).parse_args(arguments)
    close_folders(read_params())
    if not VEGA.exists():
        try:
            from vl_convert import javascript_bundle
        except ImportError:
            raise PrivSVMError("the charts need vl-convert-python; run `make prepare-dev`") from None
        VEGA.parent.mkdir(exist_ok=True)
        write_text(VEGA, javascript_bundle(None, VERSION))
    return int(dvc(["plots", "show"]))


if __name__ == "__main__":
    run(main)
