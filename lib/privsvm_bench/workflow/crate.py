"""Describe a run as an RO-Crate: workflow, parameters, data with their licences, environment and results."""

from __future__ import annotations

import datetime
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from privsvm.digests import sha256_of_file
from privsvm.errors import PrivSVMError
from privsvm.files import write_json
from privsvm_bench.datasets.catalogue import load_catalogue
from privsvm_bench.evidence import describe_commit
from privsvm_bench.jobs.params import read_params

CRATE = "ro-crate-metadata.json"
_VERSION = "https://w3id.org/ro/crate/1.1"
_TERMS = {"sha256": "https://w3id.org/ro/terms/workflow-run#sha256"}
# Outputs of a run that may be published; folders of private data are not among them.
_RESULTS = ("data/results", "data/audits", "reports/curves.csv", "reports/metrics.json", "reports/index.html")
_ENVIRONMENT = ("requirements.lock", "environment.yml", "dvc.lock")
_TYPES = {
    ".csv": "text/csv", ".json": "application/json", ".html": "text/html", ".yaml": "application/yaml",
    ".yml": "application/yaml",
}  # fmt: skip


def describe_run(folder: str | os.PathLike[str] = ".") -> Path:
    """Write ``ro-crate-metadata.json`` (RO-Crate 1.1, JSON-LD) for the run in a working folder, and return its path.

    Raises PrivSVMError if there are no results.
    """
    root = Path(folder)
    results = [path for name in _RESULTS for path in _files(root / name)]
    if not results:
        raise PrivSVMError(f"{root / _RESULTS[0]}: no results; run `make run` first")
    params = read_params(root / "params.yaml")
    workflow = _file(root, root / "Snakefile", "PrivSVM's workflow") | {
        "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow"],
        "programmingLanguage": {"@id": "#snakemake"},
    }
    inputs = [_file(root, root / "params.yaml", "Parameters of the run")]
    inputs += [_file(root, root / name, f"Environment: {name}") for name in _ENVIRONMENT if (root / name).is_file()]
    outputs = [_file(root, path, f"Result: {path.name}") for path in results]
    data = _data(params.datasets)
    started = datetime.datetime.fromtimestamp(min(path.stat().st_mtime for path in results), datetime.UTC)
    ended = datetime.datetime.fromtimestamp(max(path.stat().st_mtime for path in results), datetime.UTC)
    run = {
        "@id": "#run", "@type": "CreateAction", "name": f"Run of {params.experiment}", "instrument": _ids(workflow),
        "object": _ids(*inputs, *data), "result": _ids(*outputs), "startTime": started.isoformat("T", "seconds"),
        "endTime": ended.isoformat("T", "seconds"),
        "description": f"Python {platform.python_version()}, commit {describe_commit(root) or 'unknown'}",
    }  # fmt: skip
    whole = {
        "@id": "./", "@type": "Dataset", "name": f"PrivSVM benchmark {params.experiment}",
        "description": "A privacy-utility benchmark of private support vector machines: its inputs and results.",
        "datePublished": ended.date().isoformat(), "license": {"@id": "#licence"},
        "hasPart": _ids(workflow, *inputs, *outputs), "mainEntity": _ids(workflow), "mentions": _ids(run, *data),
    }  # fmt: skip
    graph = [
        {"@id": CRATE, "@type": "CreativeWork", "conformsTo": {"@id": _VERSION}, "about": {"@id": "./"}},
        whole, workflow, *inputs, *outputs, *data, run,
        {"@id": "#licence", "@type": "CreativeWork", "name": "Apache-2.0 for the code; each data set has its own",
         "description": "Read the licence of each data set, which the crate mentions, before you hand on what was made "
                        "from it."},
        {"@id": "#snakemake", "@type": "ComputerLanguage", "name": "Snakemake", "url": "https://snakemake.github.io"},
    ]  # fmt: skip
    write_json(root / CRATE, {"@context": [f"{_VERSION}/context", _TERMS], "@graph": graph})
    return root / CRATE


def _files(path: Path) -> list[Path]:
    return sorted(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path] * path.is_file()


def _file(root: Path, path: Path, name: str) -> dict[str, Any]:
    return {
        "@id": path.relative_to(root).as_posix(), "@type": "File", "name": name,
        "encodingFormat": _TYPES.get(path.suffix, "text/plain"), "contentSize": str(path.stat().st_size),
        "sha256": sha256_of_file(path),
    }  # fmt: skip


def _data(datasets: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Describe the datasets of the catalogue, and only name own data."""
    catalogue = load_catalogue()
    entities = []
    for name in datasets:
        entity = {"@id": f"#data-{name}", "@type": "Dataset", "name": name, "description": "Input of the benchmark."}
        if name in catalogue:
            entity["description"] = f"Input of the benchmark. {catalogue[name].source}"
            entity["usageInfo"] = catalogue[name].licence_words
        entities.append(entity)
    return entities


def _ids(*entities: Mapping[str, Any]) -> Any:
    references = [{"@id": entity["@id"]} for entity in entities]
    return references[0] if len(references) == 1 else references
