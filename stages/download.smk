# One job per raw file.
from privsvm.data.catalogue import raw_files


rule download:
    output:
        "data/raw/{dataset}/{file}",
    log:
        "logs/download/{dataset}/{file}.log",
    localrule: True
    conda:
        "../environment.yml"
    threads: 1
    resources:
        mem_mb=1000,
    params:
        code=rule_code("download"),
        # A file of one's own counts by its content, whatever its time.
        own=lambda wildcards: own_content(wildcards.dataset),
        parameters=lambda wildcards: download_parameters(PARAMS, wildcards.dataset),
    shell:
        f"exec python -IS {STAGES}download.py"
        " --dataset {wildcards.dataset:q}"
        " --file {wildcards.file:q} --output {output:q} --parameters {params.parameters:q} > {log:q} 2>&1"
