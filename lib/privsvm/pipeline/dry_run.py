"""What Snakemake 9.27 computes of every job before it prints a dry run, computed once or by a shorter way.

With thousands of jobs that is a third of the time. Every function here returns what Snakemake's own returns; where a
case is not the plain one, it calls that. With another version of Snakemake nothing is replaced.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from typing import Any

__all__ = ["VERSION", "hasten"]

# The version whose functions these are.
VERSION = "9.27."

# Names of files that Snakemake warns of for no reason whatever: no blanks, no empty folders, no "./" in front.
_PLAIN_NAME = re.compile(r"\.?[A-Za-z0-9_][A-Za-z0-9_.+-]*(?:/[A-Za-z0-9_.+-]+)*")

# Names of files with nothing in them but wildcards without a pattern of their own.
_PLAIN_PATTERN = re.compile(r"[^{}<]*(?:\{[A-Za-z_][A-Za-z0-9_]*\}[^{}<]*)*")

# Rules are looked up by so many first letters of a file.
_FIRST = 8


def hasten(workflow: Any) -> None:
    """Replace slow functions of Snakemake, in this process.

    Parameters
    ----------
    workflow : snakemake.workflow.Workflow
        The workflow that is about to start. In a run nothing is replaced.
    """
    import snakemake

    if not workflow.output_settings.dryrun or not snakemake.__version__.startswith(VERSION):
        return
    _flags()
    _names()
    _wildcards()
    _existence()
    _lists()
    _producers()
    _nested_outputs()
    _known_jobs(workflow)
    _missing_outputs()
    _functions()
    _resources()
    _environments()
    _commands(workflow)
    _messages(workflow)


def _replace(name: str, old: Any, new: Any) -> None:
    """Replace a function in all modules of Snakemake that have imported it."""
    for module in [module for key, module in sys.modules.items() if key.partition(".")[0] == "snakemake"]:
        if vars(module).get(name) is old:
            setattr(module, name, new)


def _flags() -> None:
    """Read flags, and whether a file is a function, without abstract base classes; print what has no flags as it is."""
    from snakemake import io
    from snakemake.io import fmt

    is_flagged, fmt_iofile = io.is_flagged, fmt.fmt_iofile
    get_flag_value, is_callable = io.get_flag_value, io.is_callable
    annotated, iofile = io.AnnotatedString, io._IOFile

    def quick_is_flagged(value: Any, flag: str) -> bool:
        kind = type(value)
        if kind is iofile:
            value = value._file
            kind = type(value)
        if kind is annotated:
            return bool(value._flags.get(flag))
        return False if kind is str else is_flagged(value, flag)

    def quick_get_flag_value(value: Any, flag: str) -> Any:
        kind = type(value)
        if kind is iofile:
            value = value._file
            kind = type(value)
        if kind is annotated:
            return value._flags.get(flag)
        return None if kind is str else get_flag_value(value, flag)

    def quick_is_callable(value: Any) -> bool:
        kind = type(value)
        if kind is iofile:
            return bool(value._is_callable)
        if kind is annotated:
            return value.callable is not None
        return False if kind is str else is_callable(value)

    def quick_fmt_iofile(file: Any, as_input: bool = False, as_output: bool = False) -> Any:
        if type(file) is iofile and not file.flags:
            return str(file)
        return fmt_iofile(file, as_input=as_input, as_output=as_output)

    _replace("is_flagged", is_flagged, quick_is_flagged)
    _replace("get_flag_value", get_flag_value, quick_get_flag_value)
    _replace("is_callable", is_callable, quick_is_callable)
    _replace("fmt_iofile", fmt_iofile, quick_fmt_iofile)


def _names() -> None:
    """Whether a file is in a storage, and whether its name is worth a warning: of plain names, neither is."""
    from snakemake import io

    annotated, iofile = io.AnnotatedString, io._IOFile
    check, is_storage = iofile.check, iofile.is_storage

    def quick_is_storage(file: Any) -> bool:
        value = file._file
        kind = type(value)
        if kind is annotated:
            return bool(value._flags.get("storage_object"))
        return False if kind is str else is_storage.fget(file)

    def quick_check(file: Any) -> None:
        if not (isinstance(file._file, str) and _PLAIN_NAME.fullmatch(file._file)):
            check(file)

    iofile.is_storage, iofile.check = property(quick_is_storage), quick_check
    # Files are compared by their names, as what they stand for is.
    iofile.__eq__, iofile.__hash__ = str.__eq__, str.__hash__


def _wildcards() -> None:
    """Put a job's wildcards into the names of its files, where these hold nothing else that stands for something."""
    from snakemake import io

    annotated, iofile = io.AnnotatedString, io._IOFile
    apply_wildcards = iofile.apply_wildcards
    plain: dict[str, bool] = {}

    def quick_apply_wildcards(file: Any, wildcards: Any) -> Any:
        pattern = file._file
        kind = type(pattern)
        flags = pattern._flags if kind is annotated and pattern.callable is None else {} if kind is str else None
        if flags is None or "storage_object" in flags:
            return apply_wildcards(file, wildcards)
        if pattern not in plain:
            plain[str(pattern)] = _PLAIN_PATTERN.fullmatch(pattern) is not None
        try:
            name = str.format_map(pattern, wildcards) if plain[pattern] else "<"
        except KeyError:
            name = "<"
        if "<" in name or name.endswith("/"):
            return apply_wildcards(file, wildcards)
        own = str.__new__(annotated, name)
        own._flags, own.callable = flags.copy(), None
        new = str.__new__(iofile, name)
        new._is_callable, new._file, new.rule, new._regex, new._wildcard_constraints = False, own, file.rule, None, None
        return new

    iofile.apply_wildcards = quick_apply_wildcards


def _existence() -> None:
    """Whether a file is there, as its folder's list says; and the time of the oldest output without a task for each."""
    from snakemake import io, jobs

    exists = io._IOFile.exists

    async def quick_exists(file: Any) -> bool:
        cache = file.rule.workflow.iocache
        if file.is_storage or not cache.active:
            return await exists(file)
        name = str(file)
        found = dict.get(cache.exists_local, name)
        if found is not None:
            return found
        if os.path.dirname(name) in cache.exists_local.has_inventory:
            return False
        return await exists(file)

    async def output_mintime(job: Any) -> Any:
        files = [*job.output, *([job.benchmark] if job.benchmark else [])]
        times = [(await file.mtime()).local_or_storage() for file in files if await file.exists()]
        return min(times, default=None)

    io._IOFile.exists = quick_exists
    jobs.Job.output_mintime = property(output_mintime)


def _lists() -> None:
    """Make lists with names from a dictionary, such as wildcards."""
    from snakemake.iocontainers import AttributeGuard, Namedlist

    initialise = Namedlist.__init__
    guards = {name: AttributeGuard(name) for name in ("index", "sort")}

    def quick_initialise(self: Any, toclone: Any = None, fromdict: Any = None, **options: Any) -> None:
        kind = type(self)
        if toclone is not None or options or not fromdict or any(hasattr(kind, name) for name in fromdict):
            initialise(self, toclone, fromdict, **options)
            return
        list.__init__(self, fromdict.values())
        vars(self).update(
            _names={name: (place, None) for place, name in enumerate(fromdict)}, _allowed_overrides=[*guards]
        )
        vars(self).update(guards)
        vars(self).update(fromdict)

    Namedlist.__init__ = quick_initialise


def _producers() -> None:
    """Rules that make a file, found once: those that share its first letters are looked at."""
    from snakemake.output_index import OutputIndex

    match = OutputIndex.match
    indexes: dict[Any, dict[str, list[Any]]] = {}

    def by_first_letters(index: Any) -> dict[str, list[Any]]:
        if index not in indexes:
            groups: dict[str, list[Any]] = {}
            for prefix, rules in index._lookup._entries:
                groups.setdefault(prefix[:_FIRST] if len(prefix) >= _FIRST else "", []).append((prefix, rules))
            indexes[index] = groups
        return indexes[index]

    def quick_match(self: Any, target: str) -> Any:
        groups = by_first_letters(self)
        # Those with fewer letters come last.
        some = groups.get(target[:_FIRST], []), groups.get("", [])
        if sum(map(len, some)) > 200:
            return match(self, target)
        name = str(target)
        return {
            rule
            for entries in some
            for prefix, rules in entries
            if name.startswith(prefix)
            for rule, suffix in rules
            if name.endswith(suffix)
        }

    match_producers = OutputIndex.match_producers
    found: dict[tuple[Any, str], Any] = {}

    def quick_match_producers(self: Any, target: str) -> Any:
        key = (self, str(target))
        if key not in found:
            found[key] = match_producers(self, target)
        return set(found[key])

    OutputIndex.match, OutputIndex.match_producers = quick_match, quick_match_producers


def _nested_outputs() -> None:
    """No output may lie in another one: where none does by the names of all folders, the list is not sorted."""
    from snakemake.dag import DAG

    check = DAG.check_directory_outputs

    def quick_check(self: Any) -> None:
        names = {str(file) for job in self.jobs for file in job.output}
        folders: set[str] = set()
        for name in names:
            folder = os.path.dirname(name)
            while folder and folder not in folders:
                folders.add(folder)
                folder = os.path.dirname(folder)
        plain = all(os.path.normpath(folder) == folder and not os.path.isabs(folder) for folder in folders)
        if not plain or folders & names:
            check(self)

    DAG.check_directory_outputs = quick_check


def _known_jobs(workflow: Any) -> None:
    """Take no second look at a job whose own inputs are known, whichever of its files it is found by."""
    from snakemake.dag import DAG

    update = DAG.update

    async def quick_update(self: Any, jobs: Any, file: Any = None, visited: Any = None, **options: Any) -> Any:
        if type(jobs) is list and len(jobs) == 1 and not workflow.output_settings.debug_dag:
            job = jobs[0]
            # Not one that is being looked at: that is a cycle, which Snakemake names.
            is_known = job in self._dependencies and job not in (visited or ()) and file not in job.input
            if is_known and not (options.get("progress") and len(self._dependencies) % 1000 == 0):
                return job
        return await update(self, jobs, file=file, visited=visited, **options)

    DAG.update = quick_update


def _missing_outputs() -> None:
    """Tell which outputs are missing, without a generator for each."""
    from snakemake import io
    from snakemake.jobs import Job

    async def missing_output(job: Any, requested: Any) -> Any:
        for requested_file in requested:
            file = job.output_by_path.get(str(requested_file), requested_file)
            if io.is_flagged(file, "pipe") or io.is_flagged(file, "service") or not await file.exists():
                yield file

    Job.missing_output = missing_output


def _functions() -> None:
    """Parameters of a rule's functions, looked up once."""
    from snakemake import common

    look_up = common.get_function_params
    known: dict[Any, Any] = {}

    def get_function_params(function: Any) -> Any:
        # A method is another object at every look at it.
        key = (getattr(function, "__func__", function), hasattr(function, "__self__"))
        if key not in known:
            known[key] = look_up(function)
        return known[key]

    _replace("get_function_params", look_up, get_function_params)


def _resources() -> None:
    """Resources of a rule all of whose jobs have the same ones."""
    from snakemake.iocontainers import ResourceList
    from snakemake.rules import Rule

    expand = Rule.expand_resources
    known: dict[Any, Any] = {}

    def is_constant(name: str, resource: Any) -> bool:
        return not resource.is_evaluable() or (name == "tmpdir" and resource.raw == "system_tmpdir")

    def expand_resources(rule: Any, wildcards: Any, input: Any, attempt: int, skip_evaluation: Any = None) -> Any:
        if not all(is_constant(name, resource) for name, resource in rule.resources.items()):
            return expand(rule, wildcards, input, attempt, skip_evaluation)
        key = (rule.name, attempt, frozenset(skip_evaluation or ()))
        if key not in known:
            known[key] = dict(expand(rule, wildcards, input, attempt, skip_evaluation).items())
        return ResourceList(fromdict=known[key])

    Rule.expand_resources = expand_resources


def _environments() -> None:
    """Look up a rule's software environment without its jobs' parameters, which a run from nothing needs nowhere."""
    from snakemake import rules
    from snakemake.jobs import Job

    environment = Job.conda_env_spec

    def conda_env_spec(job: Any) -> Any:
        known = job.rule._expanded_conda_env
        return environment.fget(job) if known is rules._NOT_CACHED else known

    Job.conda_env_spec = property(conda_env_spec)


def _shows_commands(workflow: Any) -> bool:
    """Whether anybody reads commands."""
    settings = workflow.output_settings
    return bool(settings.printshellcmds or settings.verbose or settings.log_handler_settings)


def _commands(workflow: Any) -> None:
    """Commands: none where none is shown, else each once."""
    from snakemake.jobs import Job

    command = Job.shellcmd
    commands: dict[Any, str | None] = {}

    def shellcmd(job: Any) -> str | None:
        if not _shows_commands(workflow):
            return None
        if job not in commands:
            commands[job] = command.fget(job)
        return commands[job]

    Job.shellcmd = property(shellcmd)


def _messages(workflow: Any) -> None:
    """Log without a look for who does, and no commands where none is shown."""
    from snakemake.logging import logger
    from snakemake_interface_logger_plugins.common import LogEvent

    # As Python's own guide to logging advises.
    logging._srcfile = None
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
    info = logger.info

    def quick_info(message: Any, *values: Any, **options: Any) -> None:
        is_command = options.get("extra", {}).get("event") is LogEvent.SHELLCMD
        if not is_command or _shows_commands(workflow):
            info(message, *values, **options)

    logger.info = quick_info
