"""Experiments of papers: a folder each, with settings, what its jobs compute, its report and the printed numbers."""
