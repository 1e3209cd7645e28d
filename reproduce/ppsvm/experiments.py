"""The experiments of ppsvm-2007 (Mangasarian, Wild and Fung 2007): Tables 1 and 2, Figures 1 to 6, and the attack.

``python -m reproduce ppsvm_table1 --datasets "Bupa Liver"`` runs one dataset; ``python -m reproduce ppsvm`` runs all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reproduce.engine.experiment import Settings, list_experiments, read_settings

SETTINGS = read_settings(__package__)
TABLE1_SETTINGS, TABLE2_SETTINGS = SETTINGS["ppsvm_table1"], SETTINGS["ppsvm_table2"]
# The rule that is compared.
MAIN_RULE = TABLE1_SETTINGS["rules"][0]


def _slug(dataset: str) -> str:
    return dataset.replace(" ", "-")


def _job(settings: Settings, dataset: str, kernel: str, entities: int, **changes: Any) -> dict[str, Any]:
    choice = settings["datasets"][dataset]
    return {
        "dataset": dataset,
        "source": choice["source"],
        "missing": choice["missing"],
        "reading": None,
        "kernel": kernel,
        "entities": entities,
        **{key: settings[key] for key in ("mbar", "n_folds", "seed")},
        **changes,
    }


def _errors_job(settings: Settings, dataset: str, kernel: str, entities: int, **changes: Any) -> dict[str, Any]:
    job = _job(settings, dataset, kernel, entities, kind="errors", partitions=settings["partitions"])
    return {**job, "most_entities": settings.get("most_entities"), **changes}


def _reading_name(reading: Mapping[str, Any]) -> str:
    return f"drinks-above-{reading['above']}-{'6' if reading['label_as_feature'] else '5'}-features"


def table1_jobs(settings: Settings) -> dict[str, dict[str, Any]]:
    """One job per dataset and number of entities, and per other reading of a dataset's class."""
    jobs = {}
    rules = {rule: {"tune": "every_fold", "rule": rule} for rule in settings["rules"]}
    main = {"tune": "every_fold", "rule": settings["rules"][0]}
    for dataset, details in settings["datasets"].items():
        alone = {"features": {**main, "columns": "own"}}
        if dataset in settings["full_kernel"]:
            alone["kernel with all rows"] = {**main, "columns": "full"}
        for entities in details["entities"]:
            jobs[f"{_slug(dataset)}.linear.{entities}"] = _errors_job(
                settings, dataset, "linear", entities, PPSVM=rules, alone=alone
            )
            for reading in settings["readings"].get(dataset, []):
                jobs[f"{_slug(dataset)}.linear.{entities}.{_reading_name(reading)}"] = _errors_job(
                    settings, dataset, "linear", entities, PPSVM={MAIN_RULE: main}, alone={}, reading=reading
                )
    return jobs


def table2_jobs(settings: Settings) -> dict[str, dict[str, Any]]:
    """One job per dataset and number of entities, and per other reading of a dataset's class."""
    jobs = {}
    once, every = ({"tune": tune, "rule": "uniform design"} for tune in ("once", "every_fold"))
    for dataset, details in settings["datasets"].items():
        for entities in details["entities"]:
            ppsvm = {"tuned once": once}
            if dataset in settings["every_fold"] and entities == details["entities"][0]:
                ppsvm["tuned in every fold"] = every
            jobs[f"{_slug(dataset)}.gaussian.{entities}"] = _errors_job(
                settings, dataset, "gaussian", entities,
                PPSVM=ppsvm, alone={"own random kernel": {**once, "columns": "own"}},
            )  # fmt: skip
            for reading in settings["readings"].get(dataset, []):
                jobs[f"{_slug(dataset)}.gaussian.{entities}.{_reading_name(reading)}"] = _errors_job(
                    settings, dataset, "gaussian", entities, PPSVM={"tuned once": once}, alone={}, reading=reading
                )
    return jobs


def entities_jobs(settings: Settings) -> dict[str, dict[str, Any]]:
    """One job per kernel and number of entities."""
    jobs = {}
    for kernel, tune in (("linear", "every_fold"), ("gaussian", "once")):
        protocol = {"tune": tune, "rule": MAIN_RULE}
        for dataset, details in settings["datasets"].items():
            for entities in details["entities"]:
                drawn = settings["drawn"][kernel]
                jobs[f"{_slug(dataset)}.{kernel}.{entities}"] = _errors_job(
                    settings, dataset, kernel, entities, PPSVM={"main": protocol},
                    alone={"main": {**protocol, "columns": "own"}},
                    most_entities=None if drawn is None or drawn >= entities else drawn,
                )  # fmt: skip
    return jobs


def kernels_jobs(settings: Settings) -> dict[str, dict[str, Any]]:
    """One job per dataset and kernel."""
    jobs = {}
    for dataset in settings["datasets"]:
        for kernel, tune in (("linear", "every_fold"), ("gaussian", "once")):
            partitions = settings["partitions"][kernel]
            partitions = partitions.get(dataset, partitions["others"])
            protocol = {"tune": tune, "rule": MAIN_RULE, "most_tuned_rows": settings["most_tuned_rows"]}
            jobs[f"{_slug(dataset)}.{kernel}"] = _job(
                settings, dataset, kernel, 1, kind="kernels", partitions=partitions, protocol=protocol
            )
    return jobs


def attack_jobs(settings: Settings) -> dict[str, dict[str, Any]]:
    """One job per dataset, kernel and number of entities; of one there is a whole curve."""
    jobs = {}
    for dataset, details in settings["datasets"].items():
        for kernel in ("linear", "gaussian"):
            for entities in details["entities"]:
                shown = settings["curve"] == {"dataset": dataset, "entities": entities}
                jobs[f"{_slug(dataset)}.{kernel}.{entities}"] = _job(
                    settings, dataset, kernel, entities, kind="attack", draws=settings["draws"],
                    # Beyond those needed.
                    counts=None if shown else [0],
                )  # fmt: skip
    return jobs


def blocks_jobs(settings: Settings) -> dict[str, dict[str, Any]]:
    """One job per dataset, kernel and number of entities."""
    return {
        f"{_slug(name)}.{kernel}.{entities}": _job(settings, name, kernel, entities, partitions=settings["partitions"])
        for name, details in settings["datasets"].items()
        for kernel in settings["kernels"]
        for entities in details["entities"]
    }


EXPERIMENTS = list_experiments(
    __package__, SETTINGS,
    ppsvm_table1=(table1_jobs, "runs:run", "measurements:tables"),
    ppsvm_table2=(table2_jobs, "runs:run", "measurements:tables"),
    ppsvm_entities=(entities_jobs, "runs:run", "measurements:entities"),
    ppsvm_kernels=(kernels_jobs, "runs:run", "measurements:kernels"),
    ppsvm_attack=(attack_jobs, "runs:run", "measurements:attack"),
    ppsvm_unmixing=(blocks_jobs, "privacy:run", "measurements:unmixing"),
    ppsvm_classifiers=(blocks_jobs, "classifiers:run", "measurements:classifiers"),
)  # fmt: skip
