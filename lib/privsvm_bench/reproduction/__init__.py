"""Reproductions of published experiments: printed numbers beside ours, and whether they agree.

This is the engine. The experiments are in ``reproduce/``, one folder per paper.
"""
