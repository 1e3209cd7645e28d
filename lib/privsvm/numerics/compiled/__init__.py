"""Compiled code: threads, vectors, barriers."""
