"""Figures, tables and the page people look at. Every epsilon is shown with its status."""

from __future__ import annotations

from privsvm_bench.reporting.curve_tables import curve_columns, curve_rows, curves_csv, metrics_record, nearest_epsilon
from privsvm_bench.reporting.page import ReportRecords, page_context, render_page, report_files
from privsvm_bench.reporting.provenance import provenance
from privsvm_bench.reporting.results import read_results

__all__ = [
    "ReportRecords",
    "curve_columns",
    "curve_rows",
    "curves_csv",
    "metrics_record",
    "nearest_epsilon",
    "page_context",
    "provenance",
    "read_results",
    "render_page",
    "report_files",
]
