# One job per raw file.
from privsvm.data.catalogue import raw_files


rule download:
    input:
        code=source_files(
            "stages/download.smk", "stages/download.py", "lib/privsvm/data"
        ),
    output:
        "data/raw/{dataset}/{file}",
    log:
        "logs/download/{dataset}/{file}.log",
    benchmark:
        "benchmarks/download/{dataset}/{file}.tsv"
    conda:
        "../environment.yml"
    threads: 1
    resources:
        mem_mb=1000,
    params:
        parameters=lambda wildcards: canonical_json(
            {"settings": PARAMS["datasets"][wildcards.dataset] or {}}
        ),
    shell:
        "exec python stages/download.py --dataset {wildcards.dataset:q}"
        " --file {wildcards.file:q} --output {output:q} --parameters {params.parameters:q} > {log:q} 2>&1"
