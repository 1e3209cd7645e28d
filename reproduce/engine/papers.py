"""The papers that are reproduced: one package each, found by its folder."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping, Sequence

from privsvm.errors import PrivSVMError, nearest_name
from reproduce.engine.experiment import Experiment


def find_experiments(package: str) -> dict[str, Experiment]:
    """Find the experiments of all papers, by name; papers come in the order of their names.

    The papers are subpackages of `package`; ``experiments.py`` of each has ``EXPERIMENTS``.
    """
    papers = [item.name for item in pkgutil.iter_modules(importlib.import_module(package).__path__)
              if item.ispkg and item.name != "engine"]  # fmt: skip
    modules = [importlib.import_module(f"{package}.{paper}.experiments") for paper in sorted(papers)]
    return {name: experiment for module in modules for name, experiment in module.EXPERIMENTS.items()}


def choose(experiments: Mapping[str, Experiment], names: Sequence[str]) -> list[Experiment]:
    """Choose experiments by name; the name of a paper means all of its experiments, and no name means all.

    Raises PrivSVMError for an unknown name.
    """
    chosen: dict[str, Experiment] = {}
    for name in names:
        matching = {key: item for key, item in experiments.items() if name in (key, item.paper)}
        if not matching:
            choices = [*experiments, *dict.fromkeys(item.paper for item in experiments.values())]
            raise PrivSVMError(f"experiment {name!r} is unknown; {nearest_name(name, choices)}")
        chosen.update(matching)
    return list((chosen or experiments).values())
