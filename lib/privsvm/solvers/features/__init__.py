"""Features computed from rows."""
