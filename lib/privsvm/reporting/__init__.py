"""Figures, tables and the page people look at. Every epsilon is shown with its status."""

from __future__ import annotations

from privsvm.reporting.page import page_context, render_page
from privsvm.reporting.provenance import provenance
from privsvm.reporting.records import (
    Condensing,
    Result,
    Timing,
    read_attacks,
    read_condensing,
    read_prepared,
    read_results,
    read_timings,
)
from privsvm.reporting.tables import curve_columns, curve_rows, curves_csv, metrics_record, nearest_epsilon

__all__ = [
    "Condensing",
    "Result",
    "Timing",
    "curve_columns",
    "curve_rows",
    "curves_csv",
    "metrics_record",
    "nearest_epsilon",
    "page_context",
    "provenance",
    "read_attacks",
    "read_condensing",
    "read_prepared",
    "read_results",
    "read_timings",
    "render_page",
]
