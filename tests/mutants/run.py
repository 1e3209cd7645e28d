"""Plant each bug of `tests/mutants/*.toml` in a copy of the sources, and report the privacy test that finds it.

``python tests/mutants/run.py`` plants all; arguments select bugs by their names. A stopped run resumes as long as no
source has changed. A bug counts as found only if a listed test fails in its body with the listed words, not during
collection or setup, and not by a lower accuracy.

The parent imports third-party packages once and forks for every bug. All copies share compiled functions, except where
their module imports the changed one.
"""

import argparse
import hashlib
import io
import json
import os
import resource
import sys
import traceback
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "lib")]

from tests.mutants.mutant import MUTANTS, Mutant  # noqa: E402 - needs the path above
from tests.scripts import copy_files, list_files  # noqa: E402

# Threads do not survive a fork.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

FOLDER = REPOSITORY / ".cache" / "mutants"
# Seconds of processor time, because a bug may make a test hang; pytest's own limit ends one that sleeps.
_PATIENCE = 3600


def _make_copy(tree: Path) -> None:
    """Update a copy of the repository; unchanged files keep their times."""
    tracked = set(list_files())
    copy_files(tracked, tree)
    for folder in ("lib", "tests", "stages", "reproduce", "bench", "examples"):
        for path in (tree / folder).rglob("*.py"):
            if str(path.relative_to(tree)) not in tracked:
                path.unlink()


def _digest() -> str:
    """Digest all sources and bugs, which key the results of a stopped run."""
    digest = hashlib.sha256()
    for name in sorted(name for name in list_files() if name.endswith((".py", ".toml"))):
        digest.update(f"{name}\0".encode() + (REPOSITORY / name).read_bytes())
    return digest.hexdigest()[:16]


def _cache_name(tree: Path, folder: Path) -> str:
    """Return the name of Numba's cache for the modules of a folder."""
    path = tree / folder
    return f"{path.name}_{hashlib.sha1(str(path).encode()).hexdigest()}"


def _share_compiled(origin: Path, cache: Path, tree: Path, changed: str | None) -> None:
    """Link compiled functions that do not depend on `changed`.

    Numba invalidates functions of a changed module, but not functions of other modules that call them.
    """
    from privsvm.warm_up import cache_key
    from privsvm_bench.workflow.sources import closure

    target = tree / ".cache" / "numba" / cache_key(tree / "lib/privsvm")
    if target.exists() and changed is None:
        return
    compiled = [path for name in ("numerics", "solvers") for path in (tree / "lib/privsvm" / name).rglob("[!_]*.py")]
    for module in (path.relative_to(tree) for path in compiled):
        if changed is not None and changed in closure(".".join(module.with_suffix("").parts[1:])):
            continue
        folder = module.parent
        source, copy_cache = cache / _cache_name(origin, folder), target / _cache_name(tree, folder)
        copy_cache.mkdir(parents=True, exist_ok=True)
        for path in source.glob(f"{module.stem}.*"):
            if not (copy_cache / path.name).exists():
                os.link(path, copy_cache / path.name)


class _Reports:
    """A pytest plugin that records failures."""

    def __init__(self) -> None:
        self.failed: list[tuple[str, str, str]] = []
        self.passed = 0

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.failed.append((report.nodeid, report.when, report.longreprtext))
        elif report.when == "call" and report.passed:
            self.passed += 1

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.failed.append((report.nodeid, "collect", report.longreprtext))


def _run_in_fork(work: Any, result: Path) -> dict[str, Any]:
    """Do work in a fork, and return its result."""
    result.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        code = 1
        resource.setrlimit(resource.RLIMIT_CPU, (_PATIENCE, _PATIENCE))
        try:
            result.write_text(json.dumps(work()), encoding="utf-8")
            code = 0
        except BaseException:
            result.write_text(json.dumps({"error": traceback.format_exc()}), encoding="utf-8")
        finally:
            os._exit(code)
    os.waitpid(child, 0)
    answer: dict[str, Any] = json.loads(result.read_text(encoding="utf-8")) if result.exists() else {"error": "died"}
    return answer


def _run_tests(tree: Path, chosen: list[str], changed: str | None, origin: tuple[Path, Path]) -> dict[str, Any]:
    """Run tests of a copy in this fork."""
    os.chdir(tree)
    sys.path[:2] = [str(tree), str(tree / "lib")]
    for name in [name for name in sys.modules if name.split(".")[0] in ("privsvm", "tests")]:
        del sys.modules[name]
    output = io.StringIO()
    reports = _Reports()
    with redirect_stdout(output), redirect_stderr(output):
        import privsvm

        assert Path(privsvm.__file__).is_relative_to(tree)
        import tests.conftest

        assert Path(tests.conftest.__file__).is_relative_to(tree)
        _share_compiled(*origin, tree, changed)
        import numba
        import pytest
        from hypothesis import Phase, settings

        numba.config.reload_config()
        # The first failing example is enough.
        settings.register_profile(
            "planted", settings.get_profile("repeatable"), phases=[Phase.explicit, Phase.generate]
        )
        settings.load_profile("planted")
        options = ["-n0", "-q", "-p", "no:cacheprovider", "--tb=short", "--durations=0", "-x"]
        pytest.main([*options, *chosen], plugins=[reports])
    used = os.times()
    return {
        "failed": reports.failed,
        "passed": reports.passed,
        "seconds": used.user + used.system,
        "output": output.getvalue()[-4000:],
    }


def _verdict(mutant: Mutant, outcome: dict[str, Any]) -> tuple[str, str]:
    """Return the test that found a bug and its words, or an empty name and the reason."""
    if "error" in outcome:
        return "", outcome["error"].strip().splitlines()[-1]
    if not outcome["failed"]:
        return "", "lives" if outcome["passed"] else f"no test ran: {outcome['output'][-300:]}"
    test, when, text = outcome["failed"][0]
    if when != "call":
        return "", f"failed in {when}, not in a test: {text[-300:]}"
    if mutant.says not in text:
        return "", f"failed for another reason: {text[-600:]}"
    return test, mutant.says


def _result_path(results: Path, mutant: Mutant) -> Path:
    return results / f"{hashlib.sha256(mutant.name.encode()).hexdigest()[:16]}.json"


def _work(worker: int, n_workers: int, chosen: list[Mutant], origin: tuple[Path, Path], results: Path) -> None:
    """Plant a worker's share of the bugs without a result in one copy."""
    tree = FOLDER / f"copy{worker}"
    _make_copy(tree)
    for number, mutant in enumerate(chosen):
        if number % n_workers != worker or _result_path(results, mutant).exists():
            continue
        path = tree / mutant.file
        text, stat = path.read_text(encoding="utf-8"), path.stat()
        try:
            path.write_text(mutant.plant(text), encoding="utf-8")
            # Bytecode is keyed by time in seconds and size of the source.
            os.utime(path, (number + 1, number + 1))
            outcome = _run_in_fork(
                lambda mutant=mutant: _run_tests(tree, mutant.tests, mutant.file, origin),
                FOLDER / f"found{worker}.json",
            )
        finally:
            path.write_text(text, encoding="utf-8")
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
        test, words = _verdict(mutant, outcome)
        line = {"test": test, "words": words, "seconds": outcome.get("seconds", 0.0)}
        temporary = FOLDER / f"line{worker}.json"
        temporary.write_text(json.dumps(line), encoding="utf-8")
        temporary.replace(_result_path(results, mutant))
        print(f"{'found' if test else 'MISSED':6} {line['seconds']:5.1f} s  {mutant.name}: {test or words}", flush=True)


def _import_packages() -> None:
    """Import third-party packages of all tests."""
    for name in (
        "dp_accounting", "hypothesis", "numba", "numpy", "pandas", "pydantic", "pytest", "scipy.optimize",
        "scipy.sparse", "scipy.special", "scipy.stats", "sklearn.base", "sklearn.datasets",
        "sklearn.utils.estimator_checks",
    ):  # fmt: skip
        __import__(name)


def main() -> int:
    """Plant all or selected bugs; return 1 if one was missed."""
    parser = argparse.ArgumentParser(description="Plant bugs, and see which tests find them.")
    parser.add_argument("names", nargs="*", help="parts of names of bugs; none: all")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--keep", action="store_true", help="do not run the tests without a bug first")
    parser.add_argument("--sample", action="store_true", help="only bugs that run with all other tests")
    options = parser.parse_args()
    chosen = [mutant for mutant in MUTANTS if not options.names or any(text in mutant.name for text in options.names)]
    if options.sample:
        chosen = [mutant for mutant in MUTANTS if mutant.sample]
    FOLDER.mkdir(parents=True, exist_ok=True)
    _import_packages()
    # All listed tests must pass without a bug; this also compiles everything.
    base = FOLDER / "base"
    _make_copy(base)
    here = _run_in_fork(lambda: {"key": _key(base)}, FOLDER / "key.json")["key"]
    cache, ours = base / ".cache" / "numba" / here, REPOSITORY / ".cache" / "numba" / here
    origin = (REPOSITORY, ours) if ours.exists() else (base, cache)
    if not options.keep:
        tests = list(dict.fromkeys(test for mutant in chosen for test in mutant.tests))
        outcome = _run_in_fork(lambda: _run_tests(base, tests, None, origin), FOLDER / "base.json")
        if "error" in outcome or outcome["failed"] or not outcome["passed"]:
            print(f"error: without a bug, tests fail: {outcome.get('error') or outcome['failed'] or outcome['output']}")
            return 1
        print(f"{outcome['passed']} tests pass without a bug ({outcome['seconds']:.0f} s)", flush=True)
        origin = (base, cache)
    results_folder = FOLDER / f"results-{_digest()}"
    results_folder.mkdir(exist_ok=True)
    workers = []
    for worker in range(options.cores):
        child = os.fork()
        if child == 0:
            try:
                _work(worker, options.cores, chosen, origin, results_folder)
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                os._exit(0)
        workers.append(child)
    for child in workers:
        os.waitpid(child, 0)
    paths = [_result_path(results_folder, mutant) for mutant in chosen]
    results = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    for path in paths:
        path.unlink()
    missed = [mutant.name for mutant, result in zip(chosen, results, strict=True) if not result["test"]]
    seconds = sum(result["seconds"] for result in results)
    print(f"{len(chosen) - len(missed)} of {len(chosen)} found in {seconds:.0f} s of processor time")
    print(f"missed: {', '.join(missed) or 'none'}")
    return int(bool(missed))


def _key(tree: Path) -> str:
    """Return the name of a copy's cache of compiled functions."""
    from privsvm.warm_up import cache_key

    return cache_key(tree / "lib/privsvm")


if __name__ == "__main__":
    sys.exit(main())
