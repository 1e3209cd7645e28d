"""Write the pages that only the site has: parameters of the methods, and planted bugs."""

import sys
from pathlib import Path

from privsvm.registry import estimator_class, implementations

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from bench.sections import markdown_table
from tests.mutants.mutant import MUTANTS


def parameters():
    """Write the page on the methods' parameters, from their declarations."""
    lines = [
        "# Parameters of the methods",
        "",
        "Each section lists the keys of an entry of `methods` in `params.yaml`. In YAML, write None as `null`. The",
        "Python classes have the same parameters. The workflow sets `epsilon`, `delta`, `neighbours`, `classes`,",
        "`n_rows`, `n_jobs`, `random_state` and `allow_composition` itself, for the classes that use them. With",
        "`scaling: bounds`, dense rows also set `bounds` and `indicators`, unless the entry has its own.",
    ]
    for implementation in implementations():
        method = estimator_class(implementation)
        summary = (method.__doc__ or "").split("\n\n")[0].replace("\n", " ")
        lines += ["", f"## {implementation}", "", f"`{method.__name__}`: {summary}"]
        # The workflow sets the common ones.
        rows = {name: item for name, item in method.declared.items() if not item.common}
        if rows:
            lines += ["", markdown_table(("parameter", "type", "default", "meaning"), map(_parameter, rows.items()))]
    return "\n".join(lines) + "\n"


def _parameter(named):
    """Write a line of the table of parameters."""
    name, item = named
    words = item.constraint.words.replace("|", "or")
    default = f'"{item.default}"' if isinstance(item.default, str) else repr(item.default)
    return f"`{name}`", words, f"`{default}`", item.doc


def list_bugs():
    """Write the page on planted bugs, from their list."""
    rows = []
    for mutant in MUTANTS:
        tests = ", ".join(f"`{test.removeprefix('tests/')}`" for test in mutant.tests)
        file = mutant.file.removeprefix("lib/").removeprefix("privsvm/")
        rows.append((mutant.name, f"`{file}`", tests, mutant.says.replace("\n", " ")))
    table = markdown_table(("bug", "file", "found by", "message"), rows)
    return f"""# Planted bugs

A test finds each of these {len(MUTANTS)} bugs: `python tests/mutants/run.py` plants them in a copy of the
sources, one at a time, and a listed test must fail with these words. No test here measures accuracy.

{table}
"""


PAGES = {"docs/method-parameters.md": parameters, "docs/mutants.md": list_bugs}
