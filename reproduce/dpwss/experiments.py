"""The settings of dpwss-2021 (Sun et al., PeerJ Computer Science 2021): Table 3, which is drawn, and Figure 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reproduce.engine.experiment import Settings, list_experiments, read_settings

SETTINGS = read_settings(__package__)
TABLE3_SETTINGS = SETTINGS["dpwss_table3"]


def setting_name(shrinking: int, column: Mapping[str, float] | None) -> str:
    """Write a setting as the published table does; None is WSS2."""
    return f"shrinking={shrinking}" + (f";epsilon={column['epsilon']:g};sigma={column['sigma']:g}" if column else "")


def figure_jobs(settings: Settings) -> dict[str, dict[str, Any]]:
    """One job."""
    return {"figure1": dict(settings["figure1"])}


EXPERIMENTS = list_experiments(
    __package__, SETTINGS, dpwss_figures=(figure_jobs, "runs:figure1", "measurements:figure1")
)
