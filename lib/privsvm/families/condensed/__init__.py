"""Training on condensed rows, and resampling."""
