"""Training by noisy gradient steps."""
