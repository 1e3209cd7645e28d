"""Logging of results to MLflow, from one process and without ever logging a result twice."""

import os

# MLflow reads these while it is imported, and importing any module of this package runs this file first.
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
os.environ["DO_NOT_TRACK"] = "true"
os.environ["MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"] = "true"
