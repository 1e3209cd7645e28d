"""Tables of measured cells: a run adds the missing ones and may be stopped, a sample confirms cells of earlier code."""

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

# Largest difference of scores that a page does not show.
_SHOWN = 0.001


@dataclasses.dataclass(frozen=True)
class Cells:
    """A table with one row for each cell: its keys, of which the first two are entry and dataset, and its scores.

    ``sources.json`` is beside its `path`. `keys` are the columns that tell cells apart, `code` digests the code of an
    entry, and `run` computes the scores and ``seconds`` of the cell of a key.
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
        rows = self.rows()

        def compare(key: tuple[str, ...]) -> tuple[int, float]:
            cell = self.run(key)
            differences = [abs(cell[score] - float(text)) for score, text in zip(SCORES, rows[key], strict=True)]
            # Without rows of both classes there is no area under the curve.
            return 1, float(np.nan_to_num(differences).max())

        holds = True
        for entry in entries:
            keys = [key for key in rows if key[0] == entry]
            holds &= self.sources.confirm_sample(
                self.path.stem, entry, self.code(entry), keys, compare, number=number, tolerance=_SHOWN
            )
        return holds
