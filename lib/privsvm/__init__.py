"""PrivSVM: privacy-preserving support vector machines, honestly accounted.

The public names are imported when they are first used, so that ``import privsvm`` stays fast.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from privsvm.errors import PrivSVMError
    from privsvm.methods.dp_frank_wolfe import DPFrankWolfeClassifier
    from privsvm.methods.dpsvmdvp import DPSVMDVPClassifier
    from privsvm.methods.dpwss import DPWSSClassifier
    from privsvm.methods.landmark_dual import LandmarkDualClassifier
    from privsvm.methods.majority import MajorityClassifier
    from privsvm.methods.pmsvm import PMSVMClassifier
    from privsvm.methods.private_svm import PrivateSVMClassifier
    from privsvm.methods.svm import SVMClassifier
    from privsvm.privacy.guarantee import Guarantee

__all__ = [
    "DPFrankWolfeClassifier",
    "DPSVMDVPClassifier",
    "DPWSSClassifier",
    "Guarantee",
    "LandmarkDualClassifier",
    "MajorityClassifier",
    "PMSVMClassifier",
    "PrivSVMError",
    "PrivateSVMClassifier",
    "SVMClassifier",
]

__version__ = importlib.metadata.version("privsvm")

_HOMES = {
    "DPSVMDVPClassifier": "privsvm.methods.dpsvmdvp",
    "DPWSSClassifier": "privsvm.methods.dpwss",
    "DPFrankWolfeClassifier": "privsvm.methods.dp_frank_wolfe",
    "Guarantee": "privsvm.privacy.guarantee",
    "LandmarkDualClassifier": "privsvm.methods.landmark_dual",
    "MajorityClassifier": "privsvm.methods.majority",
    "PMSVMClassifier": "privsvm.methods.pmsvm",
    "PrivSVMError": "privsvm.errors",
    "PrivateSVMClassifier": "privsvm.methods.private_svm",
    "SVMClassifier": "privsvm.methods.svm",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'privsvm' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
