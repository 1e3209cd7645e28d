"""Jobs of pmsvm-2025: the protocol as released, this library's methods, and times."""
