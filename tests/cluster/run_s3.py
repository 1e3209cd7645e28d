"""Data, models and a workflow in an S3 store, a moto server on this machine: `make test-s3`.

Needs the extra `privsvm[s3]` where this script runs, and moto's server in an environment of its own, as the two ask
for different versions of other packages: `--moto` names its program. With Slurm's programs and root, the workflow whose
files are in the store runs through Slurm too. With those of PostgreSQL, an MLflow server keeps its runs there and the
runs' files in the store.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.cluster import slurm_daemons as daemons
from tests.cluster.run_slurm import check, page_block, say
from tests.cluster.slurm_daemons import Slurm, answer, wait_for
from tests.workflow.conftest import REPOSITORY, Workspace, copy_repository

SMALL = {
    "datasets": {"wine": {"scaling": "bounds"}},
    "protocol": {"kind": "holdout", "repeats": 2, "test_size": 0.25, "stratified": True},
    "privacy": {"epsilons": [4.0], "delta": 1e-5, "neighbours": "replace_one", "repeats": 2},
    "methods": {
        "svm": {"implementation": "svm", "kernel": "linear", "C": 1.0},
        "majority": {"implementation": "majority"},
    },
}

WORKFLOW = """\
rule all:
    localrule: True
    input:
        storage.s3("s3://privsvm/work/sum.txt"),


rule square:
    input:
        storage.s3("s3://privsvm/work/numbers.txt"),
    output:
        storage.s3("s3://privsvm/work/squares.txt"),
    shell:
        "awk '{{print $1 * $1}}' {input} > {output}"


rule add:
    input:
        storage.s3("s3://privsvm/work/squares.txt"),
    output:
        storage.s3("s3://privsvm/work/sum.txt"),
    shell:
        "awk '{{total += $1}} END {{print total}}' {input} > {output}"
"""


SLURM = (
    "--executor", "slurm", "--jobs", "2", "--default-resources", "runtime=5", "mem_mb=500",
    "--slurm-status-command", "squeue", "--slurm-init-seconds-before-status-checks", "5",
)  # fmt: skip


class Store:
    """A moto server and its bucket.

    Parameters
    ----------
    program : str
        ``moto_server``.
    log : pathlib.Path
        What it prints.
    """

    def __init__(self, program: str, log: Path):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        with open(log, "w") as file:
            self.process = subprocess.Popen(
                [program, "-H", "127.0.0.1", "-p", str(self.port)], stdout=file, stderr=file
            )
        os.environ.update(
            AWS_ACCESS_KEY_ID="testing", AWS_SECRET_ACCESS_KEY="testing", AWS_DEFAULT_REGION="us-east-1",
            AWS_EC2_METADATA_DISABLED="true",
        )  # fmt: skip
        wait_for("moto's server", self.listens)
        import boto3

        self.client = boto3.client("s3", endpoint_url=self.url)
        self.client.create_bucket(Bucket="privsvm")

    def listens(self) -> bool:
        """Whether the server takes connections."""
        with socket.socket() as connection:
            return connection.connect_ex(("127.0.0.1", self.port)) == 0

    def names(self, prefix: str) -> list[str]:
        """Objects in the bucket."""
        found = self.client.list_objects_v2(Bucket="privsvm", Prefix=prefix).get("Contents", [])
        return sorted(entry["Key"] for entry in found)

    def stop(self) -> None:
        """End the server."""
        self.process.terminate()
        self.process.wait(30)


def on_page(word: str, store: Store) -> str:
    """The page's commands, with this store's address and keys in the place of somebody's."""
    text = page_block(word).replace("https://s3.example.org", store.url).replace("=...", "=testing")
    return text.replace("s3://bucket/", "s3://privsvm/")


def versions(scratch: Path, store: Store) -> None:
    """`dvc push`, a new clone, `dvc pull`, `make sync`."""
    first = Workspace(scratch / "first/privsvm")
    first.folder.mkdir(parents=True)
    copy_repository(first, SMALL)
    first.take_compiled(Workspace(REPOSITORY))
    first.snakemake()
    first.git("add", "--all")
    first.git("commit", "--quiet", "--message", "results")
    first.call("sh", "-euc", on_page("dvc remote", store))
    first.git("commit", "--quiet", "--all", "--message", "remote")
    sent = store.names("privsvm/")
    check(len(sent) > 10, f"dvc push: {len(sent)} objects in the store")
    second = Workspace(scratch / "second/privsvm")
    first.git("clone", "--quiet", ".", str(second.folder))
    second.take_compiled(first)
    made = first.hashes("data/prepared", "data/condensed", "data/models", "data/results")
    shutil.rmtree(first.folder)
    second.call("dvc", "pull")
    check(second.hashes("data/prepared", "data/condensed", "data/models", "data/results") == made,
          f"dvc pull in a new clone: {len(made)} files are the same, bit for bit")  # fmt: skip
    # The programs are those that run this script.
    recipe = ["make", "sync", f"VENV={second.folder / 'no-venv'}"]
    second.call(*recipe, "--assume-old", str(second.folder / "no-venv" / "ready"))
    check(
        "Nothing to be done" in second.call("snakemake", "--cores", "1", "-n"), "make sync: nothing to do for Snakemake"
    )
    check("up to date" in second.call("dvc", "status"), "nothing to do for DVC")


@contextlib.contextmanager
def postgresql(folder: Path, programs: Path) -> Iterator[str]:
    """Run a PostgreSQL of its own in a folder; yields the address of an empty database."""
    # It refuses to run as root; the user comes with Debian's package.
    user = ("runuser", "-u", "postgres", "--") if not os.geteuid() else ()
    folder.mkdir()
    folder.parent.chmod(0o755)
    if user:
        shutil.chown(folder, "postgres")
    data = folder / "data"

    def call(program: str, *arguments: str | Path) -> None:
        subprocess.run([*user, programs / program, *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL)

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    call("initdb", "-D", data, "-A", "trust", "-U", "postgres")
    place = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"
    call("pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", place, "start")
    try:
        call("createdb", "-h", "127.0.0.1", "-p", str(port), "-U", "postgres", "mlflow")
        yield f"postgresql+psycopg2://postgres@127.0.0.1:{port}/mlflow"
    finally:
        call("pg_ctl", "-D", data, "-m", "fast", "stop")


def tracking(scratch: Path, store: Store, programs: Path) -> None:
    """Log a run to an MLflow server with its database in PostgreSQL and its files in the store."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}"
    with postgresql(scratch / "postgresql", programs) as database, open(scratch / "mlflow.log", "w") as log:
        command = [
            sys.executable,
            "-m",
            "mlflow",
            "server",
            "--host",
            "127.0.0.1",
            "--port",
            address.rpartition(":")[2],
        ]
        command += ["--workers", "1", "--backend-store-uri", database, "--artifacts-destination", "s3://privsvm/mlflow"]
        settings = {"MLFLOW_S3_ENDPOINT_URL": store.url, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
        server = subprocess.Popen(
            command, stdout=log, stderr=log, env={**os.environ, **settings}, start_new_session=True
        )
        try:
            wait_for("MLflow's server", lambda: answer("curl", "--silent", "--fail", f"{address}/health"), 600)
            check_tracking(scratch, store, address)
        finally:
            os.killpg(server.pid, signal.SIGTERM)
            server.wait(60)


def check_tracking(scratch: Path, store: Store, address: str) -> None:
    """Run a benchmark that tracks at an address, twice; look at what arrived."""
    from mlflow.tracking import MlflowClient

    work = Workspace(scratch / "tracked/privsvm")
    work.folder.mkdir(parents=True)
    copy_repository(work, {**SMALL, "mlflow": {"tracking_uri": address}})
    work.take_compiled(Workspace(REPOSITORY))
    work.snakemake()
    client = MlflowClient(address)
    (experiment,) = [one for one in client.search_experiments() if one.name.endswith("/wine")]

    def arrived() -> dict[str, tuple[str, list[str]]]:
        runs = client.search_runs([experiment.experiment_id])
        return {
            run.info.run_id: (run.data.params["method"], [file.path for file in client.list_artifacts(run.info.run_id)])
            for run in runs
        }

    first = arrived()
    check(sorted(method for method, _ in first.values()) == ["majority", "svm"], "a run a method is in PostgreSQL")
    check(
        all(files == ["card.md", "guarantees.json"] for _, files in first.values())
        and len(store.names("mlflow/")) == 2 * len(first),
        f"their files are in the store: {len(store.names('mlflow/'))} objects",
    )
    (work.folder / "reports/tracking.json").unlink()
    work.snakemake()
    check(arrived() == first, "logging again adds nothing")


def workflow(scratch: Path, store: Store, *executor: str) -> None:
    """Run a workflow whose files are in the store alone."""
    folder = scratch / "workflow"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "Snakefile").write_text(WORKFLOW)
    for name in store.names("work/"):
        store.client.delete_object(Bucket="privsvm", Key=name)
    store.client.put_object(Bucket="privsvm", Key="work/numbers.txt", Body=b"1\n2\n3\n")
    where = "through Slurm" if executor else "here"
    command = ["snakemake", *(executor or ("--cores", "1"))]
    # By the environment, which Slurm hands to its jobs.
    settings = on_page("SNAKEMAKE_STORAGE_S3_ENDPOINT_URL", store).removeprefix("export ").replace("\nexport ", " ")
    environment = Workspace(folder).environment(**dict(word.split("=", 1) for word in settings.split()))

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [*command, *arguments], cwd=folder, env=environment, text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        check(done.returncode == 0, f"{' '.join(['snakemake', *arguments])}, {where}")
        return done.stdout

    run()
    total = store.client.get_object(Bucket="privsvm", Key="work/sum.txt")["Body"].read()
    check(total == b"14\n", f"Snakemake's storage plugin, {where}: {', '.join(store.names('work/'))}")
    check("Nothing to be done" in run("-n"), f"then there is nothing to do, {where}")


def main() -> None:
    """Run all checks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--moto", default="moto_server", help="program of moto's server")
    parser.add_argument("--slurm", choices=("yes", "no", "auto"), default="auto", help="the workflow through Slurm too")
    options = parser.parse_args()
    for module, package in (("dvc_s3", "privsvm[s3]"), ("snakemake_storage_plugin_s3", "privsvm[s3]")):
        if importlib.util.find_spec(module) is None:
            sys.exit(f"error: {module}: not installed; run `make test-s3`, or install {package}")
    if shutil.which(options.moto) is None:
        sys.exit(f"error: {options.moto}: no such program; install moto[server] in an environment of its own")
    scratch = Path(os.environ.get(daemons.INSIDE) or tempfile.mkdtemp(prefix="s3-")).resolve()
    plugin = importlib.util.find_spec("snakemake_executor_plugin_slurm") is not None
    can = plugin and not os.geteuid() and not daemons.missing(daemons.PROGRAMS)
    if options.slurm == "yes" and not can:
        sys.exit(
            "error: --slurm yes: needs root, snakemake-executor-plugin-slurm and Slurm's programs (make test-slurm)"
        )
    through_slurm = can and options.slurm != "no"
    if through_slurm:
        daemons.enter(scratch, "tests.cluster.run_s3")
    store = Store(options.moto, scratch / "moto.log")
    try:
        versions(scratch, store)
        workflow(scratch, store)
        if through_slurm:
            with Slurm(scratch, accounts=False):
                workflow(scratch, store, *SLURM)
        else:
            say("not run: the workflow through Slurm, which is not installed here or needs root")
        if programs := sorted(Path("/usr/lib/postgresql").glob("*/bin")):
            tracking(scratch, store, programs[-1])
        else:
            say("not run: MLflow on PostgreSQL, which is not installed here (Debian's package postgresql)")
    finally:
        store.stop()
        shutil.rmtree(scratch, ignore_errors=True)
    say("all checks hold")


if __name__ == "__main__":
    main()
