"""PPSVM: a 1-norm SVM on random kernels of columns that several entities hold (Mangasarian, Wild and Fung 2007).

Every entity draws a random matrix of its own and publishes the kernel of its columns with it. The sum ("linear") or
the product ("gaussian") of these blocks is the kernel of all columns with all matrices, on which anybody can train.
The paper says that this completely protects the columns. It does not: see `privsvm.privacy.attacks.known_sample`.

The entities' steps are in `privsvm.families.one_norm.ppsvm_protocol`, the trainer's in
`privsvm.families.one_norm.ppsvm_training`. `PPSVMClassifier` takes them all in one process;
`examples/ppsvm_three_entities` runs each party as a process.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from privsvm.base.feature_steps import Step
from privsvm.base.parameters import parameter
from privsvm.base.released import LinearPath, ReleasedPath
from privsvm.constraints import Constraint
from privsvm.families.one_norm.one_norm_training import OneNormModel, count_kernel_rows
from privsvm.families.one_norm.ppsvm_protocol import Entity, combine_blocks, deal_columns
from privsvm.families.one_norm.ppsvm_training import PPSVMParameters, PublicKernel, ppsvm_guarantee, train_on_blocks
from privsvm.privacy.gate import Guarantee

_COLUMNS = {"type": "array", "minItems": 1, "items": {"type": "integer", "minimum": 0}}
ENTITIES = Constraint(
    {
        "anyOf": [
            {"type": "integer", "minimum": 1, "maximum": 1000},
            {"type": "array", "minItems": 1, "maxItems": 1000, "items": _COLUMNS},
        ]
    },
    "must be the number of entities, at most 1000, or a list with the column numbers of each (from 0), none empty",
    "int or sequence of sequences of int",
)


class PPSVMClassifier(PPSVMParameters):
    """Support vector machine on random kernels of vertically partitioned columns. No privacy is proved.

    A simulation of all entities in one process. A saved model holds the secrets of all of them, so that it predicts
    rows. `docs/ppsvm.md` says how to run the entities apart.

    Attributes
    ----------
    columns_ : list of ndarray of int
        Columns of each entity.
    entities_ : list of Entity
        The secrets of each entity.
    coef_ : ndarray (p, mbar)
        Public weights u of the kernel's columns; p is c, or 1 for two classes.
    published_gamma_ : float
        Coefficient of the Gaussian kernel in the public blocks.
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

    entities: int | Sequence[Sequence[int]] = parameter(
        2,
        ENTITIES,
        "Number of entities, to which columns are dealt at random, or a list with the columns of each.",
    )

    def public_blocks(self, X) -> dict[str, np.ndarray]:
        """Block (n, mbar) of rows X (n, d) that each entity publishes, by its name: ``entity-1`` and so on."""
        return {
            f"entity-{number}": entity.publish(X[:, columns], self.kernel, self.published_gamma_)
            for number, (columns, entity) in enumerate(zip(self.columns_, self.entities_, strict=True), start=1)
        }

    def public_kernel(self, X) -> np.ndarray:
        """Kernel (n, mbar) of rows X (n, d) with all random matrices, from the block that each entity publishes."""
        return combine_blocks(self.public_blocks(X), self.kernel)

    def _model(
        self, X, codes: np.ndarray, rng: np.random.Generator
    ) -> tuple[OneNormModel, type[ReleasedPath], dict[str, Any]]:
        mbar = count_kernel_rows(self.mbar, X.shape[0])
        self.columns_ = deal_columns(X.shape[1], self.entities, rng)
        self.entities_ = [Entity.draw(X[:, columns], mbar, rng, self.standardize) for columns in self.columns_]
        start = self._start_gamma()
        self.published_gamma_ = 1.0 / X.shape[1] if isinstance(start, str) else start
        model, arrays = train_on_blocks(
            self.public_kernel(X),
            codes,
            len(self.classes_),
            PublicKernel(self.kernel, self.published_gamma_),
            self.C,
            isinstance(start, str),
            rng,
        )
        self.coef_, self.intercept_ = model.coef, model.intercept
        order = np.argsort(np.concatenate(self.columns_))

        def joined(name: str) -> np.ndarray:
            """Join one array of all entities, in the order of the features."""
            return np.concatenate([getattr(entity, name) for entity in self.entities_], axis=-1)[..., order]

        secrets = {name: joined(name) for name in ("random_matrix", "centre", "spread")}
        gamma = np.array([self.published_gamma_ if self.kernel == "gaussian" else 0.0])
        step = Step("random_kernel", {**secrets, "gamma": gamma})
        return model, LinearPath, arrays | {"steps": (step, *arrays["steps"])}

    def _guarantee(self, rng: Any) -> Guarantee:
        return dataclasses.replace(ppsvm_guarantee(self.kernel), randomness="system" if rng is None else "seeded")


ESTIMATOR = PPSVMClassifier
