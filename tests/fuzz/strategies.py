"""Strategies for hostile files, and the limits of work and memory within which every reader must answer."""

import contextlib
import copy
import os
import tracemalloc
from collections.abc import Iterator
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from tests.steps import count_calls

# `PRIVSVM_FUZZ_CASES=1000 pytest tests/fuzz` draws 1,000 new cases for each test.
CASES = int(os.environ.get("PRIVSVM_FUZZ_CASES", "15"))
fuzzed = settings(
    max_examples=CASES, deadline=None, derandomize="PRIVSVM_FUZZ_CASES" not in os.environ, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
# Limits of the calls of functions, of Python and of C, and of the memory of one case.
CALLS, BYTES = 10_000_000, 200 << 20

TOKENS = [
    b"", b"\0", b"\n", b"\r", b",", b'"', b"'", b" ", b"\t", b":", b"#", b"%", b"?", b"nan", b"inf", b"-1", b"1e999",
    b"1_0", b"99999999999999999999", b"2147483647", b"\xff", b"\xef\xbb\xbf", b"\xf0\x9f\x98\x80", b"{", b"}", b"[",
    b"*a", b"&a ", b"!!python/name:os.system ", b"<html>", b"PK\x03\x04", b"\x1f\x8b", b"x" * 3000,
]  # fmt: skip
ODD_VALUES: list[Any] = [
    None, True, -1, 0, 1, 2**31, 2**64, 10**400, -(10**300), 1e308, 5e-324, 0.5, 1e-300, "", "proved", "inf", "nan",
    "1e-5", "\x00\n\x1b", "\ud800", "x" * 100_000, [], {}, [[]], [None] * 3, {"kind": "gaussian"}, [0.1] * 40_000,
    {"": {"": {"": 0}}}, "replace_one", "add_remove", "person", list(range(50_000)),
]  # fmt: skip


@contextlib.contextmanager
def little_memory_and_work() -> Iterator[None]:
    """Require that a block stays within both limits, however it ends."""
    tracemalloc.start()
    try:
        with count_calls() as calls:
            yield
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert calls[0] < CALLS
        assert peak < BYTES


@st.composite
def mutations(draw: st.DrawFn, seed: bytes) -> bytes:
    """Change, cut, insert or double a few bytes of a real file."""
    content = bytearray(seed)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        stop = min(len(content), start + draw(st.integers(0, 12)))
        match draw(st.sampled_from(["cut", "token", "flip", "double", "end"])):
            case "cut":
                del content[start:stop]
            case "token":
                content[start:stop] = draw(st.sampled_from(TOKENS))
            case "flip":
                if start < len(content):
                    content[start] ^= draw(st.integers(1, 255))
            case "double":
                content[start:start] = content[start:stop]
            case "end":
                del content[start:]
    return bytes(content)


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """List the paths of all values within a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [inner for key, item in items for inner in [(*path, key), *paths(item, (*path, key))]]


def value_at(content: Any, path: tuple[Any, ...]) -> Any:
    """Return the value at a path of a JSON value."""
    for key in path:
        content = content[key]
    return content


def nest(depth: int) -> Any:
    """Put a number into lists within lists."""
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def json_values() -> st.SearchStrategy[Any]:
    """Draw odd, deep and any other JSON values."""
    leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
    anything = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=5)
    return st.sampled_from(ODD_VALUES) | st.sampled_from([30, 60, 200]).map(nest) | anything


@st.composite
def changes(draw: st.DrawFn, content: Any) -> Any:
    """Delete, repeat, scale or replace one to three values of a JSON value."""
    content = copy.deepcopy(content)
    for _ in range(draw(st.integers(1, 3))):
        *path, key = draw(st.sampled_from(paths(content)))
        home = value_at(content, tuple(path))
        match draw(st.sampled_from(["delete", "repeat", "scale", "replace", "replace"])):
            case "delete" if isinstance(home, dict) and len(home) > 1:
                del home[key]
            case "repeat" if isinstance(home, list):
                home.extend(copy.deepcopy(home) * draw(st.sampled_from([1, 500])))
            case "scale" if isinstance(home[key], (int, float)):
                home[key] *= draw(st.sampled_from([-1, 0, 1e-9, 1e9, 1 + 1e-5]))
            case _:
                home[key] = copy.deepcopy(draw(json_values()))
    return content


def events() -> st.SearchStrategy[dict[str, Any]]:
    """Draw events of every kind, mostly with extreme numbers."""
    number = st.sampled_from([1e-300, 1e-9, 1e-3, 0.3, 1.0, 7.0, 40.0, 1e6, 1e300])
    count = st.sampled_from([1, 40, 10**4, 10**6, 10**9, 10**40])

    def event(kind: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
        return st.fixed_dictionaries({"kind": st.just(kind), **fields})

    gaussian = event("gaussian", noise_multiplier=number)
    simple = st.one_of(
        gaussian,
        event("laplace", noise_multiplier=number),
        event("exponential_mechanism", epsilon=number),
        event("zcdp", rho=number),
        event("epsilon_delta", epsilon=number, delta=st.sampled_from([0, 1e-9, 1e-5])),
        event(
            "perturbed_objectives", signal=number, curvature=number, n_objectives=count, output_multiplier=number
        ),
        event("poisson_sampled", event=gaussian, sampling_probability=st.sampled_from([1e-9, 1e-4, 0.01, 0.5, 1])),
    )  # fmt: skip

    def within(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
        shape, gamma = st.sampled_from([-0.9, 0, 1, 1e5]), st.sampled_from([1e-9, 0.1, 0.9])
        return st.one_of(
            event("self_composed", event=inner, count=count),
            event("composed", events=st.lists(inner, min_size=1, max_size=30)),
            event("one_of", events=st.lists(inner, min_size=1, max_size=2)),
            event("best_of_poisson", parameter=number, event=inner),
            event("best_of_negative_binomial", shape=shape, event=inner, gamma=gamma),
        )

    return st.recursive(simple, within, max_leaves=30)
