"""Optimisation on plain arrays. Nothing here knows of privacy."""
