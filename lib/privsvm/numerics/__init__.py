"""Compiled helpers that solvers and privacy both use."""
