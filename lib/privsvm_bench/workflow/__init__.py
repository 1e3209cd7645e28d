"""What the Snakefile needs."""
