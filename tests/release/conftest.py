"""One release for all tests of this folder."""

import contextlib
import io
import shlex
import shutil
from pathlib import Path

import pytest
from tests.release.hospital import SCHEMA, write_table

from privsvm.command import main


def run(*arguments):
    """Run a command in this process; returns its exit code, output and errors."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as stopped:
            code = stopped.code
    return code, out.getvalue(), err.getvalue()


def in_shell(line):
    """Run a command of a page, and write the file that it asks for; return the command and its output."""
    program, *arguments = shlex.split(line, comments=True)
    assert program == "privsvm"
    target = None
    if ">" in arguments:
        target = arguments.pop()
        arguments.remove(">")
    code, out, err = run(*arguments)
    assert code == 0, f"{line}: {err}"
    if target is not None:
        Path(target).write_text(out)
    return arguments[0], out


def refusal(*arguments, code=1):
    """Run a command that must be refused in one line; returns the line."""
    ended, out, err = run(*arguments)
    assert (ended, out, err.count("\n")) == (code, "", 1), err
    return err


def release_into(folder, data, schema, *more, epsilon=1, out="model"):
    """Release a model by command, into a folder with its ledger; return its output."""
    code, said, err = run(
        *("release", "--data", data, "--schema", schema, "--epsilon", epsilon, "--without-inspection"),
        *("--out", folder / out, "--ledger", folder / "ledger.jsonl", *more),
    )
    assert code == 0, err
    return err + said


@pytest.fixture(scope="session")
def hospital(tmp_path_factory):
    """The table, its schema, rows to test on, keys, and a model that was released from it; not to be written to."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    folder = tmp_path_factory.mktemp("hospital")
    write_table(folder / "patients.csv", 2000, 1)
    write_table(folder / "new.csv", 1000, 2)
    (folder / "schema.yaml").write_text(SCHEMA)
    pem = serialization.Encoding.PEM
    for name in ("signer", "other"):
        key = Ed25519PrivateKey.generate()
        private = (pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        (folder / f"{name}.pem").write_bytes(key.private_bytes(*private))
        public = key.public_key().public_bytes(pem, serialization.PublicFormat.SubjectPublicKeyInfo)
        (folder / f"{name}.pub").write_bytes(public)
    schema, ledger = ("--schema", folder / "schema.yaml"), ("--ledger", folder / "ledger.jsonl")
    assert run("inspect", folder / "patients.csv", *schema, *ledger)[0] == 0
    code, out, err = run(
        *("release", "--data", folder / "patients.csv", *schema, "--epsilon", 1, *ledger),
        *("--out", folder / "model", "--sign", folder / "signer.pem"),
    )
    assert code == 0, err
    (folder / "said.txt").write_text(out)
    return folder


@pytest.fixture
def hospital_copy(hospital, tmp_path):
    """A copy of the released folder, and of its ledger."""
    shutil.copytree(hospital / "model", tmp_path / "model")
    shutil.copy(hospital / "ledger.jsonl", tmp_path)
    return tmp_path
