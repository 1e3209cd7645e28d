"""Private-PGM (mbi): AIM makes synthetic rows from marginals that it chooses; boosted trees learn them.

Rounds choose the marginal that the model so far fits worst, measure it and fit again; the budget of a round grows where
a measurement changes little (McKenna, Mullins, Sheldon and Miklau, AIM: An Adaptive and Iterative Mechanism for
Differentially Private Synthetic Data, 2022). The workload is all marginals of two columns and the label. Numbers are
binned into eight equal intervals of their public range. A model has at most a megabyte of cells, for the sake of time.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import jax
import numpy as np
from mbi import Dataset, Domain, LinearMeasurement, MarkovRandomField
from mbi.clique_utils import downward_closure
from mbi.estimation import MirrorDescent
from mbi.junction_tree import hypothetical_model_size
from rows import score_classes
from scipy.optimize import brentq
from scipy.special import logsumexp
from sklearn.ensemble import HistGradientBoostingClassifier

jax.config.update("jax_enable_x64", True)
_BINS, _MEGABYTES, _LABEL = 8, 1.0, "label"
# Share of a round's budget that measures; the rest selects.
_MEASURED = 0.9
_ROUNDS_PER_COLUMN = 16

Marginal = tuple[str, ...]


def _zcdp(epsilon: float, delta: float) -> float:
    """Return the largest rho that has this epsilon (Canonne, Kamath and Steinke, The discrete Gaussian, 2020)."""
    orders = 1.0 + np.logspace(-2.0, 4.0, 4000)
    losses = orders * np.log1p(-1.0 / orders) - np.log(orders - 1.0) - math.log(delta)
    return brentq(lambda rho: float(((orders - 1.0) * (orders * rho - epsilon) + losses).min()), 1e-9, epsilon)


def aim_boosting(
    X: np.ndarray, y: np.ndarray, n_classes: int, epsilon: float, delta: float, seed: int, levels: np.ndarray
) -> Callable[[np.ndarray], np.ndarray]:
    """Draw synthetic rows by AIM and fit boosted trees to them."""
    rng = np.random.default_rng(seed)
    np.random.seed(seed)  # noqa: NPY002 - what mbi draws rows from
    sizes = np.where(levels > 0, levels, _BINS)

    def to_codes(X: np.ndarray) -> np.ndarray:
        return np.clip(np.where(levels > 0, X, X * sizes), 0, sizes - 1).astype(int)

    names = [*(f"x{j}" for j in range(X.shape[1])), _LABEL]
    domain = Domain.fromdict(dict(zip(names, [*sizes.tolist(), n_classes], strict=True)))
    data = Dataset(dict(zip(names, np.column_stack([to_codes(X), y.astype(int)]).T, strict=True)), domain)
    synthetic = _model(data, _zcdp(epsilon, delta), rng).synthetic_data(rows=len(y))
    made = np.column_stack([np.asarray(synthetic.data[name]) for name in names])
    boosting = HistGradientBoostingClassifier(categorical_features=levels > 0, random_state=0)
    score = score_classes(made[:, -1], n_classes, lambda: boosting.fit(made[:, :-1], made[:, -1]).predict_proba)
    return lambda X: score(to_codes(X))


def _candidates(names: list[str]) -> dict[Marginal, float]:
    """Weigh all marginals within the workload by how much of it they cover."""
    workload = [(*pair, _LABEL) for pair in itertools.combinations(names[:-1], 2)]
    closure = sorted(downward_closure(workload))
    return {part: float(sum(len({*part} & {*marginal}) for marginal in workload)) for part in closure}


def _model(data: Dataset, rho: float, rng: np.random.Generator) -> MarkovRandomField:
    """Choose and measure marginals by AIM; return the fitted model."""
    names, domain, measured = list(data.domain), data.domain, {}

    def measure(marginal: Marginal, sigma: float) -> None:
        # Of two measurements of one marginal, the mean with the smaller variance.
        counts, precision = answers[marginal] + rng.normal(scale=sigma, size=domain.size(marginal)), sigma**-2.0
        before, known = measured.get(marginal, (0.0, 0.0))
        measured[marginal] = (before * known + counts * precision) / (known + precision), known + precision

    def fit_model(iters: int, warm_start: MarkovRandomField | None = None) -> MarkovRandomField:
        found = [LinearMeasurement(counts, marginal, p**-0.5) for marginal, (counts, p) in measured.items()]
        return MirrorDescent().estimate(domain, found, iters=iters, tol=1e-4, warm_start=warm_start)

    candidates = _candidates(names)
    answers = {marginal: np.asarray(data.project(marginal).datavector()) for marginal in candidates}
    rounds = _ROUNDS_PER_COLUMN * len(names)
    sigma, step_epsilon = math.sqrt(rounds / (2.0 * _MEASURED * rho)), math.sqrt(8.0 * (1.0 - _MEASURED) * rho / rounds)
    for name in names:
        measure((name,), sigma)
    used, model, last = len(names) / (2.0 * sigma**2), fit_model(1000), False
    while not last:
        cost = step_epsilon**2 / 8.0 + 0.5 / sigma**2
        if rho - used <= 2.0 * cost:
            left, last = rho - used, True
            sigma, step_epsilon = math.sqrt(0.5 / (_MEASURED * left)), math.sqrt(8.0 * (1.0 - _MEASURED) * left)
            cost = left
        used += cost
        scores = {
            marginal: weight * (np.abs(answers[marginal] - np.asarray(model.project(marginal).datavector())).sum()
                                - math.sqrt(2.0 / math.pi) * sigma * domain.size(marginal))
            for marginal, weight in candidates.items()
            if hypothetical_model_size(domain, [*measured, marginal]) <= _MEGABYTES * used / rho
        }  # fmt: skip
        logits = 0.5 * step_epsilon * np.array(list(scores.values())) / max(candidates[marginal] for marginal in scores)
        chosen = list(scores)[rng.choice(len(scores), p=np.exp(logits - logsumexp(logits)))]
        before = np.asarray(model.project(chosen).datavector())
        measure(chosen, sigma)
        model = fit_model(1000 if last else 200, model)
        moved = np.abs(np.asarray(model.project(chosen).datavector()) - before).sum()
        if moved <= math.sqrt(2.0 / math.pi) * sigma * domain.size(chosen):
            sigma, step_epsilon = sigma / 2.0, 2.0 * step_epsilon
    return model
