"""Shared by the tests of data sets: the mirror's place, a small web server, hand-made entries."""

import http.server
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.local_server import local_server
from tests.scripts import REPOSITORY

from privsvm_bench.datasets.catalogue import DataFile, DataPart, DatasetEntry


@pytest.fixture(scope="session")
def mirror() -> Path:
    """Folder with copies of the catalogue's files, or skip."""
    folder = Path(os.environ.get("PRIVSVM_MIRROR") or REPOSITORY.parent / "shared" / "datasets")
    if not (folder / "MANIFEST.json").is_file():
        pytest.skip(f"no mirror at {folder}: set PRIVSVM_MIRROR to a folder with MANIFEST.json and the data files")
    return folder


@pytest.fixture(autouse=True)
def no_mirror_from_outside(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a mirror of the machine, or its proxy, out of tests that do not ask for one."""
    folder = request.getfixturevalue("mirror") if "mirror" in request.fixturenames else ""
    monkeypatch.setenv("PRIVSVM_MIRROR", str(folder))
    monkeypatch.setenv("NO_PROXY", "*")


@dataclass
class Server:
    """A web server on this machine whose answers a test chooses."""

    files: dict[str, bytes] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    # Answer with this status so many times first.
    failures: list[int] = field(default_factory=list)
    # Break off after so many bytes, once for each number.
    cuts: list[int] = field(default_factory=list)
    address: str = ""

    def url(self, name: str) -> str:
        return f"{self.address}/{name}"


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    def answer(request: http.server.BaseHTTPRequestHandler) -> None:
        state.requests.append(request.path)
        body = state.files.get(request.path.lstrip("/"), b"")
        failed = state.failures or request.path.lstrip("/") not in state.files
        request.send_response((state.failures.pop(0) if state.failures else 404) if failed else 200)
        request.send_header("Content-Length", str(0 if failed else len(body)))
        request.end_headers()
        if failed:
            return
        if state.cuts:
            body = body[: state.cuts.pop(0)]
            request.close_connection = True
        request.wfile.write(body)

    with local_server(answer) as address:
        state.address = f"http://{address}"
        yield state


@pytest.fixture
def make_entry(tmp_path: Path) -> Callable[..., DatasetEntry]:
    """Write one raw file and build an entry of one part around it: `make_entry(bytes, format="csv", ...)`."""

    def make(content: bytes | str, name: str = "file", entry: dict | None = None, **fields: object) -> DatasetEntry:
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        recipe = DataPart(role="all", files=(name,), **fields)  # type: ignore[arg-type]
        return DatasetEntry(
            name="toy", files={name: DataFile(name)}, parts={"all": recipe}, pool=("all",), **(entry or {})
        )

    return make
