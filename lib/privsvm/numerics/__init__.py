"""Helpers that solvers and privacy both use, most of them compiled."""
