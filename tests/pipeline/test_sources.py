"""What a script depends on is read from the sources, and is never less than what a process really loads."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.once import made_once, take_imports

from privsvm.errors import PrivSVMError
from privsvm.pipeline import sources
from privsvm.pipeline.sources import closure, closure_digest, compiled_code_key, compiled_modules

REPOSITORY = Path(__file__).resolve().parents[2]

TOY = {
    "lib/shop/__init__.py": """
import importlib
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from shop.bread import Loaf
    from shop.milk import Bottle
def __getattr__(name):
    return getattr(importlib.import_module({"Loaf": "shop.bread", "Bottle": "shop.milk"}[name]), name)
""",
    "lib/shop/bread.py": "from . import flour\nclass Loaf: pass\n",
    "lib/shop/milk.py": "class Bottle: pass\n",
    "lib/shop/flour.py": "import numpy\n",
    "lib/shop/prices/__init__.py": "",
    "lib/shop/prices/table.py": "from pathlib import Path\nTABLE = Path(__file__).with_name('prices.json')\n",
    "lib/shop/prices/prices.json": "{}",
    "lib/shop/prices/unused.json": "{}",
    "lib/shop/page.py": "FOLDER = 'templates'\n",
    "lib/shop/templates/a.jinja": "a",
    "lib/shop/templates/deep/b.jinja": "b",
    "lib/shop/late.py": "def f():\n    from shop.prices import table\n    return table\n",
    "lib/shop/typed.py": "import typing\nif typing.TYPE_CHECKING:\n    import shop.milk\n"
    "else:\n    import shop.flour\n",
    "lib/shop/chosen.py": "import importlib\ndef f(n):\n    importlib.import_module('shop.flour')\n"
    "    return importlib.import_module(f'shop.{n}')\n",
    "scripts/sell.py": "import helper\nfrom shop import Loaf\n",
    "scripts/helper.py": "",
    "scripts/ask.py": "import shop\nshop.Bottle\n",
    "scripts/rule.smk": "rule x:\n    output: 'y'\n",
}


@pytest.fixture
def toy(tmp_path):
    for name, text in TOY.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("entry", "needed"),
    [
        ("lib/shop/milk.py", ["shop/__init__.py", "shop/milk.py"]),
        # Relative imports, and the packages above.
        ("shop.bread", ["shop/__init__.py", "shop/bread.py", "shop/flour.py"]),
        # Inside a function, with the data that the module names; no other data.
        (
            "shop.late",
            ["shop/__init__.py", "shop/late.py", "shop/prices/__init__.py", "shop/prices/prices.json",
             "shop/prices/table.py"],
        ),
        ("shop.page", ["shop/__init__.py", "shop/page.py", "shop/templates/a.jinja", "shop/templates/deep/b.jinja"]),
        # For types only: no dependency. The other branch is one.
        ("shop.typed", ["shop/__init__.py", "shop/flour.py", "shop/typed.py"]),
        # A name put together at run time is not known.
        ("shop.chosen", ["shop/__init__.py", "shop/chosen.py", "shop/flour.py"]),
        # Beside the script; a name that the package imports when it is first used.
        (
            "scripts/sell.py",
            ["../scripts/helper.py", "../scripts/sell.py", "shop/__init__.py", "shop/bread.py", "shop/flour.py"],
        ),
        ("scripts/ask.py", ["../scripts/ask.py", "shop/__init__.py", "shop/milk.py"]),
        ("scripts/rule.smk", ["../scripts/rule.smk"]),
        ("scripts", ["../scripts/ask.py", "../scripts/helper.py", "../scripts/rule.smk", "../scripts/sell.py",
                     "shop/__init__.py", "shop/bread.py", "shop/flour.py", "shop/milk.py"]),
    ],
)  # fmt: skip
def test_closure_of_a_toy(toy, entry, needed):
    expected = [os.path.normpath(f"lib/{name}") for name in needed]
    assert closure(entry, root=toy) == sorted(expected)
    # Known from the first time, by another process.
    code = f"from privsvm.pipeline.sources import closure; print(*closure({entry!r}, root={str(toy)!r}), sep='\\n')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == sorted(expected)


def test_several_entries_are_one_closure(toy):
    both = closure("shop.bread", "shop.page", root=toy)
    assert both == sorted({*closure("shop.bread", root=toy), *closure("shop.page", root=toy)})


def test_digest_follows_content_and_not_times(toy):
    before = closure_digest("scripts/sell.py", root=toy)
    for path in toy.rglob("*.py"):
        os.utime(path, (time.time() + 100, time.time() + 100))
    assert closure_digest("scripts/sell.py", root=toy) == before
    # Not needed by it.
    (toy / "lib/shop/milk.py").write_text("class Bottle:\n    litres = 2\n")
    assert closure_digest("scripts/sell.py", root=toy) == before
    (toy / "lib/shop/flour.py").write_text("import scipy\n")
    changed = closure_digest("scripts/sell.py", root=toy)
    assert changed != before
    # An import that comes, and its file.
    (toy / "lib/shop/flour.py").write_text("import shop.milk\n")
    assert "lib/shop/milk.py" in closure("scripts/sell.py", root=toy)
    assert closure_digest("scripts/sell.py", root=toy) not in (before, changed)


def test_package_data_counts(toy):
    before = closure_digest("shop.page", root=toy)
    (toy / "lib/shop/templates/deep/b.jinja").write_text("another")
    changed = closure_digest("shop.page", root=toy)
    (toy / "lib/shop/templates/c.jinja").write_text("new")
    assert len({before, changed, closure_digest("shop.page", root=toy)}) == 3


def test_what_is_kept_on_disk_is_never_trusted_for_other_sources(toy):
    before = closure("shop.bread", root=toy)
    kept = toy / ".cache/imports"
    text = kept.read_text()
    seal, facts = text.splitlines()
    run = ["-c", f"from privsvm.pipeline.sources import closure; print(*closure('shop.bread', root={str(toy)!r}))"]
    of_another = f"{hashlib.sha256(b'another version' + facts.encode()).hexdigest()}\n{facts}"
    # One letter of a module's name, which would leave out what the code depends on.
    damaged = text.replace("flour", "floor")
    assert damaged != text
    for broken in ("", "\n", "[]", "[" * 100_000, seal, facts, f"{seal}\n[]", f"{seal}\n{{", of_another, damaged):
        kept.write_text(broken)
        done = subprocess.run([sys.executable, *run], capture_output=True, text=True, check=True)
        assert done.stdout.split() == before
    assert kept.read_text() == text


def test_files_that_others_have_read_are_not_read_again(toy, monkeypatch):
    """Two programs that need different files do not forget what the other one has found, whoever writes last."""
    first, second = sources._Sources(toy), sources._Sources(toy)
    for program, entry in ((first, "shop.page"), (second, "shop.bread")):
        program.closure((entry,))
    monkeypatch.setattr(sources.ast, "parse", lambda text: pytest.fail("was known"))
    third = sources._Sources(toy)
    assert third.closure(("shop.page", "shop.bread")) == closure("shop.page", "shop.bread", root=toy)
    # Of states that are no longer there not all are kept for ever.
    monkeypatch.undo()
    monkeypatch.setattr(sources, "_MOST_KEPT", 12)
    for number in range(20):
        (toy / "lib/shop/flour.py").write_text(f"import scipy  # {number}\n")
        sources._Sources(toy).closure(("shop.bread",))
    kept = json.loads((toy / ".cache/imports").read_text().splitlines()[1])
    assert len(kept) == 12
    digests = {hashlib.sha256((toy / name).read_bytes()).hexdigest() for name in closure("shop.bread", root=toy)}
    assert digests <= {*kept}


def test_mistakes_are_one_line(toy):
    for entry in ("scripts/nothing.py", "shop.nothing", "numpy"):
        with pytest.raises(PrivSVMError, match=f"^{entry}: neither a file nor a module of .*$"):
            closure(entry, root=toy)
    (toy / "lib/shop/milk.py").write_text("class Bottle:\n  x = (\n")
    with pytest.raises(PrivSVMError, match=r"^.*milk\.py: line 2: "):
        closure("shop.milk", root=toy)


def library_modules():
    return sorted(
        path.relative_to(REPOSITORY / "lib").with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__")
        for path in (REPOSITORY / "lib/privsvm").rglob("*.py")
    )


# Of two modules one of which needs all that the other one does, the first is imported after the other: by then only the
# rest is loaded, and what is there is at least what a new process would have loaded.
IMPORTS = """
import importlib, json, sys
from numba.core.dispatcher import Dispatcher
after = json.loads(sys.argv[1])
compiled, loaded = set(), {}

def ours():
    return {name: module for name, module in sys.modules.items() if name.split(".")[0] == "privsvm"}

def import_after(before, names):
    # A package knows its modules by its names, too.
    held = {name: dict(vars(module)) for name, module in before.items() if hasattr(module, "__path__")}
    for name in names:
        for known in set(ours()) - set(before):
            del sys.modules[known]
        for package, values in held.items():
            vars(before[package]).clear()
            vars(before[package]).update(values)
        module = importlib.import_module(name)
        compiled.update(value.py_func.__module__ for value in vars(module).values() if isinstance(value, Dispatcher))
        found = ours()
        loaded[name] = [getattr(module, "__file__", None) for module in found.values()]
        import_after(found, after.get(name, []))

import_after({}, after[""])
print(json.dumps([loaded, sorted(compiled)]))
"""


@pytest.fixture(scope="session")
def imported(tmp_path_factory):
    """The files that every module of the library has loaded, and the modules that hold compiled functions."""

    def import_all(answer):
        closures = {name: frozenset(closure(name)) for name in library_modules()}
        after = {}
        for name, needed in closures.items():
            smaller = [other for other in closures if closures[other] < needed]
            after.setdefault(max(smaller, key=lambda other: len(closures[other]), default=""), []).append(name)
        environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "lib")}
        command = [sys.executable, "-c", IMPORTS, json.dumps(after)]
        answer.write_text(
            subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True).stdout
        )

    return json.loads(made_once(tmp_path_factory, "imported_modules", import_all).read_text())


def test_no_module_loads_more_than_its_closure(imported):
    """Every module of the library, imported without any other of it being there but those that it needs."""
    loaded, _ = imported
    assert sorted(loaded) == library_modules()
    assert len(loaded) > 60
    for name, paths in loaded.items():
        files = {Path(path).relative_to(REPOSITORY).as_posix() for path in paths if path}
        assert {f"lib/{name.replace('.', '/')}{ending}" for ending in (".py", "/__init__.py")} & files, name
        assert files <= set(closure(name)), name


def test_a_method_needs_no_other_method_nor_its_solver():
    for name in ("majority", "svm"):
        needed = closure("stages/train.py", f"privsvm.methods.{name}")
        assert [file for file in needed if file.startswith("lib/privsvm/methods/")] == [
            "lib/privsvm/methods/__init__.py",
            f"lib/privsvm/methods/{name}.py",
        ]
        assert "lib/privsvm/solvers/crammer_singer.py" not in needed
    assert "lib/privsvm/solvers/crammer_singer.py" in closure("privsvm.methods.crammer_singer")


def copied_library(folder):
    shutil.copytree(REPOSITORY / "lib", folder / "lib", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    take_imports(folder)
    return folder


def test_editing_the_report_compiles_nothing_anew(tmp_path):
    root = copied_library(tmp_path)
    before = compiled_code_key(root)
    assert before == compiled_code_key(root)
    edited = (
        "reporting/page.py", "pipeline/params.py", "pipeline/sources.py", "methods/majority.py", "tracking/store.py",
        "data/readers.py", "reproduction/draws.py",
    )  # fmt: skip
    for name in edited:
        path = root / "lib/privsvm" / name
        path.write_text(path.read_text() + "\n# a comment\n")
        assert compiled_code_key(root) == before, name
    keys = {before}
    for name in compiled_modules(root):
        path = root / name
        path.write_text(path.read_text() + "\n# a comment\n")
        keys.add(compiled_code_key(root))
    assert len(keys) == 1 + len(compiled_modules(root)) > 10
    # A constant that compiled code took from a module without any.
    needed = [name for name in closure(*compiled_modules(root), root=root) if name not in compiled_modules(root)]
    path = root / needed[-1]
    path.write_text(path.read_text() + "\n# a comment\n")
    assert compiled_code_key(root) not in keys


def test_every_compiled_function_belongs_to_a_compiled_module(imported):
    _, found = imported
    modules = {name.removeprefix("lib/").removesuffix(".py").replace("/", ".") for name in compiled_modules()}
    assert len(found) > 8
    assert set(found) <= modules
