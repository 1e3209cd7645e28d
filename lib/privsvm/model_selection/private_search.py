"""Private search for parameters: the best of a random number of runs, accounted for as a whole.

A run draws one of the candidates, trains it with noise, and counts with noise how many training rows it gets right. The
model with the largest noisy count is released, and nothing of the others: neither which they were nor how many. Since
the number of runs is random and secret, the whole costs two or three times as much as one run, however many candidates
there are (Papernot and Steinke 2022, Hyperparameter tuning with Renyi differential privacy).
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin
from sklearn.model_selection import ParameterGrid
from sklearn.utils.validation import check_is_fitted

from privsvm.base.budget import charge_to, fit_payer, nobody
from privsvm.base.estimators import (
    NO_SECONDS,
    CloneAware,
    PrivateClassifier,
    check_record,
    judge_clone,
    noise_streams,
    reason_if_subclass,
    rollback_on_error,
)
from privsvm.base.parameters import check_consent
from privsvm.base.released import ReleasedPath, codes_one_by_one
from privsvm.base.rows import as_training_rows
from privsvm.constraints import SHARE, plain, real
from privsvm.numerics.compiled.threads import one_blas_thread
from privsvm.numerics.noise.noise_source import NoiseSource, Sensitivity
from privsvm.numerics.noise.stopping_draws import draw_choices, negative_binomial_runs, poisson_runs
from privsvm.privacy.accountants import account
from privsvm.privacy.accounting import check_budget, gaussian_noise_multiplier
from privsvm.privacy.events import (
    BestOfNegativeBinomial,
    BestOfPoisson,
    Composed,
    Event,
    Gaussian,
    OneOf,
    leaves,
    relation_factor,
)
from privsvm.privacy.gate import ONE_MODEL, Claim, Guarantee, grant
from privsvm.privacy.mechanisms import NOISE_ASSUMPTION
from privsvm.privacy.random_stopping import negative_binomial_gamma, poisson_parameter
from privsvm.privacy.statement import Randomness, merge_facts

# A run gets at least this share of the epsilon of the whole, and its epsilon is found to this accuracy.
_LEAST_SHARE, _ACCURACY = 2.0**-8, 1e-3
_ROUND_UP = 1.0 + 1e-12

_CONSTRAINTS = {
    "epsilon": real("must lie strictly between 0 and 1e+06", above=0, below=1e6),
    "delta": SHARE,
    "score_share": SHARE,
    "mean_runs": real("must lie above 1 and be at most 10000", above=1, most=1e4),
    "shape": dataclasses.replace(
        real("must lie above -1 and be at most 1, or be infinity", above=-1, most=1),
        also=lambda value: isinstance(value, float) and value == math.inf,
    ),
}


def count_right_rows(path: ReleasedPath, X: Any, codes: np.ndarray) -> int:
    """Count the rows that a released model gets right, so that one row changes the count by one at most.

    Each row is predicted by itself; see `privsvm.base.released.codes_one_by_one`.
    """
    return int(np.count_nonzero(codes_one_by_one(path, X) == codes))


def _one_of(events: Sequence[Event]) -> Event:
    """Event of a random one of several; of Gaussian releases the one that costs most, which bounds the others."""
    different = list(dict.fromkeys(events))
    powers = []
    for event in different:
        steps = leaves(event)
        if not all(isinstance(step, Gaussian) for step, _ in steps):
            return different[0] if len(different) == 1 else OneOf(tuple(different))
        powers.append(sum(count / step.noise_multiplier**2 for step, count in steps if isinstance(step, Gaussian)))
    return different[powers.index(max(powers))]


class _Plan(NamedTuple):
    """Public numbers of a search."""

    # Budget of one run's training.
    epsilon: float
    # Standard deviation of the noise on a count.
    noise_scale: float
    candidates: list[dict[str, Any]]
    # Guarantees of the training, by candidate.
    guarantees: list[Guarantee]
    # Guarantee of the whole search.
    event: Event


class _Outcome(NamedTuple):
    """The release of a run; a training that failed is an outcome too, below all others."""

    right: float
    estimator: PrivateClassifier
    path: ReleasedPath | None
    candidate: dict[str, Any]
    problem: str = ""


class PrivateSearch(CloneAware, ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """Search for the parameters of a private classifier; search and released model are private together.

    Parameters
    ----------
    estimator : PrivateClassifier
        A method whose guarantee has an event with known Renyi divergences: output and objective perturbation, noisy
        moments, noisy gradients over all rows. The search sets its `epsilon`, `delta` and `random_state`.
    param_grid : dict or list of dict
        Candidates, as for scikit-learn's grid search; public.
    epsilon : float, default=1.0
        Privacy budget of the whole: all runs, their scores, and the choice.
    delta : float, default=1e-5
        Delta that goes with it.
    mean_runs : float, default=40.0
        Mean number of runs, above 1; public. The number itself is random and secret, and often far below its mean: take
        several times as many as there are candidates. That costs time, and little of the budget.
    shape : float, default=0.0
        Of the distribution of the number of runs: the shape of a truncated negative binomial distribution, above -1 and
        at most 1 (0: logarithmic; 1: geometric; the larger, the more alike and the dearer), or infinity for Poisson
        numbers without 0, which are best for a few runs of Gaussian releases.
    score_share : float, default=0.1
        Share of a run's budget that pays for the noisy count of rows that it gets right.
    random_state : int, numpy.random.Generator or None, default=None
        Source of the noise. None takes fresh entropy from the operating system, the only choice for a release.

    Attributes
    ----------
    best_estimator_ : PrivateClassifier
        The released model; its `guarantee_` covers the whole search.
    best_params_ : dict
        Its parameters, of `param_grid`.
    best_score_ : int
        Noisy number of training rows that it gets right.
    guarantee_ : Guarantee
        The privacy record of all that this object holds.
    run_epsilon_ : float
        Budget of the training of one run.
    classes_ : ndarray (c,)
        Labels.
    n_features_in_ : int
        Number of features d.

    Notes
    -----
    There is no `cv_results_`: what other runs found is not released. Time is not covered: it tells the number of runs.

    Examples
    --------
    >>> from privsvm import ObjectivePerturbationClassifier, PrivateSearch
    >>> model = ObjectivePerturbationClassifier(classes=[0, 1])
    >>> search = PrivateSearch(model, {"C": [0.01, 0.1]}, epsilon=4.0, mean_runs=3)
    >>> search.fit([[-1.0, 0.0], [1.0, 0.0]] * 50, [0, 1] * 50).guarantee_.status
    'proved'
    """

    def __init__(
        self,
        estimator: Any,
        param_grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]],
        *,
        epsilon: float = 1.0,
        delta: float = 1e-5,
        mean_runs: float = 40.0,
        shape: float = 0.0,
        score_share: float = 0.1,
        random_state: int | np.random.Generator | None = None,
    ) -> None:
        self.estimator = estimator
        self.param_grid = param_grid
        self.epsilon = epsilon
        self.delta = delta
        self.mean_runs = mean_runs
        self.shape = shape
        self.score_share = score_share
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Search, and release one model.

        Parameters
        ----------
        X : array-like or sparse matrix (n, d)
            Rows; finite.
        y : array-like (n,)
            Labels.

        Returns
        -------
        PrivateSearch
            Itself.

        Raises
        ------
        ValueError
            If a parameter is out of range, the budget too small, or nothing could be proved of a candidate.
        """
        with rollback_on_error(self):
            self._search(X, y)
        return self

    def _search(self, X: Any, y: Any) -> None:
        streams = noise_streams(self.random_state, self)
        self._check_parameters()
        consent = bool(self.estimator.allow_unsound)
        if self._cloned:
            self._check_clone(bool(self.estimator.allow_composition), consent)
        rows, codes = as_training_rows(self, X, y, self.estimator.classes)
        # Plans are of made-up rows.
        with charge_to(nobody):
            plan = self._plan(rows.shape[1], rows.shape[0])
        guarantee = self._judge(plan, plan.guarantees[0], rows.shape[0])
        if guarantee.status == "claimed":
            check_consent(consent, f"nothing is proved: {guarantee.reason}")
        payer = fit_payer()
        assert payer is not None
        payer(guarantee)
        source = streams(float(self.epsilon), 0)
        chosen = draw_choices(source.part("choices").next_key(), len(plan.candidates), self._draw_runs(source))
        best = None
        # The search has paid for its runs.
        with one_blas_thread(), np.errstate(all="ignore"), charge_to(nobody):
            for number, index in enumerate(chosen):
                run = self._run(rows, codes, plan, index, source.part(f"run {number}"))
                # Runs are alike: taking the first among equals is as good as taking any.
                if best is None or run.right > best.right:
                    best = run
        assert best is not None
        if best.path is None:
            raise ValueError(best.problem)
        self._keep(best, best.path, self._judge(plan, best.path.guarantees[0], rows.shape[0]), plan)

    def _judge(self, plan: _Plan, run: Guarantee, n_rows: int) -> Guarantee:
        """Make the record of the whole, in the words of one run, and judge it."""
        guarantee = self._guarantee(plan, run, n_rows)
        guarantee = guarantee.without_proof(*map(reason_if_subclass, (self, self.estimator)))
        return judge_clone(guarantee, bool(self.estimator.allow_composition)) if self._cloned else guarantee

    def _check_parameters(self) -> None:
        if not isinstance(self.estimator, PrivateClassifier) or "delta" not in self.estimator.declared:
            raise ValueError(
                f"estimator={self.estimator!r}: must be a private classifier with a delta, for example "
                "ObjectivePerturbationClassifier(classes=[0, 1])"
            )
        for name, constraint in _CONSTRAINTS.items():
            constraint.check(name, getattr(self, name))
        check_budget(float(self.epsilon), float(self.delta))

    def _candidates(self) -> list[dict[str, Any]]:
        """Parameters of the candidates; none that would change the guarantee."""
        fixed = {
            "epsilon",
            "delta",
            "random_state",
            "neighbours",
            "classes",
            "n_rows",
            "allow_unsound",
            "allow_composition",
        }
        candidates: list[dict[str, Any]] = [dict(candidate) for candidate in ParameterGrid(plain(self.param_grid))]
        for candidate in candidates:
            if set_here := sorted(fixed & candidate.keys()):
                raise ValueError(f"param_grid holds {set_here[0]!r}, which is the same for all candidates")
        if not candidates:
            raise ValueError(f"param_grid={self.param_grid!r}: holds no candidate")
        return candidates

    def _candidate(self, candidate: dict[str, Any]) -> PrivateClassifier:
        estimator: PrivateClassifier = type(self.estimator)(**self.estimator.get_params())
        return estimator.set_params(**candidate, delta=float(self.delta))

    def _plan_candidate(self, candidate: dict[str, Any], epsilon: float, n_features: int, n_rows: int) -> Guarantee:
        """Return the record of one candidate's training, from made-up rows: it depends on public numbers only."""
        estimator = self._candidate(candidate)
        counts = "n_rows" in estimator.declared and estimator.n_rows is None
        # Who pays for a noisy number of rows under add_remove plans without any.
        counts = counts and not (estimator.pays_for_counts and estimator.neighbours == "add_remove")
        if counts:
            estimator.set_params(n_rows=n_rows)
        path = estimator.release_path(
            np.zeros((len(self.classes_), n_features)),
            self.classes_,
            [epsilon],
            1,
            lambda stream_epsilon, repeat: NoiseSource(bytes(32)),
        )
        guarantee: Guarantee = path.guarantees[0]
        if guarantee.event is None or guarantee.facts is None:
            raise ValueError(f"estimator={self.estimator!r}: its guarantee has no event to account for")
        if not counts:
            return guarantee
        return dataclasses.replace(
            guarantee.with_broken_assumption("not for release: it is that of made-up rows"),
            facts=dataclasses.replace(guarantee.facts, n_rows="counted", declared_rows=None),
        )

    def _event_of_best(self, event: Event) -> Event:
        """Return the event of the best of the runs, from the event of one run."""
        mean, shape = float(self.mean_runs), float(self.shape)
        if shape == math.inf:
            return BestOfPoisson(poisson_parameter(mean), event)
        return BestOfNegativeBinomial(shape, negative_binomial_gamma(shape, mean), event)

    def _draw_runs(self, source: NoiseSource) -> int:
        """Draw the number of runs, which reads no row."""
        key, mean, shape = source.part("number of runs").next_key(), float(self.mean_runs), float(self.shape)
        if shape == math.inf:
            return poisson_runs(key, poisson_parameter(mean))
        return negative_binomial_runs(key, shape, negative_binomial_gamma(shape, mean))

    def _plan(self, n_features: int, n_rows: int) -> _Plan:
        """Find the largest budget of one run for which the whole keeps to its own."""
        epsilon, delta = float(self.epsilon), float(self.delta)
        neighbours = self.estimator.neighbours
        candidates = self._candidates()

        def plan(budget: float) -> _Plan:
            runs = [self._plan_candidate(candidate, budget, n_features, n_rows) for candidate in candidates]
            share = float(self.score_share)
            # Over the most that a row changes of the count, which is 1 for both relations.
            scale = gaussian_noise_multiplier(budget, delta) * math.sqrt((1.0 - share) / share) * _ROUND_UP
            event = _one_of([run.event for run in runs if run.event is not None])
            run = Composed((event, Gaussian(relation_factor(neighbours) * scale)))
            return _Plan(budget, scale, candidates, runs, self._event_of_best(run))

        def costs(candidate: _Plan) -> float:
            return account(candidate.event, delta, neighbours).epsilon

        low, high = math.log(epsilon * _LEAST_SHARE), math.log(epsilon)
        best = plan(math.exp(low))
        if not costs(best) <= epsilon:
            is_finite = math.isfinite(costs(best))
            raise ValueError(
                f"epsilon={self.epsilon!r}: too small for a mean of {self.mean_runs!r} runs with delta={self.delta!r}"
                if is_finite
                else f"estimator={self.estimator!r}: Renyi divergences of its releases are not known; those of rows "
                "drawn at random are for add_remove alone: use batch_size=None"
            )
        while high - low > _ACCURACY:
            middle = plan(math.exp(0.5 * (low + high)))
            if costs(middle) <= epsilon:
                low, best = math.log(middle.epsilon), middle
            else:
                high = math.log(middle.epsilon)
        return best

    def _run(self, rows: Any, codes: np.ndarray, plan: _Plan, index: int, source: NoiseSource) -> _Outcome:
        """Train one candidate and count with noise the checked rows that it gets right."""
        candidate = plan.candidates[index]
        estimator = self._candidate(candidate).set_params(epsilon=plan.epsilon)
        try:
            labels = self.classes_[codes]
            path = estimator.release_path(
                rows, labels, [plan.epsilon], 1, lambda epsilon, repeat: source.part("training")
            )
        except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
            # Raised at once, it would tell of a run that is not the best.
            return _Outcome(-math.inf, estimator, None, candidate, f"{candidate}: {error}")
        path = dataclasses.replace(path, **NO_SECONDS)
        if path.guarantees[0].event != plan.guarantees[index].event:
            raise ValueError(f"estimator={self.estimator!r}: its event does not follow from public numbers")
        right = np.array([count_right_rows(path, rows, codes)], dtype=np.int64)
        count = source.part("score").add_rounded_normals(right, plan.noise_scale, Sensitivity(1.0))
        return _Outcome(int(count[0]), estimator, path, candidate)

    def _guarantee(self, plan: _Plan, run: Guarantee, n_rows: int) -> Guarantee:
        """Privacy record of the whole; assumptions of a run's training go with it, and facts of every candidate's."""
        numbers = "Poisson" if self.shape == math.inf else f"truncated negative binomial, shape {float(self.shape):g},"
        _, _, neighbours = run.accounted_parts
        texts = [text for text in run.assumptions if text not in (ONE_MODEL, NOISE_ASSUMPTION)]
        claim = Claim(
            event=plan.event,
            mechanism=f"best of a random number of runs ({numbers} with mean {float(self.mean_runs):g}), each a random "
            f"one of {len(plan.candidates)} candidates, by its noisy count of rows it gets right; one run: "
            f"{run.mechanism}",
            neighbours=neighbours,
            epsilon_requested=float(self.epsilon),
            delta=float(self.delta),
            assumptions=(
                *(text for text in texts if "seed is secret" not in text),
                "candidates, the distribution of the number of runs, and the share of the score are public; the number "
                "of runs and what other runs found are not released",
                "how long the search takes is outside the guarantee: it tells the number of runs",
                ONE_MODEL,
                NOISE_ASSUMPTION,
            ),
            reference="Papernot and Steinke (2022), Hyperparameter tuning with Renyi differential privacy, Theorems 2 "
            f"and 6; one run: {run.reference}",
        )
        # The best run tells of all of them: nothing is proved unless it is of every candidate.
        facts = merge_facts([guarantee.facts for guarantee in plan.guarantees if guarantee.facts is not None])
        randomness: Randomness = "system" if self.random_state is None else "seeded"
        return grant(claim, facts.for_rows(n_rows, neighbours), randomness)

    def _keep(self, best: _Outcome, path: ReleasedPath, guarantee: Guarantee, plan: _Plan) -> None:
        """Set the fitted attributes: the release of the best run, under the record of the whole."""
        estimator = best.estimator
        estimator.random_state = None
        estimator._keep(path)
        estimator._keep_recipe()
        if hasattr(self, "feature_names_in_"):
            estimator.feature_names_in_ = self.feature_names_in_
        estimator._path = dataclasses.replace(path, epsilons=(float(self.epsilon),), guarantees=(guarantee,))
        for name in {"guarantee_", "privacy_"} & vars(estimator).keys():
            setattr(estimator, name, guarantee)
        self.best_estimator_, self.best_params_, self.best_score_ = estimator, best.candidate, int(best.right)
        self.guarantee_, self.run_epsilon_ = guarantee, plan.epsilon

    def predict(self, X: Any) -> np.ndarray:
        """Predict the labels (n,) of rows X (n, d)."""
        check_is_fitted(self)
        labels: np.ndarray = self.best_estimator_.predict(X)
        return labels

    def decision_function(self, X: Any) -> np.ndarray:
        """Decision values of the released model; see its class."""
        check_is_fitted(self)
        values: np.ndarray = self.best_estimator_.decision_function(X)
        return values

    def __getstate__(self) -> dict[str, Any]:
        """Leave the seeds of a fitted search out of the stored state: with one, anyone can subtract the noise."""
        state: dict[str, Any] = dict(super().__getstate__())
        if "guarantee_" in state:
            state |= {"random_state": None, "estimator": copy.copy(self.estimator).set_params(random_state=None)}
        return state

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Restore a fitted search; raise ValueError where its record differs from its released model."""
        shown = state.get("guarantee_")
        if shown is not None:
            check_record(state["best_estimator_"]._path, shown)
        super().__setstate__(state)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.classifier_tags.poor_score = True
        tags.non_deterministic = self.random_state is None
        return tags
