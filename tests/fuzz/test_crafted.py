"""Crafted models, cards and ledgers with valid digests end with one line, in little memory and with little work."""

import io
import json
import os
import shutil
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.archives import zip_of
from tests.fuzz.strategies import changes, events, fuzzed, little_memory_and_work, mutations, value_at
from tests.release.conftest import run
from tests.release.made_up import FIRST, read_folder, release_of_wards, write_folder

from privsvm.base.model_file import content_digest
from privsvm.digests import canonical_json

CORPUS = tomllib.loads(Path(__file__).with_name("corpus.toml").read_text(encoding="utf-8"))
ROWS = "age,ward,day,smoker\n50,a,2020-05-01,yes\n"
COMMANDS = ("verify", "card", "risk", "predict", "ledger")
DEEP = 900


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, Any]:
    """Make up a release: its folder, a folder for changed copies, its record, its card, and a line of its ledger."""
    origin, copy = (tmp_path_factory.mktemp(name) / "release" for name in ("origin", "copy"))
    origin.mkdir()
    release_of_wards(origin)
    (origin / "rows.csv").write_text(ROWS)
    record, card = read_folder(origin / "model")
    line = json.loads((origin / "ledger.jsonl").read_text().splitlines()[0])
    # Commands import modules, which is no work of a case.
    for command in COMMANDS:
        answer(origin, command)
    return {"origin": origin, "copy": copy, "record": record, "card": card, "ledger": line}


def answer(folder: Path, command: str) -> tuple[int, str, str]:
    """Run a command on a release."""
    model, ledger = folder / "model", ("--ledger", folder / "ledger.jsonl")
    arguments = {"verify": (model, *ledger), "predict": (model, folder / "rows.csv"), "ledger": ledger}
    return run(command, *arguments.get(command, (model,)))


def restore(files: dict[str, Any]) -> Path:
    """Return a new copy of the release in place of a changed one."""
    shutil.rmtree(files["copy"], ignore_errors=True)
    shutil.copytree(files["origin"], files["copy"])
    return Path(files["copy"])


def write(files: dict[str, Any], kind: str, content: Any, times: int = 1) -> Path:
    """Write a changed record, card or line of the ledger, with digests that fit."""
    folder = restore(files)
    if kind == "ledger":
        lines, previous = [], "0" * 64
        for number in range(1, times + 1):
            entry = {**content, "previous": previous} | ({"number": number} if times > 1 else {})
            previous = entry["hash"] = content_digest(entry, "hash")
            lines.append(canonical_json(entry) + "\n")
        (folder / "ledger.jsonl").write_text("".join(lines))
    else:
        record, card = ({**content} if name == kind else {**files[name]} for name in ("record", "card"))
        write_folder(folder / "model", record, card)
    return folder


def check(folder: Path, command: str) -> bool:
    """Require an answer or one line, and the proved epsilon where files verify; return whether it was refused."""
    with little_memory_and_work():
        code, out, err = answer(folder, command)
    assert code == 0 or (code, err.count("\n")) == (1, 1), (code, err[:300])
    # Files that verify show the unchanged proved epsilon.
    assert code or command != "verify" or "epsilon 2 per row, delta 1e-05" in out, out[-300:]
    return code != 0


def commands_on(kind: str) -> st.SearchStrategy[str]:
    """Draw a command that reads a file of one kind."""
    return st.sampled_from({"ledger": ("ledger", "verify"), "card": ("verify", "card")}.get(kind, COMMANDS[:4]))


@pytest.mark.parametrize("kind", ["record", "record.table", "card", "ledger", "first ledger"])
def test_changed_values(files, kind):
    refused = []
    kind, _, part = kind.partition(".")
    original = json.loads((FIRST / "ledger.jsonl").read_text()) if kind == "first ledger" else files[kind]
    kind = kind.removeprefix("first ")

    @fuzzed
    @given(changes(original[part] if part else original), commands_on(kind), st.sampled_from([1, 1, 1, 40]))
    def case(content: Any, command: str, times: int) -> None:
        content = original | {part: content} if part else content
        refused.append(check(write(files, kind, content, times), command))

    case()
    assert sum(refused) > len(refused) / 3


@pytest.mark.parametrize("kind", ["record", "ledger"])
def test_crafted_events(files, kind):
    @fuzzed
    @given(events(), st.booleans(), st.sampled_from([0.0, 1e-300, 1e-30, 1e-5, 0.9]), commands_on(kind))
    def case(event: Any, persons: bool, delta: float, command: str) -> None:
        content = json.loads(json.dumps(files[kind]))
        content["guarantee"]["event"] = event
        protection = content["protection"] if kind == "record" else content
        protection["delta"] = delta
        if persons:
            protection |= {"unit": "person", "rows": 64}
            content["guarantee"]["neighbours"] = "add_remove"
        check(write(files, kind, content), command)

    case()


@pytest.mark.parametrize("name", CORPUS)
def test_known_changes(files, name):
    for kind, changed in CORPUS[name].items():
        content = json.loads(json.dumps(files[kind]))
        for place, value in changed.items():
            *path, key = (int(part) if part.isdigit() else part for part in place.split("."))
            value_at(content, tuple(path))[key] = None if value == "none" else value
        folder = write(files, kind, content)
        for command in ("ledger", "verify") if kind == "ledger" else COMMANDS[:4]:
            check(folder, command)


def pack(arrays: dict[str, np.ndarray]) -> bytes:
    """Return the bytes of an archive of arrays; one that repeats a number takes no memory."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w") as file:
                if array.size > 10**6:
                    header = {"descr": "<f8", "fortran_order": False, "shape": array.shape}
                    np.lib.format.write_array_header_1_0(file, header)
                    for _ in range(0, array.nbytes, 1 << 20):
                        file.write(bytes(1 << 20))
                else:
                    np.lib.format.write_array(file, array)
    return buffer.getvalue()


SHAPES: dict[str, dict[str, tuple[int, ...]]] = {
    "linear": {"coef": (1, 1, 1, 6), "intercept": (1, 1, 1)},
    "kernel": {
        "support_vectors": (9, 6), "pair_coef": (1, 1, 9, 1), "intercept": (1, 1, 1), "kernel_parameters": (4,),
    },
    "constant": {"class_scores": (1, 1, 2)},
    "fourier linear": {
        "coef": (1, 1, 1, 10), "intercept": (1, 1, 1), "0.frequencies": (6, 5), "0.count": (1, 1),
    },
    "predictions": {"predicted_scores": (1, 1, 9, 2), "digest": (32,)},
    "random_kernel power linear": {
        "coef": (1, 1, 1, 9), "intercept": (1, 1, 1), "0.random_matrix": (9, 6), "0.centre": (6,),
        "0.spread": (6,), "0.gamma": (1,), "1.power": (1,),
    },
    "unknown": {"coef": (1, 1, 1, 6)},
}  # fmt: skip
TRANSFORMATIONS = [
    lambda array: array * np.nan, lambda array: array + np.inf, lambda array: array[None],
    lambda array: array.astype("U5"), lambda array: array.astype(complex), lambda array: array.astype(">f8"),
    lambda array: array.astype(object), lambda array: np.zeros(()), lambda array: np.zeros((0, 5)),
    lambda array: array.astype(np.float32), lambda array: array.reshape(-1), lambda array: array,
    lambda array: np.broadcast_to(0.0, (1, 1, 1, 30_000_000)), np.asfortranarray,
    lambda array: np.repeat(array, 3, axis=-1), lambda array: np.zeros(3, dtype=[("a", "f8"), ("b", "i4")]),
    lambda array: array.astype("M8[s]"),
]  # fmt: skip


def test_crafted_arrays(files):
    """Shapes, types and numbers of the arrays are changed, for models of any kind."""

    @fuzzed
    @given(st.sampled_from([*SHAPES]), st.sampled_from(TRANSFORMATIONS), st.data(), st.sampled_from(COMMANDS[:4]))
    def case(kind: str, transform: Any, data: st.DataObject, command: str) -> None:
        arrays = {name: np.ones(shape) for name, shape in SHAPES[kind].items()}
        name = data.draw(st.sampled_from([*arrays]))
        arrays[name] = transform(arrays[name])
        extra = data.draw(st.sampled_from([None, None, None, "epsilons", "extra", "../x", "n_classes"]))
        write_archive(files, pack(arrays if extra is None else {**arrays, extra: np.zeros(2)}), kind)
        check(files["copy"], command)

    case()


def write_archive(files: dict[str, Any], archive: bytes, kind: str = "linear") -> None:
    """Write the archive of a model, with digests that fit."""
    folder = restore(files)
    (folder / "model/model.npz").write_bytes(archive)
    write_folder(folder / "model", {**files["record"], "kind": kind, "table": None}, {**files["card"]})


HEADER = "{'descr': %s, 'fortran_order': False, 'shape': %s, }"
HEADERS = [
    HEADER % ("'<f8'", f"({'9' * 30})"), HEADER % ("'<f8'", "(-1,)"), "[" * 5000, "(" * 60_000,
    HEADER % ("__import__('os').getcwd()", "(1,)"), HEADER % ("'|O'", "(1,)"), "\xff" * 30, "",
    HEADER % ("'<f8'", f"({'1,' * 60})"), HEADER % ("'<f8'", "(1L,)"),
]  # fmt: skip


def archive_of(content: bytes, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """Return an archive of two arrays with the same content."""
    return zip_of(("coef.npy", content), ("intercept.npy", content), method=method)


def test_damaged_archives(files):
    """Bytes are changed, entries are many or large, headers are odd."""
    original = (files["origin"] / "model/model.npz").read_bytes()
    headers = [
        archive_of(b"\x93NUMPY" + bytes([version, 0]) + (len(text) % 65536).to_bytes(2, "little")
                   + text.encode("latin-1") + bytes(8), method)
        for text in HEADERS for version in (1, 2, 9) for method in (0, 14)
    ]  # fmt: skip
    others = [zip_of(*((str(number), b"") for number in range(20_000))), archive_of(bytes(30_000_000)), archive_of(b"")]

    @fuzzed
    @given(mutations(original) | st.sampled_from([*headers, *others, bytes(5_000_000)]), st.sampled_from(COMMANDS[:4]))
    def case(archive: bytes, command: str) -> None:
        write_archive(files, archive, files["record"]["kind"])
        check(files["copy"], command)

    case()


TEXTS = [
    b"", b"[" * DEEP + b"]" * DEEP, b'{"a":' * DEEP + b"1" + b"}" * DEEP, b"[" * 2_000_000, b" " * 3_000_000,
    b"[" + b"[]," * 650_000 + b"[]]", b'{"version":' + b"9" * 5000 + b"}", b'"' + b'\\"' * 900_000,
    b'{"version":NaN,"format":"privsvm card"}', b"\n" * 900_000, b"null\n", b"3\n", b'"a"\n', b"{}\n",
    b'{"format":"privsvm model","version":true}\n', b'{"version":1}\n' * 3,
]  # fmt: skip
EDITS = [
    lambda text: b"\xef\xbb\xbf" + text, lambda text: text.decode().encode("utf-16"), lambda text: text + text,
    lambda text: text.replace(b"2", b"1e999", 1), lambda text: text[:-2], lambda text: b"\x80" + text,
    lambda text: text.replace(b'"', b'"\\ud800', 3),
]  # fmt: skip
READERS = {"model/card.json": COMMANDS[:2], "model/model.json": COMMANDS[:4], "ledger.jsonl": ("ledger", "verify")}


@pytest.mark.parametrize("name", READERS)
def test_other_texts(files, name):
    """JSON files are replaced by other bytes."""
    original = (files["origin"] / name).read_bytes()
    for content in [*TEXTS, *(edit(original) for edit in EDITS)]:
        folder = restore(files)
        (folder / name).write_bytes(content)
        for command in READERS[name]:
            check(folder, command)


def put_sparse(path: Path) -> None:
    with open(path, "wb") as handle:
        handle.truncate(1 << 40)


OTHER_FILES = {
    "pipe": os.mkfifo, "folder": os.mkdir, "zeros": lambda path: path.symlink_to("/dev/zero"),
    "input": lambda path: path.symlink_to("/dev/stdin"), "loop": lambda path: path.symlink_to(path),
    "sparse": put_sparse, "nothing": lambda path: None,
}  # fmt: skip


@pytest.mark.parametrize("kind", OTHER_FILES)
@pytest.mark.parametrize("name", [*READERS, "model/model.npz", "model/card.html"])
def test_other_kinds_of_files(files, name, kind):
    path = restore(files) / name
    path.unlink()
    OTHER_FILES[kind](path)
    for command in READERS.get(name, COMMANDS[:4]):
        check(files["copy"], command)
