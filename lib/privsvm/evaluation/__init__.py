"""Metrics and summaries of released models."""
