"""Sums of clipped gradients."""
