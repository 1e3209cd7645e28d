"""Choosing hyper-parameters."""
