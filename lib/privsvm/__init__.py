"""PrivSVM: privacy-preserving support vector machines, honestly accounted.

A public name is imported when it is first used, so that ``import privsvm`` stays fast. The methods of papers are in
`privsvm.methods`; their classes are found here, too. The wheel's ``__init__.pyi`` names everything for type
checkers.
"""

from __future__ import annotations

import importlib
from typing import Any

_MODULES = {
    "Budget": "privsvm.base.budget",
    "BudgetExceededError": "privsvm.base.budget",
    "Guarantee": "privsvm.privacy.gate",
    "PrivSVMError": "privsvm.errors",
    "PrivateLinearClassifier": "privsvm.methods.recommended",
    "PrivateSearch": "privsvm.model_selection.private_search",
    "PublicSchema": "privsvm.tables.public_schema",
    "RowBlocks": "privsvm.numerics.rows.row_blocks",
    "SVMClassifier": "privsvm.families.exact.svm_classifier",
    "audit": "privsvm.auditing.estimators",
    "load": "privsvm.release.predicting.model",
    "make_private_pipeline": "privsvm.release.training.private_pipeline",
    "open_rows": "privsvm.numerics.rows.row_blocks",
    "save": "privsvm.release.predicting.model",
}
__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("privsvm")
    methods = importlib.import_module("privsvm.methods")
    if name == "methods":
        return methods
    if name not in _MODULES and name not in methods.__all__:
        raise AttributeError(f"module 'privsvm' has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]) if name in _MODULES else methods, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *importlib.import_module("privsvm.methods").__all__})
