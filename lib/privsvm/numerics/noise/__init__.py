"""Exact noise and random streams."""
