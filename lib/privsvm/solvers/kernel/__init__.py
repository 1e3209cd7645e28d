"""C-SVC with kernels."""
