"""Noise added to trained weights."""
