"""The papers that are reproduced: one package each, found by its folder."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping, Sequence

from privsvm.errors import PrivSVMError, nearest_name
from privsvm_bench.reproduction.experiment import Experiment

__all__ = ["choose", "find_experiments"]


def find_experiments(package: str) -> dict[str, Experiment]:
    """Find the experiments of all papers.

    Parameters
    ----------
    package : str
        Package whose subpackages are the papers; ``experiments.py`` of each has ``EXPERIMENTS``.

    Returns
    -------
    dict
        Experiments by name; papers in the order of their names.
    """
    papers = [item.name for item in pkgutil.iter_modules(importlib.import_module(package).__path__) if item.ispkg]
    modules = [importlib.import_module(f"{package}.{paper}.experiments") for paper in sorted(papers)]
    return {name: experiment for module in modules for name, experiment in module.EXPERIMENTS.items()}


def choose(experiments: Mapping[str, Experiment], names: Sequence[str]) -> list[Experiment]:
    """Choose experiments by name; the name of a paper means all of its experiments, and no name means all.

    Parameters
    ----------
    experiments : mapping
        All there are, by name.
    names : sequence of str
        Names of experiments and papers.

    Raises
    ------
    PrivSVMError
        For an unknown name.
    """
    chosen: dict[str, Experiment] = {}
    for name in names:
        matching = {key: item for key, item in experiments.items() if name in (key, item.paper)}
        if not matching:
            choices = [*experiments, *dict.fromkeys(item.paper for item in experiments.values())]
            raise PrivSVMError(f"experiment {name!r} is unknown; {nearest_name(name, choices)}")
        chosen.update(matching)
    return list((chosen or experiments).values())
