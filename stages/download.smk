# One job per raw file.
from privsvm_bench.datasets.catalogue import raw_files


rule download:
    output:
        "data/{folder}raw/{dataset}/{file}",
    log:
        "logs/{folder}download/{dataset}/{file}.log",
    # Before audits: seconds each, so that progress shows at once.
    priority: 2
    localrule: True
    conda:
        "../environment.yml"
    threads: 1
    resources:
        mem_mb=1000,
    params:
        code=rule_code("download"),
        # A file of one's own counts by its content, whatever its time.
        own=lambda wildcards: own_content(PARAMS, wildcards.dataset),
        parameters=lambda wildcards: download_parameters(
            PARAMS, wildcards.dataset, wildcards.folder
        ),
    shell:
        f"exec python {STAGES}download.py"
        " --dataset {wildcards.dataset:q}"
        " --file {wildcards.file:q} --output {output:q} --parameters {params.parameters:q} > {log:q} 2>&1"


RAW = [
    f"data/{FOLDER[dataset]}raw/{dataset}/{file}"
    for dataset in DATASETS
    for file in raw_files(dataset, PARAMS.dataset_settings(dataset))
]


rule downloaded:
    input:
        RAW,
    localrule: True
