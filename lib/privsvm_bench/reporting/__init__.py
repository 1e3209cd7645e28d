"""Figures, tables and the page people look at. Every epsilon is shown with its status."""
