# One job per dataset: labels, missing values, scaling, splits.
rule prepare:
    input:
        raw=lambda wildcards: [
            f"data/raw/{wildcards.dataset}/{name}"
            for name in raw_files(
                wildcards.dataset, PARAMS.dataset_settings(wildcards.dataset)
            )
        ],
    output:
        data="data/prepared/{dataset}.npz",
        description="data/prepared/{dataset}.json",
    log:
        "logs/prepare/{dataset}.log",
    conda:
        "../environment.yml"
    threads: 1
    resources:
        mem_mb=4000,
    params:
        code=rule_code("prepare"),
        parameters=lambda wildcards: prepare_parameters(PARAMS, wildcards.dataset),
    shell:
        f"exec python -IS {STAGES}prepare.py"
        " --dataset {wildcards.dataset:q}"
        " --raw data/raw/{wildcards.dataset:q} --output {output.data:q} --description {output.description:q}"
        " --parameters {params.parameters:q} > {log:q} 2>&1"
