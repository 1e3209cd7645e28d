"""Faults: every file is the complete old or new one, the message is one line, the next attempt succeeds.

Each fault strikes at a few calls; ``PRIVSVM_FAULTS=all pytest tests/faults`` tries every call.
"""

import errno
import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from privsvm.base.released import ConstantPath
from privsvm.files import remove_leftovers, write_json, write_npz, write_text
from privsvm.privacy.gate import Guarantee
from privsvm.release.documents.ledger import Ledger
from privsvm.release.documents.verifying import verify
from privsvm.release.training.recipes import Recipe, Terms
from privsvm.release.training.releasing import CardOptions, Permission, release
from privsvm.tables.schema import parse_schema
from privsvm_bench.datasets import download
from privsvm_bench.datasets.catalogue import DataFile
from privsvm_bench.jobs.model_files import collect_fields, load_paths, save_paths
from privsvm_bench.records import SavedModels
from tests.faults.harness import BadServer, Outcome, failing_at, growing_to, in_fork, kill_at
from tests.refusals import refusal
from tests.waits import PATIENCE

MOMENTS = 10**6 if os.environ.get("PRIVSVM_FAULTS") == "all" else 3
ROWS = np.random.default_rng(0).uniform(-1, 1, size=(120, 40))
SCHEMA = parse_schema(
    {
        "name": "small",
        "label": "y",
        "classes": [0, 1],
        "prescaled": False,
        "columns": {"a": {"bounds": [-1, 1], "fill": "middle"}, "b": {"bounds": [-1, 1], "fill": "middle"}},
    }
)
NONE = Guarantee(status="none", mechanism="none", reason="no noise", reference="test")


def write_record(folder: Path) -> None:
    write_json(folder / "record.json", {"rows": ROWS.tolist()})


def write_arrays(folder: Path) -> None:
    write_npz(folder / "arrays.npz", {"X": ROWS})


def write_models(folder: Path) -> None:
    path = ConstantPath(epsilons=(float("inf"),), guarantees=(NONE,), n_classes=40, class_scores=ROWS[:1, None, :])
    record = SavedModels(implementation="majority", classes=tuple(map(str, range(40))), **collect_fields([path]))
    save_paths([path], folder / "m.npz", folder / "m.json", record)


def write_page(folder: Path) -> None:
    write_text(folder / "index.html", "<p>" + "rows " * 9000)


def release_model(folder: Path) -> None:
    table = "a,b,y\n" + "".join(f"{a},{b},{int(a > 0)}\n" for a, b in ROWS[:, :2])
    source = folder.parent / "table.csv"
    if not source.exists():
        source.write_text(table)
    ledger = Ledger(folder / "ledger.jsonl")
    recipe = Recipe("private_svm", {"C": 0.02})
    if (folder / "model").exists():
        return
    unseen, card = Permission(without_inspection=True), CardOptions(today="2026-01-01")
    release(source, SCHEMA, folder / "model", Terms(1.0, recipe=recipe), ledger, unseen, card)


@dataclass(frozen=True)
class Work:
    """Code that writes files; ``same``: with the same bytes each time."""

    do: Callable[[Path], None]
    files: tuple[str, ...]
    same: bool = True


WORKS = {
    "record": Work(write_record, ("record.json",)),
    "arrays": Work(write_arrays, ("arrays.npz",)),
    "models": Work(write_models, ("m.json", "m.npz")),
    "page": Work(write_page, ("index.html",)),
    "release": Work(release_model, ("ledger.jsonl", "model"), same=False),
}
OLD = b"a complete earlier version"


def begin(work: Work, folder: Path) -> None:
    """Write the earlier version of the files, if the work replaces files."""
    folder.mkdir(exist_ok=True)
    for name in work.files if work.same else ():
        (folder / name).write_bytes(OLD)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def check_after(work: Work, folder: Path, expected: dict[str, bytes], outcome: Outcome, killed: bool) -> None:
    """Require complete files, and success of a second attempt."""
    assert outcome.code in (0, 1) or outcome.was_killed, outcome.message
    assert outcome.code != 1 or (outcome.message and "\n" not in outcome.message)
    files = contents(folder)
    # A release that is in the ledger is kept for the next attempt.
    kept = ".model.part/" if files.get("ledger.jsonl") else "/"
    leftovers = [name for name in files if ".part" in name and not name.startswith(kept)]
    assert kept == "/" or outcome.code or (folder / "model").exists()
    assert kept == "/" or outcome.was_killed or outcome.code == 0 or "spends nothing" in outcome.message
    assert not leftovers or killed, leftovers
    if work.same:
        for name in work.files:
            assert files[name] in (OLD, expected[name]), f"{name} is neither the old file nor the new one"
    work.do(folder)
    if killed:
        # Jobs begin by removing leftovers of their outputs.
        for name in work.files:
            remove_leftovers(folder / name)
    after = {name: content for name, content in contents(folder).items() if not name.endswith(".lock")}
    assert set(after) == set(expected)
    if work.same:
        assert after == expected
    if "ledger.jsonl" in work.files:
        ledger = Ledger(folder / "ledger.jsonl")
        verify(folder / "model", ledger=ledger)
        assert len(ledger.entries()) == 1
    if "m.npz" in work.files:
        load_paths(folder / "m.npz", folder / "m.json", SavedModels)


@pytest.fixture(scope="module")
def clean_runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[dict[str, bytes], int, int]]:
    """Return the files of each work, and its numbers of calls."""
    undisturbed_runs = {}
    for name, work in WORKS.items():
        counts = []
        for fault in (failing_at(0, errno.ENOSPC), kill_at(0)):
            folder = tmp_path_factory.mktemp(name) / "files"
            begin(work, folder)
            outcome = in_fork(lambda work=work, folder=folder: work.do(folder), fault)
            assert outcome.code == 0, outcome.message
            counts.append(outcome.calls)
        files = {name: content for name, content in contents(folder).items() if not name.endswith(".lock")}
        undisturbed_runs[name] = (files, *counts)
    return undisturbed_runs


def sample_calls(n_calls: int) -> list[int]:
    """Choose numbers of calls from the first to the last."""
    return sorted({round(number) for number in np.linspace(1, n_calls, min(n_calls, MOMENTS))})


FAULTS = {
    **{name: partial(failing_at, kind=kind)
       for name, kind in {"full": errno.ENOSPC, "broken": errno.EIO, "closed": errno.EACCES}.items()},
    "killed": kill_at,
}  # fmt: skip


@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("name", WORKS)
def test_calls_that_fail(clean_runs, tmp_path: Path, name: str, kind: str) -> None:
    """A call of the work fails; a kill also strikes the next attempt, before one that succeeds."""
    work, (expected, *calls) = WORKS[name], clean_runs[name]
    last, stopped = calls[kind == "killed"], 0
    for number in sample_calls(last):
        folder = tmp_path / str(number) / "files"
        folder.parent.mkdir()
        begin(work, folder)
        for moment in (number, last + 1 - number) if kind == "killed" else (number,):
            outcome = in_fork(lambda folder=folder: work.do(folder), FAULTS[kind](moment))
            stopped += outcome.code != 0
            if outcome.code == 0:
                break
        check_after(work, folder, expected, outcome, kind == "killed")
    assert stopped


@pytest.mark.parametrize("name", WORKS)
def test_a_disk_that_is_full(clean_runs, tmp_path: Path, name: str) -> None:
    work, (expected, *_) = WORKS[name], clean_runs[name]
    largest, stopped = max(len(content) for content in expected.values()), 0
    for share in (0.1, 0.5, 0.9):
        folder = tmp_path / f"{share}" / "files"
        folder.parent.mkdir()
        begin(work, folder)
        outcome = in_fork(lambda folder=folder: work.do(folder), growing_to(int(share * largest)))
        stopped += outcome.code == 1
        check_after(work, folder, expected, outcome, killed=False)
    assert stopped


BODY = bytes(np.random.default_rng(1).integers(0, 256, size=20_000, dtype=np.uint8))


def body_at(*addresses: str) -> DataFile:
    urls = tuple(f"{address}/a" for address in addresses)
    return DataFile("a.data", urls=urls, sha256=hashlib.sha256(BODY).hexdigest(), max_bytes=1 << 20)


@pytest.fixture
def good(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[BadServer]:
    """Start a server that sends the file; bypass proxies and empty the cache."""
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setenv("PRIVSVM_CACHE", str(tmp_path / "cache"))
    server = BadServer("wrong", BODY[::-1])
    yield server
    server.close()


@pytest.mark.parametrize(
    "habit", ["closed", "error", "missing", "hang", "cut", "page", "wrong", "empty", "endless", "loop"]
)
def test_servers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, good: BadServer, habit: str) -> None:
    """A bad server causes one line and no file; another source is used."""
    for name, value in (("CONNECT_SECONDS", 1.0), ("READ_SECONDS", 0.5), ("RETRIES", 1)):
        monkeypatch.setattr(download, name, value)
    bad = BadServer("error" if habit == "closed" else habit, BODY)
    if habit == "closed":
        bad.close()
    target = tmp_path / "raw" / "a.data"
    try:
        message = refusal(download.fetch_file, body_at(bad.address), target)
        assert {"cut": "broken off", "endless": f"more than {1 << 20} bytes"}.get(habit, "") in message
        assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file() and path.suffix != ".lock"]
        # Each of two attempts follows at most 30 redirects.
        assert bad.requests <= (62 if habit == "loop" else 2)
        assert list(target.parent.glob("*")) == []
        # A server that hangs closes by itself; the good one may take its time.
        for name, value in (("CONNECT_SECONDS", PATIENCE), ("READ_SECONDS", PATIENCE), ("RETRIES", 0)):
            monkeypatch.setattr(download, name, value)
        download.fetch_file(body_at(bad.address, good.address), target)
        assert target.read_bytes() == BODY
        assert [path.name for path in target.parent.iterdir()] == ["a.data"]
    finally:
        if habit != "closed":
            bad.close()


@pytest.mark.parametrize("kind", ["cache", "raw"])
def test_downloads_to_a_full_disk(tmp_path: Path, good: BadServer, kind: str) -> None:
    """A full disk causes one line, no retry, and no half-written file."""
    target = tmp_path / "raw" / "a.data"
    if kind == "raw":
        # The download itself fits.
        download.fetch_file(body_at(good.address), tmp_path / "b.data")
    outcome = in_fork(lambda: download.fetch_file(body_at(good.address), target), growing_to(len(BODY) // 2))
    assert outcome.code == 1
    assert outcome.message
    assert "\n" not in outcome.message
    assert good.requests == 1
    assert [path for path in tmp_path.glob("*/**/*a.data*") if path.is_file() and path.stat().st_size < len(BODY)] == []
    download.fetch_file(body_at(good.address), target)
    assert target.read_bytes() == BODY
