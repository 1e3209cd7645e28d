"""Functions of the Snakefile and of its jobs."""
