"""Tables of measured cells: a run adds the missing ones and may be stopped, a sample confirms those of earlier code."""

from __future__ import annotations

import csv
import dataclasses
import itertools
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from scores import SCORES

from privsvm.files import write_text
from privsvm_bench.evidence import Sources

__all__ = ["Cells"]

# Largest difference of scores that a page does not show.
_SHOWN = 0.001


@dataclasses.dataclass(frozen=True)
class Cells:
    """A table with one row for each cell: its keys, of which the first two are entry and dataset, and its scores.

    Attributes
    ----------
    path : Path
        The table, beside ``sources.json``.
    keys : sequence of str
        Columns that tell cells apart.
    code : callable
        Entry to the digest of its code.
    run : callable
        Key to the scores and ``seconds`` of a cell.
    """

    path: Path
    keys: Sequence[str]
    code: Callable[[str], str]
    run: Callable[[tuple[str, ...]], Mapping[str, float]]

    @property
    def sources(self) -> Sources:
        """Sources of the table."""
        return Sources(self.path.parent)

    def rows(self) -> dict[tuple[str, ...], tuple[str, ...]]:
        """Read the scores of all cells."""
        if not self.path.exists():
            return {}
        with self.path.open(newline="") as file:
            records = list(csv.DictReader(file))
        return {tuple(row[name] for name in self.keys): tuple(row[name] for name in SCORES) for row in records}

    def _write(self, rows: Mapping[tuple[str, ...], tuple[str, ...]]) -> None:
        lines = [",".join((*self.keys, *SCORES)), *(",".join((*key, *rows[key])) for key in sorted(rows))]
        write_text(self.path, "\n".join(lines) + "\n")

    def _is_current(self, entry: str, name: str) -> bool:
        return self.sources.is_current(self.path.stem, entry, self.code(entry), name)

    def measure(self, wanted: Iterable[tuple[str, ...]]) -> None:
        """Run the wanted cells that are missing or of other code; cells of an entry and a dataset are neighbours."""
        table, made = self.path.stem, 0
        for (entry, name), group in itertools.groupby(wanted, key=lambda key: key[:2]):
            rows, current = self.rows(), self._is_current(entry, name)
            missing = [key for key in group if not current or key not in rows]
            if not missing:
                continue
            if not current:
                self._write({key: scores for key, scores in rows.items() if key[:2] != (entry, name)})
                # Before the first cell: a stopped run goes on where it was.
                self.sources.measure(table, entry, self.code(entry), name)
            seconds = []
            for key in missing:
                cell = self.run(key)
                seconds.append(cell["seconds"])
                with self.path.open("a", newline="") as file:
                    csv.writer(file, lineterminator="\n").writerow([*key, *(cell[score] for score in SCORES)])
            self.sources.measure(table, entry, self.code(entry), name, round(statistics.median(seconds), 4))
            made += len(seconds)
        self._write(self.rows())
        print(f"{self.path.name}: {made} cells made, {len(self.rows())} in all")

    def confirm(self, entries: Sequence[str], number: int) -> bool:
        """Run a sample of the cells of entries whose code has changed; return whether all of them hold."""
        holds = True
        for entry in entries:
            rows = {key: scores for key, scores in self.rows().items() if key[0] == entry}
            if all(self._is_current(entry, name) for name in {key[1] for key in rows}):
                continue
            # Nobody chooses the sample.
            order = np.random.default_rng(list(self.code(entry).encode())).permutation(len(rows))
            keys = [list(rows)[place] for place in order[:number]]
            difference = max(self._difference(key, rows[key]) for key in keys)
            print(f"{entry}: {len(keys)} of {len(rows)} cells, largest difference {difference:g}", flush=True)
            if difference > _SHOWN:
                print(f"{entry}: not what {self.path.name} says; measure it again")
                holds = False
                continue
            self.sources.confirm(self.path.stem, entry, self.code(entry), len(keys), round(difference, 6))
        return holds

    def _difference(self, key: tuple[str, ...], stated: tuple[str, ...]) -> float:
        """Run a cell, and return by how much its scores differ from the table's."""
        cell = self.run(key)
        differences = [abs(cell[score] - float(text)) for score, text in zip(SCORES, stated, strict=True)]
        # Without rows of both classes there is no area under the curve.
        return float(np.nan_to_num(differences).max())
