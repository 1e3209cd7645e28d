"""What several methods share, one folder for each mechanism."""
