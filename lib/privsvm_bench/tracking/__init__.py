"""Log results to MLflow from one process, each result once."""

import os

# MLflow reads these while it is imported, and importing any module of this package runs this file first.
os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
os.environ["DO_NOT_TRACK"] = "true"
os.environ["MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT"] = "true"
