"""No test depends on a clock: on a machine ten times slower all pass. Limits are counts; waits are patient."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
CLOCKS = re.compile(
    r"(time\.)?(time|perf_counter|process_time|monotonic|thread_time|clock_gettime)(_ns)?|(os\.)?(times|wait4)"
    r"|(resource\.)?getrusage|(\w+\.)*(today|now|utcnow)"
)
# Names of recorded times, which may be compared with 0 or be equal.
TIMES = re.compile(r"(^|_)(seconds|elapsed|ru_utime|ru_stime)$")
ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
# Calls that take numbers of seconds, and the least that is patient.
WAITS = re.compile(r"wait|acquire|timeout|WebDriverWait|set_\w+_timeout|alarm|setitimer|setrlimit")
PATIENT = 600


def last_name(node: ast.AST) -> str:
    """Return the last part of a name, attribute or item."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=str(name))):
            return name
    return ""


def reads(node: ast.AST, times: set[str]) -> bool:
    """Tell whether an expression calls a clock or uses a name that holds a time."""
    return any(
        (isinstance(part, ast.Call) and CLOCKS.fullmatch(ast.unparse(part.func))) or last_name(part) in times
        for part in ast.walk(node)
    )


def bindings(tree: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """List the names that a module binds, each with its value."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and node.value:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                pairs = [(target, node.value)]
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs = list(zip(target.elts, node.value.elts, strict=False))
                for part, value in pairs:
                    yield from ((last_name(name), value) for name in ast.walk(part) if last_name(name))


def clocks(source: str) -> list[str]:
    """List where the outcome of a module depends on seconds."""
    tree = ast.parse(source)
    bound = list(bindings(tree))
    values, times = dict(bound), set[str]()
    while more := {name for name, value in bound if reads(value, times)} - times:
        times |= more

    def is_short(limit: ast.expr) -> bool:
        numbers = [values.get(last_name(part), part) for part in ast.walk(limit)]
        return any(isinstance(part, ast.Constant) and type(part.value) in (int, float) and 0 < part.value < PATIENT
                   for part in numbers)  # fmt: skip

    found: list[ast.stmt | ast.expr] = []
    for node in ast.walk(tree):
        match node:
            case ast.Assert(test=test) | ast.While(test=test) if reads(test, times):
                found.append(node)
            case ast.Compare(left=left, ops=ops, comparators=others):
                ordered = any(isinstance(op, ORDERS) for op in ops) and ast.unparse(others[-1]) not in ("0", "0.0")
                recorded = any(TIMES.search(last_name(part)) for side in (left, *others) for part in ast.walk(side))
                found += [node] if reads(node, times) or (ordered and recorded) else []
            case ast.Call(func=function, args=arguments, keywords=words):
                limits = [word.value for word in words if word.arg == "timeout"]
                limits += arguments if WAITS.fullmatch(last_name(function)) else []
                deadline = any(word.arg == "deadline" and ast.unparse(word.value) != "None" for word in words)
                found += [node] if deadline or any(map(is_short, limits)) else []
    return [f"{node.lineno}: {ast.unparse(node)[:100]}" for node in found]


def test_no_test_depends_on_a_clock() -> None:
    found = {path.relative_to(TESTS).as_posix(): clocks(path.read_text("utf-8")) for path in TESTS.rglob("*.py")}
    assert len(found) > 150
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "planted",
    [
        "start = time.monotonic()\nwork()\nspent = time.monotonic() - start\nassert round(spent) == 1",
        "while time.time_ns() < end: work()",
        "first, used = 1, os.times()\nassert used.user < 3",
        "assert path.fit_seconds < 99",
        "assert record.date == date.today()",
        "LIMIT = 20\nheld.acquire(timeout=LIMIT)",
        "event.wait(2 * 0.1)",
        "resource.setrlimit(resource.RLIMIT_CPU, (60, 60))",
        "settings(max_examples=9, deadline=20_000)",
    ],
)
def test_what_is_planted_is_found(planted: str) -> None:
    assert len(clocks(planted)) >= 1


def test_what_depends_on_no_clock_is_left_alone() -> None:
    assert clocks(
        "PATIENCE = 3600\nevent.wait(PATIENCE)\nlock.acquire(timeout=0)\nsettings(deadline=None)\n"
        "print(time.time() - start)\nassert path.fit_seconds > 0.0\nassert path.release_seconds == 0.2"
    ) == []  # fmt: skip
