# After a plain `snakemake`: tell DVC that all outputs are current, so that `dvc repro` has nothing to do.
# All final files are its inputs, so a partial or failed run is never recorded.
RECORD = not IN_DVC and Path(".dvc").is_dir()
FINAL_FILES = [
    "reports/index.html",
    "reports/metrics.json",
    "reports/curves.csv",
    "reports/tracking.json",
]


rule record:
    input:
        FINAL_FILES,
    output:
        "logs/recorded",
    log:
        "logs/record.log",
    benchmark:
        "benchmarks/record.tsv"
    conda:
        "../environment.yml"
    threads: 1
    resources:
        mem_mb=500,
    shell:
        "exec {PYTHON} stages/record.py --output {output} > {log} 2>&1"
