# One job per method and dataset, with all its splits, epsilons and repeats.
rule train:
    input:
        data="data/{folder}prepared/{dataset}.npz",
        description="data/{folder}prepared/{dataset}.json",
        condensed=f"data/{{folder}}condensed/{CONDENSE}/{{dataset}}.npz",
        condensed_record=f"data/{{folder}}condensed/{CONDENSE}/{{dataset}}.json",
    output:
        models="data/{folder}models/{method}/{dataset}.npz",
        record="data/{folder}models/{method}/{dataset}.json",
    log:
        "logs/{folder}train/{method}/{dataset}.log",
    conda:
        "../environment.yml"
    threads: 1
    resources:
        mem_mb=4000,
    params:
        # The method's own file and its imports: editing these reruns no other method.
        code=lambda wildcards: method_code("train", IMPLEMENTATION[wildcards.method]),
        timings="logs/timings/{method}/{dataset}.train.json",
        parameters=lambda wildcards: train_parameters(
            PARAMS, wildcards.method, wildcards.dataset
        ),
    shell:
        f"exec python {STAGES}train.py"
        " --code {params.code:q} --prepared {input.data:q} --condensed {input.condensed:q}"
        " --condensed-record {input.condensed_record:q} --models {output.models:q}"
        " --record {output.record:q} --timings {params.timings:q} --parameters {params.parameters:q} > {log:q} 2>&1"
