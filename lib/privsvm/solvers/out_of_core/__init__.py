"""Training on rows that stay on disk."""
