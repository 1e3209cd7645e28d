"""Methods of other packages: any scikit-learn style classifier, as ``implementation: package.module:Class``.

Such a model is not stored, because a file that anybody may load holds no code. The job that trains it stores its
predictions for the test rows of its split, and says so in the guarantee.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import math
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from privsvm.base.estimators import NoiseStreams, noise_generators
from privsvm.base.released import PredictionsPath, rows_digest
from privsvm.errors import PrivSVMError, nearest_name
from privsvm.privacy.events import Neighbours
from privsvm.privacy.gate import Guarantee
from privsvm.registry import estimator_class, foreign_source

# Key of an entry that names the parameter of the class that takes epsilon.
STATES_EPSILON = "states_epsilon"

# Cached: all files of the package are digested.
_source = functools.cache(foreign_source)

_STORED = "only its predictions for the test rows are stored"


class ForeignMethod:
    """A classifier of another package (``package.module:Class``), released as its predictions.

    `parameters` has parameters of the class, and the entry's ``states_epsilon``. Labels are 0 to ``n_classes - 1``. The
    models predict the test rows `X_test` (m, d). `delta` and `neighbours` are the benchmark's; None for a class that
    states no epsilon.
    """

    def __init__(
        self,
        implementation: str,
        parameters: Mapping[str, Any],
        n_classes: int,
        X_test: Any,
        delta: float | None = None,
        neighbours: Neighbours | None = None,
    ):
        self.implementation, self.n_classes, self.X_test = implementation, n_classes, X_test
        self.delta, self.neighbours = delta, neighbours
        self.method = estimator_class(implementation)
        self.parameters = dict(parameters)
        self.states_epsilon: str | None = self.parameters.pop(STATES_EPSILON, None)
        self.accepted = inspect.signature(self.method).parameters
        takes_any = any(item.kind is inspect.Parameter.VAR_KEYWORD for item in self.accepted.values())
        for name in (*self.parameters, *([self.states_epsilon] if self.states_epsilon else [])):
            if name not in self.accepted and not takes_any:
                raise PrivSVMError(f"{name}: not a parameter of {implementation}; {nearest_name(name, self.accepted)}")
        if self.states_epsilon in self.parameters:
            raise PrivSVMError(f"{self.states_epsilon}: takes the grid's epsilon; remove it or {STATES_EPSILON}")

    def release_path(
        self, X, y: np.ndarray, epsilons: Sequence[float], repeats: int, rng: NoiseStreams, audit: bool = False
    ) -> PredictionsPath:
        """Train for every epsilon and repeat on `X` (n, d) and codes `y` (n,), and predict the test rows.

        A class that states no epsilon is trained once. `rng` gives the generator of one epsilon and repeat, which draws
        the seed. `audit` is ignored: the mechanism is unknown.
        """
        private = self.states_epsilon is not None
        grid, draws = (list(epsilons), repeats) if private else ([0.0], 1)
        streams = noise_generators(rng, self)
        started = time.perf_counter()
        fits: list[np.ndarray] = []
        for epsilon, repeat in itertools.product(grid, range(draws)):
            print(f"fit {len(fits) + 1} of {len(grid) * draws} of this split", file=sys.stderr, flush=True)
            fits.append(self._scores(X, y, epsilon, streams(epsilon, repeat)))
        scores = np.stack(fits).reshape(len(grid), draws, *fits[0].shape)
        seconds = time.perf_counter() - started
        return PredictionsPath(
            epsilons=tuple(grid) if private else (math.inf,),
            guarantees=tuple(self.guarantee(epsilon) for epsilon in grid),
            n_classes=self.n_classes,
            release_seconds=seconds if private else 0.0,
            fit_seconds=0.0 if private else seconds,
            predicted_scores=scores,
            digest=rows_digest(self.X_test),
        )

    def untrained(self, epsilon: float, stream: np.random.Generator) -> Any:
        """Make an untrained classifier of the class; `stream` draws its seed."""
        common = {"classes": list(range(self.n_classes)), "random_state": int(stream.integers(2**31))}
        if self.states_epsilon is not None:
            common["delta"] = self.delta
        given = {name: value for name, value in common.items() if name in self.accepted} | self.parameters
        if self.states_epsilon is not None:
            given[self.states_epsilon] = epsilon
        return self.method(**given)

    def _scores(self, X, y: np.ndarray, epsilon: float, stream: np.random.Generator) -> np.ndarray:
        """Return scores (m, k) of one trained model, or its predictions as such."""
        try:
            model = self.untrained(epsilon, stream).fit(X, y)
            predicted = np.asarray(model.predict(self.X_test)).astype(np.int64)
            scores = self._decision_values(model)
        except Exception as error:
            problem = " ".join(f"{type(error).__name__}: {error}".split())
            raise PrivSVMError(
                f"{self.implementation} failed: {problem}; correct the class, or name the dataset under `except`"
            ) from error
        if predicted.shape != (self.X_test.shape[0],) or not np.isin(predicted, np.arange(self.n_classes)).all():
            raise PrivSVMError(f"{self.implementation}: predict must return one of its training labels for each row")
        if scores is not None:
            codes = (scores[:, 0] > 0).astype(np.int64) if scores.shape[1] == 1 else np.argmax(scores, axis=1)
            if np.array_equal(codes, predicted):
                return scores
        chosen = np.where(predicted[:, None] == np.arange(self.n_classes), 1.0, 0.0)
        return chosen[:, 1:] - chosen[:, :1] if self.n_classes == 2 else chosen

    def _decision_values(self, model: Any) -> np.ndarray | None:
        """Return the model's decision values, or None for other classes."""
        if not np.array_equal(getattr(model, "classes_", ()), np.arange(self.n_classes)):
            return None
        for name in ("decision_function", "predict_proba"):
            if hasattr(model, name):
                values = np.asarray(getattr(model, name)(self.X_test), dtype=np.float64)
                if values.ndim == 1:
                    values = values[:, None]
                elif self.n_classes == 2 and values.shape[1] == 2:
                    values = values[:, 1:] - values[:, :1]
                if values.shape[1] == (1 if self.n_classes == 2 else self.n_classes) and np.isfinite(values).all():
                    return values
        return None

    def guarantee(self, epsilon: float) -> Guarantee:
        """Build the record of one epsilon: a claim of the class, or nothing."""
        source = _source(self.implementation)
        version = f" {source.version}" if source.version else ""
        reference = f"package {source.package}{version}, sources {source.digest[:16]}"
        if self.states_epsilon is None:
            return Guarantee(
                status="none",
                mechanism=f"none: {self.implementation}; {_STORED}",
                reason="a class of another package, which states no epsilon",
                reference=reference,
            )
        return Guarantee(
            status="claimed",
            mechanism=f"that of {self.implementation}; {_STORED}",
            neighbours=self.neighbours,
            epsilon_requested=epsilon,
            delta=float(self.delta or 0.0) if "delta" in self.accepted else 0.0,
            randomness="seeded" if "random_state" in self.accepted else None,
            reason="a class of another package states the epsilon, and nothing proves it here; it is audited under the "
            "relation of `privacy.neighbours`, whichever it has in mind",
            reference=reference,
        )
