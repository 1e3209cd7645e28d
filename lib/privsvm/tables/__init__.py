"""Public schemas of tables, and how their files are read."""
