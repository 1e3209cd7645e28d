"""Datasets: catalogue, download, readers, preparation. Importing this package imports nothing heavy."""
