"""Reproductions of published experiments: what the paper printed, what comes out here, and whether they agree.

Here is the engine. The papers' experiments are in ``reproduce/``, a folder each.
"""
