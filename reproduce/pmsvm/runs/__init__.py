"""What the jobs compute: as released, with this library's methods, and times."""
