"""Compilation ahead of use: all listed modules, into a folder keyed by the sources."""

import os

from privsvm.warm_up import MODULES, cache_key
from tests.processes import run_python
from tests.scripts import REPOSITORY

PACKAGE = REPOSITORY / "lib/privsvm"


def test_every_module_that_can_be_warmed_is_listed():
    paths = [*PACKAGE.glob("numerics/**/*.py"), *PACKAGE.glob("solvers/**/*.py")]
    compiled = [path.relative_to(PACKAGE).with_suffix("") for path in paths if "\ndef warm_up(" in path.read_text()]
    assert set(MODULES) == {".".join(path.parts) for path in compiled}


def test_nothing_is_imported_by_default():
    code = "import sys; from privsvm.warm_up import warm_up; warm_up(); print('numba' in sys.modules)"
    assert run_python("-c", code) == "False\n"


def test_what_is_compiled_is_only_ever_loaded(tmp_path):
    code = (
        "from privsvm.solvers.kernel.kernels import _turn_all_into_values as f\n"
        "from privsvm.warm_up import warm_up; warm_up()\n"
        "print(len(f.stats.cache_hits), len(f.stats.cache_misses))"
    )
    assert run_python("-c", code, env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}) == "2 0\n"
    assert list(tmp_path.glob("solvers.kernel.kernels-*"))


def test_the_cache_is_keyed_by_compiled_sources(tmp_path):
    for name in ("solvers/kernel/smo.py", "numerics/deep/jit.py", "base/one.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("a = 1\n")
    before = cache_key(tmp_path)
    (tmp_path / "base/one.py").write_text("a = 2\n")
    assert cache_key(tmp_path) == before
    (tmp_path / "numerics/deep/jit.py").write_text("a = 2\n")
    assert cache_key(tmp_path) != before
