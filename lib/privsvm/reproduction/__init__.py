"""Reproductions of published experiments: what the paper printed, what comes out here, and whether they agree.

The papers' experiments are in ``reproduce/``, one file each; here is what they share.
"""
