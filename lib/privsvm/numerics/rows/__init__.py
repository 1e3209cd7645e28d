"""Rows as grids, blocks and sparse matrices."""
