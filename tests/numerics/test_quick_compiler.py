"""Compiling with less work gives the same functions."""

import json
import os
import subprocess
import sys

import numba
import pytest

from privsvm.numerics.quick_compiler import VERSION

pytestmark = pytest.mark.skipif(bool(os.environ.get("NUMBA_DISABLE_JIT")), reason="nothing is compiled")

FUNCTIONS = """
import numba.extending
import numpy as np
from privsvm.numerics.jit import jit, jit_step


@jit_step()
def checked(rows, limit):
    if rows.size > limit:
        raise ValueError("too many rows", rows.size, limit)
    return np.sum(rows * 2.0)


@jit_step(fastmath={"reassoc", "contract"})
def scalar_product(left, right):
    total = 0.0
    for index in range(left.size):
        total += left[index] * right[index]
    return total


@jit()
def first(rows, limit):
    return checked(rows, limit) + scalar_product(rows, rows)


@jit()
def second(rows, limit):
    return first(rows, limit) - checked(rows[1:], limit) + len((1, 2.0))


# Somebody else's.
@numba.extending.register_jitable
def foreign_step(rows):
    return rows.sum()


@numba.njit
def foreign(rows):
    return foreign_step(rows) + 1.0
"""

RUN = """
import json, sys
import privsvm.numerics.quick_compiler
from numba.core.codegen import JITCPUCodegen

made = []
add_module = JITCPUCodegen._add_module
JITCPUCodegen._add_module = lambda self, module: (made.append(module.name), add_module(self, module))[1]
if sys.argv[1] == "plain":
    privsvm.numerics.quick_compiler.VERSION = "another"
elif sys.argv[1] == "quick":
    privsvm.numerics.quick_compiler.hasten()
    privsvm.numerics.quick_compiler.hasten()
import numpy as np
import own

rows = np.arange(40.0)
values = [own.second(rows, 50), own.first(rows[::2], 50), own.second(rows.astype(np.float32), 50), own.foreign(rows)]
refusals = []
for function, limit in ((own.second, 39), (own.first, 12)):
    try:
        function(rows, limit)
    except ValueError as error:
        refusals.append(list(error.args))
hits = [sum(function.stats.cache_hits.values()) for function in (own.first, own.second)]
print(json.dumps({"values": values, "refusals": refusals, "hits": hits, "made": made}))
"""


def run(folder, kind: str, cache: str) -> dict:
    (folder / "own.py").write_text(FUNCTIONS)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(folder / cache)}
    environment["PYTHONPATH"] = os.pathsep.join([str(folder), *sys.path])
    command = [sys.executable, "-c", RUN, kind]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("functions")


@pytest.fixture(scope="module")
def plain(folder):
    return run(folder, "plain", "plain")


@pytest.fixture(scope="module")
def quick(folder):
    return run(folder, "quick", "quick")


@pytest.fixture(scope="module")
def library(folder):
    """A process in which nothing was hastened, as that of anybody who imports the library."""
    return run(folder, "library", "library")


def test_values_and_errors_are_the_same(plain, quick, library):
    assert quick["values"] == library["values"] == plain["values"]
    assert quick["refusals"] == plain["refusals"] == [["too many rows", 40, 39], ["too many rows", 40, 12]]
    assert library["refusals"] == plain["refusals"]


def test_steps_get_no_machine_code(plain, quick, library):
    if numba.__version__ != VERSION:
        pytest.skip(f"Numba {numba.__version__} compiles as it always does")

    def have_machine_code(process):
        names = ("checked", "scalar_product", "foreign_step")
        return [name for name in names if any(name in made for made in process["made"])]

    assert have_machine_code(plain) == ["checked", "scalar_product", "foreign_step"]
    assert have_machine_code(quick) == []
    # Where the process is not ours, other people's functions are left to Numba.
    assert have_machine_code(library) == ["foreign_step"]


@pytest.mark.parametrize(("kind", "other"), [("plain", "quick"), ("quick", "plain")])
def test_either_reads_what_the_other_has_kept(folder, quick, plain, kind, other):
    again = run(folder, kind, other)
    assert again["hits"] == [2, 2]
    assert again["values"] == plain["values"]
    assert again["refusals"] == plain["refusals"]
