"""What the stages call."""
