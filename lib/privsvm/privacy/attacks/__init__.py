"""Attacks on what methods publish."""
