"""Open the results in MLflow: log missing runs, print a link for each dataset, serve the page on this machine."""

from __future__ import annotations

import argparse
import importlib.util
import os
import socket
import sys
from pathlib import Path

from privsvm.errors import PrivSVMError, without_passwords
from privsvm_bench.evidence import describe_commit
from privsvm_bench.jobs.params import Params, read_params
from privsvm_bench.records import timing_files
from privsvm_bench.workflow.private_outputs import private_folder
from privsvm_bench.workflow.stage import run

_HOST = "127.0.0.1"
_PORTS_TRIED = 50
_OLDER_RUNS = "ui: to see runs of earlier parameters too, clear the filter `tags.current = 'yes'`"


def find_results(params: Params) -> list[Path]:
    """List the results of the jobs in params.yaml that have run, sorted; raises PrivSVMError if there are none."""
    jobs = ((private_folder(params, dataset), method, dataset) for method, dataset in params.train_jobs())
    paths = (Path(f"data/{folder}results/{method}/{dataset}.json") for folder, method, dataset in jobs)
    results = sorted(path for path in paths if path.is_file())
    if not results:
        raise PrivSVMError("data/results: no results found; run `make run` first (or `dvc pull`)")
    return results


def free_port(wanted: int) -> int:
    """Find the wanted port, or the next free one above it; raises PrivSVMError if none is free."""
    for port in range(wanted, min(wanted + _PORTS_TRIED, 65536)):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((_HOST, port))
            except OSError:
                continue
        if port != wanted:
            print(f"ui: port {wanted} is busy, using {port}")
        return port
    raise PrivSVMError(f"--port: {wanted} and the {_PORTS_TRIED} ports above it are busy; pass another one")


def main(arguments: list[str] | None = None) -> None:
    """Log the results, print the links and become the MLflow server."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=5000, help="port to serve on, or the next free one above it")
    options = parser.parse_args(arguments)
    if not 1 <= options.port <= 65535:
        raise PrivSVMError(f"--port: {options.port} is not a port; pass a number from 1024 to 65535")
    params = read_params()
    tracking_uri, results = params.mlflow.tracking_uri, find_results(params)

    from privsvm_bench.tracking.comparison import audit_files
    from privsvm_bench.tracking.experiments import experiment_links
    from privsvm_bench.tracking.mlflow_log import log_results
    from privsvm_bench.tracking.runs import collect_runs, overview_runs
    from privsvm_bench.tracking.store import file_folder, is_server

    serve = not is_server(tracking_uri)
    if serve and importlib.util.find_spec("flask") is None:
        raise PrivSVMError("ui: the packages of MLflow's page are not installed; run `make ui`")
    files = [(path, timing_files(path, Path("logs/timings"))) for path in results]
    audits = audit_files(results)
    log_results(files, tracking_uri, describe_commit() or "unknown", audits)
    curves = collect_runs(files, audits)
    names = {run.experiment_name for run in curves + overview_runs(curves)}
    port = free_port(options.port) if serve else 0
    base_url = f"http://{_HOST}:{port}" if serve else without_passwords(tracking_uri)
    for name, link in experiment_links(tracking_uri, base_url, names).items():
        print(f"{name}: {link}")
    print(_OLDER_RUNS)
    if not serve:
        return
    print("ui: the links work in a few seconds; stop with Ctrl-C", flush=True)
    command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", tracking_uri]
    command += ["--artifacts-destination", str(file_folder(tracking_uri))]
    command += ["--host", _HOST, "--port", str(port), "--workers", "1"]
    # No line for each request, so that the links stay visible.
    command += ["--uvicorn-opts", "--log-level warning"]
    # MLflow's jobs serve language models; without them the server starts faster with fewer processes.
    os.execve(
        sys.executable,
        command,
        {**os.environ, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false", "PYTHONWARNINGS": "ignore"},
    )


if __name__ == "__main__":
    run(main)
