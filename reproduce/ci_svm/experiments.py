"""The experiments of ci-svm-2018: accuracy (Figures 2 to 4), what it leaves open, and time (Tables 2 and 3).

``python -m reproduce ci_svm_accuracy --datasets heart`` runs one dataset; ``python -m reproduce ci_svm`` runs all
there is. The jobs of ``ci_svm_time`` are timings: run them with nothing else on the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from reproduce.engine.experiment import Settings, list_experiments, read_settings

SETTINGS = read_settings(__package__)
LIBSVM, CI, FCM, RSVM = "LIBSVM", "CI-SVM", "FCM-SVM", "RSVM"


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


EXPERIMENTS = list_experiments(
    __package__, SETTINGS,
    ci_svm_accuracy=(accuracy_jobs, "runs:run", "measurements:accuracy"),
    ci_svm_variants=(variant_jobs, "runs:run", "measurements:variants"),
    ci_svm_time=(time_jobs, "runs:run", "measurements:times"),
)  # fmt: skip
