"""The experiments of ci-svm-2018: accuracy (Figures 2 to 4), what it leaves open, and time (Tables 2 and 3).

``python -m reproduce ci_svm_accuracy --datasets heart`` runs one dataset; ``python -m reproduce ci_svm`` runs all
there is. The jobs of ``ci_svm_time`` are timings: run them with nothing else on the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from reproduce.engine.experiment import Experiment, Settings

# Two-class sets of the kinds that the paper names (diagnoses, finance, population statistics) and of its two sources.
TWO_CLASS: dict[str, list[str]] = {
    "heart": ["heart_scale", "all"],
    "diabetes": ["diabetes_scale", "all"],
    "liver": ["bupa_uci", "all"],
    "breast cancer": ["breast_cancer", "all"],
    "australian": ["australian_scale", "all"],
    "german": ["german.numer", "all"],
    "ionosphere": ["ionosphere_scale", "all"],
    "sonar": ["sonar_scale", "all"],
    "fourclass": ["fourclass_scale", "all"],
    "splice": ["splice", "train"],
    "a1a": ["a1a", "train"],
    "svmguide1": ["svmguide1", "train"],
}
MULTI_CLASS: dict[str, list[str]] = {
    "iris": ["iris_uci", "all"],
    "wine": ["wine", "all"],
    "svmguide2": ["svmguide2", "all"],
    "glass": ["glass.scale", "all"],
    "dermatology": ["dermatology_uci", "all"],
    "vehicle": ["vehicle_uci", "all"],
    "segment": ["segment.scale", "all"],
    "satimage": ["satimage.scale", "train"],
    "usps": ["usps", "train"],
}

LIBSVM, CI, FCM, RSVM = "LIBSVM", "CI-SVM", "FCM-SVM", "RSVM"
HELD_OUT = "CI-SVM, searched on original rows"
BY_CLASS = "CI-SVM, class by class"
BY_DISTANCE = "CI-SVM, by distance"
THIRD = "SVM on a third of the rows"
METHODS: dict[str, dict[str, Any]] = {
    LIBSVM: {"side": "all rows", "judge": "its rows", "mbar": None},
    CI: {"side": "condensed information", "judge": "its rows", "mbar": None},
    FCM: {"side": "fuzzy centres", "judge": "its rows", "mbar": None},
    # Lee and Mangasarian take a tenth or less.
    RSVM: {"side": "reduced kernel", "judge": "its rows", "mbar": 0.1},
}
VARIANTS: dict[str, dict[str, Any]] = {
    HELD_OUT: {"side": "condensed information", "judge": "held-out rows", "mbar": None},
    BY_CLASS: {"side": "condensed information, class by class", "judge": "its rows", "mbar": None},
    BY_DISTANCE: {"side": "condensed information, by distance", "judge": "its rows", "mbar": None},
    THIRD: {"side": "a third of the rows", "judge": "its rows", "mbar": None},
}

# Features in [-1, 1], as LIBSVM publishes its sets: cosines and coefficients of variation depend on it.
CENTRED_LIBSVM, CENTRED_CI = "LIBSVM, features from -1 to 1", "CI-SVM, features from -1 to 1"
EVEN = "CI-SVM without weights"
OPEN_CHOICES: dict[str, dict[str, Any]] = {
    **{name: METHODS[name] for name in (LIBSVM, CI, RSVM)},
    CENTRED_LIBSVM: {**METHODS[LIBSVM], "range": [-1, 1]},
    CENTRED_CI: {**METHODS[CI], "side": "condensed information, as scaled", "range": [-1, 1]},
    EVEN: {**METHODS[CI], "side": "condensed information without weights"},
}

SHARED: dict[str, Any] = {
    "two_class": TWO_CLASS,
    "multi_class": MULTI_CLASS,
    "methods": METHODS,
    # The paper hardly uses RSVM on several classes.
    "only": {RSVM: "two-class"},
    # Larger sets are sampled once to this many rows.
    "most_rows": 2000,
    # The paper's grid: 2^-5, 2^-3, ..., 2^13 and 2^-15, 2^-13, ..., 2^3.
    "Cs": None,
    "gammas": None,
    "seed": 20260,
}
ACCURACY_SETTINGS: dict[str, Any] = {
    **SHARED,
    # The paper has 300.
    "repeats": 10,
    "methods": {**METHODS, **VARIANTS},
    # Sets whose C and gamma are searched in each of the five folds; elsewhere the first fold decides for all five.
    "every_fold": ["heart", "liver", "breast cancer", "ionosphere", "sonar", "iris", "wine", "svmguide2"],
    # Two-class sets of the kinds that the paper names, which get a mean of their own.
    "named_kinds": ["heart", "diabetes", "liver", "breast cancer", "australian", "german", "a1a"],
    # Fig. 2: two features.
    "picture": {"dataset": "fourclass", "source": TWO_CLASS["fourclass"], "columns": [0, 1]},
}  # fmt: skip
# RSVM solves a linear program for each class.
VARIANT_SETTINGS: dict[str, Any] = {
    **SHARED,
    "multi_class": {name: MULTI_CLASS[name] for name in ("iris", "wine", "svmguide2", "glass", "dermatology")},
    "methods": OPEN_CHOICES,
    "only": {RSVM: "multi-class"},
    "repeats": 5,
}
TIME_SETTINGS: dict[str, Any] = {
    **SHARED,
    "repeats": 3,
    # Times are the smallest of `repeats`.
    "growth": {"dataset": "cod-rna", "source": ["cod-rna", "train"], "repeats": 3,
               "sizes": {"ci": [5000, 10000, 20000, 40000, 59535], "fcm": [1250, 2500, 5000, 10000]}},
}  # fmt: skip


def job_name(dataset: str) -> str:
    """Write a dataset's name as its files have it."""
    return dataset.replace(" ", "-")


def kinds_of(settings: Settings) -> dict[str, dict[str, list[str]]]:
    """Sort the datasets into two-class and multi-class ones; a kind without any is left out."""
    kinds = {"two-class": settings["two_class"], "multi-class": settings["multi_class"]}
    return {classes: datasets for classes, datasets in kinds.items() if datasets}


def methods_for(settings: Settings, classes: str) -> list[str]:
    """List the methods that run on two-class or multi-class datasets."""
    return [name for name in settings["methods"] if settings["only"].get(name, classes) == classes]


def _job(settings: Settings, kind: str, dataset: str, source: Sequence[str], **changes: Any) -> dict[str, Any]:
    shared = {key: settings[key] for key in ("seed", "most_rows")}
    return {"kind": kind, "dataset": dataset, "source": list(source), **shared, **changes}


def _dataset_jobs(settings: Settings, kind: str, changes: Callable[[str], dict[str, Any]]) -> dict[str, dict[str, Any]]:
    jobs = {}
    for classes, datasets in kinds_of(settings).items():
        for dataset, source in datasets.items():
            methods = {name: settings["methods"][name] for name in methods_for(settings, classes)}
            jobs[job_name(dataset)] = _job(
                settings, kind, dataset, source, methods=methods, repeats=settings["repeats"],
                Cs=settings["Cs"], gammas=settings["gammas"], **changes(dataset),
            )  # fmt: skip
    return jobs


def accuracy_jobs(settings: Settings) -> dict[str, dict[str, Any]]:
    """One job per dataset, and the picture."""
    choice = settings["picture"]
    shown = _job(settings, "picture", choice["dataset"], choice["source"], columns=choice["columns"])

    def searches(dataset: str) -> dict[str, Any]:
        return {"search": "every fold" if dataset in settings["every_fold"] else "once a repeat"}

    return {**_dataset_jobs(settings, "accuracies", searches), f"{job_name(choice['dataset'])}.picture": shown}


def variant_jobs(settings: Settings) -> dict[str, dict[str, Any]]:
    """One job per dataset."""
    return _dataset_jobs(settings, "accuracies", lambda dataset: {"search": "once a repeat"})


def time_jobs(settings: Settings) -> dict[str, dict[str, Any]]:
    """One job per dataset, and one for the growth."""
    choice = settings["growth"]
    growth = _job(settings, "growth", choice["dataset"], choice["source"], sizes=choice["sizes"],
                  repeats=choice["repeats"], most_rows=None)  # fmt: skip
    return {**_dataset_jobs(settings, "times", lambda dataset: {}), f"{job_name(choice['dataset'])}.growth": growth}


ACCURACY = Experiment(
    __package__, "ci_svm_accuracy", ACCURACY_SETTINGS, accuracy_jobs, "runs:run", "measurements:accuracy"
)
VARIANT = Experiment(
    __package__, "ci_svm_variants", VARIANT_SETTINGS, variant_jobs, "runs:run", "measurements:variants"
)
TIME = Experiment(__package__, "ci_svm_time", TIME_SETTINGS, time_jobs, "runs:run", "measurements:times")

EXPERIMENTS = {experiment.name: experiment for experiment in (ACCURACY, VARIANT, TIME)}
