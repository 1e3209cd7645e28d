"""Craft hostile model, card and ledger files with valid digests, and run commands on them.

``python -m tests.fuzz.crafted 1000`` prints a JSON line for each case: the change, the exit code, lines on standard
error, calls of functions, and megabytes of the process. Every case runs in a fork.
"""

from __future__ import annotations

import atexit
import contextlib
import copy
import functools
import io
import json
import os
import random
import resource
import shutil
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tests.release.made_up import FIRST, release_of_wards
from tests.steps import counted_calls
from tests.waits import PATIENCE

from privsvm.base.model_file import content_digest
from privsvm.digests import canonical_json, sha256_of_file
from privsvm.release.card import CARD_FILES
from privsvm.release.card_page import page

DEEP = 900

ODD: list[Any] = [
    None, True, -1, 0, 1, 2**31, 2**64, 10**400, -(10**300), 1e308, 5e-324, 0.5, "", "proved", "inf", "nan",
    "\x00\n\x1b",
    "\ud800", "x" * 100_000, [], {}, [[]], [None] * 3, {"kind": "gaussian"}, [0.1] * 40_000, {"": {"": {"": 0}}},
    "replace_one", "add_remove", "person", "1e-5", 1e-300,
]  # fmt: skip


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """List the paths of all values within a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [inner for key, item in items for inner in [(*path, key), *paths(item, (*path, key))]]


def put(content: Any, path: tuple[Any, ...], value: Any) -> None:
    for key in path[:-1]:
        content = content[key]
    content[path[-1]] = value


def mutated(rng: random.Random, content: Any) -> Any:
    """Replace, delete, scale, nest or duplicate one to three values of a JSON value."""
    content = copy.deepcopy(content)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        path = rng.choice(paths(content))
        home = content
        for key in path[:-1]:
            home = home[key]
        match rng.randrange(6):
            case 0 if isinstance(home, dict):
                del home[path[-1]]
            case 1 if isinstance(home, list):
                home.extend(copy.deepcopy(home) * rng.choice([1, 500]))
            case 2 if isinstance(home[path[-1]], (int, float)):
                home[path[-1]] *= rng.choice([-1, 0, 1e-9, 1e9, 1 + 1e-5])
            case 3:
                put(content, path, nested(rng.choice([30, 60, DEEP // 2])))
            case _:
                put(content, path, copy.deepcopy(rng.choice(ODD)))
    return content


def crafted_event(rng: random.Random, depth: int = 0) -> dict[str, Any]:
    """Make an event of any kind, mostly with extreme numbers."""

    def number() -> float:
        return rng.choice([1e-300, 1e-9, 1e-3, 0.3, 1.0, 7.0, 40.0, 1e6, 1e300])

    def count() -> int:
        return rng.choice([1, 40, 10**4, 10**6, 10**9, 10**40])

    def inner() -> dict[str, Any]:
        return crafted_event(rng, depth + 1)

    gaussian = {"kind": "gaussian", "noise_multiplier": number()}
    simple: list[Callable[[], dict[str, Any]]] = [
        lambda: gaussian,
        lambda: {"kind": "laplace", "noise_multiplier": number()},
        lambda: {"kind": "exponential_mechanism", "epsilon": number()},
        lambda: {"kind": "zcdp", "rho": number()},
        lambda: {"kind": "epsilon_delta", "epsilon": number(), "delta": rng.choice([0, 1e-9, 1e-5])},
        lambda: {
            "kind": "perturbed_objectives", "signal": number(), "curvature": number(), "n_objectives": count(),
            "output_multiplier": number(),
        },
        lambda: {
            "kind": "poisson_sampled", "event": gaussian,
            "sampling_probability": rng.choice([1e-9, 1e-4, 0.01, 0.5, 1]),
        },
    ]  # fmt: skip
    within: list[Callable[[], dict[str, Any]]] = [
        lambda: {"kind": "self_composed", "event": inner(), "count": count()},
        lambda: {"kind": "composed", "events": [inner() for _ in range(rng.choice([1, 2, 3, 30]))]},
        lambda: {"kind": "one_of", "events": [inner() for _ in range(rng.choice([1, 2]))]},
        lambda: {"kind": "best_of_poisson", "parameter": number(), "event": inner()},
        lambda: {
            "kind": "best_of_negative_binomial", "shape": rng.choice([-0.9, 0, 1, 1e5]), "event": inner(),
            "gamma": rng.choice([1e-9, 0.1, 0.9]),
        },
    ]  # fmt: skip
    return rng.choice(simple if depth > 2 else [*simple, *within])()


@functools.cache
def _release() -> Path:
    """Make up a release once, for all cases."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    release_of_wards(folder)
    return folder


class Folder:
    """A made-up release with its ledger, for changes."""

    def __init__(self, path: Path) -> None:
        self.path, self.ledger = path / "model", path / "ledger.jsonl"
        shutil.copytree(_release(), path, dirs_exist_ok=True)
        self.rows = path / "rows.csv"
        self.rows.write_text("age,ward,day,smoker\n50,a,2020-05-01,yes\n")
        self.record = json.loads((self.path / "model.json").read_text())
        self.card = json.loads((self.path / "card.json").read_text())
        with np.load(self.path / "model.npz") as stored:
            self.arrays = dict(stored)

    def write(self) -> None:
        """Write record, card and its page, with new digests."""
        self.record["arrays"] = sha256_of_file(self.path / "model.npz")
        self.record["digest"] = content_digest(self.record, "digest")
        (self.path / "model.json").write_text(canonical_json(self.record, indent=1) + "\n")
        self.card["model_digest"] = self.record["digest"]
        if "files" in self.card:
            self.card["files"] = {name: sha256_of_file(self.path / name) for name in CARD_FILES}
        self.card["digest"] = content_digest(self.card, "digest", "signature")
        with contextlib.suppress(Exception):
            (self.path / "card.html").write_text(page(self.card))
        (self.path / "card.json").write_text(canonical_json(self.card, indent=1) + "\n")

    def write_ledger(self, line: dict[str, Any], times: int = 1) -> None:
        lines, previous = [], "0" * 64
        for number in range(1, times + 1):
            entry = {**line, "previous": previous} | ({"number": number} if times > 1 else {})
            entry["hash"] = content_digest(entry, "hash")
            previous = entry["hash"]
            lines.append(canonical_json(entry) + "\n")
        self.ledger.write_text("".join(lines))


def change_record(rng: random.Random, folder: Folder) -> None:
    folder.record = mutated(rng, folder.record)
    folder.write()


def change_card(rng: random.Random, folder: Folder) -> None:
    folder.card = mutated(rng, folder.card)
    folder.write()


def change_ledger(rng: random.Random, folder: Folder) -> None:
    # The line that pays, of the first version and of this one.
    paying = [(FIRST / "ledger.jsonl").read_text(), folder.ledger.read_text().splitlines()[0]]
    line = json.loads(rng.choice(paying))
    if rng.random() < 0.3:
        line["guarantee"]["event"] = crafted_event(rng)
    elif rng.random() < 0.3:
        line |= {"unit": "person", "rows": rng.choice([1, 5, 64, 1000, 10**9])}
    else:
        line = mutated(rng, line)
    folder.write_ledger(line, rng.choice([1, 1, 1, 300]))


def change_event(rng: random.Random, folder: Folder) -> None:
    """Change the event, the unit of protection and delta."""
    guarantee, protection = folder.record["guarantee"], folder.record["protection"]
    guarantee["event"] = crafted_event(rng)
    if rng.random() < 0.5:
        guarantee |= {"epsilon_proved": rng.choice([1e-9, 1.0, 49.0]), "epsilon_requested": 50.0}
        guarantee["neighbours"] = rng.choice(["replace_one", "add_remove"])
    if rng.random() < 0.5:
        protection |= {"unit": "person", "rows": rng.choice([1, 5, 64, 1000, 10**9])}
        folder.record["guarantee"]["neighbours"] = "add_remove"
    if rng.random() < 0.3:
        protection["delta"] = rng.choice([0.0, 1e-300, 1e-30, 0.9])
    folder.write()


def change_measured(rng: random.Random, folder: Folder) -> None:
    """Add a measurement, with or without its event."""
    scale = rng.choice([0, -1, 2, 1e-300, 1e300, "2"])
    if rng.random() < 0.7:
        event = folder.record["guarantee"]["event"]
        folder.record["guarantee"]["event"] = {
            "kind": "one_of",
            "events": [event, {"kind": "laplace", "noise_multiplier": 2}],
        }
    counts = rng.choice([[1.0, 2.0], [1e308, 1e308], [-5.0, "a"], [1.0] * 3000, [], {"a": 1}, [2**70, 1]])
    folder.card["measured"] = {
        "hold_back": rng.choice([0.1, 0, "x", 1e300]), "rows_per_unit": rng.choice([1, 10**9, 0, -1]),
        "number": rng.choice([None, 3, 0, 10**300]), "scale": rng.choice([2, 2.0, scale]), "right": counts,
        "wrong": rng.choice([counts, [3.0, 1.0]]), "confidence": 0.95, "accuracy": [0.5, 0.1, 0.9],
        "balanced_accuracy": [0.5, 0.1, 0.9],
    }  # fmt: skip
    if rng.random() < 0.5:
        folder.record["held_back"] = {
            "hold_back": rng.choice([0.1, None]), "rows_per_unit": 1, "number": rng.choice([None, 3, -1, 10**300]),
            "scale": rng.choice([2, 2.0, scale]), "edges": rng.choice([[], [0.5], [1e300], [2, 1], "a"]),
            "counts": [[counts], rng.choice([[counts], [[3.0, 1.0]], [], 5])],
        }  # fmt: skip
    folder.write()


def change_classes(rng: random.Random, folder: Folder) -> None:
    folder.record["classes"] = rng.choice(
        [
            ["a", "a"],
            [0, 0.0],
            [1, True],
            ["1", 1],
            [2**70, 1],
            ["a\0", "a"],
            [],
            ["a"],
            list(range(50_000)),
            [1e300, "inf"],
        ]
    )
    folder.record["table"] = rng.choice([None, folder.record["table"]])
    folder.write()


def change_schema(rng: random.Random, folder: Folder) -> None:
    """Make a table with many columns or categories, or with odd patterns."""
    table = folder.record["table"]
    many = [[f"c{number}", {"bounds": [0, 1]}] for number in range(rng.choice([3, 8000]))]
    match rng.randrange(5):
        case 0:
            table["columns"] = many
        case 1:
            table["columns"][1][1]["categories"] = [str(number) for number in range(60_000)]
        case 2:
            table["columns"][2][1]["date"] = rng.choice(
                ["%" * 50_000, "%Y" * 9000, "(" * 3000, "%Y-%m-%d" + "a" * 50_000]
            )
        case 3:
            table["columns"] = table["columns"] * rng.choice([2, 3000])
        case 4:
            folder.record["table"] = mutated(rng, table)
    folder.write()


def change_arrays(rng: random.Random, folder: Folder) -> None:
    """Change shapes, types and numbers of the arrays, for models of any kind."""
    shapes: dict[str, dict[str, tuple[int, ...]]] = {
        "linear": {"coef": (1, 1, 1, 6), "intercept": (1, 1, 1)},
        "kernel": {
            "support_vectors": (9, 6), "pair_coef": (1, 1, 9, 1), "intercept": (1, 1, 1), "kernel_parameters": (4,),
        },
        "constant": {"class_scores": (1, 1, 2)},
        "fourier": {"frequencies": (6, 5), "coef": (1, 1, 1, 10)},
        "predictions": {"predicted_scores": (1, 1, 9, 2), "digest": (32,)},
        "random_kernel": {
            "coef": (1, 1, 1, 9), "intercept": (1, 1, 1), "power": (1,), "random_matrix": (9, 6), "centre": (6,),
            "spread": (6,), "gamma": (1,),
        },
    }  # fmt: skip
    arrays = dict(folder.arrays)
    if rng.random() < 0.6:
        folder.record["kind"] = kind = rng.choice([*shapes, "unknown", "unit_linear"])
        arrays = {name: np.ones(shape) for name, shape in shapes.get(kind, shapes["linear"]).items()}
    name = rng.choice([*arrays])
    array = arrays[name]
    arrays[name] = rng.choice(
        [
            array * np.nan, array + np.inf, array[None], array.astype("U5"), array.astype(complex), array.astype(">f8"),
            array.astype(object), np.zeros(()), np.zeros((0, 5)), array.astype(np.float32), array.reshape(-1),
            np.broadcast_to(0.0, (1, 1, 1, 130_000_000)), array, np.asfortranarray(array), np.repeat(array, 3, axis=-1),
            np.zeros(3, dtype=[("a", "f8"), ("b", "i4")]), array.astype("M8[s]"),
        ]
    )  # fmt: skip
    if rng.random() < 0.2:
        arrays = {**arrays, rng.choice(["epsilons", "extra", "../x", "n_classes"]): np.zeros(2)}
    if rng.random() < 0.1:
        del arrays[name]
    with zipfile.ZipFile(folder.path / "model.npz", "w") as archive:
        for array_name, numbers in arrays.items():
            pack(archive, array_name, numbers)
    folder.record["table"] = None
    folder.write()


def pack(archive: zipfile.ZipFile, name: str, array: np.ndarray) -> None:
    """Write an array; one that repeats a number takes no memory."""
    entry = zipfile.ZipInfo(f"{name}.npy")
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.file_size = array.nbytes
    with archive.open(entry, "w", force_zip64=array.nbytes > 1 << 30) as file:
        if array.size and not any(array.strides) and array.size > 10**6:
            header = {"descr": "<f8", "fortran_order": False, "shape": array.shape}
            np.lib.format.write_array_header_1_0(file, header)
            for _ in range(0, array.nbytes, 1 << 20):
                file.write(bytes(min(1 << 20, array.nbytes)))
        else:
            np.lib.format.write_array(file, array)


def change_zip(rng: random.Random, folder: Folder) -> None:
    """Damage the archive: flipped bytes, many entries, odd headers, other sizes."""
    path = folder.path / "model.npz"
    data = bytearray(path.read_bytes())
    headers = [
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (%s), }" % (b"9" * 30),
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }", b"[" * 5000, b"(" * 60_000,
        b"{'descr': __import__('os').getcwd(), 'fortran_order': False, 'shape': (1,), }",
        b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", b"\xff" * 30, b"",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (%s), }" % (b"1," * 60),
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (1L,), }",
    ]  # fmt: skip
    match rng.randrange(6):
        case 0:
            for _ in range(rng.choice([1, 5, 40])):
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            path.write_bytes(data)
        case 1:
            path.write_bytes(data[: rng.randrange(len(data))] + bytes(rng.choice([0, 90_000])))
        case 2:
            with zipfile.ZipFile(path, "w") as archive, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for number in range(rng.choice([2, 20_000])):
                    archive.writestr(rng.choice(["coef.npy", f"{number}"]), b"")
        case 3:
            header = rng.choice(headers)
            with zipfile.ZipFile(path, "w", rng.choice([0, 8, 12, 14])) as archive:
                for name in folder.arrays:
                    start = (
                        b"\x93NUMPY"
                        + bytes([rng.choice([1, 1, 1, 2, 3, 9]), 0])
                        + (len(header) % 65536).to_bytes(2, "little")
                    )
                    archive.writestr(f"{name}.npy", start + header + bytes(8))
        case 4:
            with zipfile.ZipFile(path, "w", 8) as archive:
                for name in folder.arrays:
                    archive.writestr(f"{name}.npy", bytes(rng.choice([0, 100, 30_000_000])))
        case 5:
            path.write_bytes(os.urandom(rng.choice([0, 10, 5_000_000])))
    folder.write()


def change_bytes(rng: random.Random, folder: Folder) -> None:
    """Replace a JSON file by other bytes."""
    path = rng.choice([folder.path / "card.json", folder.path / "model.json", folder.ledger])
    original = path.read_bytes()
    contents = [
        b"", b"[" * DEEP + b"]" * DEEP, b'{"a":' * DEEP + b"1" + b"}" * DEEP, b"[" * 2_000_000, b" " * 3_000_000,
        b"[" + b"[]," * 650_000 + b"[]]", b'{"version":' + b"9" * 5000 + b"}", b"\xef\xbb\xbf" + original,
        original.decode().encode("utf-16"), b'"' + b'\\"' * 900_000, b'{"version":NaN,"format":"privsvm card"}',
        b"\n" * 900_000, original.replace(b"2", b"1e999", 1), original + original, original[:-2], b"\x80" + original,
        b"null\n", b"3\n", b'"a"\n', b"{}\n", b'{"format":"privsvm model","version":true}\n', b'{"version":1}\n' * 3,
        original.replace(b'"', b'"\\ud800', 3),
    ]  # fmt: skip
    path.write_bytes(rng.choice(contents))


def change_kind(rng: random.Random, folder: Folder) -> None:
    """Replace a file by a pipe, folder, link, sparse file, or nothing."""
    path = rng.choice([*folder.path.iterdir(), folder.ledger])
    path.unlink()
    match rng.randrange(6):
        case 0:
            os.mkfifo(path)
        case 1:
            path.mkdir()
        case 2:
            path.symlink_to(rng.choice(["/dev/zero", "/dev/stdin", "/dev/null"]))
        case 3:
            path.symlink_to(path)
        case 4:
            with open(path, "wb") as handle:
                handle.truncate(rng.choice([1 << 30, 1 << 40]))


CHANGES: tuple[Callable[[random.Random, Folder], None], ...] = (
    change_record, change_card, change_ledger, change_event, change_measured, change_classes, change_schema,
    change_arrays, change_zip, change_bytes, change_kind,
)  # fmt: skip


def answer(folder: Folder, command: str) -> tuple[int, str, str]:
    """Run a command in this process."""
    from privsvm.command import main

    arguments = {
        "verify": ["verify", folder.path, "--ledger", folder.ledger],
        "card": ["card", folder.path],
        "risk": ["risk", folder.path],
        "predict": ["predict", folder.path, folder.rows],
        "ledger": ["ledger", "--ledger", folder.ledger],
    }[command]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([str(argument) for argument in arguments])
    return code, out.getvalue(), err.getvalue()


def run_case(number: int, seed: int) -> dict[str, Any]:
    """Craft one case in a fork, and run a command on it in another."""
    rng = random.Random(f"{seed} {number}")
    change = CHANGES[number % len(CHANGES)]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Folder(Path(temporary))
        child = os.fork()
        if child == 0:
            # Fork: crafted files may take much memory and recursion.
            sys.setrecursionlimit(10_000)
            change(rng, folder)
            os._exit(0)
        if os.waitpid(child, 0)[1]:
            raise RuntimeError(f"case {number} of {change.__name__} could not be crafted")
        commands = ["verify", "card", "predict", "risk"]
        commands = ["ledger", "verify"] if change is change_ledger else commands[: 2 if change is change_card else 4]
        if change in (change_bytes, change_kind):
            commands = [*commands, "ledger"]
        command = rng.choice(commands)
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            # Against hanging only.
            resource.setrlimit(resource.RLIMIT_CPU, (PATIENCE, PATIENCE))
            try:
                with counted_calls() as calls:
                    code, out, err = answer(folder, command)
                outcome: dict[str, Any] = {"code": code, "out": out[-200:], "err": err[:300], "lines": err.count("\n")}
                outcome["calls"] = calls[0]
            except BaseException as error:
                outcome = {"code": -1, "out": "", "err": f"{type(error).__name__}: {error}"[:300], "lines": 99}
            os.write(write, json.dumps(outcome).encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            report = pipe.read()
        _, status, usage = os.wait4(child, 0)
    outcome = json.loads(report) if report else {"code": status, "out": "", "err": "died", "lines": 99}
    outcome |= {"case": number, "change": change.__name__, "command": command}
    return {"calls": 0} | outcome | {"megabytes": usage.ru_maxrss >> 10}


def main() -> None:
    """Run a number of cases, with a seed as the second argument."""
    cases, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    with tempfile.TemporaryDirectory() as temporary:
        # What they import is no work of a case.
        for command in ("verify", "card", "risk", "predict", "ledger"):
            answer(Folder(Path(temporary) / command), command)
    for number in range(cases):
        print(json.dumps(run_case(number, seed)), flush=True)


if __name__ == "__main__":
    main()
