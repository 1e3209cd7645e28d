"""The training of PPSVM: a 1-norm SVM on the public kernel of all entities' columns."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from privsvm.base.feature_steps import Step
from privsvm.base.parameters import parameter
from privsvm.constraints import FLAG
from privsvm.families.one_norm.one_norm_training import MBAR, OneNormClassifier, OneNormModel, train_one_norm
from privsvm.privacy.gate import Guarantee


class PPSVMParameters(OneNormClassifier):
    """The parameters that all entities agree on; a base."""

    mbar: float | int = parameter(0.1, MBAR, "Rows of the random matrices: a share of the training rows, or a number.")
    standardize: bool = parameter(
        True, FLAG, "Whether each entity brings its columns to mean 0 and standard deviation 1."
    )


class PublicKernel(NamedTuple):
    """The kernel of published blocks: its name, linear or gaussian, and the coefficient of the Gaussian one."""

    name: str
    gamma: float


def train_on_blocks(
    block: np.ndarray, codes: np.ndarray, n_classes: int, published: PublicKernel, C: Any, tune_gamma: bool, rng: Any
) -> tuple[OneNormModel, dict[str, Any]]:
    """Train on the public kernel: all that the trainer has are blocks and labels (step IV).

    The block (n, mbar) comes from `combine_blocks`, and all entities agreed on the class codes. With `tune_gamma`, C
    and gamma are chosen together: blocks of one gamma give blocks of all, since the kernel of another is a power of it.
    `rng` draws the rows that parameters are chosen on. Returns the model and the parts of a `LinearPath` on the block.
    """
    kernel, gamma = published
    if kernel == "linear":
        model = train_one_norm(block, codes, n_classes, kernel, C, math.nan, rng)
    else:
        with np.errstate(divide="ignore"):
            distances = -np.log(block) / gamma
        model = train_one_norm(distances, codes, n_classes, kernel, C, "tune" if tune_gamma else gamma, rng)
    return model, {
        "coef": model.coef[None, None],
        "intercept": model.intercept[None, None],
        "steps": (Step("power", {"power": np.array([1.0 if kernel == "linear" else model.gamma / gamma])}),),
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
