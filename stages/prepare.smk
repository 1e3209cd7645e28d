# One job per dataset: labels, missing values, scaling, splits.
rule prepare:
    input:
        raw=lambda wildcards: [
            f"data/{wildcards.folder}raw/{wildcards.dataset}/{name}"
            for name in raw_files(
                wildcards.dataset, PARAMS.dataset_settings(wildcards.dataset)
            )
        ],
    output:
        data="data/{folder}prepared/{dataset}.npz",
        description="data/{folder}prepared/{dataset}.json",
    log:
        "logs/{folder}prepare/{dataset}.log",
    # Before audits: seconds each, so that progress shows at once.
    priority: 2
    conda:
        "../environment.yml"
    threads: 1
    resources:
        mem_mb=4000,
    params:
        code=rule_code("prepare"),
        parameters=lambda wildcards: prepare_parameters(PARAMS, wildcards.dataset),
    shell:
        f"exec python {STAGES}prepare.py"
        " --code {params.code:q} --dataset {wildcards.dataset:q}"
        " --raw data/{wildcards.folder:q}raw/{wildcards.dataset:q} --output {output.data:q}"
        " --description {output.description:q} --parameters {params.parameters:q} > {log:q} 2>&1"


PREPARED = [f"data/{FOLDER[dataset]}prepared/{dataset}.json" for dataset in DATASETS]


rule prepared:
    input:
        PREPARED,
    localrule: True
