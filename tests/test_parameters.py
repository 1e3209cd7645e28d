"""No function takes more than seven parameters, and no compiled one more than ten."""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("bench", "docs", "examples", "lib", "reproduce", "stages", "tests", "tools")
MOST, MOST_COMPILED = 7, 10

# Exceptions by name, with their reason.
LONGER = {
    "lib/privsvm/auditing/estimators.py::audit": "public, called by keyword: what a user states, all of it optional",
    "lib/privsvm_bench/reproduction/comparison.py::compare": "the columns of a row, each by name where it applies",
}


def _is_compiled(function):
    """Whether Numba compiles a function, or it builds LLVM code: such code takes arrays and numbers alone."""
    arguments = [argument.arg for argument in function.args.args]
    return arguments[:1] == ["typingctx"] or any("jit" in ast.unparse(line) for line in function.decorator_list)


def _longer(path):
    """Yield the functions of a file with more parameters, constructors excepted."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.FunctionDef) or node.name == "__init__":
            continue
        arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        most = MOST_COMPILED if _is_compiled(node) else MOST
        if sum(argument.arg not in ("self", "cls") for argument in arguments) > most:
            yield f"{path.relative_to(ROOT).as_posix()}::{node.name}"


def test_no_function_takes_too_many_parameters():
    paths = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    assert len(paths) > 300
    assert {name for path in paths for name in _longer(path)} == set(LONGER)
    assert len(LONGER) <= 4
