"""The default training of a release, and the noise for persons."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, Literal

import numpy as np

from privsvm.base.budget import charge_to, refuse_in_budget, spend
from privsvm.base.estimators import plain_parameters
from privsvm.base.model_file import Protection, protection_of
from privsvm.errors import PrivSVMError, nearest_name
from privsvm.numerics.noise.noise_source import seeded_source, system_source
from privsvm.privacy.accountants import account
from privsvm.privacy.accounting import gaussian_noise_multiplier
from privsvm.privacy.events import Event, Gaussian, Laplace, Neighbours, OneOf, relation_factor
from privsvm.privacy.gate import LARGEST_EPSILON, Guarantee, default_delta, restore
from privsvm.privacy.risk import trade_off
from privsvm.registry import estimator_class, implementations
from privsvm.release.documents.calibration import HeldBackCounts
from privsvm.release.training.measuring import (
    LARGEST_SHARE,
    LEAST_SHARE,
    HeldBack,
    draw_held_back,
    measure,
    with_measurement,
)
from privsvm.release.training.risk_targets import RiskTarget
from privsvm.tables.schema import Schema, parse_schema

LARGEST_DELTA = 1e-4

# Parameters that a recipe may set: public numbers and words that change how well a model learns, and no term of its
# guarantee.
PARAMETERS = frozenset({
    "C", "average", "batch_size", "beta1", "beta2", "cache_size", "class_weight", "coef0", "composition", "degree",
    "epochs", "features", "features_seed", "fit_intercept", "gamma", "gap", "inside_clip", "kernel", "landmarks_seed",
    "learning_rate", "loss_weight", "margin_weight", "max_epochs", "max_grad_norm", "max_iter", "momentum",
    "n_components", "n_jobs", "n_landmarks", "n_steps", "normalize", "power", "radius", "ridge", "scaling", "schedule",
    "shrinking", "smoothing", "tol",
})  # fmt: skip

# Source of each term of a guarantee, for the message when a recipe sets one.
FIXED: Mapping[str, str] = {
    "after": "pass it to the release",
    "epsilon": "pass it to the release",
    "delta": "pass it to the release",
    "neighbours": "pass it to the release",
    "random_state": "a release takes its noise from the operating system",
    "n_rows": "declare `rows` in the schema",
    "classes": "declare `classes` in the schema",
    "bounds": "declare `bounds` of the columns in the schema",
    "indicators": "declare `categories` and `boolean` columns in the schema",
    "allow_unsound": "a release is proved, or there is none",
    "allow_composition": "a release is one fit",
}


@dataclasses.dataclass(frozen=True)
class Recipe:
    """A method, a file of `privsvm.methods`, and public parameters of its estimator.

    Classes of other packages are refused. Parameters have plain values, and only names in `PARAMETERS`.
    """

    implementation: str
    parameters: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def default_recipe() -> Recipe:
    """Return the recipe of `privsvm release`."""
    return Recipe("recommended", {"class_weight": "balanced"})


def _check_recipe(recipe: Recipe) -> tuple[type, dict[str, Any]]:
    """Return the class and the parameters of a recipe; raise PrivSVMError for names that a release does not know."""
    if recipe.implementation not in implementations():
        raise PrivSVMError(
            f"recipe: {recipe.implementation!r} is not a method of PrivSVM, and nothing is known about other code; "
            f"{nearest_name(recipe.implementation, implementations())}"
        )
    method, parameters = estimator_class(recipe.implementation), dict(recipe.parameters)
    allowed = PARAMETERS & set(method.declared)  # type: ignore[attr-defined]
    for name, value in parameters.items():
        if name not in allowed:
            remedy = FIXED.get(name, f"a recipe for {recipe.implementation} can set {', '.join(sorted(allowed))}")
            raise PrivSVMError(f"recipe: {name!r} is not a parameter of a recipe; leave it out: {remedy}")
        numbers = value.values() if name == "class_weight" and type(value) is dict else [value]
        if not all(type(one) in (str, int, float, bool, type(None)) for one in numbers):
            raise PrivSVMError(f"recipe: {name} is a {type(value).__name__}; give a number or a word")
    return method, parameters


@dataclasses.dataclass(frozen=True)
class Terms:
    """Permitted cost of a release, and its training.

    `epsilon` and `delta` are for the unit: one person, where the schema names a column for persons, else one row; a
    delta of None is `default_delta`. `neighbours` is for rows, None the default of the recipe's method: persons are
    added and removed, with all their rows. `recipe` None is `default_recipe`. `hold_back` is the share of the units, at
    most a half, that do not train: they measure and calibrate the model instead, with noise, at no further epsilon. A
    release that reveals more than `risk` is refused, see `terms_of_risk`. `after` is the folder of an earlier release
    to average with.
    """

    epsilon: float
    delta: float | None = None
    neighbours: Neighbours | None = None
    recipe: Recipe | None = None
    hold_back: float | None = None
    risk: RiskTarget | None = None
    after: str | None = None

    @property
    def epsilon_of_counts(self) -> float:
        """Epsilon of the numbers that measure the model, for the unit."""
        return self.epsilon if self.risk is None else min(self.epsilon, self.risk.epsilon_of_counts)


@dataclasses.dataclass(frozen=True)
class Trained:
    """A fitted estimator, its guarantee, and its accuracy where rows were held back."""

    estimator: Any
    protection: Protection
    recipe: Mapping[str, Any]
    held_back: HeldBackCounts | None = None


def terms_of_risk(risk: RiskTarget, schema: Schema, terms: Terms) -> Terms:
    """Put the epsilon into terms that a risk allows at their delta."""
    delta = default_delta(schema.rows) if terms.delta is None else terms.delta
    return dataclasses.replace(terms, epsilon=risk.epsilon(delta), risk=risk)


def _unit(schema: Schema, terms: Terms) -> tuple[Literal["row", "person"], int, Neighbours]:
    """Return who is protected, how many rows of a unit count, and the relation."""
    if schema.person:
        return "person", int(schema.rows_per_person or 1), "add_remove"
    if terms.neighbours is not None:
        return "row", 1, terms.neighbours
    method: Any = _check_recipe(terms.recipe or default_recipe())[0]
    return "row", 1, getattr(method.declared.get("neighbours"), "default", "replace_one")


def plan_event(schema: Schema, terms: Terms) -> tuple[Event | None, int, Neighbours]:
    """Return the event of the recommended method, how many rows of a unit count, and the relation.

    For the cost of a release before its training: afterwards, the event is in its guarantee. None for other recipes.
    """
    _, rows, neighbours = _unit(schema, terms)
    if terms.recipe not in (None, default_recipe()):
        return None, rows, neighbours
    delta, factor = default_delta(schema.rows) if terms.delta is None else terms.delta, relation_factor(neighbours)
    try:
        event: Event = Gaussian(factor * rows * gaussian_noise_multiplier(terms.epsilon, delta))
    except ValueError as error:
        raise PrivSVMError(f"{error}") from None
    if terms.hold_back is not None:
        event = OneOf((event, Laplace(factor * rows / terms.epsilon_of_counts)))
    return event, rows, neighbours


def _check_risk(guarantee: Guarantee, rows: int, terms: Terms) -> None:
    """Raise PrivSVMError where a release reveals more than its terms allow."""
    if terms.risk is None:
        return
    if guarantee.event is None or guarantee.neighbours is None:
        raise PrivSVMError("risk: nothing is known about this release")
    if not terms.risk.is_met(trade_off(guarantee.event, guarantee.neighbours, rows, guarantee.delta)):
        raise PrivSVMError("risk: this recipe reveals more than the terms allow; use the recommended one")


def _budgets(epsilon: float, delta: float, rows: int) -> list[tuple[float, float]]:
    """List budgets of one row to try for a unit with several; data decide nothing here."""
    if rows == 1:
        return [(epsilon, delta)]
    # Several rows move Gaussian noise so many times as far.
    gaussian = account(Gaussian(rows * gaussian_noise_multiplier(epsilon, delta)), delta, "add_remove").epsilon
    one = epsilon / rows
    any_mechanism = delta / math.fsum(math.exp(one * number) for number in range(rows))
    return [(gaussian, delta), (one, any_mechanism)]


def _schema_facts(schema: Schema, rows: int | None) -> dict[str, Any]:
    """Return the facts of a guarantee that a schema and a public number of rows state of the training."""
    stated: dict[str, Any] = {
        "preparation": {None: "undeclared", True: "prescaled", False: "declared"}[schema.prescaled],
        "condensing": "none",
        "split": "every row",
        "scaling": "declared",
        "bounds": "declared",
        "n_features": "declared",
    }
    return stated if rows is None else stated | {"declared_rows": rows}


def _require_epsilon(protection: Protection, guarantee: Guarantee, neighbours: Neighbours, recipe: Recipe) -> float:
    """Return the epsilon that is proved for a unit; raise PrivSVMError where none is, or for another relation."""
    if protection.epsilon is None:
        seeded = guarantee.status == "seeded" and "its noise is seeded"
        reason = guarantee.reason or seeded or "no accountant bounds what it does with all rows of a unit"
        raise PrivSVMError(f"nothing is proved for this release: {reason}")
    if guarantee.neighbours != neighbours:
        raise PrivSVMError(f"{recipe.implementation}: its guarantee is for another relation than requested")
    return protection.epsilon


def _check_terms(recipe: Recipe, schema: Schema, terms: Terms, delta: float) -> None:
    """Raise PrivSVMError for terms that no release has, whatever the rows are."""
    method: Any = estimator_class(recipe.implementation)
    if not delta <= LARGEST_DELTA:
        raise PrivSVMError(f"delta={delta!r}: a release accepts at most {LARGEST_DELTA:g}, far below 1 / rows")
    asks = "n_rows" in method.declared and not getattr(method, "pays_for_counts", False)
    if asks and _unit(schema, terms)[2] == "add_remove" and schema.rows is None:
        raise PrivSVMError("rows: the number of rows must be public under add_remove; declare it in the schema")
    if not terms.epsilon <= LARGEST_EPSILON:
        raise PrivSVMError(
            f"epsilon={terms.epsilon!r}: above {LARGEST_EPSILON:g} nothing is called proved; use a smaller one"
        )
    if terms.after is not None and (terms.hold_back is not None or "after" not in method.declared):
        words = "the recommended recipe averages models, without hold_back: its rows may have trained the earlier ones"
        raise PrivSVMError(f"after: {words}")
    if terms.hold_back is not None:
        if not LEAST_SHARE <= terms.hold_back <= LARGEST_SHARE:
            raise PrivSVMError(f"hold_back={terms.hold_back!r}: must lie from {LEAST_SHARE:g} to {LARGEST_SHARE:g}")
        refuse_in_budget("no fit pays for what rows held back measure; leave the budget, or hold back none")


class _TooExpensiveError(Exception):
    """A budget of one row whose guarantee for a unit exceeds the terms; nothing was drawn."""


def train(
    X: np.ndarray,
    codes: np.ndarray,
    schema: Schema,
    terms: Terms,
    *,
    units: np.ndarray | None = None,
    random_state: int | None = None,
    book: Callable[[Guarantee, Protection], None] = lambda guarantee, protection: None,
) -> Trained:
    """Train one model with noise from the operating system, and measure it if the terms ask for that.

    Rows, codes and `units` (n,) are as `privsvm.tables.tables.units_table` returns them; None: each row is its own
    unit. A `random_state` is for simulations alone. `book` pays for the release, before any noise is drawn; it may
    refuse. Raises PrivSVMError for a budget or a parameter that the method refuses, and where nothing is proved.
    """
    recipe, schema = default_recipe() if terms.recipe is None else terms.recipe, parse_schema(schema)
    epsilon, delta = terms.epsilon, default_delta(schema.rows) if terms.delta is None else terms.delta
    method, parameters = _check_recipe(recipe)
    declared: Mapping[str, Any] = method.declared  # type: ignore[attr-defined]
    unit, rows, neighbours = _unit(schema, terms)
    _check_terms(recipe, schema, terms, delta)
    # Where a row is replaced, all neighbours have as many rows, those that are held back included.
    public_rows = schema.rows if neighbours == "add_remove" else max(len(X), schema.rows or 1)
    held, n_rows, share = None, schema.rows, terms.hold_back
    # Of the held-back rows, and of the noise on their counts: both as secret as the noise of the training.
    source = system_source() if random_state is None else seeded_source(random_state, schema.name)
    if share is not None:
        n_rows = None if n_rows is None else max(n_rows - round(share * n_rows), 1)
        units = np.arange(len(X)) if units is None else units
        # Who is held back decides nothing before the release is paid for.
        away = draw_held_back(units, share, neighbours, source.part("held back"))
        held, X, codes = (X[away], codes[away]), X[~away], codes[~away]
    if neighbours == "add_remove":
        # One public row more: a refusal must not depend on whether there is any.
        X, codes = np.vstack([X, np.zeros((1, X.shape[1]))]), np.append(codes, 0)
    elif not len(X):
        raise PrivSVMError("the table has no rows; at least one is needed")
    judged: tuple[Guarantee, Protection] | None = None

    def pay(trained: Guarantee) -> None:
        """Judge the guarantee for the whole release, and pay for it, before the noise of the training is drawn."""
        nonlocal judged
        guarantee = restore(trained, **_schema_facts(schema, public_rows))
        if share is not None:
            guarantee = with_measurement(guarantee, terms.epsilon_of_counts / rows)
        protection = protection_of(guarantee, unit, rows, delta, with_system_noise=random_state is not None)
        if _require_epsilon(protection, guarantee, neighbours, recipe) > epsilon * (1.0 + 1e-9):
            raise _TooExpensiveError
        _check_risk(guarantee, rows, terms)
        spend(trained)
        book(guarantee, protection)
        judged = guarantee, protection

    common = {
        "classes": list(range(len(schema.classes))),
        "neighbours": neighbours,
        "n_rows": n_rows,
        "random_state": random_state,
        "after": terms.after,
        # As `Encoder.features` makes them.
        **({"bounds": (-1.0, 1.0), "indicators": schema.indicators} if "indicators" in declared else {}),
    }
    try:
        for row_epsilon, row_delta in _budgets(epsilon, delta, rows):
            terms_of_row = common | {"epsilon": row_epsilon, "delta": row_delta}
            settings = parameters | {name: value for name, value in terms_of_row.items() if name in declared}
            with contextlib.suppress(_TooExpensiveError), charge_to(pay):
                estimator = method(**settings).fit(X, codes)
                break
        else:
            raise PrivSVMError(
                f"epsilon={epsilon!r}: {recipe.implementation} cannot guarantee it for {rows} rows per person"
            )
    except PrivSVMError:
        raise
    except ValueError as error:
        raise PrivSVMError(f"{error}") from None
    assert judged is not None
    guarantee, protection = judged
    estimator._keep(dataclasses.replace(estimator._path, guarantees=(guarantee,)))
    method_settings = {"method": method.__name__, "parameters": plain_parameters(settings)}
    if held is None or share is None:
        return Trained(estimator, protection, method_settings)
    held_back = HeldBack(share, terms.epsilon_of_counts / rows, neighbours, rows, schema.rows, schema.groups)
    counts = measure(estimator._path, *held, held_back, source.part("counts"))
    return Trained(estimator, protection, method_settings, counts)
