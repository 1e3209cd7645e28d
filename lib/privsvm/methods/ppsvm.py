"""PPSVM: a 1-norm SVM on random kernels of columns that several entities hold (Mangasarian, Wild and Fung 2007).

Every entity draws a random matrix of its own and publishes the kernel of its columns with it. The sum ("linear") or
the product ("gaussian") of these blocks is the kernel of all columns with all matrices, on which anybody can train.
The paper says that this completely protects the columns. It does not: see `privsvm.privacy.attacks.known_sample`.

The entities' steps are in `privsvm.base.ppsvm_protocol`, the trainer's in this file: the workflow runs each of them
in a job of its own, and `PPSVMClassifier` runs them all in one process.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from privsvm.base.estimators import disclose_noise
from privsvm.base.one_norm_training import (
    OneNormClassifier,
    OneNormModel,
    check_tuning,
    count_kernel_rows,
    train_one_norm,
)
from privsvm.base.ppsvm_protocol import Entity, combine_blocks, deal_columns
from privsvm.base.released import BlockPath, ReleasedPath
from privsvm.base.validation import check_flag
from privsvm.privacy.guarantee import Guarantee

__all__ = [
    "ESTIMATOR",
    "Entity",
    "PPSVMClassifier",
    "combine_blocks",
    "deal_columns",
    "ppsvm_guarantee",
    "train_on_blocks",
]


def train_on_blocks(
    block: np.ndarray, codes: np.ndarray, n_classes: int, kernel: str, gamma: float, C: Any, tune_gamma: bool, rng
) -> tuple[OneNormModel, dict[str, np.ndarray]]:
    """Train on the public kernel: all that the trainer has are blocks and labels (step IV).

    Parameters
    ----------
    block : ndarray (n, mbar)
        From `combine_blocks`.
    codes : ndarray of int (n,)
        Class codes that all entities agreed on.
    n_classes : int
        c.
    kernel, gamma
        What the blocks were published with.
    C : float or "tune"
        The paper's nu.
    tune_gamma : bool
        Choose C and gamma together. Blocks of one gamma hold those of all: the kernel of another is a power of it.
    rng : numpy.random.Generator
        Draws the rows that parameters are chosen on.

    Returns
    -------
    model : OneNormModel
    arrays : dict of str to ndarray
        Of a `BlockPath`.
    """
    if kernel == "linear":
        model = train_one_norm(block, codes, n_classes, kernel, C, math.nan, rng)
    else:
        with np.errstate(divide="ignore"):
            distances = -np.log(block) / gamma
        model = train_one_norm(distances, codes, n_classes, kernel, C, "tune" if tune_gamma else gamma, rng)
    return model, {
        "coef": model.coef[None, None],
        "intercept": model.intercept[None, None],
        "power": np.array([1.0 if kernel == "linear" else model.gamma / gamma]),
    }


def ppsvm_guarantee(kernel: str) -> Guarantee:
    """Return the record of a model trained on random kernels of the given kind."""
    needed = "as many rows as it has columns" if kernel == "linear" else "one row more than it has columns"
    return Guarantee(
        status="none",
        mechanism=f"random {kernel} kernel: each entity publishes the kernel of its columns with a random matrix",
        reason=f"no formal guarantee is stated, and whoever knows {needed} of an entity recovers all its other rows; "
        "the labels are public to all entities",
        reference="Mangasarian, Wild and Fung (2007), Algorithms 2.1 and 3.1",
    )


class PPSVMClassifier(OneNormClassifier):
    """Support vector machine on random kernels of vertically partitioned columns. No privacy is proved.

    A simulation of all entities in one process. `docs/ppsvm.md` says how to run them apart.

    Parameters
    ----------
    C : float or "tune", default=1.0
        Weight of a row's slack; the paper's nu. "tune" chooses it as the paper does, on rows held back.
    kernel : {"linear", "gaussian"}, default="linear"
        "gaussian" is ``exp(-gamma ||x - z||^2)``, called rbf elsewhere.
    gamma : float, "auto" or "tune", default="auto"
        Kernel coefficient; the paper's mu. "auto" is ``1 / d``; "tune", with a C of "tune", chooses both as the paper
        does, from blocks published with ``1 / d``.
    entities : int or sequence of sequences of int, default=2
        Number of entities, among which columns are dealt at random, or the columns of each.
    mbar : float or int, default=0.1
        Rows of the random matrices: a share of the training rows, or a number.
    standardize : bool, default=True
        Whether each entity brings its columns to mean 0 and standard deviation 1.
    classes : sequence or None, default=None
        The label set, in the order of the class codes; None takes it from the training labels.
    random_state : int, numpy.random.Generator or None, default=None
        Deals the columns, draws the random matrices, and the rows that parameters are chosen on.

    Attributes
    ----------
    classes_ : ndarray (c,)
        Labels.
    columns_ : list of ndarray of int
        Columns of each entity.
    entities_ : list of Entity
        What each entity keeps to itself.
    coef_ : ndarray (p, mbar)
        Public weights u of the kernel's columns; p is c, or 1 for two classes.
    intercept_ : ndarray (p,)
        Offsets.
    C_, gamma_ : float
        Given or chosen.
    objective_, gap_ : float
        Objective, summed over the programs, and what it exceeds the optimum by at most.
    n_iter_ : int
        Simplex iterations.
    n_features_in_ : int
        Number of features d.
    guarantee_ : Guarantee
        Status ``none``, with the reason.

    References
    ----------
    Mangasarian, Wild and Fung (2007), Algorithms 2.1 and 3.1.

    Examples
    --------
    >>> from privsvm import PPSVMClassifier
    >>> model = PPSVMClassifier(entities=[[0], [1]], mbar=2, random_state=0)
    >>> model.fit([[-1.0, 0.0], [1.0, 0.5]], ["no", "yes"]).predict([[3.0, 0.5]])
    array(['yes'], dtype='<U3')
    """

    def __init__(
        self,
        *,
        C: float | str = 1.0,
        kernel: str = "linear",
        gamma: float | str = "auto",
        entities: int | Sequence[Sequence[int]] = 2,
        mbar: float | int = 0.1,
        standardize: bool = True,
        classes: Sequence | None = None,
        random_state: int | np.random.Generator | None = None,
    ):
        self.C = C
        self.kernel = kernel
        self.gamma = gamma
        self.entities = entities
        self.mbar = mbar
        self.standardize = standardize
        self.classes = classes
        self.random_state = random_state

    def public_kernel(self, X) -> np.ndarray:
        """Kernel (n, mbar) of rows X (n, d) with all random matrices, from the block that each entity publishes."""
        blocks = {
            f"entity {number}": entity.publish(X[:, columns], self.kernel, self._published_gamma)
            for number, (columns, entity) in enumerate(zip(self.columns_, self.entities_, strict=True))
        }
        return combine_blocks(blocks, self.kernel)

    def _model(
        self, X, codes: np.ndarray, rng: np.random.Generator
    ) -> tuple[OneNormModel, type[ReleasedPath], dict[str, Any]]:
        mbar = count_kernel_rows(self.mbar, X.shape[0])
        self.columns_ = deal_columns(X.shape[1], self.entities, rng)
        self.entities_ = [Entity.draw(X[:, columns], mbar, rng, self.standardize) for columns in self.columns_]
        start = self._start_gamma()
        self._published_gamma = 1.0 / X.shape[1] if isinstance(start, str) else start
        model, arrays = train_on_blocks(
            self.public_kernel(X),
            codes,
            len(self.classes_),
            self.kernel,
            self._published_gamma,
            self.C,
            isinstance(start, str),
            rng,
        )
        self.coef_, self.intercept_ = model.coef, model.intercept
        return model, BlockPath, arrays

    def _guarantee(self, rng: Any) -> Guarantee:
        return disclose_noise(ppsvm_guarantee(self.kernel), rng)

    def _check_parameters(self) -> None:
        check_tuning(self.kernel, self.C, self.gamma)
        check_flag("standardize", self.standardize)

    def _released_scores(self, X) -> np.ndarray:
        X = self._checked_rows(X)
        return self._path.scores(self.public_kernel(X), 0)[0]


ESTIMATOR = PPSVMClassifier
