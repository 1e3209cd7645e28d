"""PrivSVM: privacy-preserving support vector machines, honestly accounted.

The public names are the recommended classifier, the classes that the files of `privsvm.methods` list in their
``__all__``, and a few more. They are found in the files without importing them, and imported when they are first used,
so that ``import privsvm`` stays fast. ``__init__.pyi`` names them for type checkers.
"""

from __future__ import annotations

import functools
import importlib
from pathlib import Path
from typing import Any

_OTHERS = {
    "Budget": "privsvm.base.budget",
    "BudgetExceededError": "privsvm.base.budget",
    "Guarantee": "privsvm.privacy.guarantee",
    "load": "privsvm.release.model",
    "open_rows": "privsvm.numerics.rows.row_blocks",
    "RowBlocks": "privsvm.numerics.rows.row_blocks",
    "make_private_pipeline": "privsvm.release.private_pipeline",
    "PrivateLinearClassifier": "privsvm.methods.recommended",
    "PrivateSearch": "privsvm.model_selection.private_search",
    "PrivSVMError": "privsvm.errors",
    "PublicSchema": "privsvm.tables.public_schema",
    "save": "privsvm.release.model",
    "audit": "privsvm.auditing.estimators",
}


@functools.cache
def _homes() -> dict[str, str]:
    """Find the module of every public name."""
    # Imported here: whoever names no class need not wait for them.
    import ast
    import re

    found = dict(_OTHERS)
    for path in sorted(Path(__file__).with_name("methods").glob("*.py")):
        listed = re.search(r"^__all__ = (\[.*?\])", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        names = ast.literal_eval(listed[1]) if listed else []
        # Classes, and no constants: "PPSVMClassifier", not "ESTIMATOR".
        classes = [name for name in names if re.fullmatch(r"[A-Z]\w*[a-z]\w*", name)]
        found |= dict.fromkeys(classes, f"privsvm.methods.{path.stem}")
    return dict(sorted(found.items()))


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return list(_homes())
    if name == "__version__":
        from importlib.metadata import version

        return version("privsvm")
    if name.startswith("_") or name not in _homes():
        raise AttributeError(f"module 'privsvm' has no attribute {name!r}")
    return getattr(importlib.import_module(_homes()[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_homes()})
