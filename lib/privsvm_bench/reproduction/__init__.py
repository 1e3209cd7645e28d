"""Reproductions of published experiments: what the paper printed, what we get, and whether the two agree.

This is the engine. The experiments are in ``reproduce/``, one folder per paper.
"""
