"""Check S3 storage on a server of moto: ``python -m tests.cluster.run_s3``.

Run it in the environment that docs/cluster.md prepares for S3, with ``tests/cluster/requirements.txt`` added.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.blocks import blocks_run_by
from tests.cluster.run_slurm import say
from tests.waits import wait_until
from tests.workflow.conftest import SMALL, Workspace, copy_repository

KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_DEFAULT_REGION": "us-east-1"}
WORKFLOW = """\
rule all:
    input:
        storage.s3("s3://bucket/work/sum.txt"),


rule add:
    input:
        storage.s3("s3://bucket/work/numbers.txt"),
    output:
        storage.s3("s3://bucket/work/sum.txt"),
    shell:
        "awk '{{total += $1}} END {{print total}}' {input} > {output}"
"""


def versions(folder: Path, remote: str) -> None:
    """Push by DVC and pull in a new clone; compare the files."""
    first, second = Workspace(folder / "first"), Workspace(folder / "second")
    copy_repository(first, SMALL)
    first.snakemake()
    first.git("add", "--all")
    first.git("commit", "--quiet", "--message", "results")
    first.call("sh", "-euc", remote)
    first.git("commit", "--quiet", "--all", "--message", "remote")
    first.git("clone", "--quiet", ".", str(second.folder))
    names = "data/prepared", "data/condensed", "data/models", "data/results"
    made = first.hashes(*names)
    shutil.rmtree(first.folder)
    second.call("dvc", "pull")
    say(second.hashes(*names) == made, f"dvc pull in a new clone: {len(made)} files with the same bits")
    second.call("make", "sync", "PREPARE=true")
    say(second.nothing_to_do(), "after make sync there is nothing to do")


def workflow(folder: Path, settings: str, client: object) -> None:
    """Run a workflow whose files are in the bucket."""
    work = Workspace(folder / "work")
    work.folder.mkdir()
    (work.folder / "Snakefile").write_text(WORKFLOW)
    client.put_object(Bucket="bucket", Key="work/numbers.txt", Body=b"1\n2\n3\n")
    work.call("sh", "-euc", f"{settings}\nsnakemake --cores 1")
    total = client.get_object(Bucket="bucket", Key="work/sum.txt")["Body"].read()
    say(total == b"6\n", "Snakemake's storage plugin reads and writes the bucket")


def main() -> None:
    """Run all checks against a server on a free port."""
    import boto3

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    remote, settings = (
        block.text.replace("https://s3.example.org", url).replace("=...", "=testing")
        for block in blocks_run_by(__file__)
    )
    os.environ.update(KEYS)
    program = Path(sys.executable).with_name("moto_server")
    server = subprocess.Popen([program, "-H", "127.0.0.1", "-p", str(port)], stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: socket.socket().connect_ex(("127.0.0.1", port)) == 0, lambda: "moto's server")
        client = boto3.client("s3", endpoint_url=url)
        client.create_bucket(Bucket="bucket")
        with tempfile.TemporaryDirectory() as folder:
            versions(Path(folder), remote)
            workflow(Path(folder), settings, client)
    finally:
        server.terminate()
        server.wait(600)


if __name__ == "__main__":
    main()
