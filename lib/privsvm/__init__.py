"""PrivSVM: privacy-preserving support vector machines, honestly accounted.

The public names are imported when they are first used, so that ``import privsvm`` stays fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from privsvm.base.kernel_svm import SVMClassifier
    from privsvm.errors import PrivSVMError
    from privsvm.methods.ci_svm import CISVMClassifier, CondensedInformation
    from privsvm.methods.crammer_singer import CrammerSingerClassifier
    from privsvm.methods.dp_frank_wolfe import DPFrankWolfeClassifier
    from privsvm.methods.dpsvmdvp import DPSVMDVPClassifier
    from privsvm.methods.dpwss import DPWSSClassifier
    from privsvm.methods.fcm_svm import FCMSVMClassifier
    from privsvm.methods.grpua import GRPUAClassifier
    from privsvm.methods.landmark_dual import LandmarkDualClassifier
    from privsvm.methods.m3_svm import M3SVMClassifier
    from privsvm.methods.majority import MajorityClassifier
    from privsvm.methods.objective_perturbation import ObjectivePerturbationClassifier
    from privsvm.methods.one_norm_svm import OneNormSVMClassifier
    from privsvm.methods.opera import OPERAClassifier
    from privsvm.methods.ovr_joint_gaussian import OvRJointGaussianClassifier
    from privsvm.methods.pmsvm import PMSVMClassifier
    from privsvm.methods.ppsvm import PPSVMClassifier
    from privsvm.methods.private_svm import PrivateSVMClassifier
    from privsvm.methods.rsvm import ReducedSVMClassifier
    from privsvm.methods.softmax_dpsgd import SoftmaxDPSGDClassifier
    from privsvm.methods.weston_watkins import WestonWatkinsClassifier
    from privsvm.privacy.guarantee import Guarantee

__all__ = [
    "CISVMClassifier",
    "CondensedInformation",
    "CrammerSingerClassifier",
    "DPFrankWolfeClassifier",
    "DPSVMDVPClassifier",
    "DPWSSClassifier",
    "FCMSVMClassifier",
    "GRPUAClassifier",
    "Guarantee",
    "LandmarkDualClassifier",
    "M3SVMClassifier",
    "MajorityClassifier",
    "OPERAClassifier",
    "ObjectivePerturbationClassifier",
    "OneNormSVMClassifier",
    "OvRJointGaussianClassifier",
    "PMSVMClassifier",
    "PPSVMClassifier",
    "PrivSVMError",
    "PrivateSVMClassifier",
    "ReducedSVMClassifier",
    "SVMClassifier",
    "SoftmaxDPSGDClassifier",
    "WestonWatkinsClassifier",
]

_HOMES = {
    "CISVMClassifier": "privsvm.methods.ci_svm",
    "CondensedInformation": "privsvm.methods.ci_svm",
    "CrammerSingerClassifier": "privsvm.methods.crammer_singer",
    "DPFrankWolfeClassifier": "privsvm.methods.dp_frank_wolfe",
    "DPSVMDVPClassifier": "privsvm.methods.dpsvmdvp",
    "DPWSSClassifier": "privsvm.methods.dpwss",
    "FCMSVMClassifier": "privsvm.methods.fcm_svm",
    "GRPUAClassifier": "privsvm.methods.grpua",
    "Guarantee": "privsvm.privacy.guarantee",
    "LandmarkDualClassifier": "privsvm.methods.landmark_dual",
    "M3SVMClassifier": "privsvm.methods.m3_svm",
    "MajorityClassifier": "privsvm.methods.majority",
    "OPERAClassifier": "privsvm.methods.opera",
    "ObjectivePerturbationClassifier": "privsvm.methods.objective_perturbation",
    "OneNormSVMClassifier": "privsvm.methods.one_norm_svm",
    "OvRJointGaussianClassifier": "privsvm.methods.ovr_joint_gaussian",
    "PMSVMClassifier": "privsvm.methods.pmsvm",
    "PPSVMClassifier": "privsvm.methods.ppsvm",
    "PrivSVMError": "privsvm.errors",
    "PrivateSVMClassifier": "privsvm.methods.private_svm",
    "ReducedSVMClassifier": "privsvm.methods.rsvm",
    "SVMClassifier": "privsvm.base.kernel_svm",
    "SoftmaxDPSGDClassifier": "privsvm.methods.softmax_dpsgd",
    "WestonWatkinsClassifier": "privsvm.methods.weston_watkins",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("privsvm")
    if name not in _HOMES:
        raise AttributeError(f"module 'privsvm' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
