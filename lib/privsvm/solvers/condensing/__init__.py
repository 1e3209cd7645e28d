"""Groups of similar rows."""
