"""What every job of the benchmark depends on besides the files of other jobs: code, parameters, outside files.

Both Snakemake's rules and DVC's stages (`privsvm.pipeline.versions`) take it from here.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
from pathlib import Path
from typing import Any

from privsvm.digests import canonical_json, sha256_of_file
from privsvm.errors import without_passwords
from privsvm.files import write_json
from privsvm.pipeline.methods import ForeignSource, foreign_source, is_foreign, module_name
from privsvm.pipeline.params import Params
from privsvm.pipeline.sources import closure_digest

__all__ = [
    "SCRIPTS",
    "audit_code",
    "audit_parameters",
    "condense_parameters",
    "download_parameters",
    "file_digest",
    "foreign_code",
    "one_method_code",
    "prepare_parameters",
    "report_parameters",
    "rule_code",
    "track_parameters",
    "train_parameters",
]

# The script that each rule runs; what it imports is what the rule's jobs depend on.
SCRIPTS = {
    "download": "stages/download.py",
    "prepare": "stages/prepare.py",
    "condense": "stages/condense.py",
    "train": "stages/train.py",
    "evaluate": "stages/evaluate.py",
    "audit": "stages/audit.py",
    "track": "stages/track.py",
    "report": "stages/report.py",
}

_KNOWN_DIGESTS = Path(".cache/digests.json")


def rule_code(rule: str) -> str:
    """Compute the digest of the code that the jobs of a rule run, without that of methods."""
    return closure_digest(SCRIPTS[rule])


@functools.cache
def foreign_code(implementation: str) -> ForeignSource:
    """Identify the code of a class of another package, once per process."""
    return foreign_source(implementation)


@functools.cache
def one_method_code(implementation: str) -> str:
    """Compute the digest of the code that trains one method: the script, the method, and all that they import."""
    if not is_foreign(implementation):
        return closure_digest(SCRIPTS["train"], module_name(implementation))
    source = foreign_code(implementation)
    return f"{closure_digest(SCRIPTS['train'])} {source.package} {source.version} {source.digest}"


@functools.cache
def audit_code(implementation: str) -> str:
    """Compute the digest of the code that audits one method: the script, the method, and all that they import."""
    return closure_digest(SCRIPTS["audit"], module_name(implementation))


@functools.cache
def _known_digests() -> dict[str, list]:
    # Deep nesting in a damaged file ends in a RecursionError.
    with contextlib.suppress(OSError, ValueError, AttributeError, RecursionError):
        known = json.loads(_KNOWN_DIGESTS.read_text(encoding="utf-8"))
        return {name: entry for name, entry in known.items() if _is_digest_entry(name, entry)}
    return {}


def _is_digest_entry(name: str, entry: Any) -> bool:
    """Tell whether an entry has the form of those that `file_digest` keeps."""
    return (
        isinstance(entry, list)
        and [type(part) for part in entry] == [int, int, int, int, str]
        and re.fullmatch("[0-9a-f]{64}", entry[-1]) is not None
        and not any("\ud800" <= character <= "\udfff" for character in name)
    )


def file_digest(path: str | os.PathLike[str]) -> str:
    """Compute the SHA-256 of a file; read it only if its time, size or place on the disk has changed.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    str
        64 hexadecimal digits.
    """
    known, name = _known_digests(), os.path.abspath(path)
    status = os.stat(path)
    # ctime too: an older file may have been moved here.
    state = [status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino]
    if name not in known or known[name][:-1] != state:
        known[name] = [*state, sha256_of_file(path)]
        # A folder that cannot be written only makes the next start slower.
        with contextlib.suppress(OSError):
            write_json(_KNOWN_DIGESTS, {key: value for key, value in known.items() if os.path.exists(key)}, indent=None)
    return known[name][-1]


def download_parameters(params: Params, dataset: str) -> str:
    """Parameters of the jobs that get a dataset's files, as canonical JSON."""
    return canonical_json({"settings": params.dataset_settings(dataset)})


def prepare_parameters(params: Params, dataset: str) -> str:
    """Parameters of the job that prepares a dataset, as canonical JSON."""
    return canonical_json(
        {
            "experiment": params.experiment,
            "protocol": params.protocol.model_dump(exclude_unset=True),
            "seed": params.seed,
            "settings": params.dataset_settings(dataset),
        }
    )


def condense_parameters(params: Params) -> str:
    """Parameters of the jobs that condense training rows, as canonical JSON."""
    return canonical_json({key: getattr(params, key) for key in ("condense", "experiment", "seed")})


def train_parameters(params: Params, method: str, dataset: str) -> str:
    """Parameters of the job that trains a method on a dataset, as canonical JSON.

    A method that states no epsilon has no ``privacy``, so that its jobs do not depend on it.
    """
    return canonical_json(
        {
            **{key: getattr(params, key) for key in ("condense", "experiment", "seed")},
            **({"privacy": params.privacy.model_dump()} if params.reads_privacy(method, dataset) else {}),
            "implementation": params.methods[method].implementation,
            "parameters": params.method_parameters(method, dataset),
        }
    )


def audit_parameters(params: Params, method: str) -> str:
    """Parameters of the job that audits a method, as canonical JSON."""
    return canonical_json(
        {
            **params.audit.model_dump(),
            "delta": params.privacy.delta,
            "implementation": params.methods[method].implementation,
            "neighbours": params.privacy.neighbours,
            "parameters": params.entry_parameters(method),
            "seed": params.seed,
        }
    )


def report_parameters(params: Params) -> str:
    """Parameters of the job that writes the report, as canonical JSON."""
    # Data sets that their owner brought: the report then speaks to that owner.
    own = sorted(name for name in params.datasets if params.own_file(name))
    return canonical_json(
        {"experiment": params.experiment, **params.report.model_dump(), **({"own": own} if own else {})}
    )


def track_parameters(params: Params) -> str:
    """Parameters of the job that logs to MLflow, as canonical JSON.

    Snakemake stores and shows them, so a password in the address is left out; the job finds it in its environment, see
    `privsvm.pipeline.workflow.set_environment`.
    """
    return canonical_json({"tracking_uri": without_passwords(params.mlflow.tracking_uri)})
