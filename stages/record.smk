# After a plain `snakemake`: tell DVC that all outputs are current, so that `dvc repro` has nothing to do.
# All final files are its inputs, so a partial or failed run is never recorded. It has no benchmark file, whose time
# Snakemake would compare too: DVC's stage `report` only touches the marker.
import os

RECORD = not IN_DVC and Path(".dvc").is_dir()
FINAL_FILES = [
    "reports/index.html",
    "reports/metrics.json",
    "reports/curves.csv",
    "reports/tracking.json",
]


# Not in `params`: DVC makes the same files without this rule, and Snakemake would then find the rule out of date.
os.environ["PRIVSVM_IN_USE"] = canonical_json(
    {"condense": CONDENSE, "datasets": DATASETS}
)


envvars:
    "PRIVSVM_IN_USE",


rule record:
    input:
        # Not index.html, which comes from the same job as metrics.json: DVC renews the times of files in its cache.
        [name for name in FINAL_FILES if name != "reports/index.html"],
    output:
        "logs/recorded",
    log:
        "logs/record.log",
    conda:
        "../environment.yml"
    threads: 1
    resources:
        mem_mb=500,
    shell:
        'exec python stages/record.py --in-use "$PRIVSVM_IN_USE" --output {output} > {log} 2>&1'
