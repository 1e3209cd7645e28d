"""Enter a private classifier: ``make leaderboard ENTRY=path/to/entry.py``; docs/join-leaderboard.md has the rules.

The entry runs in an environment of its own on the smallest sets and on a fresh holdout, and is audited at epsilon 1.
Scores are in ``reports/utility/joined_scores.csv``, statements and audits in ``joined.csv``, holdouts in
``holdouts.csv``; docs/leaderboard.md shows them.
"""

from __future__ import annotations

import argparse
import ast
import collections
import contextlib
import functools
import hashlib
import itertools
import math
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any, Literal

import leaderboard
import numpy as np
import pandas as pd
import pydantic
from entries import DELTA, ENTRIES, EPSILONS, RECOMMENDED, REFERENCES, ROOT, TITLES, title
from joined import read_rows, replace_rows, write_section
from scores import score_row
from sets import SMALLEST, SPLITS, UtilitySet, load

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from peer_environments import UV, LineWorker, peer_python, single_threaded

from privsvm import audit
from privsvm.auditing.neighbours import Pair, make_crowded_pairs, make_pairs, pairs_around
from privsvm.errors import PrivSVMError
from privsvm.models import Model, check_model
from privsvm.privacy.events import Neighbours
from privsvm_bench.records import NAME_REMEDY, Name, Words

WORKER = Path(__file__).resolve().parent / "peers" / "enter.py"
SUBMISSIONS = Path(__file__).resolve().parent / "submissions"
_CORES = 2
# Minutes by the clock for all fits on the sets, for a task (peers/enter.py limits processor time), and for the audit.
_SETS_MINUTES, _TASK_MINUTES, _AUDIT_MINUTES = 30, 20, 10
# Trainings that an audit tells apart, from look to look, and how much longer a look takes that confirms a refutation.
DRAWS, _CONFIRMED = (160, 800, 4000, 20_000, 100_000), 1.7
# Trainings of a task: on all cores as many as the search looks at, one for so many draws, and at least so many.
_DRAWS_PER_FIT, _LEAST_BATCH = 200, 5
AUDITED_EPSILON = 1.0
# Numbers of a release that the audit reads.
_RELEASED, _LARGEST = 1100, 1e12
_RULES = "docs/join-leaderboard.md"
# The seed of a holdout with two classes: a fit on it shows mistakes before the audit.
_TRIAL = 2
# Digests of entries whose proof a maintainer has read, with the place of the proof.
READ_PROOFS: dict[str, str] = {}


class Statement(Model):
    """The guarantee that an entry states, a literal dictionary named ``GUARANTEE`` in its file."""

    name: Name
    status: Literal["proved", "claimed", "none"]
    relation: Neighbours
    delta: Annotated[float, pydantic.Field(ge=0, le=DELTA)]
    reference: Words
    tuning: Literal["none", "paid", "unpaid"]
    noise: Literal["any", "gaussian"] = "any"


def read_statement(path: Path) -> Statement:
    """Read the statement of an entry without importing it. Raises PrivSVMError for one that is not valid."""
    try:
        assignments = [node for node in ast.parse(path.read_bytes()).body if isinstance(node, ast.Assign)]
        values = [node.value for node in assignments if "GUARANTEE" in map(ast.unparse, node.targets)]
        content = ast.literal_eval(values[0]) if values else None
    except (OSError, SyntaxError, ValueError) as error:
        raise PrivSVMError(f"{path}: cannot be read ({error}); write GUARANTEE as a literal dictionary") from None
    if content is None:
        raise PrivSVMError(f"{path}: GUARANTEE is missing; add it (see {_RULES})")
    where = f"{path}: GUARANTEE"
    statement = check_model(Statement, content, where, page=_RULES, wishes={"predicate_failed": NAME_REMEDY})
    if statement.noise == "gaussian" and statement.delta == 0.0:
        raise PrivSVMError(f"{where}.delta: 0 is not valid for Gaussian noise; state the delta")
    return statement


def check_name(path: Path, name: str) -> None:
    """Raise PrivSVMError if a submission in another file, or a listed entry, has the name."""
    taken = f"{path}: GUARANTEE.name: {name!r} is taken by"
    for other in sorted(SUBMISSIONS.glob("*/entry.py")):
        if read_statement(other).name == name and not other.samefile(path):
            raise PrivSVMError(f"{taken} {other.relative_to(ROOT)}; enter that file, or take another name")
    if name in {*ENTRIES, *REFERENCES, *TITLES} - {*read_rows("joined").name}:
        raise PrivSVMError(f"{taken} {title(name)!r} of docs/leaderboard.md; take another name")


def lock_requirements(path: Path) -> Path:
    """Return the lock of the requirements beside an entry, resolved on first use."""
    requirements, lock = path.with_name("requirements.txt"), path.with_name("requirements.lock")
    if not requirements.exists():
        raise PrivSVMError(f"{requirements}: no such file; list the packages of the entry, with versions")
    if not lock.exists():
        options = ["--generate-hashes", "--no-emit-index-url", "--no-header", "--quiet", "--python", sys.executable]
        if subprocess.run([*UV, "pip", "compile", requirements, *options, "-o", lock], check=False).returncode:
            raise PrivSVMError(f"{requirements}: cannot be resolved; see the lines above")
    return lock


def make_task(
    statement: Statement, X: np.ndarray, y: np.ndarray, X_test: np.ndarray, n_classes: int, epsilon: float,
    seeds: Sequence[int],
) -> dict[str, Any]:  # fmt: skip
    """Make a task: training rows with labels, test rows without, public facts, and a seed for each fit."""
    return {
        "X": X.tolist(), "y": y.tolist(), "X_test": X_test.tolist(),
        "bounds": [[end] * X.shape[1] for end in (0.0, 1.0)], "classes": list(range(n_classes)), "epsilon": epsilon,
        "delta": statement.delta, "neighbours": statement.relation, "seeds": seeds,
    }  # fmt: skip


def make_cell_task(statement: Statement, data: UtilitySet, epsilon: float, split: int) -> dict[str, Any]:
    """Make the task of a cell; the number of a split is its seed, as for other libraries."""
    (train, test), X = data.splits[split], data.unit_features()
    return make_task(statement, X[train], data.y[train], X[test], data.n_classes, epsilon, [split])


def score_fit(fit: dict[str, Any], y: np.ndarray, n_classes: int) -> dict[str, float]:
    """Score predicted classes, and the area under the curve where there are scores. Raises ValueError for others."""
    codes = np.asarray(fit["codes"])
    if codes.shape != y.shape:
        raise ValueError(f"predict: shape {codes.shape} is not valid; return one label for each of {len(y)} rows")
    wrong = codes[~np.isin(codes, np.arange(n_classes))]
    if wrong.size:
        raise ValueError(f"predict: {wrong.tolist()[0]!r} is not a label; return labels from 0 to {n_classes - 1}")
    row = score_row(y, np.eye(n_classes)[codes.astype(int)])
    scores = None if fit["scores"] is None else np.asarray(fit["scores"], dtype=float)
    with_area = scores is not None and scores.shape == (len(y), n_classes) and np.isfinite(scores).all()
    return row | {"auc": score_row(y, scores)["auc"] if with_area else math.nan}


class Workers:
    """Processes in an entry's environment, as many as cores; they get an empty folder as home, and few variables."""

    def __init__(self, statement: Statement, python: Path, path: Path, home: str) -> None:
        self.statement, self.errors = statement, dict[str, str]()
        environment = single_threaded(*{*os.environ} - {"PATH", "LANG"}) | {"HOME": home}
        # Isolated mode: neither this folder nor the user's packages can be imported.
        command = [python, "-I", WORKER, path.resolve()]
        self.all = [LineWorker(command, environment, quiet=True) for _ in range(_CORES)]
        # As many as threads: one is always free.
        self._free = collections.deque(self.all)
        self._pool = ThreadPoolExecutor(_CORES)

    def run(self, make: Callable[[Any], dict[str, Any]], items: Iterable[Any]) -> list[Future[list[dict[str, Any]]]]:
        """Run the task of each item on a free worker; the results are fits, or ValueError where one failed."""

        def run_item(item: Any) -> list[dict[str, Any]]:
            worker = self._free.popleft()
            try:
                answer = worker.run_task(make(item), _TASK_MINUTES) or {"error": "did not finish"}
            finally:
                self._free.append(worker)
            if answer["error"]:
                raise ValueError(answer["error"])
            return answer["fits"]

        return [self._pool.submit(run_item, item) for item in items]

    def close(self) -> None:
        """End the workers."""
        for worker in self.all:
            worker.end()

    def score(self, cells: Sequence[tuple[UtilitySet, float, int]]) -> Iterator[dict[str, float] | None]:
        """Run cells; return their scores, or None after an error, which is kept."""
        results = self.run(lambda cell: make_cell_task(self.statement, *cell), cells)
        for (data, _, split), result in zip(cells, results, strict=True):
            try:
                yield score_fit(result.result()[0], data.y[data.splits[split][1]], data.n_classes)
            except ValueError as error:
                self.errors[data.name] = str(error)
                yield None

    def run_sets(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """Run the sets split by split, until the time is over; return rows of scores."""
        keys, rows = list(itertools.product(map(load, names), EPSILONS["add_remove"])), []
        started = time.monotonic()
        for split in range(SPLITS):
            for (data, epsilon), scores in zip(keys, self.score([(*key, split) for key in keys]), strict=True):
                key = {"entry": self.statement.name, "set": data.name, "neighbours": self.statement.relation}
                rows += [key | {"epsilon": epsilon, "split": split} | scores] if scores else []
            print(f"{self.statement.name}: split {split + 1} of {SPLITS}", flush=True)
            if time.monotonic() - started > 60 * _SETS_MINUTES:
                break
        return rows


class Releases:
    """An estimator that publishes the next release of an entry: all numbers of a model, with its predictions.

    Releases are drawn in batches on all workers.
    """

    def __init__(self, workers: Workers, batch: int) -> None:
        self._workers, self._rng, self._batch = workers, np.random.default_rng(0), batch
        self._waiting: dict[bytes, list[np.ndarray]] = {}
        self._lengths: dict[int, int] = {}

    def _draw(self, X: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
        probes = np.linspace(np.zeros(X.shape[1]), 1.0, 5)
        make = functools.partial(make_task, self._workers.statement, X, y, probes, 2, AUDITED_EPSILON)
        results = self._workers.run(make, self._rng.integers(2**32, size=(_CORES, self._batch)).tolist())
        fits = [fit for result in results for fit in result.result()]
        releases = pd.DataFrame([[*fit["codes"], *np.ravel(fit["scores"] or []), *fit["numbers"]] for fit in fits])
        # All releases of a pair have one length, with room for a larger model.
        length = self._lengths.setdefault(X.shape[1], min(_RELEASED, 2 * releases.shape[1] + 16))
        table = releases.reindex(columns=range(length)).to_numpy(dtype=float)
        return list(np.clip(np.nan_to_num(table), -_LARGEST, _LARGEST))

    def fit(self, X: np.ndarray, y: np.ndarray) -> Releases:
        """Draw the next release of a table. Raises ValueError if the entry does."""
        waiting = self._waiting.setdefault(X.tobytes() + y.tobytes(), [])
        if not waiting:
            waiting += self._draw(X, y)
        self._release = waiting.pop(0)
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """Return the release."""
        return self._release


def audited_pairs(relation: Neighbours) -> list[Pair]:
    """List pairs of small tables with features in [0, 1]: lone rows, crowds, equal rows, and rows in an order."""
    rows = np.random.default_rng(0).uniform(-1.0, 1.0, size=(24, 3))
    pairs = [
        *make_pairs(2, relation, 1.0, (1.0,)),
        *make_crowded_pairs(relation, 1.0, (100,), 4),
        *pairs_around(rows, (rows[:, 0] > 0).astype(np.int64), relation, 0, 2),
    ]
    pairs = [
        Pair(pair.words, *(((np.clip(X, -1.0, 1.0) + 1.0) / 2.0, y) for X, y in (pair.first, pair.second)))
        for pair in pairs
    ]
    equal = {f"{n} equal rows of one class, and one of them changed or gone": np.ones(n, dtype=int) for n in (10, 30)}
    if relation == "add_remove":
        # Entries that deal rows out in order: without the first row, all others move to other parts.
        equal["10 equal rows, of one class and the other in turn, and all but the first"] = np.arange(10) % 2
    for words, y in equal.items():
        X = np.ones((len(y), 1))
        second = (X[1:], y[1:]) if relation == "add_remove" else (X, np.append(y[1:], 0))
        pairs.append(Pair(words, (X, y), second))
    unique = {tuple(part.tobytes() for table in (pair.first, pair.second) for part in table): pair for pair in pairs}
    return list(unique.values())


def audit_entry(workers: Workers, draws: int) -> dict[str, Any]:
    """Audit an entry with a number of draws."""
    statement = workers.statement
    releases = Releases(workers, max(_LEAST_BATCH, draws // _DRAWS_PER_FIT))
    try:
        found = audit(
            lambda: releases, epsilon=AUDITED_EPSILON, delta=statement.delta, relation=statement.relation,
            draws=draws, gaussian=statement.noise == "gaussian", pairs=audited_pairs(statement.relation),
        )  # fmt: skip
    except ValueError as error:
        raise PrivSVMError(f"{statement.name}: the audit cannot fit the entry ({error})") from None
    return {
        "draws": draws, "at_least": f"{found.lower_bound:.3g}", "refuted": found.refuted, "pair": found.pair.words,
    }  # fmt: skip


def audit_for_minutes(workers: Workers, minutes: float) -> dict[str, Any]:
    """Audit an entry with more draws from look to look, until one refutes or the next would take too long."""
    started = time.monotonic()
    for draws, more in itertools.pairwise((*DRAWS, math.inf)):
        before = time.monotonic()
        found = audit_entry(workers, draws)
        now = time.monotonic()
        if found["refuted"] or now - started + _CONFIRMED * more / draws * (now - before) > 60 * minutes:
            break
    return found


def draw_holdout(seed: int) -> UtilitySet:
    """Draw a table that nobody has seen: correlated numbers and indicators, and classes by two noisy layers."""
    rng = np.random.default_rng(seed)
    n_numbers, n_indicators, n_classes = (int(rng.integers(*ends)) for ends in ((3, 20), (0, 10), (2, 5)))
    d, n_rows, n_train = n_numbers + n_indicators, 5000, 1000
    mixed = rng.normal(size=(n_rows, d)) @ (np.eye(d) + rng.normal(scale=0.5, size=(d, d)) / math.sqrt(d))
    indicators = np.arange(d) >= n_numbers
    X = np.where(indicators, mixed > rng.normal(scale=0.5, size=d), 1.0 / (1.0 + np.exp(-mixed)))
    hidden = np.tanh((X - 0.5) @ rng.normal(scale=4.0 / math.sqrt(d), size=(d, 8)))
    scores = hidden @ rng.normal(size=(8, n_classes)) + rng.gumbel(scale=0.3, size=(n_rows, n_classes))
    splits = [(np.arange(n_train), np.arange(n_train, n_rows))] * SPLITS
    return UtilitySet(
        "holdout", X, scores.argmax(axis=1), np.zeros(d), np.ones(d), indicators, np.arange(d), n_classes, splits
    )


def run_holdout(workers: Workers, seed: int) -> dict[str, Any]:
    """Run the entry on a fresh holdout at epsilon 1, beside `recommended` and references without privacy."""
    data, statement = draw_holdout(seed), workers.statement
    rows = list(workers.score([(data, AUDITED_EPSILON, draw) for draw in range(5)]))
    accuracies = {
        "entry": np.mean([row["accuracy"] if row else math.nan for row in rows]),
        RECOMMENDED: leaderboard.run(RECOMMENDED, data, statement.relation, 1.0, 0)["accuracy"],
        **{one: leaderboard.run_reference(one, data, 0)["accuracy"] for one in ("svm", "majority")},
    }
    shown = {name: f"{value:.3f}" for name, value in accuracies.items()}
    return {"name": statement.name, "seed": seed, "columns": data.X.shape[1], "classes": data.n_classes} | shown


def try_entry(workers: Workers, path: Path) -> None:
    """Fit an entry once. Raises PrivSVMError if the fit fails or predicts no labels."""
    data = draw_holdout(_TRIAL)
    if list(workers.score([(data, AUDITED_EPSILON, 0)])) == [None]:
        raise PrivSVMError(f"{path}: a trial fit failed: {workers.errors.pop(data.name)} (see {_RULES})")


def enter(path: Path, *, draws: int | None, seed: int, sets: bool) -> None:
    """Run, audit and write an entry."""
    statement = read_statement(path)
    check_name(path, statement.name)
    lock = lock_requirements(path)
    digest = hashlib.sha256(path.read_bytes() + lock.read_bytes()).hexdigest()[:12]
    earlier = read_rows("joined").query("name == @statement.name and entry_file == @digest and draws != ''")
    # The same number of draws gives the same bits.
    draws = int(earlier.draws.iloc[0]) if draws is None and len(earlier) else draws
    python = peer_python(f"joined-{hashlib.sha256(lock.read_bytes()).hexdigest()[:12]}", lock)
    with (
        tempfile.TemporaryDirectory() as home,
        contextlib.closing(Workers(statement, python, path, home)) as workers,
    ):
        row: dict[str, Any] = {**statement.model_dump(), "entry_file": digest}
        if statement.status == "proved" and digest not in READ_PROOFS:
            print(f"{statement.name}: shown as claimed until a maintainer has read the proof")
            row["status"] = "claimed"
        try_entry(workers, path)
        if statement.status != "none":
            print(f"{statement.name}: audit, at most {_AUDIT_MINUTES} minutes", flush=True)
            row |= audit_entry(workers, draws) if draws else audit_for_minutes(workers, _AUDIT_MINUTES)
            row["status"] = "refuted" if row["refuted"] else row["status"]
            print(f"{statement.name}: {row['status']}: epsilon is at least {row['at_least']} "
                  f"({row['draws']:,} draws; {row['pair']})", flush=True)  # fmt: skip
        if not sets:
            return
        first, second = workers.score([(load(SMALLEST[0]), AUDITED_EPSILON, 0)] * 2)
        row["repeats"] = first == second
        scores = workers.run_sets(SMALLEST)
        row["splits"] = len({one["split"] for one in scores})
        holdout = run_holdout(workers, seed)
    for name, error in workers.errors.items():
        print(f"{statement.name}: no answer on {name}: {error}", file=sys.stderr)
    if not scores:
        raise PrivSVMError(f"{path}: no fit ended well; see the lines above")
    replace_rows("joined_scores", statement.name, scores)
    replace_rows("joined", statement.name, [row])
    # Holdouts of earlier runs stay.
    replace_rows("holdouts", "", [holdout])
    write_section(statement.name)


def main() -> None:
    """Enter the named file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("entry", type=Path)
    parser.add_argument("--draws", type=int, help="of the audit; default: those of its last run, or by time")
    parser.add_argument("--holdout", type=int, metavar="SEED", help="of the holdout; default: a fresh one")
    parser.add_argument("--audit-only", action="store_true", help="write nothing")
    arguments = parser.parse_args()
    seed = secrets.randbelow(2**32) if arguments.holdout is None else arguments.holdout
    try:
        enter(arguments.entry, draws=arguments.draws, seed=seed, sets=not arguments.audit_only)
    except PrivSVMError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
