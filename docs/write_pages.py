"""Write the pages that only the site has: parameters of the methods, and planted bugs."""

import sys
from pathlib import Path

from rendering import render

from privsvm.registry import estimator_class, implementations

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.mutants.mutant import MUTANTS


def parameters():
    """Write the page on the methods' parameters, from their declarations."""
    return render("method-parameters", methods={name: estimator_class(name) for name in implementations()}, repr=repr)


def list_bugs():
    """Write the page on planted bugs, from their list."""
    return render("mutants", mutants=MUTANTS)


PAGES = {"docs/method-parameters.md": parameters, "docs/mutants.md": list_bugs}
