"""Experiments of papers: a folder each, with settings, computations, report and printed numbers."""
