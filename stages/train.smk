# One job per method and dataset, with all its splits, epsilons and repeats.
rule train:
    input:
        data="data/prepared/{dataset}.npz",
        description="data/prepared/{dataset}.json",
        condensed=f"data/condensed/{CONDENSE}/{{dataset}}.npz",
        condensed_record=f"data/condensed/{CONDENSE}/{{dataset}}.json",
    output:
        models="data/models/{method}/{dataset}.npz",
        record="data/models/{method}/{dataset}.json",
        timings="data/timings/{method}/{dataset}.train.json",
    log:
        "logs/train/{method}/{dataset}.log",
    conda:
        "../environment.yml"
    threads: 1
    resources:
        mem_mb=4000,
    params:
        # A method's own file, and what it imports: editing it reruns no other method.
        code=lambda wildcards: one_method_code(IMPLEMENTATION[wildcards.method]),
        parameters=lambda wildcards: train_parameters(
            PARAMS, wildcards.method, wildcards.dataset
        ),
    shell:
        f"exec python -IS {STAGES}train.py"
        " --method {wildcards.method:q}"
        " --prepared {input.data:q} --condensed {input.condensed:q}"
        " --condensed-record {input.condensed_record:q} --models {output.models:q}"
        " --record {output.record:q} --timings {output.timings:q} --parameters {params.parameters:q} > {log:q} 2>&1"
