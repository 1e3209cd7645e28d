"""Sources of measured tables: the code, day and machine of every entry, and the sample that last confirmed it.

``sources.json`` in a folder of tables maps a table to its entries, such as methods::

    {"leaderboard": {"dp_lda": {
        "measured": [{"code": "5f2c", "date": "2026-11-20", "machine": "...", "parts": {"wine": 0.05}}],
        "confirmed": {"code": "91ab", "date": "2026-11-27", "machine": "...", "cells": 8, "difference": 0.0}}}}

Parts of an entry, such as datasets, may be measured one by one; each holds the median processor seconds of its cells.
Measurements from before this file have neither code nor machine.
"""

from __future__ import annotations

import datetime
import importlib.metadata
import os
import platform
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from privsvm.files import read_json, write_json

Key = TypeVar("Key")
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba")


def machine() -> str:
    """Describe processor, system and libraries of this machine."""
    model = platform.processor()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), model)
    libraries = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in _LIBRARIES)
    system = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    return f"{model}, {os.cpu_count()} cores, {system}, {libraries}"


def describe_commit(folder: str | os.PathLike[str] = ".") -> str:
    """Name the commit of a working copy, with ``-dirty`` after changes; empty without one."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    options: Any = {"cwd": folder, "env": environment, "capture_output": True, "text": True, "timeout": 60}
    try:
        return subprocess.run(command, check=True, **options).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def _here(code: str) -> dict[str, Any]:
    return {"code": code, "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(), "machine": machine()}


class Sources:
    """The sources of the tables in a folder, from its ``sources.json``, which need not exist yet."""

    def __init__(self, folder: str | Path):
        self.path = Path(folder) / "sources.json"

    def entries(self, table: str) -> dict[str, dict[str, Any]]:
        """Read the entries of a table by name."""
        content: dict[str, dict[str, dict[str, Any]]] = read_json(self.path) if self.path.exists() else {}
        return content.get(table, {})

    def parts(self, table: str, entry: str) -> dict[str, float | None]:
        """Return the last median processor seconds of each measured part of an entry; None if it was never timed."""
        parts: dict[str, float | None] = {}
        for item in self.entries(table).get(entry, {"measured": []})["measured"]:
            parts |= {name: time for name, time in item["parts"].items() if time is not None or name not in parts}
        return parts

    def is_current(self, table: str, entry: str, code: str, part: str) -> bool:
        """Return whether this code measured a part of an entry, or a sample run by it confirmed the entry."""
        source = self.entries(table).get(entry, {})
        codes = {item["code"] for item in source.get("measured", ()) if part in item["parts"]}
        return code in codes or (bool(codes) and source.get("confirmed", {}).get("code") == code)

    def measure(self, table: str, entry: str, code: str, part: str = "", seconds: float | None = None) -> None:
        """State that this code measures a part of an entry today, on this machine."""
        source = self.entries(table).get(entry, {"measured": []})
        present, earlier = _here(code), []
        for item in source["measured"]:
            parts = {name: time for name, time in item["parts"].items() if name != part}
            if {**item, "parts": None} == {**present, "parts": None}:
                present["parts"] = parts
            elif parts:
                earlier.append({**item, "parts": parts})
        present["parts"] = dict(sorted({**present.get("parts", {}), part: seconds}.items()))
        self._write(table, entry, {**source, "measured": [*earlier, present]})

    def confirm(self, table: str, entry: str, code: str, cells: int, difference: float) -> None:
        """State that a sample of cells, run by this code today, differs from an entry by at most so much."""
        source = self.entries(table)[entry]
        self._write(table, entry, {**source, "confirmed": {**_here(code), "cells": cells, "difference": difference}})

    def confirm_sample(
        self,
        table: str,
        entry: str,
        code: str,
        candidates: Sequence[Key],
        compare: Callable[[Key], tuple[int, float]],
        *,
        number: int,
        tolerance: float,
    ) -> bool:
        """Confirm an entry by a sample of `number` candidates, unless its parts are current; return whether it holds.

        `compare` runs a candidate, and returns the number of its values and their largest difference from the table.
        """
        if all(self.is_current(table, entry, code, part) for part in self.parts(table, entry)):
            return True
        # The code draws the sample: nobody chooses it.
        order = np.random.default_rng(list(code.encode())).permutation(len(candidates))
        counts, differences = zip(*(compare(candidates[place]) for place in order[:number]), strict=True)
        count, difference = sum(counts), max(differences)
        print(f"{table}, {entry}: {count} cells, largest difference {difference:g}", flush=True)
        if difference > tolerance:
            print(f"{table}, {entry}: not what the table says; measure it again")
            return False
        self.confirm(table, entry, code, count, round(difference, 6))
        return True

    def seconds(self, table: str, entry: str) -> list[float]:
        """List the median processor seconds of an entry's parts that were timed."""
        measured = self.entries(table)[entry]["measured"]
        return [time for item in measured for time in item["parts"].values() if time is not None]

    def sentence(self, table: str, entry: str) -> str:
        """Write when an entry was measured, and when a sample last confirmed it."""
        source = self.entries(table)[entry]
        first, *_, last = sorted(item["date"] for item in source["measured"] * 2)
        days = f"measured on {last}" if first == last else f"measured from {first} to {last}"
        if "confirmed" not in source:
            return f"{days}, not drawn again since"
        sample = source["confirmed"]
        cells = "1 cell" if sample["cells"] == 1 else f"{sample['cells']} cells"
        return f"{days}, confirmed on {sample['date']} by {cells} (largest difference {sample['difference']:g})"

    def _write(self, table: str, entry: str, source: dict[str, Any]) -> None:
        content = read_json(self.path) if self.path.exists() else {}
        tables = {**content, table: dict(sorted({**content.get(table, {}), entry: source}.items()))}
        write_json(self.path, dict(sorted(tables.items())))
