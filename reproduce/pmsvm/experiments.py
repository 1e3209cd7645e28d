"""The experiments of pmsvm-2025 (Park, Choi and Lee, NeurIPS 2025): Tables 2 to 4 and 9 to 11, Figures 2 to 6.

``python -m reproduce pmsvm_table2 --datasets Dermatology`` runs one dataset; ``python -m reproduce pmsvm`` runs all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reproduce.engine.experiment import Experiment, Settings

EPSILONS = [1, 2, 4, 8]
GRADIENT_METHODS = ("GRPUA", "Linear", "PMSVM-GP", "PMSVM-AGP")


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
# numbers of Tables 9 to 11 are told apart below.
SCALING = {"Cornell": "none", "Dermatology": "none", "HHAR": "z_score", "ISOLET": "z_score", "USPS": "z_score",
           "Vehicle": "z_score"}  # fmt: skip

SHARED: dict[str, Any] = {
    "datasets": DATASETS, "epsilons": EPSILONS, "delta": 1e-5, "test_size": 0.2, "seed": 20260
}  # fmt: skip
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
# Epochs and learning rates of the released notebook's PMSVM-AGP, and the scaling of the stored scripts.
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
    "PMSVM-WP": {"estimator": "pmsvm_wp", "settings": {"C": 0.1}},
    "PMSVM-GP": {"estimator": "pmsvm_gp", "settings": {"scaling": "centre"}},
    "PMSVM-AGP": {"estimator": "pmsvm_agp", "settings": {"scaling": "centre"}},
    "Linear": {"estimator": "softmax_dpsgd", "settings": {"scaling": "centre"}},
    "GRPUA (naive)": {"estimator": "grpua", "settings": {"composition": "naive"}},
    "GRPUA (joint)": {"estimator": "grpua", "settings": {"composition": "joint"}},
    "OPERA (naive)": {"estimator": "opera", "settings": {"composition": "naive", "C": 0.1}},
    "OPERA (joint)": {"estimator": "opera", "settings": {"composition": "joint", "C": 0.1}},
    "PrivateSVM (joint)": {"estimator": "private_svm", "settings": {"composition": "joint", "C": 0.1}},
    "OvR joint Gaussian": {"estimator": "ovr_joint_gaussian", "settings": {"C": 0.1}},
    "Objective perturbation": {"estimator": "objective_perturbation", "settings": {"C": 0.1}},
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
    """List readings of one gradient column; the first is compared, the others show the effect of a choice."""
    first = _training(settings, dataset, method)
    others: dict[str, dict[str, Any]] = {}
    if method == "GRPUA":
        others["learning rate of Table 8, not times 100"] = {**first, "learning_rate": first["learning_rate"] / 100}
        others["Adam"] = {**first, "learning_rate": first["learning_rate"] / 100, "optimizer": "adam"}
    elif method == "Linear":
        others["cross-entropy not divided by c"] = {**first, "loss_weight": 1.0}
    else:
        others["starts at zero"] = {**first, "start": "zero"}
        others["loss=multi_margin_loss"] = {**first, "loss": "multi_margin"}
        others["loss=equations 12 to 15"] = {
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


def is_drawn(reading: str) -> bool:
    """Tell whether printed numbers are judged by a reading of a gradient column, which then is drawn many times."""
    return reading == "as released" or reading.startswith(("loss=", "lr_decay=", "clip=", "batch="))


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
            weight[f"C={other:g} n, Table 7"] = {"C": other, "noise_factor": 1.0}
            rest[f"C={other:g} n, Table 7"] = {"C": other, "sensitivity_factor": 4.0}
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


def sound_jobs(settings: Settings) -> dict[str, dict[str, Any]]:
    """One job per dataset and method, for Table 2 at proved epsilons."""
    jobs = {}
    for dataset in settings["datasets"]:
        for method, recipe in settings["methods"].items():
            overrides = settings["recipes"].get(dataset, {}).get(method, {})
            name = method.replace(" ", "-").replace("(", "").replace(")", "")
            jobs[f"{dataset}.{name}"] = {
                "kind": "sound",
                **_common(settings, dataset, "neighbours", "splits", "repeats", "paper_split", "paper_runs"),
                "method": method,
                "scaling": settings["public_scaling"][dataset],
                "estimator": recipe["estimator"],
                "settings": {**recipe["settings"], **overrides},
                **settings["own_data"].get(dataset, {}).get(method, {}),
                "repeats": settings["own_repeats"].get(dataset, settings["repeats"]),
            }
    return jobs


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
                changes = {"batch": batch, "clip": clip}
                if clip != 1.0:
                    changes["scaling"] = settings["stored_scaling"][dataset]
                variants[name] = _training(settings, dataset, method, **changes)
        jobs[dataset] = _ablation_job(settings, dataset, variants)
    return jobs


# Figures 3 and 6

# The released losses, and the end of a column's name that has it.
LOSSES = {"softmax": "", "multi_margin": ", multi_margin_loss"}


def convergence_jobs(settings: Settings) -> dict[str, dict[str, Any]]:
    """Training curves of PMSVM-GP and PMSVM-AGP by both released losses."""
    return {
        dataset: {
            "kind": "curves",
            **_common(settings, dataset, "split", "runs"),
            "variants": {
                method + suffix: _training(settings, dataset, method, loss=loss)
                for loss, suffix in LOSSES.items()
                for method in ("PMSVM-GP", "PMSVM-AGP")
            },
        }
        for dataset in settings["datasets"]
    }


def gap_jobs(settings: Settings) -> dict[str, dict[str, Any]]:
    """Accuracies without noise, for Figures 2, 4 and 5; those with noise are Table 2's."""
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


def time_jobs(settings: Settings) -> dict[str, dict[str, Any]]:
    """One job per dataset, for Table 4; candidates take turns inside it."""
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


TABLE2 = Experiment(
    __package__, "pmsvm_table2", TABLE2_SETTINGS, table2_jobs, "runs.released:run", "measurements:table2"
)
SOUND = Experiment(
    __package__, "pmsvm_table2_sound", SOUND_SETTINGS, sound_jobs, "runs.sound:run", "measurements:sound"
)
CONVERGENCE = Experiment(
    __package__,
    "pmsvm_convergence",
    CONVERGENCE_SETTINGS,
    convergence_jobs,
    "runs.released:run",
    "measurements:convergence",
)
GAP = Experiment(__package__, "pmsvm_gap", GAP_SETTINGS, gap_jobs, "runs.released:run", "measurements:gap")
TIME = Experiment(__package__, "pmsvm_time", TIME_SETTINGS, time_jobs, "runs.times:run", "measurements:times")

EXPERIMENTS = {experiment.name: experiment for experiment in (TABLE2, SOUND, CONVERGENCE, GAP, TIME)}
