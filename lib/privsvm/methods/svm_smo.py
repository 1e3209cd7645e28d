"""C-SVM by sequential minimal optimisation: the published rules for choosing a pair of variables."""

from __future__ import annotations

from privsvm.base.parameters import parameter
from privsvm.constraints import one_of
from privsvm.families.exact.kernel_svm import KernelSVM

__all__ = ["ESTIMATOR", "SMOSVMClassifier"]


class SMOSVMClassifier(KernelSVM):
    """Support vector machine that moves two dual variables at a time, as LIBSVM does. Not private.

    The model is that of `SVMClassifier` up to `tol`; the path to it is LIBSVM's, for a comparison of selection rules.

    Examples
    --------
    >>> from privsvm import SMOSVMClassifier
    >>> SMOSVMClassifier(kernel="linear").fit([[-1.0], [1.0]], ["no", "yes"]).predict([[3.0]])
    array(['yes'], dtype='<U3')
    """

    selection: str = parameter(
        "wss2",
        one_of("wss1", "wss2", "wss3", "wss4"),
        'Which pair of variables is moved (`privsvm.solvers.kernel.smo`); "wss2" is the rule of LIBSVM.',
    )

    def _selection(self) -> str:
        return self.selection


ESTIMATOR = SMOSVMClassifier
