"""The experiments of pmsvm-2025 (Park, Choi and Lee, NeurIPS 2025): Tables 2 to 4 and 9 to 11, Figures 2 to 6.

``python reproduce/pmsvm.py table2 --datasets Dermatology`` runs one dataset; without arguments everything runs.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from privsvm.pipeline.stage import run
from privsvm.reproduction.comparison import Row, Rule, claim, compare, read_published, within
from privsvm.reproduction.experiment import Experiment, Figure, Report, Results, Settings, Table, missing_result

PUBLISHED = Path(__file__).with_name("published") / "pmsvm.csv"

EPSILONS = [1, 2, 4, 8]
WEIGHT_METHODS = ("PrivateSVM", "OPERA", "PMSVM-WP")
GRADIENT_METHODS = ("GRPUA", "Linear", "PMSVM-GP", "PMSVM-AGP")

COLOURS = {
    "PrivateSVM": "#7a3fa8", "OPERA": "#2a7d4f", "PMSVM-WP": "#0a53c4", "GRPUA": "#c4620a", "Linear": "#63676e",
    "PMSVM-GP": "#5aa2e8", "PMSVM-AGP": "#a4161a", "OvR joint Gaussian": "#3aa6a0", "Objective perturbation": "#d46aa5",
}  # fmt: skip


def _colour(method: str) -> str:
    """Color of a method, whatever its composition."""
    return COLOURS.get(method.split(" (")[0], "#1b1f27")


# Catalogue name and parts, pooled. The paper's Table 6 has 946 rows for Vehicle; its file has 846.
DATASETS: dict[str, list[str]] = {
    "Cornell": ["cornell_pmsvm", "all"],
    "Dermatology": ["dermatology_pmsvm", "all"],
    "HHAR": ["har_smartphone", "train", "test"],
    "ISOLET": ["isolet_pmsvm", "all"],
    "USPS": ["usps", "train", "test"],
    "Vehicle": ["vehicle_pmsvm", "all"],
}

# Table 7, but for Dermatology, where the released notebook has 0.01 and its numbers come out with that.
WEIGHT_C = {"Cornell": 0.005, "Dermatology": 0.01, "HHAR": 0.001, "ISOLET": 0.001, "USPS": 0.005, "Vehicle": 0.001}
OTHER_C = {"Dermatology": 0.005}

# Table 8: epochs and factor of the learning rate.
RATES: dict[str, dict[str, Any]] = {
    "Cornell": {"base": 0.1, "C_over_n": 0.005, "GRPUA": [5, 2.0], "Linear": [10, 0.1], "PMSVM-GP": [10, 0.1],
                "PMSVM-AGP": [30, 0.1]},
    "Dermatology": {"base": 0.01, "C_over_n": 0.1, "GRPUA": [5, 1.0], "Linear": [10, 0.5], "PMSVM-GP": [10, 0.5],
                    "PMSVM-AGP": [10, 2.0]},
    "HHAR": {"base": 0.02, "C_over_n": 0.0005, "GRPUA": [30, 0.5], "Linear": [20, 0.5], "PMSVM-GP": [30, 0.1],
             "PMSVM-AGP": [30, 0.1]},
    "ISOLET": {"base": 0.001, "C_over_n": 0.001, "GRPUA": [20, 1.0], "Linear": [30, 2.0], "PMSVM-GP": [30, 2.0],
               "PMSVM-AGP": [30, 5.0]},
    "USPS": {"base": 0.01, "C_over_n": 0.001, "GRPUA": [30, 5.0], "Linear": [30, 0.5], "PMSVM-GP": [20, 0.5],
             "PMSVM-AGP": [20, 0.5]},
    "Vehicle": {"base": 0.05, "C_over_n": 0.0001, "GRPUA": [20, 1.0], "Linear": [10, 0.5], "PMSVM-GP": [10, 1.0],
                "PMSVM-AGP": [30, 1.0]},
}  # fmt: skip

# The stored scripts scale neither Cornell nor Dermatology nor ISOLET. Table 2's ISOLET numbers come out with scaling,
# those of Tables 9 to 11 are told apart below.
SCALING = {"Cornell": "none", "Dermatology": "none", "HHAR": "z_score", "ISOLET": "z_score", "USPS": "z_score",
           "Vehicle": "z_score"}  # fmt: skip

SHARED: dict[str, Any] = {
    "datasets": DATASETS,
    "epsilons": EPSILONS,
    "delta": 1e-5,
    "test_size": 0.2,
    "seed": 20260,
}
GRADIENT_SHARED: dict[str, Any] = {
    **SHARED,
    "rates": RATES,
    "scaling": SCALING,
    # One split, only the noise varies.
    "split": 42,
    "runs": 5,
    "batch": 128,
}
TABLE2_SETTINGS: dict[str, Any] = {
    **GRADIENT_SHARED,
    "C": WEIGHT_C,
    "other_C": OTHER_C,
    "splits": list(range(42, 62)),
}
LR_DECAY_SETTINGS: dict[str, Any] = {**GRADIENT_SHARED, "scaling": {**SCALING, "ISOLET": "none"}}
# What the released notebook has for PMSVM-AGP, and the scaling of the stored scripts.
STORED: dict[str, Any] = {
    "stored_rates": {"Cornell": [20, 0.1], "Dermatology": [5, 2.0], "HHAR": [20, 0.1], "ISOLET": [30, 5.0],
                     "USPS": [20, 0.5], "Vehicle": [5, 2.0]},
    "stored_scaling": {**SCALING, "ISOLET": "none"},
}  # fmt: skip
CLIP_SETTINGS: dict[str, Any] = {**GRADIENT_SHARED, **STORED, "clips": [0.01, 0.1, 1, 10]}
BATCH_SETTINGS: dict[str, Any] = {
    **GRADIENT_SHARED,
    "stored_scaling": STORED["stored_scaling"],
    "batches": [32, 64, 128, 256, 512, None],
    "other_clip": 10,
}
CONVERGENCE_SETTINGS: dict[str, Any] = {**GRADIENT_SHARED, "runs": 3}
GAP_SETTINGS: dict[str, Any] = TABLE2_SETTINGS
TIME_SETTINGS: dict[str, Any] = {
    "datasets": DATASETS,
    "C": WEIGHT_C,
    "scaling": SCALING,
    "test_size": 0.2,
    "split": 42,
    "batch": 128,
    "epochs": 1,
    "least_steps": 100,
    "repeats": 5,
    "seed": 20260,
}

# Rows as they are published, or scaled by the catalogue's public bounds: nothing is taken from private rows.
SOUND_DATA: dict[str, dict[str, Any]] = {
    "Cornell": {"source": ["cornell_pmsvm", "all"], "scaling": []},
    # Grades and ages; the released file is standardised by statistics of all rows.
    "Dermatology": {"source": ["dermatology_uci", "all"], "scaling": ["bounds"]},
    "HHAR": {"source": ["har_smartphone", "train", "test"], "scaling": []},
    "ISOLET": {"source": ["isolet_pmsvm", "all"], "scaling": []},
    "USPS": {"source": ["usps", "train", "test"], "scaling": ["bounds"]},
    # Published in [-1, 1]; the publisher's own step looked at the rows.
    "Vehicle": {"source": ["vehicle.scale", "all"], "scaling": []},
}

# Class and parameters of each method; SOUND_RECIPES change them by dataset. C, the weight of a row's loss, was selected
# as in the paper: on the test rows, at epsilon 4, from the paper's grid.
SOUND_METHODS: dict[str, dict[str, Any]] = {
    "PMSVM-WP": {"estimator": "pmsvm:PMSVMClassifier", "settings": {"perturbation": "weight", "C": 0.1}},
    "PMSVM-GP": {"estimator": "pmsvm:PMSVMClassifier", "settings": {"perturbation": "gradient", "scaling": "centre"}},
    "PMSVM-AGP": {"estimator": "pmsvm:PMSVMClassifier", "settings": {"perturbation": "adaptive", "scaling": "centre"}},
    "Linear": {"estimator": "softmax_dpsgd:SoftmaxDPSGDClassifier", "settings": {"scaling": "centre"}},
    "GRPUA (naive)": {"estimator": "grpua:GRPUAClassifier", "settings": {"composition": "naive"}},
    "GRPUA (joint)": {"estimator": "grpua:GRPUAClassifier", "settings": {"composition": "joint"}},
    "OPERA (naive)": {"estimator": "opera:OPERAClassifier", "settings": {"composition": "naive", "C": 0.1}},
    "OPERA (joint)": {"estimator": "opera:OPERAClassifier", "settings": {"composition": "joint", "C": 0.1}},
    "PrivateSVM (joint)": {
        "estimator": "private_svm:PrivateSVMClassifier",
        "settings": {"composition": "joint", "C": 0.1},
    },
    "OvR joint Gaussian": {"estimator": "ovr_joint_gaussian:OvRJointGaussianClassifier", "settings": {"C": 0.1}},
    "Objective perturbation": {
        "estimator": "objective_perturbation:ObjectivePerturbationClassifier",
        "settings": {"C": 0.1},
    },
}
SOUND_RECIPES: dict[str, dict[str, dict[str, Any]]] = {
    "USPS": {"PMSVM-WP": {"C": 0.05}},
    "Vehicle": {
        **{name: {"C": 0.05} for name in ("OPERA (joint)", "PrivateSVM (joint)", "OvR joint Gaussian")},
        **{name: {"scaling": "whiten"} for name in ("PMSVM-GP", "PMSVM-AGP", "Linear")},
    },
    "ISOLET": {name: {"C": 0.005} for name in ("OPERA (joint)", "PrivateSVM (joint)", "OvR joint Gaussian")},
}

# These buy the scale of the features, so that they can take them as they were measured.
SOUND_OWN_DATA: dict[str, dict[str, dict[str, Any]]] = {
    "Vehicle": {
        name: {"source": ["vehicle_uci", "all"], "scaling": []} for name in ("PMSVM-GP", "PMSVM-AGP", "Linear")
    },
}
# One draw of noise a split leaves the mean of a small test part to chance.
SOUND_REPEATS = {"Dermatology": 5, "Vehicle": 10}

SOUND_SETTINGS: dict[str, Any] = {
    **SHARED,
    "datasets": {name: data["source"] for name, data in SOUND_DATA.items()},
    "public_scaling": {name: data["scaling"] for name, data in SOUND_DATA.items()},
    "methods": SOUND_METHODS,
    "recipes": SOUND_RECIPES,
    "own_data": SOUND_OWN_DATA,
    "own_repeats": SOUND_REPEATS,
    "neighbours": "add_remove",
    "splits": list(range(42, 62)),
    "repeats": 1,
    "paper_split": 42,
    "paper_runs": 5,
}

# What the paper leaves to chance: five draws of noise on one split say little of their own spread, and two rows of the
# smallest test part are 0.027.
LEAST_TOLERANCE = 0.02

NO_SENSITIVITY = "its loss gives no sensitivity that the number of rows does not enter"
UNKNOWN_SCRIPT = "main-opacus.py, which trained it, is not among the released files that are stored"


def _common(settings: Settings, dataset: str, *keys: str) -> dict[str, Any]:
    shared = ("delta", "test_size", "seed", "epsilons")
    return {
        "dataset": dataset,
        "source": settings["datasets"][dataset],
        **{key: settings[key] for key in (*shared, *keys)},
    }


def _training(settings: Settings, dataset: str, method: str, **changes: Any) -> dict[str, Any]:
    """One row of Table 8 as the released scripts read it: for SGD the learning rate is multiplied by another 100."""
    rates = settings["rates"][dataset]
    epochs, factor = rates[method]
    adam = method == "PMSVM-AGP"
    training = {
        "loss": "one_vs_rest_hinge" if method == "GRPUA" else "softmax",
        # None: 1 / number of classes.
        "loss_weight": 1.0 if method == "GRPUA" else None,
        "start": "zero" if method == "GRPUA" else "random",
        "optimizer": "adam" if adam else "sgd",
        "learning_rate": rates["base"] * factor * (1 if adam else 100),
        "epochs": epochs,
        "batch": settings["batch"],
        "clip": 1.0,
        "schedule": "constant",
        "scaling": settings["scaling"][dataset],
    }
    return {**training, **changes}


def _variants(settings: Settings, dataset: str, method: str) -> dict[str, dict[str, Any]]:
    """List readings of one gradient column; the first is compared, the others show what a choice means."""
    first = _training(settings, dataset, method)
    others: dict[str, dict[str, Any]] = {}
    if method == "GRPUA":
        others["learning rate of Table 8, not times 100"] = {**first, "learning_rate": first["learning_rate"] / 100}
        others["Adam"] = {**first, "learning_rate": first["learning_rate"] / 100, "optimizer": "adam"}
    elif method == "Linear":
        others["cross-entropy not divided by c"] = {**first, "loss_weight": 1.0}
    else:
        others["starts at zero"] = {**first, "start": "zero"}
        others["hinge of eq. 12, clipped as in eq. 15"] = {
            **first,
            "loss": "hinge",
            "loss_weight": 1.0,
            "start": "zero",
            "smoothing": 0.1,
            "margin_weight": settings["rates"][dataset]["C_over_n"],
            "regulariser": "inside",
        }
    if method != "GRPUA" and dataset == "ISOLET":
        others["features not scaled"] = {**first, "scaling": "none"}
    return {"as released": first, **others}


def table2_jobs(settings: Settings) -> dict[str, dict[str, Any]]:
    """One job per dataset and column; OPERA and PrivateSVM share their solves."""
    jobs: dict[str, dict[str, Any]] = {}
    for dataset in settings["datasets"]:
        C, other = settings["C"][dataset], settings["other_C"].get(dataset)
        weight: dict[str, dict[str, float]] = {
            "as published": {"C": C, "noise_factor": 1.0},
            "sensitivity 4 sqrt(2) C of the stored code": {"C": C, "noise_factor": 2.0},
        }
        rest = {
            "sensitivity 4 C": {"C": C, "sensitivity_factor": 4.0},
            "sensitivity 2 C of the text": {"C": C, "sensitivity_factor": 2.0},
        }
        if other is not None:
            weight[f"C/n={other:g} of Table 7"] = {"C": other, "noise_factor": 1.0}
            rest[f"C/n={other:g} of Table 7"] = {"C": other, "sensitivity_factor": 4.0}
        jobs[f"{dataset}.PMSVM-WP"] = {
            "kind": "weight", **_common(settings, dataset, "splits"), "variants": weight, "audited": "as published",
        }  # fmt: skip
        jobs[f"{dataset}.OPERA-PrivateSVM"] = {
            "kind": "one_vs_rest", **_common(settings, dataset, "splits"), "variants": rest,
            "methods": ["OPERA", "PrivateSVM"], "audited": "sensitivity 4 C",
        }  # fmt: skip
        for method in GRADIENT_METHODS:
            jobs[f"{dataset}.{method}"] = {
                "kind": "gradient",
                **_common(settings, dataset, "split", "runs"),
                "variants": {
                    f"{method}, {name}": training for name, training in _variants(settings, dataset, method).items()
                },
            }
    return jobs


Published = Mapping[tuple[str, str, str, str], str]


def _spread(values: Sequence[float]) -> float:
    return statistics.pstdev(values)


def _printed(published: Published, dataset: str, method: str, setting: str) -> tuple[str | None, float]:
    """Find the printed mean and its standard deviation."""
    key = (dataset, method, setting)
    return published.get((*key, "accuracy")), float(published.get((*key, "accuracy SD"), "0"))


def _accuracy_row(
    place: Mapping[str, str],
    published: Published,
    key: tuple[str, str, str],
    values: Sequence[float] | None,
    tolerance: Callable[[float, float], float],
    why: Callable[[str, Sequence[float]], str],
    missing: tuple[str, str] | None,
    ruled_out: bool = False,
) -> Row:
    """Compare a mean accuracy; `tolerance` is asked with the printed standard deviation and ours."""
    printed, spread = _printed(published, *key)
    if missing or values is None:
        return compare({**place, "metric": "accuracy"}, printed, None, within(0.0), missing=missing)
    row = compare(
        {**place, "metric": "accuracy"},
        printed,
        statistics.fmean(values),
        within(tolerance(spread, _spread(values))),
        lambda: why(printed or "", values),
    )
    return dataclasses.replace(row, verdict="ruled out") if ruled_out and row.verdict == "differs" else row


def _two_printed(spread: float, own: float) -> float:
    return 2.0 * spread


def _two_either(spread: float, own: float) -> float:
    return max(2.0 * spread, 2.0 * own, LEAST_TOLERANCE)


GRADIENT_CAPTION = (
    "Means over five draws of noise on one split, as in the paper. A number agrees within two standard deviations, the "
    f"larger of the printed one and ours, or within {LEAST_TOLERANCE}: five draws say little of their own spread (some "
    "printed ones are 0.000), and one row of the smallest test part is 0.014."
)


def _range(values: Sequence[float]) -> str:
    return f"our {len(values)} runs range from {min(values):.3f} to {max(values):.3f}"


def _why_weight(dataset: str, method: str) -> Callable[[str, Sequence[float]], str]:
    def why(printed: str, values: Sequence[float]) -> str:
        if method == "PMSVM-WP":
            return f"not explained: the seeds of the noise are not known; {_range(values)}"
        return (
            f"the stored code has no rule for {method} that gives all printed numbers, and its seeds are not known; "
            f"{_range(values)}"
        )

    return why


def _why_gradient(published: Published, key: tuple[str, str, str]) -> Callable[[str, Sequence[float]], str]:
    dataset, method, setting = key

    def why(printed: str, values: Sequence[float]) -> str:
        reasons = []
        again = published.get((dataset, method, f"{setting};lr_decay=no", "accuracy"))
        if again is not None and abs(float(again) - statistics.fmean(values)) <= LEAST_TOLERANCE:
            reasons.append(f"the paper's own Table 9 prints {again} for the same setting, which agrees with ours")
        elif again is not None and abs(float(again) - float(printed)) > LEAST_TOLERANCE:
            reasons.append(f"the paper's own Table 9 prints {again} for the same setting")
        if method == "GRPUA":
            reasons.append(
                "no released file trains GRPUA: its loss, starting weights and learning rate are guesses (see the "
                "other choices)"
            )
        else:
            reasons.append(UNKNOWN_SCRIPT)
        return "; ".join([*reasons, _range(values)])

    return why


def table2_report(experiment: Experiment, results: Results) -> Report:
    """Every cell of Table 2, the true epsilon of PMSVM-WP, and other readings of what is open."""
    settings, published = experiment.settings, read_published(PUBLISHED)
    weight, spreads, corrected, epsilons, gradient, others, sizes = ([] for _ in range(7))
    for job, parameters in table2_jobs(settings).items():
        result, dataset = results[job], parameters["dataset"]
        missing = missing_result(result)
        if parameters["kind"] == "gradient":
            own, other = _gradient_rows("gradient", published, parameters, result, missing)
            gradient += own
            others += other
            continue
        methods = parameters.get("methods", ["PMSVM-WP"])
        for method in methods:
            own, rows, fixed, alternatives = _weight_rows(published, parameters, method, result, missing)
            weight += own
            spreads += rows
            corrected += fixed
            others += alternatives
        epsilons += _epsilon_rows(parameters, result, missing)
        if parameters["kind"] == "weight":
            place = {"table": "sizes", "dataset": dataset, "metric": "n_samples"}
            n_rows = None if missing or result is None else float(result["n_rows"])
            sizes.append(
                compare(place, published.get((dataset, "", "", "n_samples")), n_rows, within(0.0),
                        "the file that the released code reads has 846 rows, as the original data: a misprint"
                        if dataset == "Vehicle" else "the released file is another one", missing)
            )  # fmt: skip
    return Report(
        tables=[
            Table(
                name="weight",
                title="Weight perturbation, as released: the epsilon does not hold (status: claimed)",
                caption="Min-max scaling over all rows, 20 splits that are not stratified (seeds 42 to 61), LIBLINEAR, "
                "no bound on a row's norm, and the class looked up by the number of its row of weights. Agrees within "
                "two of the printed standard deviations.",
                rows=weight,
            ),
            Table(
                name="true epsilon",
                title="The epsilon of weight perturbation, printed and true",
                caption="true epsilon: of the released noise, for the largest row after min-max scaling (replace_one, "
                "delta 1e-5; exact for the Gaussian mechanism and the sensitivity 2 sqrt(2) C R; LIBLINEAR's error is "
                "not counted). lower bound: what one replaced row shows on the first split, whatever is believed of "
                "sensitivities. Agrees where it is at most the printed epsilon. OPERA and PrivateSVM have no true "
                "epsilon that the number of rows does not enter; a lower bound below the printed epsilon proves "
                "nothing for them.",
                rows=epsilons,
            ),
            Table(
                name="spread",
                title="Weight perturbation: standard deviations over the splits",
                caption="Agrees within a factor of two, or within 0.01. Those of Cornell come from the class lookup: "
                "two of the 20 splits leave the single row of class 2 out of the training part, and all later classes "
                "are then answered by the number before theirs.",
                rows=spreads,
            ),
            Table(
                name="corrected lookup",
                title="Weight perturbation with the class lookup corrected",
                caption="The same models and noise; only where that changes anything. The paper has no such numbers.",
                rows=corrected,
            ),
            Table(
                name="gradient",
                title="Gradient perturbation, as released",
                caption=GRADIENT_CAPTION + " PMSVM-GP and PMSVM-AGP are softmax regression divided by the number of "
                "classes, from random starting weights: what the stored scripts train (the regulariser's gradient does "
                "not reach the private step). Linear is the same with its own learning rate; GRPUA has one smoothed "
                "hinge for each class with epsilon / c. The noise is what the printed epsilon needs (add_remove), but "
                "the features are scaled by all rows: where they are, epsilon is claimed here too.",
                rows=gradient,
            ),
            Table(
                name="other choices",
                title="Other readings",
                caption="The same comparison for what paper and code disagree on, or leave open. A reading that does "
                "not give the printed number is ruled out.",
                rows=others,
            ),
            Table(
                name="distances",
                title="Which reading is nearer",
                caption="Root mean square distance from the printed means, in printed standard deviations (of at least "
                "0.01); beside it that of the reading called as released, on the same cells. About 0.6 is what two "
                "sets of five runs, or 0.3 what two sets of 20, would show by chance.",
                rows=_distance_rows([*weight, *gradient], others, published),
            ),
            Table(name="sizes", title="Table 6", caption="Rows of each dataset; agrees where equal.", rows=sizes),
        ],
        figures=[
            *_against_published("Weight perturbation", weight),
            *_against_published("Gradient perturbation", gradient),
            *_epsilon_figure(epsilons),
        ],
        notes=[
            "Constants of Tables 7 and 8; PMSVM-WP with the noise of the paper's text (sensitivity 2 sqrt(2) C): the "
            "stored code has twice that, and its numbers are not the printed ones. OPERA and PrivateSVM have "
            "scikit-learn's default loss, the squared hinge, whose weights have no sensitivity bound that the number "
            "of rows does not enter, and epsilon / c with the whole delta for each class.",
            "Dermatology: the released notebook has C/n = 0.01, Table 7 has 0.005; the printed numbers are nearer to "
            "those of 0.01 (see the distances).",
            "Hyper-parameters were selected by the paper's authors on the test rows at epsilon 4; that is part of what "
            "is reproduced here.",
        ],
    )  # fmt: skip


def _distance_rows(rows: Sequence[Row], others: Sequence[Row], published: Published) -> list[Row]:
    """Root mean square distance of each reading from the printed numbers, in standard deviations."""

    def distance(row: Row) -> float:
        key = (row.dataset, row.method, row.setting.rpartition("; ")[2])
        # A printed 0.000 would make every distance infinite.
        return (row.difference or 0.0) / max(_printed(published, *key)[1], 0.01)

    first = {(row.dataset, row.method, row.setting): distance(row) for row in rows if row.difference is not None}
    readings: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for row in others:
        reading, _, setting = row.setting.rpartition("; ")
        twin = first.get((row.dataset, row.method, setting))
        if row.difference is not None and twin is not None:
            readings.setdefault((row.method, reading), []).append((distance(row), twin))
    found = []
    for (method, reading), pairs in readings.items():
        own, released = (statistics.fmean(value**2 for value in side) ** 0.5 for side in zip(*pairs, strict=True))
        place = {"table": "distances", "dataset": "all", "method": method, "setting": reading}
        found.append(
            Row(**place, metric="root mean square distance", ours=own, verdict="no number",
                explanation=f"{released:.2f} as released, on the same {len(pairs)} cells")
        )  # fmt: skip
    return found


def _weight_rows(
    published: Published,
    parameters: Mapping[str, Any],
    method: str,
    result: Mapping[str, Any] | None,
    missing: tuple[str, str] | None,
) -> tuple[list[Row], list[Row], list[Row], list[Row]]:
    """Rows of one column: as released, its spread, the lookup corrected, other readings."""
    dataset = parameters["dataset"]
    main, spreads, corrected, others = [], [], [], []
    for number, variant in enumerate(parameters["variants"]):
        name = variant if parameters["kind"] == "weight" else f"{method}, {variant}"
        for index, epsilon in enumerate(parameters["epsilons"]):
            setting = f"epsilon={epsilon:g}"
            key = (dataset, method, setting)
            own = None if missing or result is None else result["variants"][name]
            values = None if own is None else own["as released"][index]
            place = {"table": "weight", "dataset": dataset, "method": method, "setting": setting}
            if number:
                place = {**place, "table": "other choices", "setting": f"{variant}; {setting}"}
                others.append(
                    _accuracy_row(place, published, key, values, _two_printed,
                                  lambda printed, values, variant=variant: f"{variant}: {_range(values)}", missing,
                                  True)
                )  # fmt: skip
                continue
            row = _accuracy_row(place, published, key, values, _two_printed, _why_weight(dataset, method), missing)
            if values is not None and result is not None:
                true = (
                    f"the true one is {result['true_epsilon'][index]:.3g}" if method == "PMSVM-WP" else NO_SENSITIVITY
                )
                said = f"epsilon is claimed: {true}"
                row = dataclasses.replace(row, explanation="; ".join(part for part in (said, row.explanation) if part))
            main.append(row)
            spreads.append(_spread_row({**place, "table": "spread"}, published, key, values, missing))
            if own is None or own["corrected"] == own["as released"]:
                continue
            fixed = own["corrected"][index]
            base = {**place, "table": "corrected lookup", "setting": f"class lookup corrected; {setting}"}
            for metric, value in (("accuracy", statistics.fmean(fixed)), ("accuracy SD", _spread(fixed))):
                corrected.append(compare({**base, "metric": metric}, None, value, within(0.0)))
    return main, spreads, corrected, others


def _spread_row(
    place: Mapping[str, str],
    published: Published,
    key: tuple[str, str, str],
    values: Sequence[float] | None,
    missing: tuple[str, str] | None,
) -> Row:
    rule = Rule(
        "within a factor of two, or 0.01",
        lambda printed, ours: abs(ours - printed) <= 0.01 or 0.5 <= ours / max(printed, 1e-9) <= 2.0,
    )
    return compare(
        {**place, "metric": "accuracy SD"},
        published.get((*key, "accuracy SD")),
        None if values is None else _spread(values),
        rule,
        lambda: f"the noise is not the paper's; {_range(values or [])}",
        missing,
    )


def _epsilon_rows(
    parameters: Mapping[str, Any], result: Mapping[str, Any] | None, missing: tuple[str, str] | None
) -> list[Row]:
    """Compare true epsilon and lower bound with the printed one."""
    rows = []
    rule = Rule("at most the printed epsilon", lambda printed, ours: ours <= printed * (1 + 1e-6))
    for method in parameters.get("methods", ["PMSVM-WP"]):
        for index, epsilon in enumerate(parameters["epsilons"]):
            place = {"table": "true epsilon", "dataset": parameters["dataset"], "method": method}
            place["setting"] = f"epsilon={epsilon:g}"
            known = result is not None and not missing
            if method == "PMSVM-WP":
                true = result["true_epsilon"][index] if known and result else None
                norm = result["largest_norm"] if known and result else 0.0
                rows.append(
                    compare({**place, "metric": "true epsilon"}, f"{epsilon:g}", true, rule,
                            "claimed: the noise is for rows of norm 1, and after min-max scaling they reach "
                            f"{norm:.3g}", missing)
                )  # fmt: skip
            name = parameters["audited"] if method == "PMSVM-WP" else f"{method}, {parameters['audited']}"
            bound = result["variants"][name]["witness"][index] if known and result else None
            rows.append(
                compare({**place, "metric": "lower bound on epsilon"}, f"{epsilon:g}", bound, rule,
                        "claimed: one replaced row, within the range of every feature, moves the weights further than "
                        "the noise is for", missing)
            )  # fmt: skip
    return rows


def _gradient_rows(
    table: str,
    published: Published,
    parameters: Mapping[str, Any],
    result: Mapping[str, Any] | None,
    missing: tuple[str, str] | None,
) -> tuple[list[Row], list[Row]]:
    """Rows of one gradient column of Table 2, and of its other readings."""
    rows, others = [], []
    for number, name in enumerate(parameters["variants"]):
        method, _, reading = name.partition(", ")
        for index, epsilon in enumerate(parameters["epsilons"]):
            setting = f"epsilon={epsilon:g}"
            key = (parameters["dataset"], method, setting)
            values = None if missing or result is None else result["variants"][name][index]["accuracy"]
            place = {"table": table, "dataset": key[0], "method": method, "setting": setting}
            if not number:
                rows.append(
                    _accuracy_row(
                        place, published, key, values, _two_either, _why_gradient(published, key), missing
                    )
                )  # fmt: skip
                continue
            place = {**place, "table": "other choices", "setting": f"{reading}; {setting}"}
            others.append(
                _accuracy_row(place, published, key, values, _two_either,
                              lambda printed, values, reading=reading: f"{reading}: {_range(values)}", missing, True)
            )  # fmt: skip
    return rows, others


def _against_published(title: str, rows: Sequence[Row]) -> list[Figure]:
    """Ours against published, one colour for each method."""
    data: list[dict[str, Any]] = []
    for method in dict.fromkeys(row.method for row in rows):
        points = [row for row in rows if row.method == method and row.published and row.ours is not None]
        if points:
            data.append(
                {
                    "type": "scatter", "mode": "markers", "name": method,
                    "x": [float(row.published) for row in points], "y": [row.ours for row in points],
                    "text": [f"{row.dataset}, {row.setting}" for row in points],
                    "marker": {"size": 8, "color": _colour(method)},
                }
            )  # fmt: skip
    if not data:
        return []
    data.append({"type": "scatter", "mode": "lines", "x": [0, 1], "y": [0, 1], "hoverinfo": "skip", "showlegend": False,
                 "line": {"color": "#9aa0a8", "width": 1}})  # fmt: skip
    return [
        Figure(
            title=f"{title}: ours against published",
            caption="Mean accuracies; one point for each dataset and setting. On the line they are equal.",
            data=data,
            layout={"xaxis": {"title": {"text": "published"}}, "yaxis": {"title": {"text": "ours"}}, "height": 420},
        )
    ]


DATASET_COLOURS = {"Cornell": "#0a53c4", "Dermatology": "#c4620a", "HHAR": "#63676e", "ISOLET": "#2a7d4f",
                   "USPS": "#7a3fa8", "Vehicle": "#a4161a"}  # fmt: skip


def _epsilon_figure(rows: Sequence[Row]) -> list[Figure]:
    """Draw true epsilon and lower bound against the printed one."""
    data: list[dict[str, Any]] = []
    for dataset in dict.fromkeys(row.dataset for row in rows):
        for metric, dash, symbol in (("true epsilon", "solid", "circle"), ("lower bound on epsilon", "dot", "x")):
            own = [
                row for row in rows
                if (row.dataset, row.metric, row.method) == (dataset, metric, "PMSVM-WP") and row.ours
            ]  # fmt: skip
            if own:
                data.append(
                    {
                        "type": "scatter", "mode": "lines+markers",
                        "name": dataset + (", lower bound" if dash == "dot" else ""),
                        "x": [float(row.published) for row in own], "y": [row.ours for row in own],
                        "line": {"dash": dash, "color": DATASET_COLOURS.get(dataset, "#1b1f27")},
                        "marker": {"symbol": symbol, "size": 7},
                    }
                )  # fmt: skip
    if not data:
        return []
    ends = [min(data[0]["x"]), max(data[0]["x"])]
    data.append({"type": "scatter", "mode": "lines", "x": ends, "y": ends, "name": "as printed",
                 "line": {"color": "#9aa0a8", "width": 1}})  # fmt: skip
    return [
        Figure(
            title="PMSVM-WP as released: the epsilon that holds against the printed one",
            caption="Solid: for the largest row after min-max scaling. Dotted: what one replaced row shows.",
            data=data,
            layout={"xaxis": {"title": {"text": "printed epsilon"}, "type": "log", "tickvals": EPSILONS},
                    "yaxis": {"title": {"text": "epsilon"}, "type": "log"}, "height": 420},
        )
    ]  # fmt: skip


# Table 2 again, with proofs


def sound_jobs(settings: Settings) -> dict[str, dict[str, Any]]:
    """One job per dataset and method."""
    jobs = {}
    for dataset in settings["datasets"]:
        for method, recipe in settings["methods"].items():
            own = settings["recipes"].get(dataset, {}).get(method, {})
            name = method.replace(" ", "-").replace("(", "").replace(")", "")
            jobs[f"{dataset}.{name}"] = {
                "kind": "sound",
                **_common(settings, dataset, "neighbours", "splits", "repeats", "paper_split", "paper_runs"),
                "method": method,
                "scaling": settings["public_scaling"][dataset],
                "estimator": recipe["estimator"],
                "settings": {**recipe["settings"], **own},
                **settings["own_data"].get(dataset, {}).get(method, {}),
                "repeats": settings["own_repeats"].get(dataset, settings["repeats"]),
            }
    return jobs


def sound_report(experiment: Experiment, results: Results) -> Report:
    """Accuracies at proved epsilons beside the printed ones."""
    settings, published = experiment.settings, read_published(PUBLISHED)
    rows: list[Row] = []
    cells: dict[tuple[str, str], dict[str, list[float]]] = {}
    fixed: dict[tuple[str, str], dict[str, list[float]]] = {}
    gone: dict[str, tuple[str, str]] = {}
    proofs: list[tuple[float, float]] = []
    for job, parameters in sound_jobs(settings).items():
        result, dataset, method = results[job], parameters["dataset"], parameters["method"]
        missing = missing_result(result)
        if missing and method in BOTH:
            gone[dataset] = missing
        for index, epsilon in enumerate(settings["epsilons"]):
            setting = f"epsilon={epsilon:g}"
            values = None
            if result is not None and not missing:
                values = result["accuracies"][index]
                cells.setdefault((dataset, setting), {})[method] = values
                fixed.setdefault((dataset, setting), {})[method] = result["paper split"][index]
                status, _, proved, _ = result["proved"][index]
                if status != "proved":
                    raise ValueError(f"{dataset}, {method}, {setting}: status {status}, and not proved")
                proofs.append((epsilon, proved))
            name = method.removesuffix(" (naive)")
            rows.append(_sound_row(published, (dataset, name, setting), method, values, missing))
    better, summary = _better_rows("better", settings, published, cells, gone)
    alike, alike_summary = _better_rows("paper's split", settings, published, fixed, gone)
    if any(proved > asked * (1 + 1e-9) for asked, proved in proofs):
        raise ValueError("a proved epsilon exceeds the requested one")
    return Report(
        tables=[
            Table(
                name="better",
                title="The better of PMSVM-GP and PMSVM-AGP, ours proved, the paper's as printed",
                caption="Mean over 20 splits that are not stratified, epsilon proved for add_remove with delta 1e-5, "
                "features scaled by public bounds or at the expense of the budget. Agrees where ours is at least the "
                "printed number minus its standard deviation. The paper's is one split with scaling by private rows.",
                rows=better,
            ),
            Table(
                name="paper's split",
                title="The same on the paper's one split",
                caption="Five draws of noise on the split with seed 42, as in the paper.",
                rows=alike,
            ),
            Table(
                name="summary",
                title="Cells at least equal",
                caption="Of those that could be run. Agrees where more than half are at least the printed number.",
                rows=[*summary, *alike_summary],
            ),
            Table(
                name="methods",
                title="All methods, at proved epsilon",
                caption="Agrees where ours is at least the printed number minus its standard deviation. The printed "
                "epsilon of weight perturbation does not hold (see pmsvm_table2), so those numbers compare unequal "
                "privacy. What has no printed number is a baseline that the paper does not have: joint composition "
                "spends the budget once for all classes.",
                rows=rows,
            ),
        ],
        figures=[*_sound_figures(settings, cells), *_against_published("Sound methods", rows)],
        notes=[
            f"{len(proofs)} records were checked: all say proved, and the proved epsilon is at most the requested one."
            if proofs
            else "No record was checked.",
            "Dermatology is used in grades and years, scaled by public bounds. The gradient methods and Linear take "
            "Vehicle as it was measured and pay for the scale of its features out of the budget; the others take the "
            "publisher's file in [-1, 1], whose scaling looked at all rows and is not covered by their proofs.",
            "PMSVM-GP, PMSVM-AGP and Linear have one rule for all datasets, which knows public numbers only: 60 steps "
            "over all rows, a learning rate from epsilon, rows and steps, the average of the last 30 iterates, a noisy "
            "centre for a tenth of the budget, or, for Vehicle, noisy centres, spreads and second moments for four "
            "tenths. The rule was found on other splits of the same rows, after two looks at these, and the C of the "
            "other methods on test rows, as in the paper: neither selection is charged.",
            "Tried without gain: batches of a tenth of the rows, 30 to 100 steps, momentum, falling learning rates, a "
            "margin regulariser, Adam's usual beta1 of 0.9. Without the noisy centre, accuracies on Dermatology and "
            "ISOLET fall by 0.01 to 0.10; without whitening, those on Vehicle by about 0.02.",
        ],
    )  # fmt: skip


BOTH = ("PMSVM-GP", "PMSVM-AGP")


def _at_least(spread: float) -> Rule:
    return Rule(
        "at least the printed number minus its standard deviation",
        lambda printed, ours: ours >= printed - spread - 1e-9,
    )


def _sound_row(
    published: Published,
    key: tuple[str, str, str],
    method: str,
    values: Sequence[float] | None,
    missing: tuple[str, str] | None,
) -> Row:
    printed, spread = _printed(published, *key)
    place = {"table": "methods", "dataset": key[0], "method": method, "setting": key[2], "metric": "accuracy"}

    def why() -> str:
        if key[1] in WEIGHT_METHODS:
            return (
                "the printed epsilon does not hold: here rows have norm 1 and the noise is what epsilon needs; "
                f"{_range(values or [])}"
            )
        return (
            "one split, features scaled by private rows and other constants in the paper; "
            f"{_range(values or [])} over splits"
        )

    return compare(
        place, printed, None if values is None else statistics.fmean(values), _at_least(spread), why, missing
    )


def _better_rows(
    table: str,
    settings: Settings,
    published: Published,
    cells: Mapping[tuple[str, str], Mapping[str, Sequence[float]]],
    gone: Mapping[str, tuple[str, str]],
) -> tuple[list[Row], list[Row]]:
    """Rows of the better of the two gradient methods, and how many are at least equal."""
    rows = []
    for dataset in settings["datasets"]:
        for epsilon in settings["epsilons"]:
            setting = f"epsilon={epsilon:g}"
            printed = [_printed(published, dataset, method, setting) for method in BOTH]
            best, spread = max(printed, key=lambda pair: float(pair[0] or "-1"))
            found = {name: own for name, own in cells.get((dataset, setting), {}).items() if name in BOTH}
            means = {name: statistics.fmean(own) for name, own in found.items()}
            ours = max(means, key=means.__getitem__) if means else ""
            values = found.get(ours, [])
            rows.append(
                compare(
                    {"table": table, "dataset": dataset, "method": ours or "better of both", "setting": setting,
                     "metric": "accuracy"},
                    best, means.get(ours), _at_least(spread),
                    f"lower by more than the printed standard deviation of {spread:g}, which is that of the noise on "
                    f"one split; over our {len(values)} runs it is {_spread(values) if values else 0:.3f}",
                    gone.get(dataset),
                )
            )  # fmt: skip
    compared = [row for row in rows if row.difference is not None]
    equal = sum((row.difference or 0.0) >= -0.0005 for row in compared)
    place = {
        "table": "summary",
        "dataset": "all",
        "method": "better of both",
        "setting": f"{table}, {len(compared)} cells",
    }
    share = equal / len(compared) if compared else None
    return rows, [
        claim({**place, "metric": "share at least equal"}, "most", share, share is not None and share > 0.5,
              f"{equal} of {len(compared)}")
    ]  # fmt: skip


def _sound_figures(settings: Settings, cells: Mapping[tuple[str, str], Mapping[str, Sequence[float]]]) -> list[Figure]:
    """Accuracy against epsilon of all methods, for each dataset."""
    figures = []
    for dataset in settings["datasets"]:
        data = []
        for method in settings["methods"]:
            points = [
                (epsilon, cells[dataset, f"epsilon={epsilon:g}"][method])
                for epsilon in settings["epsilons"]
                if method in cells.get((dataset, f"epsilon={epsilon:g}"), {})
            ]
            if points:
                data.append(
                    {
                        "type": "scatter", "mode": "lines+markers", "name": method,
                        "x": [epsilon for epsilon, _ in points],
                        "y": [statistics.fmean(values) for _, values in points],
                        "error_y": {"type": "data", "array": [_spread(values) for _, values in points], "thickness": 1,
                                    "width": 2},
                        "line": {"color": _colour(method), "dash": "dot" if "(naive)" in method else "solid"},
                    }
                )  # fmt: skip
        if data:
            figures.append(
                Figure(
                    title=f"{dataset}: accuracy against proved epsilon",
                    caption=f"Mean and standard deviation over {len(settings['splits'])} splits.",
                    data=data,
                    layout={"xaxis": {"title": {"text": "epsilon (add_remove)"}, "type": "log",
                                      "tickvals": settings["epsilons"]},
                            "yaxis": {"title": {"text": "accuracy"}, "range": [0, 1]}, "height": 420,
                            "legend": {"orientation": "h", "y": -0.28}},
                )
            )  # fmt: skip
    return figures


# Tables 3, 9, 10 and 11: one gradient job per dataset and method, one variant per column.


def _ablation_job(settings: Settings, dataset: str, variants: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {"kind": "gradient", **_common(settings, dataset, "split", "runs"), "variants": dict(variants)}


def lr_decay_jobs(settings: Settings) -> dict[str, dict[str, Any]]:
    """PMSVM-GP and PMSVM-AGP with and without a falling learning rate."""
    return {
        f"{dataset}.{method}": _ablation_job(
            settings,
            dataset,
            {
                f"{method}, lr_decay={decay}": _training(settings, dataset, method, schedule=schedule)
                for decay, schedule in (("no", "constant"), ("linear", "linear"))
            },
        )
        for dataset in settings["datasets"]
        for method in ("PMSVM-GP", "PMSVM-AGP")
    }


def clip_jobs(settings: Settings) -> dict[str, dict[str, Any]]:
    """PMSVM-AGP with other clipping norms, by Table 8 and as stored."""
    method, jobs = "PMSVM-AGP", {}
    for dataset in settings["datasets"]:
        epochs, factor = settings["stored_rates"][dataset]
        stored = {
            "epochs": epochs,
            "learning_rate": settings["rates"][dataset]["base"] * factor,
            "scaling": settings["stored_scaling"][dataset],
        }
        jobs[dataset] = _ablation_job(
            settings,
            dataset,
            {
                f"{method}, clip={clip:g}{suffix}": _training(settings, dataset, method, clip=float(clip), **changes)
                for suffix, changes in (("", {}), (AS_STORED, stored))
                for clip in settings["clips"]
            },
        )
    return jobs


AS_STORED = ";as stored"


def batch_jobs(settings: Settings) -> dict[str, dict[str, Any]]:
    """PMSVM-AGP with other batch sizes, as stated and with the clipping norm that gives most of the printed numbers."""
    method = "PMSVM-AGP"
    jobs = {}
    for dataset in settings["datasets"]:
        variants = {}
        for clip in (1.0, float(settings["other_clip"])):
            for batch in settings["batches"]:
                name = f"{method}, batch={batch or 'full'}" + ("" if clip == 1.0 else f";clip={clip:g}")
                own = {"batch": batch, "clip": clip}
                if clip != 1.0:
                    own["scaling"] = settings["stored_scaling"][dataset]
                variants[name] = _training(settings, dataset, method, **own)
        jobs[dataset] = _ablation_job(settings, dataset, variants)
    return jobs


def _ablation_rows(
    table: str,
    published: Published,
    parameters: Mapping[str, Any],
    result: Mapping[str, Any] | None,
    why: Callable[[str, tuple[str, str, str], Mapping[str, Sequence[Sequence[float]]], int], str],
    printed_as: Callable[[str], str] = str,
    ruled_out: bool = False,
    chosen: Callable[[str], bool] = lambda name: True,
) -> list[Row]:
    """Rows of all variants of one job."""
    missing = missing_result(result)
    rows = []
    means: dict[str, list[list[float]]] = {}
    if result is not None and not missing:
        means = {name: [own["accuracy"] for own in found] for name, found in result["variants"].items()}
    for name in parameters["variants"]:
        if not chosen(name):
            continue
        method, _, column = name.partition(", ")
        for index, epsilon in enumerate(parameters["epsilons"]):
            key = (parameters["dataset"], method, f"epsilon={epsilon:g};{printed_as(column)}")
            place = {"table": table, "dataset": key[0], "method": method, "setting": f"epsilon={epsilon:g};{column}"}
            rows.append(
                _accuracy_row(
                    place, published, key, means[name][index] if means else None, _two_either,
                    lambda printed, values, name=name, key=key, index=index: why(name, key, means, index), missing,
                    ruled_out,
                )
            )  # fmt: skip
    return rows


def lr_decay_report(experiment: Experiment, results: Results) -> Report:
    """Tables 3 and 9, and whether a falling learning rate helps."""
    published, rows = read_published(PUBLISHED), []
    for job, parameters in lr_decay_jobs(experiment.settings).items():
        rows += _ablation_rows("lr_decay", published, parameters, results[job], _why_ablation(published))
    differences: dict[str, list[float]] = {}
    for row in rows:
        base, _, decay = row.setting.partition(";")
        if decay == "lr_decay=linear" and row.ours is not None:
            twin = next(
                other for other in rows if (other.dataset, other.method) == (row.dataset, row.method)
                and other.setting == f"{base};lr_decay=no"
            )  # fmt: skip
            differences.setdefault(row.method, []).append(row.ours - (twin.ours or 0.0))
    claims = []
    for method in ("PMSVM-GP", "PMSVM-AGP"):
        own = differences.get(method, [])
        share = statistics.fmean(value > 0 for value in own) if own else None
        claims.append(
            claim(
                {"table": "advantage", "dataset": "all", "method": method, "setting": "linear decay",
                 "metric": "share of cells that gain"},
                "no clear advantage for either",
                share,
                share is not None and 0.25 <= share <= 0.75,
                lambda own=own: "the mean change is "
                f"{statistics.fmean(own):+.4f}, from {min(own):+.3f} to {max(own):+.3f}",
            )
        )  # fmt: skip
    return Report(
        tables=[
            Table(
                name="lr_decay",
                title="Tables 3 and 9",
                caption=GRADIENT_CAPTION + " The learning rate falls to 0 by epochs.",
                rows=rows,
            ),
            Table(
                name="advantage",
                title="Does decay help?",
                caption="The paper: no clear advantage for either. Agrees where between a quarter and three quarters "
                "of the cells gain.",
                rows=claims,
            ),
        ],
        figures=_against_published("Learning rate decay", rows),
        notes=[
            "ISOLET is not scaled here, as in the stored scripts: its printed numbers come out so. Those of Table 2, "
            "for the same method, setting and seeds, come out with scaled features only. The paper does not say that "
            "its two tables differ in that.",
        ],
    )


def _why_ablation(
    published: Published, suffix: str = ""
) -> Callable[[str, tuple[str, str, str], Mapping[str, Sequence[Sequence[float]]], int], str]:
    def why(name: str, key: tuple[str, str, str], values: Mapping[str, Sequence[Sequence[float]]], index: int) -> str:
        reasons, setting = [], key[2].partition(";")[0]
        printed = float(published[(*key, "accuracy")])
        twin = values[name + suffix] if suffix else []
        if twin and _agrees(published, key, twin[index]):
            mean = statistics.fmean(twin[index])
            reasons.append(f"with the notebook's epochs and the stored scripts' scaling, {mean:.3f} agrees")
        again = published.get((*key[:2], setting, "accuracy"))
        same = ("lr_decay=no", "clip=1", "batch=128")
        if key[2].endswith(same) and again is not None and abs(float(again) - printed) > 0.01:
            reasons.append(f"the paper's own Table 2 prints {again} for the same setting")
        return "; ".join([*reasons, f"the script of this table is not stored; {_range(values[name][index])}"])

    return why


def _agrees(published: Published, key: tuple[str, str, str], values: Sequence[float]) -> bool:
    """Whether a mean agrees with the printed one, by the rule of the gradient methods."""
    printed, spread = _printed(published, *key)
    return abs(statistics.fmean(values) - float(printed or "nan")) <= _two_either(spread, _spread(values))


def clip_report(experiment: Experiment, results: Results) -> Report:
    """Table 10, by Table 8 and as stored."""
    published = read_published(PUBLISHED)
    rows: list[Row] = []
    others: list[Row] = []
    for job, parameters in clip_jobs(experiment.settings).items():
        rows += _ablation_rows(
            "clip", published, parameters, results[job], _why_ablation(published, AS_STORED),
            chosen=lambda name: not name.endswith(AS_STORED),
        )  # fmt: skip
        others += _ablation_rows(
            "as stored", published, parameters, results[job], _why_ablation(published),
            printed_as=lambda column: column.removesuffix(AS_STORED), ruled_out=True,
            chosen=lambda name: name.endswith(AS_STORED),
        )  # fmt: skip
    return Report(
        tables=[
            Table(
                name="clip",
                title="Table 10",
                caption=GRADIENT_CAPTION + " Column R = 1 is printed in Table 2 too (PMSVM-AGP).",
                rows=rows,
            ),
            Table(
                name="as stored",
                title="The same with the epochs of the released notebook, and ISOLET not scaled",
                caption="The paper does not say so; compared with the same numbers. What does not give them is ruled "
                "out.",
                rows=others,
            ),
            Table(
                name="choice",
                title="Is R = 1 a reasonable choice?",
                caption="The paper says so, and that there is no rule. Agrees where the mean over epsilons of R = 1 is "
                "within 0.02 of the best column.",
                rows=_clip_claims(rows),
            ),
        ],
        figures=[*_against_published("Clipping norm", rows), *_column_figures(rows, "clip=", "clipping norm R")],
        notes=[
            "With Adam, the scale of the clipped gradient hardly matters as long as every row is clipped: R = 0.01 and "
            "R = 0.1 are one method. R = 10 clips next to nothing and gets ten times the noise of R = 1.",
            "ISOLET: the printed column R = 1 is that of Table 2 and comes out with scaled features; the other "
            "columns are nearer to ours without scaling, so that the columns cannot be compared with each other.",
        ],
    )


def _clip_claims(rows: Sequence[Row]) -> list[Row]:
    claims = []
    for dataset in dict.fromkeys(row.dataset for row in rows):
        columns: dict[str, list[float]] = {}
        for row in rows:
            if row.dataset == dataset and row.ours is not None:
                columns.setdefault(row.setting.partition(";")[2], []).append(row.ours)
        place = {"table": "choice", "dataset": dataset, "method": "PMSVM-AGP", "setting": "R=1",
                 "metric": "distance from the best"}  # fmt: skip
        means = {name: statistics.fmean(values) for name, values in columns.items()}
        missing = next(
            ((row.verdict, row.explanation) for row in rows if row.dataset == dataset and row.ours is None), None
        )
        distance = max(means.values()) - means["clip=1"] if "clip=1" in means else None
        best = max(means, key=means.__getitem__) if means else ""
        claims.append(
            claim(place, "a reasonable choice", distance, distance is not None and distance <= 0.02,
                  f"{best} is better", missing)
        )  # fmt: skip
    return claims


def _column_figures(rows: Sequence[Row], prefix: str, title: str) -> list[Figure]:
    """Accuracy against a column's value, ours and published, for each dataset."""
    figures = []
    for dataset in dict.fromkeys(row.dataset for row in rows):
        data: list[dict[str, Any]] = []
        for number, epsilon in enumerate(EPSILONS):
            own = [
                row for row in rows
                if row.dataset == dataset and row.setting.startswith(f"epsilon={epsilon:g};{prefix}")
                and row.ours is not None
            ]  # fmt: skip
            if not own:
                continue
            colour = ("#a4161a", "#c4620a", "#2a7d4f", "#0a53c4")[number]
            x = [row.setting.partition(prefix)[2] for row in own]
            data.append({"type": "scatter", "mode": "lines+markers", "name": f"epsilon {epsilon:g}", "x": x,
                         "y": [row.ours for row in own], "line": {"color": colour}})  # fmt: skip
            printed = [(name, float(row.published)) for name, row in zip(x, own, strict=True) if row.published]
            if printed:
                data.append({"type": "scatter", "mode": "markers", "name": f"epsilon {epsilon:g}, published",
                             "x": [name for name, _ in printed], "y": [value for _, value in printed],
                             "marker": {"color": colour, "symbol": "diamond-open", "size": 9}})  # fmt: skip
        if data:
            figures.append(
                Figure(
                    title=f"{dataset}: accuracy against {title}",
                    caption="Lines: ours. Hollow: published.",
                    data=data,
                    layout={"xaxis": {"title": {"text": title}, "type": "category"},
                            "yaxis": {"title": {"text": "accuracy"}, "range": [0, 1]}, "height": 380,
                            "legend": {"orientation": "h", "y": -0.28}},
                )
            )  # fmt: skip
    return figures


def batch_report(experiment: Experiment, results: Results) -> Report:
    """Table 11, as stated and with the other clipping norm."""
    settings, published = experiment.settings, read_published(PUBLISHED)
    suffix = f";clip={float(settings['other_clip']):g}"
    stated, other = [], []
    for job, parameters in batch_jobs(settings).items():
        stated += _ablation_rows(
            "batch", published, parameters, results[job], _why_batch(published, suffix),
            chosen=lambda name: not name.endswith(suffix),
        )  # fmt: skip
        other += _ablation_rows(
            "other clipping norm", published, parameters, results[job], _why_ablation(published),
            printed_as=lambda column: column.removesuffix(suffix), ruled_out=True,
            chosen=lambda name: name.endswith(suffix),
        )  # fmt: skip
    return Report(
        tables=[
            Table(name="batch", title="Table 11", caption=GRADIENT_CAPTION + " R = 1 throughout, as stated.",
                  rows=stated),
            Table(
                name="other clipping norm",
                title=f"The same with R = {settings['other_clip']:g}",
                caption="ISOLET is not scaled here, as in the stored scripts. The paper does not say so; compared with "
                "the same numbers. What does not give them is ruled out.",
                rows=other,
            ),
            Table(
                name="columns",
                title="Which clipping norm gives a column",
                caption="Cells of a column that agree: with R = 1, and with the other norm (in brackets: of how many). "
                "The paper concludes that sampling is better than full batches. Agrees where R = 1 gives at least as "
                "many cells as the other norm.",
                rows=_batch_columns(stated, other, settings["other_clip"]),
            ),
        ],
        figures=[
            *_against_published("Batch size, R = 1 as stated", stated),
            *_against_published(f"Batch size, R = {settings['other_clip']:g}", other),
            *_column_figures(stated, "batch=", "batch size"),
        ],
        notes=[
            "With R = 1 no column falls as the printed ones do. The columns 32, 256, 512 and full of the paper are at "
            "the level of R = 10 in its Table 10; only 64 and 128 are at that of R = 1.",
        ],
    )  # fmt: skip


def _why_batch(
    published: Published, suffix: str
) -> Callable[[str, tuple[str, str, str], Mapping[str, Sequence[Sequence[float]]], int], str]:
    plain = _why_ablation(published)

    def why(name: str, key: tuple[str, str, str], values: Mapping[str, Sequence[Sequence[float]]], index: int) -> str:
        twin = values[name + suffix][index]
        if _agrees(published, key, twin):
            mean = statistics.fmean(twin)
            return f"with {suffix[1:]} in place of 1, {mean:.3f} agrees: the column looks like such runs"
        return plain(name, key, values, index)

    return why


def _batch_columns(stated: Sequence[Row], other: Sequence[Row], clip: float) -> list[Row]:
    rows = []
    for column in dict.fromkeys(row.setting.partition(";")[2] for row in stated):
        counts = []
        for chosen in (stated, other):
            own = [
                row for row in chosen
                if f"{row.setting};".partition(";")[2].startswith(f"{column};") and row.difference is not None
            ]  # fmt: skip
            counts.append((sum(row.verdict == "agrees" for row in own), len(own)))
        place = {"table": "columns", "dataset": "all", "method": "PMSVM-AGP", "setting": column,
                 "metric": "agreeing cells"}  # fmt: skip
        (first, compared), (second, _) = counts
        rows.append(
            claim(place, "R=1", float(first) if compared else None, first >= second,
                  f"{first} of {compared} cells agree with R = 1, {second} with R = {clip:g}")
        )  # fmt: skip
    return rows


# Figures 3 and 6


def convergence_jobs(settings: Settings) -> dict[str, dict[str, Any]]:
    """Training curves of PMSVM-GP and PMSVM-AGP."""
    return {
        dataset: {
            "kind": "curves",
            **_common(settings, dataset, "split", "runs"),
            "variants": {method: _training(settings, dataset, method) for method in ("PMSVM-GP", "PMSVM-AGP")},
        }
        for dataset in settings["datasets"]
    }


def convergence_report(experiment: Experiment, results: Results) -> Report:
    """Curves, and what the paper says of them."""
    rows: list[Row] = []
    figures: list[Figure] = []
    settings = experiment.settings
    low, high = settings["epsilons"][0], settings["epsilons"][-1]
    for job, parameters in convergence_jobs(settings).items():
        result, dataset = results[job], parameters["dataset"]
        missing = missing_result(result)
        curves = {} if missing or result is None else result["variants"]
        for method in parameters["variants"]:
            place = {"table": "statements", "dataset": dataset, "method": method}
            noisy = curves[method][0]["loss"] if curves else []
            clear = curves[method][-1]["loss"] if curves else []
            rise = noisy[-1] / min(noisy) - 1.0 if curves else None
            fall = clear[-1] / clear[0] - 1.0 if curves else None
            rows.append(
                claim({**place, "setting": f"epsilon={low:g}", "metric": "last loss over the smallest, minus 1"},
                      "the loss diverges", rise, rise is not None and rise > 0.05,
                      "the loss ends within 5 % of its smallest value", missing)
            )  # fmt: skip
            rows.append(
                claim({**place, "setting": f"epsilon={high:g}", "metric": "last loss over the first, minus 1"},
                      "the loss is minimised", fall, fall is not None and fall < 0.0,
                      "the loss ends above that of the first epoch", missing)
            )  # fmt: skip
        early = None
        if curves:
            early = statistics.fmean(
                adaptive["accuracy"][0] - plain["accuracy"][0]
                for plain, adaptive in zip(curves["PMSVM-GP"], curves["PMSVM-AGP"], strict=True)
            )
            figures += _convergence_figures(dataset, parameters, curves)
        place = {"table": "statements", "dataset": dataset, "method": "PMSVM-AGP", "setting": "first epoch"}
        rows.append(
            claim({**place, "metric": "test accuracy minus that of PMSVM-GP"}, "faster in the early stages", early,
                  early is not None and early > 0.0, "the first epoch of PMSVM-GP is at least as good",
                  missing)
        )  # fmt: skip
    return Report(
        tables=[
            Table(
                name="statements",
                title="What the paper says of its curves",
                caption="The paper draws its curves and prints no number. It says that the loss diverges at epsilon 1 "
                "(here: ends more than 5 % above its smallest value), that it is minimised for large epsilon (ends "
                "below that of the first epoch), and that Adam is faster at first (test accuracy after one epoch, mean "
                "over epsilons).",
                rows=rows,
            )
        ],
        figures=figures,
        notes=["The loss is the cross-entropy over the number of classes, on the training rows, without regulariser."],
    )


def _convergence_figures(dataset: str, parameters: Mapping[str, Any], curves: Mapping[str, Any]) -> list[Figure]:
    figures = []
    for metrics, title in ((("loss",), "loss"), (("accuracy", "training accuracy"), "accuracy")):
        data = []
        for method, dash in (("PMSVM-GP", "dot"), ("PMSVM-AGP", "solid")):
            for number, (epsilon, curve) in enumerate(zip(parameters["epsilons"], curves[method], strict=True)):
                for metric in metrics:
                    training = metric == "training accuracy"
                    data.append(
                        {
                            "type": "scatter", "mode": "lines", "x": curve["steps"], "y": curve[metric],
                            "name": f"{method}, epsilon {epsilon:g}" + (", training rows" if training else ""),
                            "opacity": 0.35 if training else 1.0, "showlegend": not training,
                            "line": {"dash": dash, "color": ("#a4161a", "#c4620a", "#2a7d4f", "#0a53c4")[number % 4],
                                     "width": 1.8},
                        }
                    )  # fmt: skip
        figures.append(
            Figure(
                title=f"{dataset}: {title} against steps",
                caption=f"Means of {parameters['runs']} runs, after each epoch."
                + (" Pale: on the training rows." if title == "accuracy" else ""),
                data=data,
                layout={"xaxis": {"title": {"text": "step"}}, "yaxis": {"title": {"text": title}}, "height": 400,
                        "legend": {"orientation": "h", "y": -0.3}},
            )
        )  # fmt: skip
    return figures


# Figures 2, 4 and 5


def gap_jobs(settings: Settings) -> dict[str, dict[str, Any]]:
    """Accuracies without noise; those with noise are Table 2's."""
    jobs = {}
    for dataset in settings["datasets"]:
        C = settings["C"][dataset]
        jobs[f"{dataset}.not-private"] = {
            "kind": "not_private",
            **_common(settings, dataset, "split", "splits"),
            # Without noise and clipping, runs differ in starting weights and sampling only.
            "runs": 2,
            "solvers": {
                "PrivateSVM": {"C": C, "multi_class": "ovr"},
                "OPERA": {"C": C, "multi_class": "ovr"},
                "PMSVM-WP": {"C": C, "multi_class": "crammer_singer"},
            },
            "variants": {method: _training(settings, dataset, method) for method in GRADIENT_METHODS},
        }
    return jobs


def _private_means(settings: Settings, results: Results, dataset: str, method: str) -> list[float] | None:
    """Mean accuracy of Table 2 at each epsilon."""
    job = f"{dataset}.OPERA-PrivateSVM" if method in ("OPERA", "PrivateSVM") else f"{dataset}.{method}"
    result = results.get(job)
    if result is None or missing_result(result):
        return None
    name = {
        "PMSVM-WP": "as published",
        "OPERA": "OPERA, sensitivity 4 C",
        "PrivateSVM": "PrivateSVM, sensitivity 4 C",
    }.get(method, f"{method}, as released")
    found = result["variants"][name]
    if method in WEIGHT_METHODS:
        return [statistics.fmean(values) for values in found["as released"]]
    return [statistics.fmean(own["accuracy"]) for own in found]


def gap_report(experiment: Experiment, results: Results) -> Report:
    """Gaps by dataset, and their means over the datasets."""
    settings = experiment.settings
    rows: list[Row] = []
    gaps: dict[str, dict[str, list[float]]] = {}
    for job, parameters in gap_jobs(settings).items():
        result, dataset = results[job], parameters["dataset"]
        missing = missing_result(result)
        for method in (*WEIGHT_METHODS, *GRADIENT_METHODS):
            plain = None
            if result is not None and not missing:
                plain = statistics.fmean(result["accuracies"][method])
            private = _private_means(settings, results, dataset, method)
            place = {"table": "gaps", "dataset": dataset, "method": method}
            rows.append(
                compare({**place, "setting": "epsilon=infinity", "metric": "accuracy"}, None, plain, within(0.0),
                        missing=missing)
            )  # fmt: skip
            for index, epsilon in enumerate(settings["epsilons"]):
                gap = None if plain is None or private is None else plain - private[index]
                rows.append(
                    compare({**place, "setting": f"epsilon={epsilon:g}", "metric": "gap"}, None, gap, within(0.0),
                            missing=missing)
                )  # fmt: skip
            if plain is not None and private is not None:
                gaps.setdefault(method, {})[dataset] = [plain - value for value in private]
    statements = _gap_statements(settings, gaps)
    return Report(
        tables=[
            Table(
                name="statements",
                title="What the paper says of its Figure 2",
                caption="Means over the datasets that can be had. The paper says that the gap is under 0.15 for large "
                "epsilon, and that at small epsilon its methods have the smaller one.",
                rows=statements,
            ),
            Table(
                name="gaps",
                title="All gaps",
                caption="Accuracy without noise minus mean accuracy with noise, both as released. The paper prints no "
                "number.",
                rows=rows,
            ),
        ],
        figures=_gap_figures(settings, gaps),
        notes=[
            "A small gap can also mean that a method is poor without noise: OPERA and PrivateSVM on Vehicle, for one.",
        ],
    )


def _gap_statements(settings: Settings, gaps: Mapping[str, Mapping[str, list[float]]]) -> list[Row]:
    means = {
        method: [statistics.fmean(values) for values in zip(*own.values(), strict=True)] for method, own in gaps.items()
    }
    low, high = settings["epsilons"][0], settings["epsilons"][-1]
    rows = []
    for method in (*WEIGHT_METHODS, *GRADIENT_METHODS):
        own = means.get(method)
        place = {"table": "statements", "dataset": "mean", "method": method}
        worst = ""
        if own:
            name = max(gaps[method], key=lambda dataset: gaps[method][dataset][-1])
            worst = f"largest on {name}: {gaps[method][name][-1]:.3f}"
        rows.append(
            claim({**place, "setting": f"epsilon={high:g}", "metric": "gap"}, "under 0.15", own[-1] if own else None,
                  bool(own) and own[-1] < 0.15, worst or "not run")
        )  # fmt: skip
    for method, others in (("PMSVM-WP", ("PrivateSVM", "OPERA")), ("PMSVM-GP", ("GRPUA",)), ("PMSVM-AGP", ("GRPUA",))):
        for other in others:
            pair = means.get(method), means.get(other)
            difference = pair[0][0] - pair[1][0] if pair[0] and pair[1] else None
            place = {"table": "statements", "dataset": "mean", "method": method, "setting": f"epsilon={low:g}"}
            rows.append(
                claim({**place, "metric": f"gap minus that of {other}"}, "smaller", difference,
                      difference is not None and difference < 0.0, "it is not smaller")
            )  # fmt: skip
    return rows


def _gap_figures(settings: Settings, gaps: Mapping[str, Mapping[str, list[float]]]) -> list[Figure]:
    figures = []
    for title, methods in (("Weight perturbation", WEIGHT_METHODS), ("Gradient perturbation", GRADIENT_METHODS)):
        names = list(dict.fromkeys(name for method in methods for name in gaps.get(method, {})))
        for dataset in (None, *names):
            data = []
            for method in methods:
                own = gaps.get(method, {})
                values = list(own.values()) if dataset is None else [own[dataset]] if dataset in own else []
                if values:
                    data.append(
                        {"type": "scatter", "mode": "lines+markers", "name": method, "x": settings["epsilons"],
                         "y": [statistics.fmean(column) for column in zip(*values, strict=True)],
                         "line": {"color": COLOURS[method]}}
                    )  # fmt: skip
            if data:
                figures.append(
                    Figure(
                        title=f"{title}: accuracy gap, {dataset or 'mean over the datasets'}",
                        caption="Accuracy without noise minus accuracy with noise.",
                        data=data,
                        layout={"xaxis": {"title": {"text": "epsilon as stated"}, "type": "log",
                                          "tickvals": settings["epsilons"]},
                                "yaxis": {"title": {"text": "gap"}}, "height": 340},
                    )
                )  # fmt: skip
    return figures


# Table 4


def time_jobs(settings: Settings) -> dict[str, dict[str, Any]]:
    """One job per dataset; candidates take turns inside it."""
    keys = ("test_size", "split", "batch", "epochs", "least_steps", "repeats", "seed")
    return {
        dataset: {
            "kind": "times",
            "dataset": dataset,
            "source": source,
            "C": settings["C"][dataset],
            "scaling": settings["scaling"][dataset],
            **{key: settings[key] for key in keys},
        }
        for dataset, source in settings["datasets"].items()
    }


def time_report(experiment: Experiment, results: Results) -> Report:
    """Seconds and milliseconds beside the printed ones, and ratios."""
    published = read_published(PUBLISHED)
    rows: list[Row] = []
    ratios: list[Row] = []
    for job, parameters in time_jobs(experiment.settings).items():
        result, dataset = results[job], parameters["dataset"]
        missing = missing_result(result)
        for metric, methods in (
            ("fit_seconds", ("OPERA", "OPERA, LIBLINEAR", "PMSVM-WP", "PMSVM-WP, LIBLINEAR")),
            ("ms_per_iteration", ("GRPUA", "GRPUA, Opacus", "PMSVM-GP", "PMSVM-GP, Opacus")),
        ):
            found = {} if missing or result is None else result[metric]
            for method in methods:
                gone = missing
                if result is not None and not missing and method not in found:
                    gone = ("not available", result["absent"].get(method, ""))
                place = {"table": "times", "dataset": dataset, "method": method, "metric": metric}
                printed = published.get((dataset, method.partition(",")[0], "", metric), "")
                if gone or method not in found:
                    rows.append(compare(place, printed, None, within(0.0), missing=gone))
                else:
                    rows.append(Row(**place, published=printed, ours=found[method], verdict="no number",
                                    explanation="measured on another machine than the paper's"))  # fmt: skip
            for base, other, statement in _TIME_PAIRS[metric]:
                place = {"table": "ratios", "dataset": dataset, "method": other, "setting": f"over {base}",
                         "metric": f"ratio of {metric}"}  # fmt: skip
                if base in found and other in found:
                    ratio = found[other] / found[base]
                    if statement:
                        c = result["n_classes"] if result else 0
                        ratios.append(claim(place, statement, ratio, ratio > 2.0,
                                            f"less than twice as long; there are {c} classes"))  # fmt: skip
                    else:
                        ratios.append(Row(**place, ours=ratio, verdict="no number"))
                elif missing or result is None:
                    ratios.append(claim(place, statement, None, False, missing=missing))
    return Report(
        tables=[
            Table(
                name="ratios",
                title="Ratios within one run",
                caption="The paper: GRPUA takes several times longer than PMSVM-GP, because it trains the classes one "
                "by one (its own ratios are 2.3 to 9.4). Agrees above 2. The other ratios compare our solvers with the "
                "paper's, above 1 where ours is faster.",
                rows=ratios,
            ),
            Table(
                name="times",
                title="Table 4",
                caption="Processor time of one thread, the smallest of several runs that take turns. fit_seconds: "
                "PMSVM-WP and OPERA here solve to a certified duality gap, LIBLINEAR to its default tolerance. "
                "ms_per_iteration: a step of all classes, expected batch 128.",
                rows=rows,
            ),
        ],
        figures=_time_figures(rows),
        notes=[
            "The printed times were measured on other machines (the gradient methods' on a GPU), so they get no "
            "verdict. The gradient columns of the printed table: GRPUA 19 to 87 ms, PMSVM-GP 4 to 19 ms."
        ],
    )


_TIME_PAIRS: Mapping[str, Sequence[tuple[str, str, str]]] = {
    "fit_seconds": (
        ("PMSVM-WP", "PMSVM-WP, LIBLINEAR", ""),
        ("OPERA", "OPERA, LIBLINEAR", ""),
    ),
    "ms_per_iteration": (
        ("PMSVM-GP", "GRPUA", "several times longer"),
        ("PMSVM-GP, Opacus", "GRPUA, Opacus", "several times longer"),
        ("PMSVM-GP", "PMSVM-GP, Opacus", ""),
    ),
}


def _time_figures(rows: Sequence[Row]) -> list[Figure]:
    figures = []
    colours = ("#0a53c4", "#5aa2e8", "#c4620a", "#e8a25a")
    for metric, title in (("fit_seconds", "seconds of a fit"), ("ms_per_iteration", "milliseconds of a step")):
        data: list[dict[str, Any]] = []
        own = [row for row in rows if row.metric == metric and row.ours is not None]
        for number, method in enumerate(dict.fromkeys(row.method for row in own)):
            part = [row for row in own if row.method == method]
            data.append({"type": "bar", "name": method, "x": [row.dataset for row in part],
                         "y": [row.ours for row in part], "marker": {"color": colours[number % 4]}})  # fmt: skip
        if data:
            figures.append(
                Figure(
                    title=title,
                    caption="Logarithmic scale.",
                    data=data,
                    layout={"yaxis": {"title": {"text": title}, "type": "log"}, "height": 380},
                )
            )
    return figures


SOURCES = (
    "base/noisy_training.py",
    "methods/opera.py",
    "base/perturbation.py",
    "methods/pmsvm.py",
    "base/estimators.py",
    "base/released.py",
    "base/validation.py",
    "privacy",
    "reproduction/pmsvm_runs.py",
    "numerics",
    "solvers",
)
# All methods that may be asked for: one that comes later is found by its name.
SOUND_SOURCES = ("base", "methods", "privacy", "reproduction/pmsvm_runs.py", "numerics", "solvers")
RUN = "privsvm.reproduction.pmsvm_runs:run"

TABLE2 = Experiment(
    name="pmsvm_table2",
    title="PMSVM, Table 2: accuracy of weight and gradient perturbation, as released",
    compares="Seven methods at four epsilons on six datasets, with the released protocol; the epsilon that the "
    "released weight perturbation really has; and which readings give the printed numbers.",
    settings=TABLE2_SETTINGS,
    jobs=table2_jobs,
    run=RUN,
    report=table2_report,
    sources=SOURCES,
)
SOUND = Experiment(
    name="pmsvm_table2_sound",
    title="PMSVM, Table 2 again: accuracy at proved epsilons",
    compares="The methods of this library, with their proofs, beside the printed numbers.",
    settings=SOUND_SETTINGS,
    jobs=sound_jobs,
    run=RUN,
    report=sound_report,
    sources=SOUND_SOURCES,
)
LR_DECAY = Experiment(
    name="pmsvm_lr_decay",
    title="PMSVM, Tables 3 and 9: learning rate decay",
    compares="Gradient perturbation with a constant learning rate and with one that falls to 0.",
    settings=LR_DECAY_SETTINGS,
    jobs=lr_decay_jobs,
    run=RUN,
    report=lr_decay_report,
    sources=SOURCES,
)
CLIP = Experiment(
    name="pmsvm_clip",
    title="PMSVM, Table 10: clipping norm",
    compares="Adaptive gradient perturbation with four clipping norms.",
    settings=CLIP_SETTINGS,
    jobs=clip_jobs,
    run=RUN,
    report=clip_report,
    sources=SOURCES,
)
BATCH = Experiment(
    name="pmsvm_batch",
    title="PMSVM, Table 11: batch size",
    compares="Adaptive gradient perturbation with six batch sizes, and the clipping norm that four of the columns seem "
    "to have.",
    settings=BATCH_SETTINGS,
    jobs=batch_jobs,
    run=RUN,
    report=batch_report,
    sources=SOURCES,
)
CONVERGENCE = Experiment(
    name="pmsvm_convergence",
    title="PMSVM, Figures 3 and 6: convergence",
    compares="Loss, training and test accuracy against steps at four epsilons.",
    settings=CONVERGENCE_SETTINGS,
    jobs=convergence_jobs,
    run=RUN,
    report=convergence_report,
    sources=SOURCES,
)
GAP = Experiment(
    name="pmsvm_gap",
    title="PMSVM, Figures 2, 4 and 5: accuracy gap between private and non-private training",
    compares="Accuracies of Table 2 subtracted from those of the same training without noise.",
    settings=GAP_SETTINGS,
    jobs=gap_jobs,
    run=RUN,
    report=gap_report,
    sources=SOURCES,
    borrows=TABLE2,
)
TIME = Experiment(
    name="pmsvm_time",
    title="PMSVM, Table 4: computation time",
    compares="Fits and steps beside LIBLINEAR's and Opacus's in the same run.",
    settings=TIME_SETTINGS,
    jobs=time_jobs,
    run=RUN,
    report=time_report,
    sources=SOURCES,
)

EXPERIMENTS = {
    experiment.name: experiment for experiment in (TABLE2, SOUND, LR_DECAY, CLIP, BATCH, CONVERGENCE, GAP, TIME)
}


def main(argv: list[str] | None = None) -> None:
    """Run what the arguments name."""
    from privsvm.reproduction.command import main as command

    command(EXPERIMENTS, argv)


if __name__ == "__main__":
    run(main)
