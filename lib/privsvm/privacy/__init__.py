"""Mechanisms, accounting and guarantees. Knows nothing of solvers."""
