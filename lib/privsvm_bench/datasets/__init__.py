"""The catalogue of datasets, download, file formats, preparation."""
