"""Mechanisms, accounting and guarantees. Nothing here knows of solvers."""
