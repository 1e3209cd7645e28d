"""Bugs of accounting, the gate, selection and records, for `tests.mutants.planted`."""

from __future__ import annotations

from tests.mutants.mutant import bug as _bug

__all__ = ["MUTANTS_OF_RECORDS"]

_ACCOUNTANTS = "tests/privacy/test_accountants.py::"
_GAUSSIAN = "tests/privacy/test_gaussian_delta.py::"
_CORNERS = "tests/privacy/test_objective_perturbation_delta.py::"
_BUDGETS = "tests/release/test_budgets.py::"
_CALIBRATED = "tests/release/test_calibration.py::"
_FACTS = "tests/jobs/test_facts.py::"
_GATE = "tests/privacy/test_gate.py::"
_MEASURED = "tests/release/test_measuring.py::"
_RISK = "tests/privacy/test_risk.py::"
_CARD = "tests/release/test_card.py::"
_TARGETS = "tests/release/test_risk_targets.py::"
_SEARCH = "tests/model_selection/test_private_search.py::"
_SHOWN = "tests/release/test_shown_guarantees.py::"
_UNTRUSTED = "tests/test_untrusted.py::"
_STOPPING = "tests/privacy/test_random_stopping.py::"
_CONFIRMED = "tests/reproduction/test_confirm.py::"

MUTANTS_OF_RECORDS = (
    # --- accounting
    _bug(
        "a replaced row counts once", "privacy/events.py",
        'return 2.0 if neighbours == "replace_one" else 1.0', "return 1.0",
        f"{_ACCOUNTANTS}test_gaussian_releases_compose_exactly", says="assert",
    ),
    _bug(
        "several Gaussian releases cost as much as one", "privacy/accountants.py",
        "math.sqrt(count) / event.noise_multiplier for event", "1.0 / event.noise_multiplier for event",
        f"{_ACCOUNTANTS}test_gaussian_releases_compose_exactly", says="assert",
    ),
    _bug(
        "delta of Gaussian noise is a difference that cancels", "privacy/gaussian_delta.py",
        "_STEEPEST = 9.0", "_STEEPEST = -1.0",
        f"{_GAUSSIAN}test_delta_of_gaussian_noise_is_never_below_eighty_digits", says="assert",
    ),
    _bug(
        "delta of Gaussian noise is rounded as it comes", "privacy/gaussian_delta.py",
        "delta * (1.0 + slack)", "delta",
        f"{_GAUSSIAN}test_delta_of_gaussian_noise_is_never_below_eighty_digits", says="assert",
    ),
    _bug(
        "the tail of an integral is dropped where it counts", "privacy/gaussian_delta.py",
        "_REACH = 40.0", "_REACH = 20.0",
        f"{_GAUSSIAN}test_delta_of_gaussian_noise_is_never_below_eighty_digits", says="assert",
    ),
    _bug(
        "arguments of a large epsilon are taken for exact", "privacy/gaussian_delta.py",
        "_DELTA_SLACK, _ARGUMENT_SLACK = 1e-12, 2.0**-51", "_DELTA_SLACK, _ARGUMENT_SLACK = 1e-12, 0.0",
        f"{_GAUSSIAN}test_delta_of_gaussian_noise_is_never_below_eighty_digits", says="assert",
    ),
    _bug(
        "selections cost half their concentrated loss", "privacy/renyi.py",
        "return orders * event.epsilon**2 / 8.0", "return orders * event.epsilon**2 / 16.0",
        f"{_ACCOUNTANTS}test_many_selections_cost_their_concentrated_loss", says="assert",
    ),
    _bug(
        "delta is left out of the conversion", "privacy/renyi.py",
        "- np.log(delta * orders) / (orders - 1.0)", "- np.log(orders) / (orders - 1.0)",
        f"{_ACCOUNTANTS}test_zcdp_against_dense_orders", says="assert",
    ),
    _bug(
        "curvature costs nothing", "privacy/renyi.py",
        "perturbed_divergence(orders, factor * event.signal) + math.log1p(event.curvature)",
        "perturbed_divergence(orders, factor * event.signal)",
        f"{_ACCOUNTANTS}test_curvature_costs_where_only_renyi_divergences_are_known", says="assert",
    ),
    _bug(
        "several objectives cost as much as one", "privacy/renyi.py",
        "return event.n_objectives * minima + orders", "return minima + orders",
        f"{_ACCOUNTANTS}test_each_accountant_against_other_code", says="assert",
    ),
    _bug(
        "rows of a group have one corner together", "privacy/accountants.py",
        "(minima.rows if isinstance(minima, _PerturbedByGroup) else 1)", "1",
        f"{_CORNERS}test_every_row_of_a_group_has_a_vector", says="assert",
    ),
    _bug(
        "a replaced row has the corners of an added one", "privacy/accountants.py",
        "n_vectors = round(factor) *", "n_vectors =",
        f"{_CORNERS}test_every_row_of_a_group_has_a_vector", says="assert",
    ),
    _bug(
        "corners of several rows are counted once", "privacy/objective_perturbation_delta.py",
        "float(math.comb(n_vectors, j))", "1.0",
        f"{_CORNERS}test_corners_are_counted_one_by_one", says="assert",
    ),
    _bug(
        "the noise on minima is nothing at a corner", "privacy/objective_perturbation_delta.py",
        "math.hypot(length * math.sqrt(squares), output_signal)", "math.hypot(length * math.sqrt(squares), 0.0)",
        f"{_CORNERS}test_two_objectives_or_one_and_its_output_show_no_more",
        f"{_CORNERS}test_corners_are_counted_one_by_one", says="assert",
    ),
    _bug(
        "curvature costs nothing at corners", "privacy/accountants.py",
        "        epsilon += self.curvature(event)\n", "",
        f"{_ACCOUNTANTS}test_curves_of_perturbed_objectives_lie_above_their_gaussian_part", says="assert",
    ),
    _bug(
        "delta is not shared by budgets that are added", "privacy/accountants.py",
        "spare_delta / len(groups)", "spare_delta",
        f"{_ACCOUNTANTS}test_budgets_that_are_added_share_delta", says="assert",
    ),
    _bug(
        "steps that are repeated count once", "privacy/events.py",
        "(leaf, count * event.count) for", "(leaf, count) for",
        f"{_ACCOUNTANTS}test_leaves_of_nested_events", says="assert",
    ),
    _bug(
        "a group of rows has the delta of one", "privacy/accountants.py",
        "delta = event.delta * float(np.exp(event.epsilon * np.arange(k)).sum())", "delta = event.delta",
        f"{_ACCOUNTANTS}test_a_group_s_delta_grows_with_epsilon", says="assert",
    ),
    _bug(
        "absurdly long linear terms cost nothing", "privacy/accountants.py",
        "return delta_of_minima(delta) if _has_minima(event) else delta", "return delta",
        "tests/privacy/test_objective_perturbation_accounting.py::"
        "test_an_absurdly_long_linear_term_is_taken_off_delta", says="assert",
    ),
    _bug(
        "the best of several runs costs as that of a geometric number", "privacy/random_stopping.py",
        "+ (1.0 + shape) * cost", "+ cost",
        f"{_STOPPING}test_negative_binomial_runs_cost_what_dp_accounting_says", says="assert",
    ),
    _bug(
        "how many runs there are costs nothing", "privacy/random_stopping.py",
        "+ math.log(mean * _ROUND_UP) / (orders - 1.0)", "",
        f"{_STOPPING}test_negative_binomial_runs_cost_what_dp_accounting_says", says="assert",
    ),
    _bug(
        "a search has as many runs as the mean says", "model_selection/private_search.py",
        "return negative_binomial_runs(key, shape, negative_binomial_gamma(shape, mean))", "return max(1, round(mean))",
        f"{_SEARCH}test_runs_are_as_many_and_as_mixed_as_is_recorded", says="assert",
    ),
    _bug(
        "a search tries its candidates one after the other", "model_selection/private_search.py",
        "in enumerate(chosen):", "in enumerate(np.arange(len(chosen)) % len(plan.candidates)):",
        f"{_SEARCH}test_runs_are_as_many_and_as_mixed_as_is_recorded", says="assert",
    ),
    _bug(
        "a search ranks its runs by exact counts", "model_selection/private_search.py",
        "return _Outcome(int(count[0])", "return _Outcome(int(right[0])",
        f"{_SEARCH}test_draws_of_a_search_cover_the_effect_of_one_row", says="assert",
    ),
    _bug(
        "a search tells how many runs there were", "model_selection/private_search.py",
        "        assert best is not None\n", "        assert best is not None\n        self.n_runs_ = len(chosen)\n",
        f"{_SEARCH}test_a_search_holds_nothing_but_what_it_releases", says="assert",
    ),
    _bug(
        "what a budget still plans costs nothing", "release/ledger.py",
        "if entry.account == account] + list(planned))", "if entry.account == account] or list(planned))",
        "tests/release/test_ledger.py::test_the_total_is_that_of_one_accountant", says="assert",
    ),
    _bug(
        "scores of a search have half the noise that is recorded", "model_selection/private_search.py",
        "Gaussian(relation_factor(neighbours) * scale)", "Gaussian(2.0 * relation_factor(neighbours) * scale)",
        f"{_SEARCH}test_the_whole_costs_what_it_may_and_not_much_less", says="assert",
    ),
    _bug(
        "releases before sampled steps cost nothing", "privacy/losses.py",
        "return [*others, (Gaussian(1.0 / plain), 1)] if plain > 0 else others", "return others or [(Gaussian(1.0 / plain), 1)]",
        "tests/privacy/test_sampled_gaussian.py::test_releases_before_a_step_compose_exactly", says="assert",
    ),
    _bug(
        "sampled rows are always accounted for as added ones", "privacy/losses.py",
        'relations.REPLACE_ONE if neighbours == "replace_one" else relations.ADD_OR_REMOVE_ONE', "relations.ADD_OR_REMOVE_ONE",
        "tests/privacy/test_sampled_gaussian.py::test_one_step_is_the_exact_mixture_s_both_ways", says="assert",
    ),
    _bug(
        "sampled steps cost as much as one", "privacy/losses.py",
        "total = total.compose(event_losses if count == 1 else event_losses.self_compose(count))", "total = total.compose(event_losses)",
        "tests/privacy/test_sampled_gaussian.py::test_a_few_steps_lie_between_losses_rounded_up_and_down", says="assert",
    ),
    _bug(
        "losses that vary without bound get a grid", "privacy/accountants.py",
        " or loss_deviation(parts, self.rows) > LARGEST_DEVIATION", "",
        f"{_ACCOUNTANTS}test_no_event_takes_all_memory[little noise]", says="assert",
    ),
    _bug(
        "the round-off of transforms is left out of delta", "privacy/accountants.py",
        "delta - transform_slack(parts)", "delta",
        "tests/privacy/test_sampled_gaussian.py::test_the_round_off_of_transforms_is_taken_off_delta", says="assert",
    ),
    _bug(
        "a group of rows costs as much as one", "privacy/accountants.py",
        "accounts = [account(scaled_event(event, k), delta, neighbours)]", "accounts = [account(event, delta, neighbours)]",
        f"{_ACCOUNTANTS}test_groups_cost_more_and_no_more_than_plain_group_privacy", says="assert",
    ),
    _bug(
        "deltas of several releases are not added", "privacy/gate.py",
        "total = math.fsum(part_delta for _, part_delta, _ in claims)", "total = max(part_delta for _, part_delta, _ in claims)",
        f"{_GATE}test_compositions_go_through_the_gate", says="assert",
    ),
    # --- risks
    _bug(
        "a replaced row risks what an added one does", "privacy/risk.py",
        "_gaussian_curve(exact.signal(event) * ROUND_UP)",
        '_gaussian_curve(ExactGaussian("add_remove").signal(event) * ROUND_UP)',
        f"{_RISK}test_gaussian_noise_has_its_closed_form", says="assert",
    ),
    _bug(
        "the grid of Laplace noise reveals nothing", "privacy/risk.py", " + grid * grid / 8.0", "",
        f"{_RISK}test_laplace_noise_on_the_widest_grid_is_nowhere_below", says="assert",
    ),
    _bug(
        "of several events the one that reveals least counts", "privacy/risk.py",
        "return max(min(map(bound, curves))", "return min(min(map(bound, curves))",
        f"{_RISK}test_laplace_noise_on_the_widest_grid_is_nowhere_below", says="assert",
    ),
    _bug(
        "a group of rows risks what one does", "privacy/risk.py",
        "scaled = event if rows == 1 else scaled_event(event, rows)", "scaled = event",
        f"{_RISK}test_a_group_risks_more_the_larger_it_is_and_no_more_than_plain_group_privacy", says="assert",
    ),
    _bug(
        "the advantage is a quarter of what Pinsker has", "privacy/risk.py",
        "math.sqrt(0.5 * float(divergences.min()))", "math.sqrt(0.03 * float(divergences.min()))",
        f"{_RISK}test_what_covers_gaussian_noise_lies_above_its_curve", says="assert",
    ),
    _bug(
        "a Gaussian curve touches one of lines below their corners", "privacy/risk.py",
        "corners.append((alarms, delta + alarms * slope))", "corners.append((alarms, delta))",
        f"{_RISK}test_laplace_noise_has_its_closed_form", says="assert",
    ),
    _bug(
        "a card rounds the risk down", "release/card.py",
        "math.ceil(100.0 * risk.guess)", "math.floor(100.0 * risk.guess)",
        "tests/release/test_released.py::test_card_and_command_say_the_risk", says="assert",
    ),
    _bug(
        "reports take a replaced row for an added one", "privsvm_bench/reporting/claims.py",
        "trade_off(guarantee.event, guarantee.neighbours, delta", 'trade_off(guarantee.event, "add_remove", delta',
        "tests/reporting/test_report_page.py::test_a_guess_is_bounded_by_what_the_release_did", says="assert",
    ),
    _bug(
        "a card rounds true positives down", "release/risk_targets.py",
        "math.ceil(share / unit * (1.0 - 1e-12))", "math.floor(share / unit)",
        "tests/release/test_released.py::test_card_and_command_say_the_risk", says="assert",
    ),
    _bug(
        "the picture of a card draws fewer right guesses", "release/card_page.py",
        '["more"] * (guess - 50) + ["wrong"] * (100 - guess)', '["more"] * (guess - 52) + ["wrong"] * (102 - guess)',
        f"{_CARD}test_the_picture_draws_the_risk", says="assert",
    ),
    _bug(
        "all releases together risk what one does", "release/card.py",
        "own if total.releases == 1 else max(own, min(math.ceil(100.0 * total.guess()), 100))", "own",
        f"{_CARD}test_a_second_card_says_what_both_cost_together", says="assert",
    ),
    _bug(
        "a card's total leaves out the releases before it", "release/ledger.py",
        "other.account == entry.account and other.number <= entry.number", "other.number == entry.number",
        f"{_CARD}test_a_second_card_says_what_both_cost_together", says="Error",
    ),
    _bug(
        "a card may state a smaller total than its release costs", "release/verifying.py",
        "if not _is_total(card):", "if False:",
        f"{_CARD}test_no_card_states_a_smaller_total", says="DID NOT RAISE",
    ),
    _bug(
        "nobody asks the ledger for the total of a card", "release/verifying.py",
        'canonical_json(total) != canonical_json(place["total"])', 'canonical_json(total) == ""',
        f"{_CARD}test_the_ledger_knows_the_total", says="DID NOT RAISE",
    ),
    _bug(
        "a budget is forgotten with the release it was given for", "release/ledger.py",
        "budgets[-1] if budgets else None, guess)", "entries[-1].budget, guess)",
        "tests/release/test_ledger.py::test_a_budget_is_remembered", says="DID NOT RAISE",
    ),
    _bug(
        "the question before a release names what the ones before cost", "release/ledger.py",
        "Composed((*_events(entries), event))", "Composed(_events(entries))",
        "tests/release/test_ledger.py::test_the_question_names_the_total", says="assert",
    ),
    _bug(
        "a target of risk is met by one of its limits", "release/risk_targets.py",
        "return by_guess and (power is None or", "return by_guess or (power is None or",
        f"{_TARGETS}test_both_limits_hold_together", says="assert",
    ),
    _bug(
        "a target of risk gets a little too much budget", "release/risk_targets.py",
        "_SLACK, geometric=True)[0] * (1.0 - _SLACK)", "_SLACK, geometric=True)[1] * (1.0 + 1e-3)",
        f"{_TARGETS}test_an_epsilon_for_a_guess_is_that_of_the_closed_form", says="assert",
    ),
    _bug(
        "a recipe is taken to reveal what Gaussian noise does", "release/recipes.py",
        "    _check_risk(guarantee, rows, terms)\n", "",
        f"{_TARGETS}test_a_recipe_that_reveals_more_is_refused_and_spends_nothing", says="DID NOT RAISE",
    ),
    _bug(
        "the counts of a measurement reveal what Gaussian noise does", "release/recipes.py",
        "return self.epsilon if self.risk is None else min(self.epsilon, self.risk.epsilon_of_counts)",
        "return self.epsilon",
        f"{_TARGETS}test_a_measurement_reveals_no_more_than_the_risk", says="reveals more",
    ),
    # --- exports, and releases to come
    _bug(
        "a query fills in zeros", "release/sql_query.py",
        "ELSE {_number(column.fill_number)} END", "ELSE 0e0 END",
        "tests/release/test_exports.py::test_exports_predict_as_predict_does[linear]", says="assert",
    ),
    _bug(
        "a plan forgets the releases of the ledger", "release/retraining.py",
        "events = (*earlier, *(", "events = (*(), *(",
        "tests/release/test_retraining.py::test_schedule_is_what_the_ledger_adds_up", says="assert",
    ),
    # --- the gate
    _bug(
        "an event that costs more than was asked for passes", "privacy/gate.py",
        "if accounted.epsilon > claim.epsilon_requested:", "if accounted.epsilon > 1e9 * claim.epsilon_requested:",
        f"{_GATE}test_the_word_comes_with_an_epsilon_that_the_gate_computes", says="must not exceed epsilon_requested",
    ),
    _bug(
        "an epsilon of a thousand is proved", "privacy/gate.py", "LARGEST_DELTA = 50.0, 0.01", "LARGEST_DELTA = 1e4, 0.01",
        f"{_GATE}test_no_epsilon_above_50_is_proved", says="assert",
    ),
    _bug(
        "a delta that publishes a row is proved", "privacy/gate.py",
        "if rows is not None and delta * rows >= 1.0:", "if rows is not None and delta >= 1.0:",
        f"{_GATE}test_a_delta_that_allows_a_row_to_be_published_proves_nothing", says="assert",
    ),
    _bug(
        "records are read back without computing epsilon", "privacy/gate.py",
        "if not agrees(accounted_epsilon, epsilon):", "if accounted_epsilon < 0.0:",
        f"{_GATE}test_a_record_whose_numbers_disagree_is_refused", says="DID NOT RAISE",
    ),
    _bug(
        "an event that nothing bounds has any epsilon", "privacy/gate.py",
        "math.isfinite(accounted) and low <= stated <= high", "low <= stated <= high or math.isinf(accounted)",
        f"{_GATE}test_a_record_that_somebody_edited_is_refused", says="DID NOT RAISE",
    ),
    _bug(
        "records are read back without their facts", "privacy/gate.py",
        '    if reasons:\n        raise ValueError(f"status is {', '    if not reasons and None:\n        raise ValueError(f"status is {',
        f"{_GATE}test_a_record_whose_numbers_disagree_is_refused", says="DID NOT RAISE",
    ),
    _bug(
        "facts that are learned later change nothing", "privacy/gate.py",
        "facts = dataclasses.replace(guarantee.facts, **stated)", "facts = guarantee.facts",
        f"{_GATE}test_every_fact_must_be_stated_and_hold", says="assert",
    ),
    _bug(
        "several releases take over the better facts", "privacy/assumptions.py",
        "merged_words[name] = broken[0] if broken else max(words, key=order.index)", "merged_words[name] = min(words, key=order.index)",
        f"{_GATE}test_facts_of_several_releases_are_the_worst", says="assert",
    ),
    _bug(
        "a claim among several releases is forgotten", "privacy/gate.py",
        'unproved = [guarantee.reason or "" for guarantee in guarantees if not guarantee.theorem_holds]', "unproved = []",
        f"{_GATE}test_one_claim_among_several_releases_decides", says="assert",
    ),
    _bug(
        "what nobody states holds", "privacy/assumptions.py",
        "return False, f\"nobody states the {name.replace('_', ' ')}\"", "return True, None",
        f"{_GATE}test_nothing_stated_is_everything_broken", says="assert",
    ),
    _bug(
        "a counted number of rows is public for all neighbours", "privacy/assumptions.py",
        'if name == "n_rows" and neighbours == "replace_one":', 'if name == "n_rows":',
        f"{_GATE}test_a_counted_number_of_rows_is_public_for_neighbours_of_one_size", says="assert",
    ),
    _bug(
        "anybody can say proved", "privacy/guarantee.py",
        "if self.theorem_holds and grant is not THE_GRANT:", "if self.theorem_holds and grant is False:",
        f"{_GATE}test_nobody_else_can_say_it", says="DID NOT RAISE",
    ),
    _bug(
        "a witness that refutes a proof is passed over", "privacy/guarantee.py",
        "if exact and witness is not None and witness.epsilon > epsilon:",
        "if exact and witness is not None and witness.epsilon > 1e9:",
        "tests/privacy/test_guarantee.py::test_contradictions_are_refused", says="DID NOT RAISE",
    ),
    # --- what is told to the gate
    _bug(
        "a seeded release calls its noise the system's", "base/estimators.py",
        'return "system" if rng is None else "seeded"', 'return "system"',
        f"{_GATE}test_whoever_passes_anything_has_seeded_the_noise", says="assert",
    ),
    _bug(
        "the gate calls seeded noise proved", "privacy/gate.py",
        'if fields["randomness"] != "system":', 'if fields["randomness"] is None:',
        f"{_GATE}test_seeded_noise_has_a_word_of_its_own", says="must be 'system'",
    ),
    _bug(
        "a record may call seeded noise proved", "privacy/guarantee.py",
        'if self.status == "proved" and self.randomness != "system":', 'if self.status == "proved" and self.randomness is None:',
        f"{_GATE}test_seeded_noise_has_a_word_of_its_own", says="DID NOT RAISE",
    ),
    _bug(
        "the word of a file decides, not its noise", "privacy/gate.py",
        'return _judge(_fields(statement) | {"assumptions": assumptions}, epsilon)',
        'return Guarantee(**_fields(statement) | {"assumptions": assumptions}, grant=THE_GRANT)',
        f"{_GATE}test_the_first_version_of_a_record_is_read_for_ever", says="must be 'system'",
    ),
    _bug(
        "a composition forgets that a part was seeded", "privacy/gate.py",
        '"seeded" if any(guarantee.randomness != "system" for guarantee in guarantees) else "system"', '"system"',
        f"{_GATE}test_compositions_go_through_the_gate", says="assert",
    ),
    _bug(
        "one release with system noise makes a seeded curve proved", "privacy/guarantee.py",
        '    if distinct == {"proved", "seeded"}:\n        return "seeded"', '    if distinct == {"proved", "seeded"}:\n        return "proved"',
        "tests/jobs/test_records.py::test_the_weakest_status_decides_for_the_curve", says="assert",
    ),
    _bug(
        "a file of a seeded model promises an epsilon", "base/model_file.py",
        'holds = guarantee.theorem_holds if with_system_noise else guarantee.status == "proved"',
        "holds = guarantee.theorem_holds",
        f"{_SHOWN}test_a_file_of_a_seeded_model_promises_nothing", says="assert",
    ),
    _bug(
        "a budget loses that a fit was seeded", "base/budget.py",
        "self.spent = compose(fits, self.delta) if fits else None", "self.spent = compose(fits[1:] or fits, self.delta) if fits else None",
        f"{_BUDGETS}test_two_fits_with_seeded_noise_are_refused", says="assert",
    ),
    _bug(
        "no audit stops a run whose noise is seeded", "privsvm_bench/jobs/auditing.py",
        "if cell.theorem_holds and cell.refuted:", 'if cell.status == "proved" and cell.refuted:',
        "tests/auditing/test_audits_of_methods.py::test_half_the_noise_ends_the_run", says="DID NOT RAISE",
    ),
    _bug(
        "a model keeps the seed of its noise", "base/estimators.py",
        'return state | {"random_state": None} if "_path" in state and "random_state" in state else state', "return state",
        f"{_GATE}test_whoever_passes_anything_has_seeded_the_noise", says="assert",
    ),
    _bug(
        "classes from the labels count as declared", "base/validation.py",
        'classes="private labels" if classes is None else "declared"', 'classes="declared"',
        "tests/methods/test_pmsvm.py::test_classes_from_the_data_are_not_proved", says="assert",
    ),
    _bug(
        "counted rows count as declared", "base/validation.py",
        '"counted" if n_rows is None else "declared"', '"declared"',
        f"{_GATE}test_what_is_taken_from_the_rows_is_not_proved", says="assert",
    ),
    _bug(
        "a limited solver counts as one with a certificate", "methods/pmsvm_wp.py",
        'solution="certified" if self.max_epochs is None else "limited"', 'solution="certified"',
        "tests/methods/test_pmsvm.py::test_a_limit_on_the_passes_takes_the_proof_away", says="assert",
    ),
    _bug(
        "scaling by private minima and maxima is forgotten", "privsvm_bench/jobs/training.py",
        '"scaling": scaling["origin"],', '"scaling": "declared",',
        f"{_FACTS}test_what_is_stated_is_judged", says="assert",
    ),
    _bug(
        "files scaled before are forgotten", "privsvm_bench/jobs/training.py",
        'return "prescaled"', 'return "untouched"', f"{_FACTS}test_what_is_stated_is_judged", says="assert",
    ),
    _bug(
        "files of which nothing is known count as untouched", "privsvm_bench/jobs/training.py",
        'return "undeclared"', 'return "untouched"', f"{_FACTS}test_what_is_stated_is_judged", says="assert",
    ),
    _bug(
        "dropped columns are forgotten", "privsvm_bench/jobs/training.py",
        "return dropped", 'return "untouched"', f"{_FACTS}test_what_is_stated_is_judged", says="assert",
    ),
    _bug(
        "stratified splits are forgotten", "privsvm_bench/jobs/training.py",
        'drawn = "stratified" if protocol.get("stratified") else "label-blind"', 'drawn = "label-blind"',
        f"{_FACTS}test_what_is_stated_is_judged", says="assert",
    ),
    _bug(
        "bounds seen in the rows count as declared", "privsvm_bench/jobs/training.py",
        'scaling.get("bounds_origin", "none")', '"declared"', f"{_FACTS}test_what_is_stated_is_judged", says="assert",
    ),
    _bug(
        "classes from a file count as declared", "privsvm_bench/jobs/training.py",
        'return facts if description["classes_origin"] == "declared" else', "return facts if True else",
        f"{_FACTS}test_what_is_stated_is_judged", says="assert",
    ),
    _bug(
        "the number of features from a file counts as declared", "privsvm_bench/jobs/training.py",
        '"declared" if description["n_features_origin"] == "declared" else "private rows"', '"declared"',
        f"{_FACTS}test_what_is_stated_is_judged", says="assert",
    ),
    _bug(
        "a counted number of rows is passed off as declared", "privsvm_bench/jobs/training.py",
        'n_rows, facts["n_rows"] = X.shape[0], "counted"', "n_rows = X.shape[0]",
        f"{_FACTS}test_a_counted_number_of_rows_is_not_passed_off_as_declared", says="assert",
    ),
    _bug(
        "condensed rows keep their proof", "privsvm_bench/jobs/training.py",
        'if facts["condensing"] == "none" or guarantee.status == "none":', "if True:\n        return guarantee\n    if True:",
        "tests/jobs/test_condensing.py::test_no_guarantee_survives_condensation", says="assert",
    ),
    _bug(
        "splits of the benchmark share their noise", "privsvm_bench/jobs/training.py",
        'seeded_source(job.seed, job.experiment, dataset, job.method, split, float(epsilon), repeat)',
        'seeded_source(job.seed, job.experiment, dataset, job.method, float(epsilon), repeat)',
        f"{_FACTS}test_no_two_releases_of_the_benchmark_share_their_noise", says="assert",
    ),
    _bug(
        "methods of the benchmark share their noise", "privsvm_bench/jobs/training.py",
        'seeded_source(job.seed, job.experiment, dataset, job.method, split, float(epsilon), repeat)',
        'seeded_source(job.seed, job.experiment, dataset, split, float(epsilon), repeat)',
        f"{_FACTS}test_no_two_releases_of_the_benchmark_share_their_noise", says="assert",
    ),
    _bug(
        "label-blind splits look at labels", "privsvm_bench/datasets/prepare.py",
        "maker = model_selection.StratifiedShuffleSplit if stratified else model_selection.ShuffleSplit",
        "maker = model_selection.StratifiedShuffleSplit",
        f"{_FACTS}test_label_blind_splits_do_not_move_with_a_label", says="assert",
    ),
    # --- records and report
    _bug(
        "of several records the best decides", "privacy/guarantee.py",
        '    if "claimed" in distinct:\n', '    if distinct == {"claimed"}:\n',
        "tests/jobs/test_records.py::test_the_weakest_status_decides_for_the_curve", says="assert",
    ),
    _bug(
        "results of condensed rows may say proved", "privsvm_bench/records.py",
        'if self.condense != "none" and self.theorem_holds:', 'if self.condense == "" and self.theorem_holds:',
        "tests/reporting/test_report_page.py::test_a_proof_for_condensed_rows_is_refused", says="DID NOT RAISE",
    ),
    _bug(
        "stored records are not judged", "privacy/gate.py",
        "no_info_after_validator_function(restore, handler",
        "no_info_after_validator_function(lambda value: Guarantee(**{field.name: getattr(value, field.name)"
        " for field in dataclasses.fields(value)}, grant=THE_GRANT), handler",
        f"{_GATE}test_a_record_whose_numbers_disagree_is_refused", says="DID NOT RAISE",
    ),
    _bug(
        "two methods of a report look alike", "privsvm_bench/palette.py",
        "place, place + n_lines[place]", "place, place",
        "tests/reporting/test_palette.py::test_no_two_methods_of_a_report_look_alike", says="assert",
    ),
    _bug(
        "the report keeps quiet when an audit contradicts a proof", "privsvm_bench/reporting/claims.py",
        "witness.epsilon > proved * (1 + _SLACK):", "witness.epsilon > 1e9 * proved:",
        "tests/reporting/test_report_page.py::test_an_audit_that_contradicts_a_proof_is_an_alarm", says="assert",
    ),
    _bug(
        "the report is silent about seeded noise", "privsvm_bench/reporting/claims.py",
        'if guarantee.status == "seeded" else f"proved at {text}"', 'if None else f"proved at {text}"',
        "tests/reporting/test_report_page.py::test_seeded_noise_has_a_lighter_mark_and_other_words_everywhere",
        says="assert",
    ),
    _bug(
        "metrics give a proved epsilon of what is only claimed", "privsvm_bench/reporting/tables.py",
        "for name in _EPSILONS if result.theorem_holds else ():\n            epsilon = getattr(result.guarantees[index], name)",
        "for name in _EPSILONS:\n            epsilon = result.epsilons[index]",
        "tests/reporting/test_report_tables.py::test_metrics_hold_each_method_at_the_reference_epsilon", says="assert",
    ),
    _bug(
        "models are published with the seconds of their training", "base/estimators.py",
        "1, self.random_state).without_seconds()", "1, self.random_state)",
        "tests/methods/test_contract.py::test_a_model_keeps_no_times", says="assert",
    ),
    _bug(
        "a search has the facts of its best candidate alone", "model_selection/private_search.py",
        "merged([guarantee.facts for guarantee in plan.guarantees if guarantee.facts is not None]),", "merged([run.facts] * 2),",
        _SEARCH + "test_a_search_is_proved_only_if_all_its_candidates_are", says="assert",
    ),
    _bug(
        "rows that are no numbers become the longest ones", "numerics/rows/unit_grid.py",
        "if not 0.0 < totals[r] < np.inf:", "if totals[r] == 0.0:",
        "tests/numerics/test_unit_grid.py::test_rows_that_are_none_leave_nothing", says="assert",
    ),
    _bug(
        "a failed run of a search is told", "model_selection/private_search.py",
        'return _Outcome(-math.inf, estimator, None, candidate, f"{candidate}: {error}")', "raise",
        _SEARCH + "test_a_run_that_fails_is_an_outcome_below_the_others", says="ValueError: training diverged",
    ),
    _bug(
        "a function of all rows counts as public", "release/private_pipeline.py",
        'type(step) is not str', 'type(step).__name__ not in ("FunctionTransformer", "str")',
        f"{_BUDGETS}test_every_other_step_takes_it", says="DID NOT RAISE",
    ),
    _bug(
        "a step counts whose container depends on all rows", "release/private_pipeline.py",
        'type(step) is not str', 'type(step).__name__ not in ("ColumnTransformer", "str")',
        "tests/fuzz/test_allow_lists.py::test_what_is_proved_in_a_pipeline_treats_other_rows_alike", says="assert",
    ),
    _bug(
        "a class derived from a schema counts as one", "release/private_pipeline.py",
        "(type(step) is not PublicSchema or unknown_class(step))", "not isinstance(step, PublicSchema)",
        f"{_BUDGETS}test_every_other_step_takes_it", says="DID NOT RAISE",
    ),
    _bug(
        "a budget counts models on fitted steps", "release/private_pipeline.py",
        "        refuse_in_budget(broken)\n", "",
        f"{_BUDGETS}test_no_name_of_a_record_keeps_a_proof_that_a_step_took", says="DID NOT RAISE",
    ),
    _bug(
        "a budget takes clones whose user adds up", "base/estimators.py",
        "        refuse_clone(self)\n", "",
        f"{_BUDGETS}test_a_budget_takes_no_meta_estimator[allow_composition-GridSearchCV]", says="DID NOT RAISE",
    ),
    _bug(
        "clones do not know that they are", "base/estimators.py", "clone._cloned = True", "clone._cloned = False",
        f"{_BUDGETS}test_a_budget_takes_no_meta_estimator[-CalibratedClassifierCV]", says="DID NOT RAISE",
    ),
    _bug(
        "a budget does not see models without privacy", "base/parameters.py",
        "        refuse_uncounted(self)\n", "",
        f"{_BUDGETS}test_what_a_budget_does_not_count_is_refused_by_name", says="DID NOT RAISE",
    ),
    _bug(
        "a search that was cloned counts as called directly", "model_selection/private_search.py",
        "self._check_clone(bool(self.estimator.allow_composition), consent)", "pass",
        f"{_BUDGETS}test_a_search_of_searches_is_refused_in_a_budget", says="consent with allow_unsound=True",
    ),
    _bug(
        "a clone keeps its proof where its user consents to none", "base/estimators.py",
        "_without_proof(guarantee, estimator._many_fits(composition), *reasons)", "_without_proof(guarantee, *reasons)",
        f"{_BUDGETS}test_clones_prove_nothing_unless_their_user_adds_up", says="assert",
    ),
    _bug(
        "a source of rows of the user's keeps the proof", "base/estimators.py",
        "source = unknown_class(rows) if isinstance(rows, RowBlocks) else None", "source = None",
        "tests/methods/test_fitted_models.py::test_derived_sources_of_rows_prove_nothing", says="DID NOT RAISE",
    ),
    _bug(
        "a delta that publishes a row is proved if nobody declares the rows", "base/estimators.py",
        'if neighbours == "replace_one" and rows.shape[0] > 0:', "if None:",
        "tests/methods/test_edges.py::test_no_delta_from_one_over_the_rows_on_is_proved_where_all_neighbours_have_as_many",
        says="DID NOT RAISE",
    ),
    _bug(
        "a search looks at no delta", "model_selection/private_search.py",
        "judged_for_rows(self._guarantee(plan, run), rows, self.estimator.neighbours)", "self._guarantee(plan, run)",
        "tests/methods/test_edges.py::test_a_search_looks_at_delta_too", says="assert",
    ),
    _bug(
        "NumPy's settings decide whether a row is refused", "base/estimators.py",
        'with one_blas_thread(), np.errstate(all="ignore"):', "with one_blas_thread():",
        "tests/methods/test_edges.py::test_settings_of_other_libraries_change_no_refusal", says="FloatingPointError",
    ),
    _bug(
        "scikit-learn's settings let missing numbers through", "base/tables.py",
        ", config_context(assume_finite=False):", ":",
        "tests/methods/test_edges.py::test_settings_of_other_libraries_change_no_refusal", says="DID NOT RAISE",
    ),
    _bug(
        "how many numbers are zero decides what a method knows", "privsvm_bench/datasets/readers.py",
        "X.shape[1] >= _SPARSE_FEATURES", "X.nnz < 0.25 * X.shape[0] * X.shape[1]",
        "tests/datasets/test_readers.py::test_libsvm_dense_and_sparse", says="assert",
    ),
    _bug(
        "a row out of order changes what others add up to", "numerics/rows/well_formed.py",
        "rows = sorted_rows(X).astype(np.float64, copy=False)", "rows = scipy.sparse.csr_array(X, dtype=np.float64)",
        "tests/families/test_rows_by_block.py::test_what_a_row_adds_up_to_does_not_depend_on_the_order_of_another",
        says="assert",
    ),
    _bug(
        "a budget forgets what held-back rows cost", "release/recipes.py",
        '        refuse_in_budget("no fit pays for what rows held back measure; leave the budget, or hold back none")\n', "",
        f"{_BUDGETS}test_what_a_budget_does_not_count_is_refused_by_name", says="DID NOT RAISE",
    ),
    _bug(
        "entries stored twice are bounded one by one", "numerics/rows/row_blocks.py",
        "        rows = canonical_rows(rows)\n", "",
        "tests/families/test_rows_by_block.py::test_entries_that_are_stored_twice_add_up_before_rows_are_bounded",
        says="assert",
    ),
    _bug(
        "labels that float64 does not tell apart are classes", "base/validation.py",
        ">= _LARGEST_LABEL):", ">= np.inf):",
        "tests/methods/test_edges.py::test_a_set_of_classes_that_is_none_is_refused_before_labels_are_read",
        says="did not match",
    ),
    _bug(
        "a model is saved with the record of another", "base/estimators.py",
        "        check_record(self._path, self.guarantee_)\n", "",
        "tests/methods/test_fitted_models.py::test_a_model_with_the_record_of_another_is_not_saved",
        says="DID NOT RAISE",
    ),
    _bug(
        "a schema that takes the proof is saved beside one", "release/model.py",
        "if broken is not None and", "if broken is None and",
        "tests/release/test_released.py::test_a_schema_that_takes_the_proof_is_not_saved_beside_one",
        says="DID NOT RAISE",
    ),
    _bug(
        "a derived class keeps the proof", "base/estimators.py",
        'if trusted(estimator, "privsvm"):', "if isinstance(estimator, MarksClones):",
        "tests/methods/test_fitted_models.py::test_derived_classes_prove_nothing", says="assert",
    ),
    _bug(
        "a step says nothing of what came before it", "privacy/gate.py",
        'first = (THIS_STEP_ALONE,) if getattr(facts, "preparation", None) == "as given" else ()', "first = ()",
        f"{_BUDGETS}test_a_step_alone_says_that_it_knows_nothing_of_what_came_before", says="assert",
    ),
    _bug(
        "counts on rows held back get half their noise", "release/measuring.py",
        "source.add_discrete_laplace(counts, scale,", "source.add_discrete_laplace(counts, scale // 2,",
        _MEASURED + "test_on_neighbours_a_row_moves_the_training_or_the_counts_and_nothing_passes_them_by", says="assert",
    ),
    _bug(
        "rows that measure train too", "release/recipes.py",
        "(X[away], codes[away]), X[~away], codes[~away]", "(X[away], codes[away]), X, codes",
        _MEASURED + "test_on_neighbours_a_row_moves_the_training_or_the_counts_and_nothing_passes_them_by", says="assert",
    ),
    _bug(
        "a measurement costs nothing", "release/measuring.py",
        "event=OneOf((guarantee.event, Laplace(scale / cells))),", "event=guarantee.event,",
        _MEASURED + "test_a_row_pays_once_for_training_or_for_measuring", says="Error",
    ),
    _bug(
        "one of several events costs what the cheapest does", "privacy/accountants.py",
        "return max(map(account_of, one_of.events)", "return min(map(account_of, one_of.events)",
        _MEASURED + "test_one_of_several_events_costs_what_the_dearest_does", says="assert",
    ),
    _bug(
        "rows of one person train and measure", "release/measuring.py",
        "held: np.ndarray = chosen[units]", "held: np.ndarray = np.resize(chosen, units.shape)",
        _MEASURED + "test_who_measures_is_drawn_by_units_alone", says="assert",
    ),
    _bug(
        "rows held back are counted in all bins below theirs, too", "release/measuring.py",
        "minlength=math.prod(shape)).reshape(shape)", "minlength=math.prod(shape)).reshape(shape).cumsum(axis=1)",
        _CALIBRATED + "test_a_row_is_in_one_number", says="assert",
    ),
    _bug(
        "the number of bins follows from a private number of rows", "release/measuring.py",
        "expected = number if declared is None else", "expected = len(codes) if declared is None else",
        _CALIBRATED + "test_bins_are_public", says="assert",
    ),
    _bug(
        "counts in a model's file need no cover", "base/model_file.py",
        'self.held_back.get("scale") != scale_of(guarantee)', "False",
        _CALIBRATED + "test_counts_that_are_not_covered_are_refused", says="DID NOT RAISE",
    ),
    _bug(
        "prediction sets take an estimate for a bound", "release/intervals.py",
        "for number in set(numbers)) < 0.5 * error", "for number in set(numbers)) < 0.5",
        _CALIBRATED + "test_what_is_said_of_calibration_holds", says="assert",
    ),
    # --- what is shown as proved, and files of others
    _bug(
        "a recipe sets the terms of its guarantee", "release/recipes.py",
        "allowed = PARAMETERS & set(method.declared)", "allowed = set(method.declared)",
        f"{_SHOWN}test_a_recipe_sets_no_term_of_the_guarantee", says="DID NOT RAISE",
    ),
    _bug(
        "a recipe runs code of others", "release/recipes.py",
        "if recipe.implementation not in implementations():", 'if recipe.implementation == "":',
        f"{_SHOWN}test_recipes_hold_known_methods_and_plain_values", says="DID NOT RAISE",
    ),
    _bug(
        "a model's delta is believed", "base/model_file.py",
        "computed = protection_of(guarantee, stated.unit, stated.rows, stated.delta)",
        "computed = protection_of(guarantee, stated.unit, stated.rows)",
        f"{_SHOWN}test_a_smaller_delta_is_not_proved", says="did not match",
    ),
    _bug(
        "models and cards of earlier versions are read as today's", "base/model_file.py",
        "if version != known:", "if version > known:",
        "tests/release/test_released.py::test_files_of_another_version_are_refused_in_one_line", says="assert",
    ),
    _bug(
        "an interrupted release of another version is lost", "release/releasing.py",
        "    _draft(draft_folder)\n    try:", "    try:",
        f"{_CARD}test_an_interrupted_release_of_another_version_is_refused", says="did not match",
    ),
    _bug(
        "a model's epsilon is believed", "base/model_file.py",
        "if not agree(computed.epsilon, stated.epsilon):", "if computed is None:",
        f"{_SHOWN}test_a_smaller_delta_is_not_proved", says="did not match",
    ),
    _bug(
        "persons may have a delta that publishes rows", "base/model_file.py",
        "if refusals(guarantee.facts, guarantee.neighbours, delta, accounted.epsilon):", 'if accounted.epsilon == float("inf"):',
        f"{_SHOWN}test_a_delta_that_publishes_rows_is_not_proved", says="Error",
    ),
    _bug(
        "pickles are believed", "privacy/guarantee.py",
        "vars(self).update(vars(gate.restore(state)))", "vars(self).update(state)",
        f"{_SHOWN}test_a_pickle_says_proved_only_by_its_event", says="DID NOT RAISE",
    ),
    _bug(
        "a ledger's numbers are believed", "release/ledger.py",
        'if content["number"] != own or not agree(computed.epsilon, fields.epsilon):', 'if content["number"] != own:',
        f"{_SHOWN}test_a_ledger_holds_what_its_events_cost", says="DID NOT RAISE",
    ),
    _bug(
        "cards are not put together again", "release/verifying.py",
        "if canonical_json(card.get(name)) != canonical_json(value):",
        "if name not in card:",
        f"{_CARD}test_a_card_says_nothing_but_what_its_record_gives", says="assert",
    ),
    _bug(
        "pages are not rendered again", "release/verifying.py",
        "if _read(folder / PAGE, LARGEST_JSON) != page(card).encode():", "if not _read(folder / PAGE, LARGEST_JSON):",
        f"{_SHOWN}test_a_page_is_rendered_again", says="DID NOT RAISE",
    ),
    _bug(
        "a recipe on a card promises more than is proved", "release/verifying.py",
        "if not (epsilon >= trained.epsilon * (1.0 - 1e-6) and delta >= trained.delta):", "if not epsilon > 0.0:",
        f"{_SHOWN}test_a_recipe_promises_no_more_than_is_proved", says="DID NOT RAISE",
    ),
    _bug(
        "the command card shows what nobody verified", "command.py",
        "    verify(options.model)\n    print(card", "    print(card",
        f"{_SHOWN}test_the_command_card_shows_what_was_verified", says="assert",
    ),
    _bug(
        "sizes of arrays of others are believed", "untrusted.py",
        "> _UNPACKED + _RATIO * len(data):", "> 1e15:",
        f"{_UNTRUSTED}test_large_arrays_of_small_files_take_no_memory", says="DID NOT RAISE",
    ),
    _bug(
        "JSON of others is nested as deep as it likes", "untrusted.py",
        'depth += 1 if mark in b"[{" else -1', "depth += 0",
        f"{_UNTRUSTED}test_json_of_others_is_bounded", says="DID NOT RAISE",
    ),
    _bug(
        "numbers of others need not be finite", "untrusted.py",
        "if not np.isfinite(array).all():", "if array.ndim < 0:",
        f"{_UNTRUSTED}test_arrays_of_other_kinds_are_refused", says="DID NOT RAISE",
    ),
    _bug(
        "a total knows no number of rows", "base/estimators.py",
        "restore(guarantee, declared_rows=max(rows.shape[0], declared or 1))", "restore(guarantee)",
        f"{_BUDGETS}test_a_budget_is_judged_by_the_number_of_rows", says="DID NOT RAISE",
    ),
    _bug(
        "a total counts the rows of the smallest fit", "privacy/assumptions.py",
        "declared_rows=max(rows, default=None)", "declared_rows=min(rows, default=None)",
        "tests/privacy/test_gate.py::test_facts_of_several_releases_are_the_worst", says="assert",
    ),
    _bug(
        "a delta is judged by the rows that train", "release/recipes.py",
        'public_rows = schema.rows if neighbours == "add_remove" else max(len(X), schema.rows or 1)', "public_rows = schema.rows",
        "tests/release/test_measuring.py::test_a_delta_is_judged_by_all_rows_whichever_train", says="DID NOT RAISE",
    ),
    _bug(
        "a model takes the place of one whose epsilon is spent", "base/model_file.py",
        "if (folder / CARD).exists():", "if None:",
        "tests/release/test_released.py::test_a_released_folder_is_not_overwritten", says="DID NOT RAISE",
    ),
    # --- sources of reproductions
    _bug(
        "a sample that differs confirms", "reproduce/confirm.py",
        "if cells and not (differing or reasons):", "if cells and not reasons:",
        f"{_CONFIRMED}test_a_cell_that_differs_is_printed_and_confirms_nothing", says="assert",
    ),
    _bug(
        "the sample of one function confirms those of others", "reproduce/confirm.py",
        "if cells and not (differing or reasons):", "if cells and not differing:",
        f"{_CONFIRMED}test_what_a_sample_lacks_stays_unconfirmed", says="assert",
    ),
    _bug(
        "times of other machines are compared", "reproduce/confirm.py",
        'if cell.rpartition("/")[2] not in plan.machine_metrics', "if cell",
        f"{_CONFIRMED}test_a_sample_confirms_what_other_code_measured", says="assert",
    ),
    _bug(
        "measurements of earlier code are current", "privsvm_bench/evidence.py",
        "return code in codes or (", "return bool(codes) or (",
        f"{_CONFIRMED}test_a_sample_confirms_what_other_code_measured", says="assert",
    ),
    _bug(
        "exact numbers may be rerun with other digits", "privsvm_bench/reproduction/rerun.py",
        "confirms = abs(apart) < 0.5", "confirms = abs(apart) < 50.0",
        "tests/reproduction/test_judging.py::test_a_rerun_beside_the_committed_cells", says="assert",
    ),
)  # fmt: skip
