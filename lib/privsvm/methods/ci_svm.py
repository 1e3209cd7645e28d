"""CI-SVM: a support vector machine on the means of triples of similar rows. Not private."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import OneToOneFeatureMixin

from privsvm.base.parameters import N_JOBS, DeclaredEstimator, parameter
from privsvm.base.rows import as_training_rows
from privsvm.constraints import one_of
from privsvm.families.condensed.condensation import SCALES, Condensed, condense_by_triples
from privsvm.families.condensed.condensed_svm import CondensedClassifier
from privsvm.families.condensed.resampled import labels_like, plain_labels, rows_like, sampler_tags
from privsvm.numerics.compiled.threads import count_threads
from privsvm.privacy.gate import Guarantee


class CondensedInformation(OneToOneFeatureMixin, DeclaredEstimator):
    """Replace rows by the means of triples of similar rows, as CI-SVM does. Not private.

    Features are weighted by their coefficients of variation. Again and again the most similar pair of the rows that are
    left (cosine) is taken, and the row that is most similar to both. Where similarities are equal the smallest row
    numbers are taken; rows of zeros have the similarity 0 to all. One or two rows that are left in the end form the
    last group.

    Attributes
    ----------
    groups_ : ndarray of int (M, 3)
        The rows of each condensed row, in the order in which they were chosen; -1 in place of those the last one lacks.
    group_of_ : ndarray of int (n,)
        The condensed row of each row.
    weights_ : ndarray (d,)
        Weights of the features, of sum 1.
    size_ratio_ : float
        ``M / n``.
    label_purity_ : float
        Share of the rows with the label of their condensed row.
    classes_ : ndarray (c,)
        Labels.
    sampling_strategy_ : dict
        Number of condensed rows of each label, under the name that imbalanced-learn's samplers give it.
    n_features_in_ : int
        Number of features d.

    References
    ----------
    CI-SVM (2018), section 3.

    Examples
    --------
    >>> from privsvm import CondensedInformation
    >>> rows = [[0.1, 1.0], [1.0, 0.1], [0.2, 2.0], [2.0, 0.2], [0.3, 3.0], [3.0, 0.3]]
    >>> CondensedInformation().fit_resample(rows, ["up", "right"] * 3)[1]
    ['up', 'right']
    """

    scale: str = parameter(
        "min_max",
        one_of(*SCALES),
        "Whether similarities are computed on features scaled to [0, 1], or on the rows as they are. Coefficients of "
        "variation are meaningless for features around 0. The features of sparse rows, whose zeros must stay, are "
        "divided by their largest absolute value instead. Means are always those of the unscaled rows.",
    )
    n_jobs: int | None = N_JOBS

    def fit_resample(self, X, y) -> tuple[Any, np.ndarray]:
        """Condense rows and labels.

        Parameters
        ----------
        X : array-like or sparse matrix (n, d)
            Rows; finite.
        y : array-like (n,), (n, 1) or (n, c)
            Labels, of two classes or more; or a column of 0 and 1 for each of c classes.

        Returns
        -------
        X : ndarray, CSR matrix, list or DataFrame (M, d)
            ``M = ceil(n / 3)`` means, in the container of the rows.
        y : ndarray, list, Series or DataFrame of M rows
            Their labels: the majority's; of three different ones, the label of the row nearest to the mean. A class may
            be lost.

        Raises
        ------
        ValueError
            For rows that are not finite, one class only, or a parameter out of range.
        """
        self.check_declared()
        labels, columns = plain_labels(y)
        rows, codes = as_training_rows(self, X, labels, None)
        condensed = condense_by_triples(rows, codes, self.scale, count_threads(self.n_jobs))
        self.groups_, self.group_of_, self.weights_ = condensed.groups, condensed.group_of, condensed.weights
        self.size_ratio_, self.label_purity_ = condensed.size_ratio, condensed.label_purity
        counts = np.bincount(condensed.codes, minlength=len(self.classes_))
        self.sampling_strategy_ = dict(zip(self.classes_.tolist(), counts.tolist(), strict=True))
        return rows_like(X, condensed.rows), labels_like(y, self.classes_[condensed.codes], columns)

    def fit(self, X, y) -> Self:
        """Condense rows and labels, and keep only how: the attributes above.

        Parameters
        ----------
        X : array-like or sparse matrix (n, d)
            Rows; finite.
        y : array-like (n,)
            Labels, of two classes or more.

        Returns
        -------
        CondensedInformation
            Itself.
        """
        self.fit_resample(X, y)
        return self

    def __sklearn_tags__(self):
        return sampler_tags(super().__sklearn_tags__())


class CISVMClassifier(CondensedClassifier):
    """Support vector machine on condensed information: the means of triples of similar rows. Not private.

    Rows are condensed as `CondensedInformation` does, then `SVMClassifier` is trained on them. A class that is not the
    label of any condensed row is never predicted; where one class is left alone the model is constant, with a warning.

    Attributes
    ----------
    condensed_rows_ : ndarray or CSR matrix (M, d)
        Condensed rows, of which the support vectors are published.
    group_of_ : ndarray of int (n,)
        The condensed row of each training row.
    weights_ : ndarray (d,)
        Weights of the features in the similarities.
    size_ratio_ : float
        Condensed rows, as a share of the training rows.
    label_purity_ : float
        Share of the training rows with the label of their condensed row.
    support_ : ndarray of int (m,)
        Condensed rows with a nonzero dual variable.

    References
    ----------
    CI-SVM (2018).

    Examples
    --------
    >>> from privsvm import CISVMClassifier
    >>> rows = [[0.1, 1.0], [1.0, 0.1], [0.2, 2.0], [2.0, 0.2], [0.3, 3.0], [3.0, 0.3]]
    >>> CISVMClassifier().fit(rows, ["up", "right"] * 3).predict([[0.0, 2.0]])
    array(['up'], dtype='<U5')
    """

    scale: str = parameter(
        "min_max",
        one_of(*SCALES),
        "Features on which similarities are computed, see `CondensedInformation`.",
    )

    condense = "ci"

    def _condense(self, X, codes: np.ndarray, n_threads: int, rng: Any) -> Condensed:
        condensed = condense_by_triples(X, codes, self.scale, n_threads)
        self.weights_ = condensed.weights
        return condensed

    def _guarantee(self) -> Guarantee:
        return Guarantee(
            status="none",
            mechanism="none: exact training on the means of triples of training rows",
            reason=(
                "microaggregation by three: two known members of a triple give the third exactly, and the support "
                "vectors are such means, published without noise"
            ),
            reference="CI-SVM (2018)",
        )


ESTIMATOR = CISVMClassifier
