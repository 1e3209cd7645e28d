"""Bugs to plant: what to change in which file, which privacy tests must find it, and in which words.

`old` must occur in the file exactly once. Tests are named as pytest does; the first one that fails counts, and its
report must hold `says`: a bug that is found for another reason is not found.
"""

from __future__ import annotations

from tests.mutants.mutant import bug as _bug
from tests.mutants.planted_files import MUTANTS_OF_FILES
from tests.mutants.planted_payments import MUTANTS_OF_PAYMENTS
from tests.mutants.planted_records import MUTANTS_OF_RECORDS
from tests.mutants.planted_tables import MUTANTS_OF_TABLES

__all__ = ["MUTANTS", "SAMPLE"]

_REPLAY = "tests/privacy/test_replay.py::"
_RECORD = _REPLAY + "test_draws_add_up_to_the_record_and_a_recorder_changes_nothing"
_NEIGHBOURS = _REPLAY + "test_draws_of_a_search_cover_the_effect_of_one_row"
_NEEDED = _REPLAY + "test_some_neighbours_need_what_is_stated"
_RELEASES = "tests/privacy/test_releases.py::"
_WEIGHTS = _RELEASES + "test_weights_are_released_with_the_noise_of_the_record"
_DESCENT = _RELEASES + "test_steps_of_descent_get_the_noise_of_the_record"
_CHANCES = _RELEASES + "test_selections_have_the_chances_of_the_record"
_STEPS = _RELEASES + "test_noise_of_all_steps_and_problems_is_independent"
_SUMS = "tests/solvers/test_exact_sums.py::"

_ANOTHER = "the draws are"
_COVERS = "covers less than neighbours are apart"
_MOVED = "a step's sum moved further than stated"
_PAST = "assert released_bits(path) == released_bits(other)"
_LAW = "another distribution"

_SOURCE = "numerics/noise/noise_source.py"
_MECHANISMS = "privacy/mechanisms.py"
_DRAWS = "numerics/noise/exact_draws.py"
_TRAINING = "families/gradients/noisy_training.py"
_SCALING = "families/moments/private_scaling.py"
_PERTURBATION = "families/output_perturbation/perturbation.py"
_MOMENTS = "families/moments/second_moments.py"
_OBJECTIVE = "methods/objective_perturbation.py"
_FRANK_WOLFE = "methods/dp_frank_wolfe.py"
_NEWTON = "methods/dp_newton.py"
_JOINT = "families/moments/joint_moments.py"
_GRADIENT = "solvers/gradients/noisy_gradient.py"

MUTANTS = (
    # --- noise and its sources
    _bug(
        "Gaussian mechanisms add half the noise", _MECHANISMS,
        "add_rounded_normals(cells, noise_scale / grid,", "add_rounded_normals(cells, 0.5 * noise_scale / grid,",
        f"{_WEIGHTS}[PrivateSVMClassifier-replace_one]", says=_LAW,
    ),
    _bug(
        "the last number gets no noise", _SOURCE,
        "return numbers + self.rounded_normals(sigma, numbers.size).reshape(numbers.shape)",
        "noise = self.rounded_normals(sigma, numbers.size)\n        noise[-1] = 0\n"
        "        return numbers + noise.reshape(numbers.shape)",
        f"{_WEIGHTS}[OPERAClassifier-replace_one-composition=joint]", says=_LAW,
    ),
    _bug(
        "all numbers get the same noise", _SOURCE,
        "return numbers + self.rounded_normals(sigma, numbers.size).reshape(numbers.shape)",
        "return numbers + self.rounded_normals(sigma, 1)[0]",
        f"{_WEIGHTS}[PrivateSVMClassifier-replace_one]", says="numbers that have to do with each other",
    ),
    _bug(
        "Laplace noise has half its scale", _SOURCE,
        "self.discrete_laplace(scale, numbers.size)", "self.discrete_laplace(scale // 2, numbers.size)",
        f"{_WEIGHTS}[PrivateSVMLaplaceClassifier-replace_one]", says=_LAW,
    ),
    _bug(
        "selections are twice as sharp", _SOURCE,
        "return self.exponential_choices(scores, scale)", "return self.exponential_choices(scores, scale // 2)",
        f"{_CHANCES}[DPFrankWolfeClassifier-replace_one]", says="chisquare(counts, expected).pvalue",
    ),
    _bug(
        "draws of one source repeat each other", _SOURCE, "self._draws += 1", "self._draws = 1",
        f"{_WEIGHTS}[OPERAClassifier-replace_one]", says="numbers that have to do with each other",
    ),
    _bug(
        "all parts of a job have one key", _SOURCE,
        'self._key_of("part", name)', 'self._key_of("part")',
        "tests/numerics/test_exact_draws.py::test_sources_repeat_by_purpose_and_never_by_draw", says="assert",
    ),
    _bug(
        "repeats from one generator share their noise", "base/estimators.py",
        "common.part(canonical_json([method, float(epsilon), repeat]))",
        "common.part(canonical_json([method, float(epsilon)]))",
        f"{_WEIGHTS}[PrivateSVMClassifier-replace_one]", says=_LAW,
    ),
    _bug(
        "epsilons from one seed share their noise", "base/estimators.py",
        "seeded_source(seed, method, float(epsilon), repeat)", "seeded_source(seed, method, repeat)",
        f"{_WEIGHTS}[PrivateSVMClassifier-replace_one]", says="numbers that have to do with each other",
    ),
    _bug(
        "two methods with one seed share their noise", "base/estimators.py",
        "seeded_source(seed, method, float(epsilon), repeat)", "seeded_source(seed, float(epsilon), repeat)",
        "tests/methods/test_contract.py::test_two_methods_with_one_seed_share_no_noise", says="assert",
    ),
    _bug(
        "noise of a fixed key in place of the system's", _SOURCE,
        "return NoiseSource(os.urandom(32))", "return NoiseSource(bytes(32))",
        "tests/numerics/test_exact_draws.py::test_generators_key_sources_and_systems_never_repeat", says="assert",
    ),
    _bug(
        "zero is twice as likely under Laplace noise", _DRAWS,
        "if negative == _ZERO or size != _ZERO:", "if negative == _ZERO or size >= _ZERO:",
        "tests/privacy/test_mechanisms.py::test_laplace_noise_on_few_cells_has_the_discrete_distribution", says="assert",
    ),
    _bug(
        "draws near a half are rounded as float64 has them", "numerics/noise/rounded_normals.py",
        "    if doubtful > 0:\n", "    if doubtful > 2**40:\n",
        "tests/numerics/test_rounded_normals.py::test_forced_words_give_the_integers_of_the_reference", says="assert",
    ),
    # --- mechanisms
    _bug(
        "rounding of a vector costs nothing", _MECHANISMS,
        "return (self.sensitivity + self.grid * math.sqrt(self.size)) * ROUND_UP", "return self.sensitivity",
        "tests/privacy/test_mechanisms.py::test_rounding_is_paid_for", says="assert",
    ),
    _bug(
        "rounding under Laplace noise costs nothing", _MECHANISMS,
        "return self.sensitivity + self.grid * self.size", "return self.sensitivity",
        "tests/privacy/test_mechanisms.py::test_laplace_rounding_is_paid_for", says="assert",
    ),
    _bug(
        "Gaussian noise is half of what epsilon needs", _MECHANISMS,
        "scale = self.total_sensitivity * gaussian_noise_multiplier(self.epsilon, self.delta)",
        "scale = 0.5 * self.total_sensitivity * gaussian_noise_multiplier(self.epsilon, self.delta)",
        f"{_RECORD}[PrivateSVMClassifier-replace_one]", says="the event costs",
    ),
    _bug(
        "Laplace noise for the L2 sensitivity", _MECHANISMS,
        "sensitivity = joint_vectors * math.sqrt(self.size) * self.sensitivity", "sensitivity = joint_vectors * self.sensitivity",
        f"{_NEEDED}[PrivateSVMLaplaceClassifier-replace_one]", says=_COVERS,
    ),
    _bug(
        "Laplace noise for one of several vectors", _MECHANISMS,
        "sensitivity = joint_vectors * math.sqrt(self.size) * self.sensitivity",
        "sensitivity = math.sqrt(self.size) * self.sensitivity",
        f"{_NEEDED}[PrivateSVMLaplaceClassifier-replace_one]", says=_COVERS,
    ),
    _bug(
        "joint Gaussian noise for one of several vectors", _MECHANISMS,
        "GaussianMechanism(share, delta, math.sqrt(joint_vectors) * self.sensitivity,",
        "GaussianMechanism(share, delta, self.sensitivity,",
        f"{_NEEDED}[PrivateSVMClassifier-replace_one]", says=_COVERS,
    ),
    _bug(
        "delta is not divided by the number of vectors", _MECHANISMS,
        "delta = self.delta if self._releases == 1 else self.delta / self._releases * (1.0 - _ROUND_OFF_SLACK)",
        "delta = self.delta",
        "tests/privacy/test_mechanisms.py::test_naive_release_of_vectors_splits_both_budgets", says="assert",
    ),
    _bug(
        "every one of several vectors gets the whole epsilon", _MECHANISMS,
        "share = self.epsilon if self._releases == 1 else self.epsilon / self._releases * (1.0 - _ROUND_OFF_SLACK)",
        "share = self.epsilon",
        f"{_RECORD}[OPERAClassifier-replace_one]", says="the event costs",
    ),
    _bug(
        "several vectors are released with one draw", _MECHANISMS,
        "return np.stack([mechanism.release(block, source) for block in blocks])",
        "import copy\n        return np.stack([mechanism.release(block, copy.copy(source)) for block in blocks])",
        f"{_WEIGHTS}[OPERAClassifier-replace_one]", says="numbers that have to do with each other",
    ),
    _bug(
        "the scale of selections is half of what epsilon needs", _MECHANISMS,
        "return math.ceil(2 * self.sensitivity / budget)", "return math.ceil(self.sensitivity / budget)",
        f"{_RECORD}[DPFrankWolfeClassifier-replace_one]", says="the event costs",
    ),
    _bug(
        "a selection is recorded at half its cost", _MECHANISMS,
        "return 2 * self.sensitivity / self.noise_scale * ROUND_UP",
        "return self.sensitivity / self.noise_scale * ROUND_UP",
        f"{_RECORD}[DPFrankWolfeClassifier-replace_one]", says=_ANOTHER,
    ),
    _bug(
        "steps have half the noise that is accounted for", _MECHANISMS,
        "return self.noise_multiplier * self.max_grad_norm", "return 0.5 * self.noise_multiplier * self.max_grad_norm",
        f"{_RECORD}[GRPUAClassifier-replace_one-batch_size=4]", says=_ANOTHER,
    ),
    # --- gradient methods
    _bug(
        "gradient methods add half the recorded noise", _TRAINING,
        "noise_scale=mechanism.noise_scale,\n            sample_rate", "noise_scale=0.5 * mechanism.noise_scale,\n            sample_rate",
        f"{_DESCENT}[None-GRPUAClassifier-replace_one]", says=_LAW,
    ),
    _bug(
        "Adam's steps add half the recorded noise", _TRAINING,
        "noise_scale=mechanism.noise_scale,\n            sample_rate",
        'noise_scale=mechanism.noise_scale * (0.5 if steps.optimizer == "adam" else 1.0),\n            sample_rate',
        _RELEASES + "test_steps_of_adam_get_the_noise_of_the_record[SoftmaxDPAdamClassifier-replace_one]",
        says="scipy.stats.binom",
    ),
    _bug(
        "the noise of steps is half of its cells", _GRADIENT,
        "sigma = float(steps.noise_scale) / cell * ROUND_UP", "sigma = 0.5 * float(steps.noise_scale) / cell",
        f"{_RECORD}[GRPUAClassifier-replace_one]", says=_ANOTHER,
    ),
    _bug(
        "problems of one model share noise and sampling", _GRADIENT,
        "source = NoiseSource(given.next_key())", "source = NoiseSource(given._key)",
        f"{_DESCENT}[None-GRPUAClassifier-replace_one]", says="numbers that have to do with each other",
    ),
    _bug(
        "noise and sampling share their key", _GRADIENT, 'for name in ("sampling", "noise"))',
        'for name in ("noise", "noise"))', f"{_SUMS}test_a_row_is_drawn_by_its_own_word", says="assert",
    ),
    _bug(
        "steps add half the noise", _GRADIENT,
        "noise[i] += rounded\n", "noise[i] = noise[i] // 2 + rounded\n",
        f"{_DESCENT}[None-GRPUAClassifier-replace_one]", says=_LAW,
    ),
    _bug(
        "the last weights of steps get no noise", _GRADIENT,
        "noise[i] += rounded\n", "noise[i] = rounded + (noise[i] if i < totals.shape[0] - 2 else 0)\n",
        f"{_STEPS}[PMSVMGPClassifier-replace_one]", says=_LAW,
    ),
    _bug(
        "all steps have the same noise", _GRADIENT,
        "fill_from_stream(self.stream, step * totals.size,", "fill_from_stream(self.stream, 0 * totals.size,",
        f"{_STEPS}[PMSVMGPClassifier-replace_one]", says=_LAW,
    ),
    _bug(
        "all steps draw the same rows", _GRADIENT,
        "sample_rows(key, step, np.uint64", "sample_rows(key, 0, np.uint64",
        _REPLAY + "test_draws_belong_to_rows[GRPUAClassifier-replace_one-batch_size=4]", says="assert len(",
    ),
    _bug(
        "the first words draw all rows", _DRAWS, "count += bits[i] <= last", "count += bits[0] <= last",
        "tests/numerics/test_exact_draws.py::test_a_row_is_drawn_by_a_word_of_its_own", says="assert",
    ),
    _bug(
        "rows are drawn twice as often", _DRAWS,
        "threshold = int(Fraction(rate) * 2**64)", "threshold = min(int(Fraction(rate) * 2**65), 2**64)",
        f"{_RECORD}[GRPUAClassifier-replace_one-batch_size=4]", says="assert",
    ),
    _bug(
        "half the sample rate is accounted for", _TRAINING,
        "            sample_rate=plan.sample_rate,\n            n_steps=plan.n_steps,\n            max_grad_norm",
        "            sample_rate=plan.sample_rate / 2,\n            n_steps=plan.n_steps,\n            max_grad_norm",
        f"{_RECORD}[GRPUAClassifier-replace_one-batch_size=4]", says=_ANOTHER,
    ),
    _bug(
        "one step too few is accounted for", _TRAINING,
        "n_steps=plan.n_steps,\n            max_grad_norm", "n_steps=plan.n_steps - 1,\n            max_grad_norm",
        f"{_RECORD}[SoftmaxDPSGDClassifier-replace_one]", says=_ANOTHER,
    ),
    _bug(
        "the record leaves out the statistics of scaling", _TRAINING,
        "event: Event = Composed((*map(Gaussian, mechanism.releases), steps)) if mechanism.releases else steps",
        "event: Event = steps",
        f"{_RECORD}[PMSVMGPClassifier-replace_one-scaling=centre]", says=_ANOTHER,
    ),
    _bug(
        "several binary problems are recorded as one", _TRAINING,
        "event=event if n_parts == 1 else SelfComposed(event, n_parts)", "event=event",
        f"{_RECORD}[GRPUAClassifier-replace_one]", says=_ANOTHER,
    ),
    _bug(
        "delta is not divided by the number of binary problems", _TRAINING,
        "            delta=delta * share,\n            neighbours", "            delta=delta,\n            neighbours",
        "tests/families/test_noisy_training.py::test_naive_problems_get_their_share_of_epsilon_and_of_delta",
        says="comparison failed",
    ),
    _bug(
        "rows are counted though a number is declared", _TRAINING,
        "rows = counted if n_rows is None else int(n_rows)", "rows = counted",
        f"{_NEIGHBOURS}[GRPUAClassifier-add_remove]", says="assert",
    ),
    _bug(
        "steps are divided by the private number of rows", _TRAINING,
        "expected_batch=rows / steps", "expected_batch=counted / steps",
        f"{_NEIGHBOURS}[PMSVMGPClassifier-add_remove]", says=_PAST,
    ),
    _bug(
        "gradients are clipped to twice the bound", _GRADIENT,
        "longest = 2**SLOPE_BITS * _clipping_share", "longest = 2 ** (SLOPE_BITS + 1) * _clipping_share",
        f"{_NEEDED}[PMSVMGPClassifier-add_remove]", says=_MOVED,
    ),
    _bug(
        "rounding of sums is left out of the clipping", _GRADIENT, "    return 1 - cost\n", "    return Fraction(1)\n",
        f"{_SUMS}test_no_neighbour_moves_a_sum_by_more_than_the_bound", says="assert",
    ),
    # --- scaling
    _bug(
        "centring subtracts the exact mean", _SCALING,
        "mean = _noisy_sum(cells, CELLS, multipliers[0], source) / (CELLS * n_rows)",
        "mean = cells.mean(axis=0) / CELLS",
        f"{_RECORD}[PMSVMGPClassifier-replace_one-scaling=centre]", says=_ANOTHER,
    ),
    _bug(
        "centring subtracts the exact mean after releasing a noisy one", _MOMENTS,
        "else unit_rows_on_grid(cells / CELLS - centre)", "else unit_rows_on_grid(cells / CELLS - cells.mean(axis=0) / CELLS)",
        f"{_NEIGHBOURS}[PMSVMGPClassifier-replace_one-scaling=centre-batch_size=4]", says="a step was moved by a row that it did not draw",
    ),
    _bug(
        "the mean of centring is divided by the private number of rows", _SCALING,
        "source) / (CELLS * n_rows)", "source) / (CELLS * cells.shape[0])",
        f"{_NEIGHBOURS}[PMSVMGPClassifier-add_remove-scaling=centre]", says="assert",
    ),
    _bug(
        "statistics of scaling get half their noise", _SCALING,
        "source.add_rounded_normals(total, multiplier * bound * ROUND_UP,",
        "source.add_rounded_normals(total, 0.5 * multiplier * bound * ROUND_UP,",
        _RELEASES + "test_the_statistics_of_centring_get_the_noise_of_the_record", says=_LAW,
    ),
    _bug(
        "the spreads of whitening are divided by the private number of rows", _SCALING,
        "mean_size *= spacing / n_rows", "mean_size *= spacing / X.shape[0]",
        "tests/families/test_private_scaling.py::test_no_release_moves_more_than_its_sensitivity", says="assert",
    ),
    _bug(
        "the spreads of whitening get too little noise", _SCALING,
        "bound / spacing, multipliers[2], source)", "bound / spacing, multipliers[3], source)",
        f"{_RECORD}[PMSVMGPClassifier-replace_one-scaling=whiten]", says=_ANOTHER,
    ),
    _bug(
        "second moments off the diagonal get no noise", _MOMENTS,
        "gram[upper] = source.add_rounded_normals(gram[upper], others, stated)",
        "source.add_rounded_normals(gram[upper], others, stated)",
        f"{_NEIGHBOURS}[PMSVMGPClassifier-replace_one-scaling=whiten]", says="assert",
    ),
    _bug(
        "second moments are taken to move half as far", _MOMENTS,
        "return math.sqrt(8.0 if labelled else 2.0)", "return math.sqrt(8.0 if labelled else 0.5)",
        f"{_NEEDED}[PMSVMGPClassifier-replace_one-scaling=whiten]", says=_COVERS,
    ),
    _bug(
        "whitening takes the exact features' mean", _SCALING,
        "_times_matrix(features - mean, matrix)",
        "_times_matrix(features - features.mean(axis=0), matrix)",
        f"{_NEIGHBOURS}[PMSVMGPClassifier-replace_one-scaling=whiten-batch_size=4]", says="a step was moved by a row that it did not draw",
    ),
    # --- output perturbation
    _bug(
        "the last class is released without noise", _PERTURBATION,
        "        coef=coef.reshape(*coef.shape[:2], *weights.shape),",
        "        coef=np.concatenate([coef.reshape(*coef.shape[:2], *weights.shape)[:, :, :-1],"
        " np.broadcast_to(weights[-1:], (*coef.shape[:2], 1, weights.shape[1]))], axis=2),",
        f"{_NEIGHBOURS}[PrivateSVMClassifier-replace_one]", says=_PAST,
    ),
    _bug(
        "the noise of the last class is missing from all but the first repeat", _PERTURBATION,
        "        coef=coef.reshape(*coef.shape[:2], *weights.shape),",
        "        coef=np.where((np.arange(release.repeats) > 0)[:, None, None] & (np.arange(len(weights)) > 0)[:, None],"
        " weights, coef.reshape(*coef.shape[:2], *weights.shape)),",
        f"{_WEIGHTS}[PrivateSVMClassifier-replace_one]", says="np.array_equal(cells",
    ),
    _bug(
        "a replaced row is taken for an added one", _PERTURBATION,
        'rows = {"replace_one": 2.0, "add_remove": 1.0}', 'rows = {"replace_one": 1.0, "add_remove": 1.0}',
        f"{_NEEDED}[PrivateSVMClassifier-replace_one]", says=_COVERS,
    ),
    _bug(
        "the solver's distance is left out of the sensitivity", _PERTURBATION,
        "return (rows[neighbours] * row_bound + 2.0 * math.sqrt(gap)) * _ROUND_UP", "return rows[neighbours] * row_bound * _ROUND_UP",
        "tests/methods/test_sensitivities.py::test_sensitivities_are_rounded_up", says="assert",
    ),
    _bug(
        "solves stop a hundred times further off than is recorded", _PERTURBATION,
        "    weights = problem.weights(rows, codes, n_classes, target)\n",
        "    weights = problem.weights(rows, codes, n_classes, 1e4 * target)\n",
        _REPLAY + "test_what_is_released_is_as_near_to_the_optimum_as_is_recorded", says="assert",
    ),
    _bug(
        "naive releases are recorded as one", _PERTURBATION,
        'count = mechanism.n_vectors if mechanism.composition == "naive" else 1', "count = 1",
        f"{_RECORD}[OPERAClassifier-replace_one]", says=_ANOTHER,
    ),
    _bug(
        "weights of all classes together move as one class's do", "families/output_perturbation/weight_perturbation.py",
        "return solution_sensitivity(math.sqrt(2.0) * C * data_norm, neighbours, gap)",
        "return solution_sensitivity(C * data_norm, neighbours, gap)",
        f"{_NEEDED}[PMSVMWPClassifier-replace_one-classes=...]", says=_COVERS,
    ),
    _bug(
        "Crammer-Singer weights get the noise of another epsilon", "families/output_perturbation/weight_perturbation.py",
        "mechanism.release(weights, source)", "mechanisms[-1].release(weights, source)",
        f"{_WEIGHTS}[PMSVMWPClassifier-replace_one]", says=_LAW,
    ),
    _bug(
        "centred weights of three classes move less than they do", "methods/ovr_joint_gaussian.py",
        "factor = 8.0 / 3.0 if n_classes == 3", "factor = 1.0 if n_classes == 3",
        f"{_NEEDED}[OvRJointGaussianClassifier-replace_one]", says=_COVERS,
    ),
    _bug(
        "centred weights of many classes move less than they do", "methods/ovr_joint_gaussian.py",
        "else (n_classes + 8) / 4.0", "else (n_classes + 4) / 4.0",
        "tests/methods/test_ovr_joint_gaussian.py::test_one_row_attains_the_bound", says="assert",
    ),
    _bug(
        "the distances of all problems count as one", "methods/ovr_joint_gaussian.py",
        "neighbours, n_classes * gap)", "neighbours, gap)",
        "tests/methods/test_sensitivities.py::test_the_distances_of_all_problems_count", says="assert",
    ),
    _bug(
        "rows are not clipped", "families/output_perturbation/hinge_release.py", "lambda rows: clipped_rows(rows, norm),",
        "lambda rows: rows,",
        f"{_NEEDED}[PrivateSVMClassifier-replace_one]", says=_COVERS,
    ),
    _bug(
        "rows are clipped to twice the norm", "methods/pmsvm_wp.py",
        "return grid_rows(X, float(self.data_norm))", "return grid_rows(X, 2.0 * float(self.data_norm))",
        f"{_NEEDED}[PMSVMWPClassifier-replace_one]", says=_COVERS,
    ),
    _bug(
        "the kernel's width is taken from the rows, and said to be public", "families/output_perturbation/fourier_release.py",
        'origin="private rows" if self.gamma == "scale" else "public"', 'origin="public"',
        "tests/privacy/test_gate.py::test_what_is_taken_from_the_rows_is_not_proved", says="assert",
    ),
    _bug(
        "given landmarks count as public whoever chose them", "methods/landmark_dual_given.py",
        'return "declared" if self.landmarks_public else "undeclared"', 'return "declared"',
        "tests/methods/test_landmark_dual.py::test_given_landmarks_need_a_word_that_they_are_public", says="DID NOT RAISE",
    ),
    _bug(
        "features of landmarks are not clipped, and longer", "families/output_perturbation/landmark_release.py",
        "return grid_rows(landmark_row_features(near(rows), landmarks, gamma, inverse_root, shortest), 1.0)",
        "return 2.0 * grid_rows(landmark_row_features(near(rows), landmarks, gamma, inverse_root, shortest), 1.0)",
        f"{_NEEDED}[LandmarkDualClassifier-replace_one]", says=_COVERS,
    ),
    # --- objective perturbation
    _bug(
        "one linear term for all classes", _OBJECTIVE,
        "problems = zip(signs, terms, strict=True)", "problems = zip(signs, [terms[0]] * len(terms), strict=True)",
        _RELEASES + "test_linear_terms_and_minima_get_the_noise_of_the_record[ObjectivePerturbationClassifier-replace_one]",
        says="numbers that have to do with each other",
    ),
    _bug(
        "minima are released without noise", _OBJECTIVE,
        "return mechanism.release(minima, stream)", "return minima",
        f"{_RECORD}[ObjectivePerturbationClassifier-replace_one]", says="ValueError",
    ),
    _bug(
        "linear terms get half their noise", "privacy/objective_perturbation.py",
        "gaussian_on_grid(np.zeros(size), size, self.term_grid, self.noise_scale, self.sensitivity, source)",
        "gaussian_on_grid(np.zeros(size), size, self.term_grid, 0.5 * self.noise_scale, self.sensitivity, source)",
        f"{_RECORD}[ObjectivePerturbationClassifier-replace_one]", says=_ANOTHER,
    ),
    _bug(
        "a replaced row changes a gradient as an added one does", "privacy/objective_perturbation.py",
        'return (2.0 if self.neighbours == "replace_one" else 1.0) * self.row_bound', "return self.row_bound",
        f"{_RECORD}[ObjectivePerturbationClassifier-replace_one]", says="the event costs",
    ),
    _bug(
        "the curvature of a row is forgotten", _OBJECTIVE,
        "curvature=row_bound * data_norm / smoothing,", "curvature=1e-9 * row_bound * data_norm / smoothing,",
        f"{_RECORD}[ObjectivePerturbationClassifier-replace_one]", says="assert",
    ),
    _bug(
        "the noise on minima is for distances ten times smaller", "privacy/objective_perturbation.py",
        "return math.sqrt(self.n_vectors) * (2.0 * self.total_distance + self.grid * math.sqrt(self.size))",
        "return 0.1 * math.sqrt(self.n_vectors) * (2.0 * self.total_distance + self.grid * math.sqrt(self.size))",
        "tests/privacy/test_objective_perturbation_accounting.py::test_the_mechanism_is_what_the_accountant_says",
        says="assert",
    ),
    _bug(
        "rounding of linear terms costs nothing", "privacy/objective_perturbation.py",
        "return (self.distance + 0.5 * self.term_grid * math.sqrt(self.size)) * (1.0 + _ROUND_OFF_SLACK)",
        "return self.distance",
        "tests/privacy/test_objective_perturbation_accounting.py::test_linear_terms_lie_on_their_grid_and_its_cost_is_counted",
        says="assert",
    ),
    _bug(
        "perturbed objectives are solved less closely than is recorded", _OBJECTIVE,
        "solve_smoothed_hinge(rows, y, C, smoothing, tol, term).coef",
        "solve_smoothed_hinge(rows, y, C, smoothing, 1e3 * tol, term).coef",
        _REPLAY + "test_what_is_released_is_as_near_to_the_optimum_as_is_recorded", says="assert",
    ),
    # --- selections
    _bug(
        "scores move twice as far as is stated", _FRANK_WOLFE,
        "return int(2 * 2 ** (_FEATURE_BITS + slope_bits(n_rows)))", "return int(2 ** (_FEATURE_BITS + slope_bits(n_rows)))",
        f"{_NEEDED}[DPFrankWolfeClassifier-replace_one]", says=_COVERS,
    ),
    _bug(
        "features are not clipped", _FRANK_WOLFE,
        "np.trunc(np.clip(values, -bound, bound) / bound * most)", "np.trunc(values / bound * most)",
        f"{_NEEDED}[DPFrankWolfeClassifier-replace_one]", says=_COVERS,
    ),
    _bug(
        "the best vertex is selected", _FRANK_WOLFE,
        "mechanism.select(scores_of_class, source)", "scores_of_class.argmax(axis=-1)",
        f"{_RECORD}[DPFrankWolfeClassifier-replace_one]", says=_ANOTHER,
    ),
    _bug(
        "selections of one class are accounted for", _FRANK_WOLFE,
        "n_selections = int(self.n_steps) * signs.shape[0]", "n_selections = int(self.n_steps)",
        f"{_RECORD}[DPFrankWolfeClassifier-replace_one]", says=_ANOTHER,
    ),
    _bug(
        "models of a block share their choices", _FRANK_WOLFE,
        "(mechanism, release.source(mechanism.epsilon, repeat))", "(mechanism, release.source(mechanism.epsilon, 0))",
        f"{_CHANCES}[DPFrankWolfeClassifier-replace_one]", says="chisquare(counts, expected).pvalue",
    ),
    # --- moments
    _bug(
        "moments move half as far as they do", _MOMENTS,
        "return math.sqrt(8.0 if labelled else 2.0)", "return math.sqrt(2.0)",
        f"{_NEEDED}[DPLeastSquaresClassifier-replace_one]", says=_COVERS,
    ),
    _bug(
        "cross moments get no noise", _MOMENTS,
        "cross = source.add_rounded_normals(cross, others,", "source.add_rounded_normals(cross, others,",
        f"{_NEIGHBOURS}[DPLeastSquaresClassifier-replace_one]", says=_PAST,
    ),
    _bug(
        "the centre of moments gets half its noise", _MOMENTS,
        "sigma = multiplier * CELLS * _ROUND_UP", "sigma = 0.5 * multiplier * CELLS * _ROUND_UP",
        _RELEASES + "test_a_shrunk_centre_has_the_noise_of_the_record[DPLeastSquaresClassifier-replace_one]", says="assert",
    ),
    _bug(
        "moments get half their noise", _MOMENTS,
        "return self.multiplier * self._cells_sensitivity / relation_factor(self.neighbours) * _ROUND_UP",
        "return 0.5 * self.multiplier * self._cells_sensitivity / relation_factor(self.neighbours) * _ROUND_UP",
        f"{_RECORD}[DPLeastSquaresClassifier-replace_one]", says=_ANOTHER,
    ),
    _bug(
        "a joint release is recorded with twice its noise", _JOINT,
        "(Gaussian(moments.multiplier),)", "(Gaussian(2.0 * moments.multiplier),)",
        f"{_RECORD}[AdaSSPClassifier-replace_one]", says=_ANOTHER,
    ),
    _bug(
        "a joint release shares the noise of the centre", _JOINT,
        'source.part("moments")', 'source.part("centre")',
        _RELEASES + "test_draws_of_a_recipe_have_the_noise_of_the_record[DPLDAClassifier-replace_one]",
        says="numbers that have to do with each other",
    ),
    _bug(
        "one of several Newton steps is accounted for", _NEWTON,
        "event = SelfComposed(Gaussian(step.multiplier), n_steps)", "event = Gaussian(step.multiplier)",
        f"{_RECORD}[DPNewtonClassifier-replace_one]", says=_ANOTHER,
    ),
    _bug(
        "Newton steps share their noise", _NEWTON,
        'source.part(f"step {step}")', 'source.part("step")',
        _RELEASES + "test_draws_of_a_recipe_have_the_noise_of_the_record[DPNewtonClassifier-replace_one]",
        says="numbers that have to do with each other",
    ),
    _bug(
        "slopes are clipped after they are divided by curvatures, whatever these are", "solvers/linear/newton_rows.py",
        "(curvatures @ ones) / (bound * (n_classes - 1)), clipped * clipped", "0.0 * clipped, clipped * clipped * 0.5",
        "tests/solvers/test_newton_rows.py::test_slopes_are_those_of_the_loss_clipped", says="assert",
    ),
    # --- solutions of rows that are read by blocks
    _bug(
        "a solution by blocks is certified for a wider loss", "solvers/linear/block_hinge.py",
        "last = search.smoothing == smoothing", "last = True",
        "tests/solvers/test_block_hinge.py::test_every_gradient_is_certainly_small", says="assert",
    ),
    _bug(
        "sums by blocks lose the lower digits of rows", "solvers/linear/block_hinge.py",
        "cells - high * 2.0**_HALF_BITS", "0.0 * cells",
        "tests/solvers/test_block_hinge.py::test_sums_are_those_of_fractions", says="assert",
    ),
    # --- tables of no row, and what schemas declare
    _bug(
        "a table of no row is refused under add_remove", "base/validation.py",
        "    return 0 if accepts and classes is not None else 1", "    return 1",
        "tests/methods/test_contract.py::test_no_row_is_treated_like_its_neighbour_of_one", says="0 sample",
    ),
    _bug(
        "a private search refuses a table of no row", "base/validation.py",
        'method = getattr(estimator, "estimator", estimator)', "method = estimator",
        "tests/methods/test_contract.py::test_a_private_search_of_no_row_is_like_one_of_one", says="0 sample",
    ),
    _bug(
        "a pipeline ignores that rows were scaled by their own statistics", "tables/public_schema.py",
        "if schema.prescaled:", "if schema.prescaled is None and schema.rows == 0:",
        "tests/release/test_budgets.py::test_what_a_schema_declares_of_its_rows_is_in_the_guarantee", says="DID NOT RAISE",
    ),
    _bug(
        "a pipeline covers persons by the epsilon of a row", "tables/public_schema.py",
        "if schema.person is not None:", "if schema.person is not None and schema.rows_per_person == 0:",
        "tests/release/test_budgets.py::test_what_a_schema_declares_of_its_rows_is_in_the_guarantee", says="DID NOT RAISE",
    ),
    # --- the recommended method
    _bug(
        "the recommended method's steps get half their noise", "solvers/gradients/huber_descent.py",
        "self.sigma = multiplier * one_row * ROUND_UP", "self.sigma = 0.5 * multiplier * one_row * ROUND_UP",
        f"{_RECORD}[PrivateLinearClassifier-replace_one]", says=_ANOTHER,
    ),
    _bug(
        "the recommended method records one release of several", "families/moments/scaled_descent.py",
        "for share in releases.values()]", "for share in list(releases.values())[:0]]",
        f"{_RECORD}[PrivateLinearClassifier-replace_one-features=fourier]", says=_ANOTHER,
    ),
    _bug(
        "a second moment beside steps is free, however far rows are turned", _MOMENTS,
        "    flat, least = condition**-2.0, joint - moment", "    flat, least = 1.0, joint - moment",
        "tests/families/test_second_moments.py::test_a_moment_and_the_steps_beside_it_never_need_more_than_both_have",
        says="assert",
    ),
    _bug(
        "the recommended method's steps get all of what they share with a second moment", "families/moments/scaled_descent.py",
        "step_share = steps / recipe.n_steps", "step_share = joint / recipe.n_steps",
        "tests/families/test_scaled_descent.py::test_the_second_moment_and_the_steps_together_need_no_more_than_is_stated",
        says="gaussian noise covers less",
    ),
    _bug(
        "rounding moves a second moment beside steps no further than its rows do", _MOMENTS,
        "    joint -= moment * (rounding + 2.0 * n_features / CELLS**2)\n    moment *= 1.0 - rounding\n", "",
        "tests/families/test_scaled_descent.py::test_rounding_on_coarse_grids_is_a_part_of_what_is_stated",
        says="gaussian noise covers less",
    ),
    _bug(
        "steps beside a second moment are told of no rounding", "families/moments/scaled_descent.py",
        "rounding = mechanism.rounding_share", "rounding = 0.0",
        "tests/families/test_scaled_descent.py::test_rounding_on_coarse_grids_is_a_part_of_what_is_stated",
        says="gaussian noise covers less",
    ),
    _bug(
        "steps of DP-FC are told of no rounding", "methods/dp_feature_covariance.py",
        "1.0, n_features, moments.rounding_share)", "1.0, n_features, 0.0)",
        "tests/methods/test_dp_feature_covariance.py::test_steps_pay_for_what_rounding_adds_to_the_gram_matrix",
        says="assert",
    ),
    _bug(
        "what rounding adds is a share of the sensitivity without it", _MOMENTS,
        "return self._rounding / self._cells_sensitivity * _ROUND_UP**2", "return self._rounding * 2.0**-40",
        "tests/families/test_second_moments.py::test_rounding_is_a_share_of_the_sensitivity", says="assert",
    ),
    _bug(
        "a second moment beside steps costs less where a row is added, too", "families/moments/scaled_descent.py",
        'if neighbours == "add_remove" or self.moment_share == 0.0:', "if self.moment_share == 0.0:",
        "tests/families/test_scaled_descent.py::test_the_event_is_that_of_the_noise_and_costs_the_budget", says="assert",
    ),
    _bug(
        "the recommended method centres by the exact mean", "families/moments/scaled_descent.py",
        "    return centred_rows(cells, mean), mean", "    return centred_rows(cells, cells.mean(axis=0) / CELLS), mean",
        "tests/families/test_scaled_descent.py::test_a_row_depends_on_itself_and_on_releases_alone", says="assert",
    ),
    _bug(
        "votes on trials get the noise of one trial", "families/moments/scaled_descent.py",
        "reach = math.sqrt(k * (k // 2) * (k - k // 2)) * _ROUND_UP", "reach = _ROUND_UP",
        "tests/families/test_scaled_descent.py::test_votes_move_by_no_more_than_is_stated", says="assert",
    ),
    _bug(
        "the recommended method trains again with the budget of its trials", "methods/recommended.py",
        "left.share * (1.0 - math.fsum([*shares, _VOTE_SHARE]))", "left.share",
        "tests/methods/test_recommended.py::test_trials_keep_to_the_budget", says="assert",
    ),
    _bug(
        "hat functions stand where rows are", "solvers/features/columns.py",
        "np.linspace(-1.0, 1.0, columns.n_hats, retstep=True)",
        "np.linspace(numbers.min(), numbers.max(), columns.n_hats, retstep=True)",
        "tests/methods/test_recommended.py::test_features_of_columns", says="assert",
    ),
    # --- histograms and trees
    _bug(
        "a row that is replaced moves half of its counts", "families/histograms/quantiles.py",
        "math.sqrt(n_counts * relation_factor(neighbours))", "math.sqrt(n_counts)",
        "tests/families/test_histograms.py::test_no_neighbour_moves_counts_by_more_than_the_bound[replace_one]",
        "tests/privacy/test_replay.py::test_draws_of_a_search_cover_the_effect_of_one_row[DPNaiveBayesClassifier-replace_one]",
        says="assert",
    ),
    _bug(
        "bins are exact quantiles", "families/histograms/quantiles.py",
        "scales = np.split(counts,", "scales = np.split(np.hstack(exact),",
        "tests/families/test_histograms.py::test_counts_on_all_scales_agree_by_least_squares",
        "tests/privacy/test_replay.py::test_draws_of_a_search_cover_the_effect_of_one_row[DPNaiveBayesClassifier-replace_one]",
        says="assert",
    ),
    _bug(
        "one of all random trees is accounted for", "methods/dp_tr_newton.py",
        "return SelfComposed(step, n_trees),", "return step,",
        "tests/privacy/test_replay.py::test_draws_add_up_to_the_record_and_a_recorder_changes_nothing[DPTRNewtonClassifier-replace_one]",
        says="assert",
    ),
    _bug(
        "leaves of random trees get the noise of one tree", "methods/dp_tr_newton.py",
        "noise = multiplier * math.sqrt(int(self.n_trees)) * ROUND_UP", "noise = multiplier * ROUND_UP",
        "tests/privacy/test_replay.py::test_draws_add_up_to_the_record_and_a_recorder_changes_nothing[DPTRNewtonClassifier-replace_one]",
        says="assert",
    ),
    # --- accounting, the gate, and what is recorded
    *MUTANTS_OF_RECORDS,
    # --- payments and consent
    *MUTANTS_OF_PAYMENTS,
    # --- rows of files
    *MUTANTS_OF_TABLES,
    # --- files of others
    *MUTANTS_OF_FILES,
)  # fmt: skip

# A few of them run with all other tests: cheap ones, that compile nothing, of several kinds.
SAMPLE = (
    "the last class is released without noise",
    "centring subtracts the exact mean",
    "stratified splits are forgotten",
)
