"""What Numba 0.68.1 does for every function that it compiles, left out where nobody needs it, or done by a shorter way.

Of ten compiled functions nine are steps, which run only as a part of their callers. Numba makes machine code of each of
them all the same, and that takes an eighth of the time. LLVM rewrites a function while it makes machine code of it, so
callers are compiled from what a step was before: their registers may differ, the operations do not.

There is a second reason. A caller holds a copy of each step that it calls, rounded otherwise where ``fastmath`` lets
LLVM choose an order. If the step has machine code of its own, the process that compiles the caller runs that, and each
later one, which loads the caller from a file, runs the copy: the first fit on a machine would have other last bits than
all others. So steps of our functions never have machine code, whoever compiles them.

With another version of Numba nothing is replaced.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any

import numba
from numba.core import codegen, ir, targetconfig
from numba.core.environment import lookup_environment

__all__ = ["VERSION", "hasten", "steps_without_machine_code"]

# The version whose functions these are.
VERSION = "0.68.1"

# What the names of variables begin with that hold a function's constants and globals.
_ENVIRONMENT = "_ZN08NumbaEnv"


# For how many reasons machine code is made late; Numba's lock keeps others from looking while a function is compiled.
_reasons_to_wait = 0


@functools.cache
def hasten() -> None:
    """Replace slow functions of Numba, in this process: one that compiles much, and is ours."""
    global _reasons_to_wait
    if numba.__version__ == VERSION:
        _late_machine_code()
        _reasons_to_wait += 1
        _options()
        _variables()


@contextlib.contextmanager
def steps_without_machine_code() -> Iterator[None]:
    """Make no machine code of steps that are compiled meanwhile, by who holds Numba's lock; leave all else to Numba."""
    global _reasons_to_wait
    if numba.__version__ == VERSION:
        _late_machine_code()
    _reasons_to_wait += 1
    try:
        yield
    finally:
        _reasons_to_wait -= 1


@functools.cache
def _late_machine_code() -> None:
    """Make machine code of a function once its address is asked for, while there is a reason: of a step, never."""
    library_class: Any = codegen.JITCodeLibrary
    codegen_class: Any = codegen.JITCPUCodegen
    finish = library_class._finalize_final_module
    address_of = library_class.get_pointer_to_function
    set_environment = codegen_class.set_env

    def finish_later(library: Any) -> None:
        if not _reasons_to_wait or (library._object_caching_enabled and library._compiled_object):
            # Not ours, or from the cache, with its machine code.
            finish(library)
            return
        library._finalize_dynamic_globals()
        library._verify_declare_only_symbols()
        library._finalized = True
        library._waits = True

    def defines(library: Any, name: str) -> bool:
        try:
            return not library._final_module.get_function(name).is_declaration
        except NameError:
            return False

    def get_pointer_to_function(library: Any, name: str) -> Any:
        library._ensure_finalized()
        if getattr(library, "_waits", False) and defines(library, name):
            library._waits = False
            library._dynamic_globals.clear()
            finish(library)
            for variable in library._final_module.global_variables:
                if variable.name.startswith(_ENVIRONMENT):
                    # Also those of steps, whose own libraries never came so far.
                    environment = lookup_environment(variable.name)
                    if environment is not None:
                        set_environment(library._codegen, variable.name, environment)
        return address_of(library, name)

    def set_env(self: Any, name: str, environment: Any) -> None:
        if self._engine.is_symbol_defined(name):
            set_environment(self, name, environment)

    library_class._finalize_final_module = finish_later
    library_class.get_pointer_to_function = get_pointer_to_function
    codegen_class.set_env = set_env


def _options() -> None:
    """Values and hash of a function's options, which each lookup of a callee compares."""
    options_class: Any = targetconfig.TargetConfig

    defaults: dict[Any, dict[str, Any]] = {}
    hashes: dict[Any, int] = {}

    def values(options: Any) -> dict[str, Any]:
        kind = type(options)
        if kind not in defaults:
            defaults[kind] = {name: option.default for name, option in kind.options.items()}
        return {**defaults[kind], **options._values}

    def hash_of_names(options: Any) -> int:
        kind = type(options)
        if kind not in hashes:
            hashes[kind] = hash(tuple(sorted(kind.options)))
        return hashes[kind]

    options_class.values = values
    options_class.__hash__ = hash_of_names


def _variables() -> None:
    """List variables of a statement by the types of its parts."""
    instruction: Any = ir.Inst
    list_variables = instruction._rec_list_vars
    variable = ir.Var
    # Most parts are of these types, which hold none.
    plain = {str, int, float, bool, type(None)}

    def listed(statement: Any, value: Any) -> list[Any]:
        kind = type(value)
        if kind is variable:
            return [value]
        if kind in plain:
            return []
        if kind is dict:
            value = value.values()
        elif kind is not list and kind is not tuple:
            return list_variables(statement, value)
        found: list[Any] = []
        for part in value:
            if type(part) is variable:
                found.append(part)
            elif type(part) not in plain:
                found += listed(statement, part)
        return found

    instruction._rec_list_vars = listed
