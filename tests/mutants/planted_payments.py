"""Bugs in what is paid for, and when, and in records that a user consents to."""

from __future__ import annotations

from tests.mutants.mutant import bug as _bug

__all__ = ["MUTANTS_OF_PAYMENTS"]

_BUDGETS = "tests/release/test_budgets.py::"
_GATE = "tests/privacy/test_gate.py::"
_LEDGER = "tests/release/test_ledger.py::"
_MEASURED = "tests/release/test_measuring.py::"
_OUTCOMES = "tests/methods/test_outcomes.py::"

MUTANTS_OF_PAYMENTS = (
    # --- outcomes and totals
    _bug(
        "a budget pays for what a fit released, and for no failure", "base/estimators.py",
        "                check_consent(self.allow_unsound, f\"nothing is proved: {guarantee.reason}\")\n            pay(guarantee)",
        "                check_consent(self.allow_unsound, f\"nothing is proved: {guarantee.reason}\")",
        f"{_OUTCOMES}test_a_fit_that_fails_after_its_draw_is_paid_for", says="spent",
    ),
    _bug(
        "training that diverges is an error", "families/gradients/noisy_training.py",
        "    common = {\"coef\": coef,",
        "    if np.abs(coef).max() >= 1e50:\n        raise ValueError(\"training diverged\")\n    common = {\"coef\": coef,",
        f"{_OUTCOMES}test_training_that_diverges_is_released", says="training diverged",
    ),
    _bug(
        "threads warn of what noise does to numbers", "numerics/compiled/threads.py",
        "initializer=lambda: np.seterr(all=\"ignore\")", "initializer=lambda: np.seterr(all=\"raise\")",
        f"{_OUTCOMES}test_threads_tell_nothing_either", says="assert",
    ),
    _bug(
        "noise may be drawn before it is paid for", "base/estimators.py",
        "if not self.guarantees:", "if False:",
        f"{_OUTCOMES}test_noise_needs_payment", says="DID NOT RAISE",
    ),
    _bug(
        "a release pays when it is finished", "release/recipes.py",
        "        book(guarantee, protection)\n", "",
        f"{_LEDGER}test_a_release_that_fails_is_paid_for_once", says="assert",
    ),
    _bug(
        "a release that was interrupted pays again", "release/ledger.py",
        "if not entry.model and canonical_json(", "if entry.model and canonical_json(",
        f"{_LEDGER}test_a_release_that_fails_is_paid_for_once", says="above the budget",
    ),
    _bug(
        "whatever has the id of a release that was interrupted is paid for", "release/ledger.py",
        'canonical_json(stated | {"date": content["date"]}) == canonical_json(content)', 'entry.id == content["id"]',
        f"{_LEDGER}test_another_table_or_schema_pays", says="DID NOT RAISE",
    ),
    _bug(
        "a release that was interrupted pays for one by another schema", "release/releasing.py",
        "sha256_of_json([token, schema.to_json(), terms])", "sha256_of_json([token, terms])",
        f"{_LEDGER}test_another_table_or_schema_pays", says="DID NOT RAISE",
    ),
    _bug(
        "a line of a ledger pays for two models", "release/ledger.py",
        "if entry.model or entry not in self.entries():", "if False:",
        f"{_LEDGER}test_one_payment_releases_one_model", says="was changed or cut",
    ),
    _bug(
        "a line without its end is forgotten", "release/ledger.py",
        "for line in filter(str.strip, text.splitlines()):", 'for line in text[: text.rfind("\\n") + 1].splitlines():',
        f"{_LEDGER}test_an_editor_forgets_no_release", says="assert",
    ),
    _bug(
        "the next line follows one without its end", "files.py",
        'ended = size == 0 or os.pread(descriptor, 1, size - 1) == b"\\n"', "ended = True",
        f"{_LEDGER}test_an_editor_forgets_no_release", says="was changed or cut",
    ),
    # --- records with consent
    _bug(
        "a witness of private rows is proved", "base/estimators.py",
        "if audit and rng is None:", "if False:",
        "tests/methods/test_contract.py::test_no_row_is_treated_like_its_neighbour_of_one[PrivateSVMClassifier-array]",
        says="DID NOT RAISE",
    ),
    _bug(
        "a clone says nothing of the choice among clones", "base/estimators.py",
        "with_assumption(guarantee, ONE_OF_SEVERAL) if estimator._cloned and composition else guarantee", "guarantee",
        f"{_BUDGETS}test_clones_prove_nothing_unless_their_user_adds_up", says="assert",
    ),
    _bug(
        "noise on counts that somebody knows is the system's", "release/recipes.py",
        "system_source() if random_state is None else seeded_source(random_state, schema.name)",
        "seeded_source(random_state or 0, schema.name)",
        f"{_MEASURED}test_noise_of_counts_is_as_secret_as_that_of_the_training", says="assert",
    ),
    _bug(
        "records of several parts state any noise", "privacy/gate.py",
        "    multipliers = list(noise_multipliers(event, neighbours))\n", "    multipliers: list[float] = []\n",
        f"{_GATE}test_sensitivity_and_noise_are_those_of_a_part", says="DID NOT RAISE",
    ),
)  # fmt: skip
