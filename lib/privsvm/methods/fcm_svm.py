"""FCM-SVM: a support vector machine on the centres of fuzzy c-means. Not private."""

from __future__ import annotations

import numpy as np

from privsvm.base.estimators import RandomState, noise_generators
from privsvm.base.parameters import RANDOM_STATE, parameter
from privsvm.constraints import COUNT, POSITIVE, optional, real
from privsvm.families.condensed.condensation import ClusterOptions, Condensed, condense_by_centres
from privsvm.families.condensed.condensed_svm import CondensedClassifier
from privsvm.privacy.gate import Guarantee


class FCMSVMClassifier(CondensedClassifier):
    """Support vector machine on the centres of fuzzy c-means, a third as many as there are rows. Not private.

    A centre has the label of most of the rows that belong to it most; among equally frequent labels, the nearest of
    these rows decides; and where no row belongs to it most, the nearest row of all. Then `SVMClassifier` is trained on
    the centres. A class that is not the label of any centre is never predicted; where one class is left alone the model
    is constant, with a warning.

    Time is proportional to ``n`` times the number of centres in every iteration of the clustering, that is to the
    square of the number of rows. Centres of sparse rows are dense. In many dimensions centres of fuzzy c-means draw
    together, the more the larger q is.

    Attributes
    ----------
    condensed_rows_ : ndarray (M, d)
        Centres, of which the support vectors are published.
    group_of_ : ndarray of int (n,)
        The centre that each training row belongs to most.
    size_ratio_ : float
        Centres, as a share of the training rows.
    label_purity_ : float
        Share of the training rows with the label of their centre.
    n_clustering_iter_ : int
        Iterations of the clustering.
    support_ : ndarray of int (m,)
        Centres with a nonzero dual variable.

    References
    ----------
    CI-SVM (2018), section 2.2; Bezdek (1981).

    Examples
    --------
    >>> from privsvm import FCMSVMClassifier
    >>> rows = [[0.0], [0.1], [0.2], [2.0], [2.1], [2.2]]
    >>> FCMSVMClassifier(random_state=0).fit(rows, ["low"] * 3 + ["high"] * 3).predict([[3.0]])
    array(['high'], dtype='<U4')
    """

    q: float = parameter(2.0, real("must be a finite number above 1", above=1), "Fuzziness, above 1.")
    n_centres: float | int | None = parameter(
        None,
        optional(real("must be a share of the training rows, or a number of centres", above=0)),
        "Centres: a share of the training rows (rounded up) or a number; None for a third, as many as CI-SVM has.",
    )
    clustering_tol: float = parameter(
        1e-5,
        POSITIVE,
        "Stop clustering when the objective falls by a smaller share.",
    )
    clustering_max_iter: int = parameter(100, COUNT, "Most iterations of the clustering.")
    random_state: int | np.random.Generator | None = RANDOM_STATE

    condense = "fcm"

    def _condense(self, X, codes: np.ndarray, n_threads: int, rng: RandomState) -> Condensed:
        options = ClusterOptions(self.q, self.n_centres, self.clustering_tol, self.clustering_max_iter)
        generator = noise_generators(rng, self)(0.0, 0)
        condensed = condense_by_centres(X, codes, len(self.classes_), generator, options)
        self.n_clustering_iter_ = condensed.n_iter
        return condensed

    def _guarantee(self) -> Guarantee:
        return Guarantee(
            status="none",
            mechanism="none: exact training on centres of fuzzy c-means",
            reason="centres of the training rows, about one for three of them, are published without noise",
            reference="CI-SVM (2018), section 2.2; Bezdek (1981)",
        )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.random_state is None
        return tags


ESTIMATOR = FCMSVMClassifier
