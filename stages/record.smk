# After a plain `snakemake`: tell DVC that all outputs are current, so that `dvc repro` has nothing to do.
# All final files are its inputs, so a partial or failed run is never recorded. It has no benchmark file, whose time
# Snakemake would compare too: DVC's stage `report` only touches the marker.
# DVC works inside a Git repository only: without one the results stand, and `onsuccess` says what is missing. In another
# working folder dvc.yaml is not ours.
HAS_GIT = any(
    (folder / ".git").exists() for folder in (Path.cwd(), *Path.cwd().parents)
)
RECORD = IS_HERE and not IN_DVC and Path(".dvc").is_dir() and HAS_GIT
FINAL_FILES = [
    "reports/index.html",
    "reports/pages",
    "reports/assets",
    "reports/metrics.json",
    "reports/curves.csv",
    "reports/tracking.json",
]


rule record:
    input:
        # Not the pages, which come from the same job as metrics.json: DVC renews the times of files in its cache.
        [name for name in FINAL_FILES if name.endswith((".json", ".csv"))],
        # Of every dataset, also where no method uses it: DVC's stage `condense` makes them all.
        [
            f"data/condensed/{CONDENSE}/{dataset}.{ending}"
            for dataset in DATASETS
            for ending in ("npz", "json")
        ],
    output:
        "logs/recorded",
    log:
        "logs/record.log",
    localrule: True
    conda:
        "../environment.yml"
    threads: 1
    resources:
        mem_mb=500,
    shell:
        f"exec python -IS {STAGES}record.py" " --output {output:q} > {log:q} 2>&1"
