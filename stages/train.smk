# One job per method and dataset, with all its splits, epsilons and repeats.
SHARED_METHOD_CODE = [
    "lib/privsvm/base",
    "lib/privsvm/constraints.py",
    "lib/privsvm/data",
    "lib/privsvm/pipeline/condensing.py",
    "lib/privsvm/pipeline/model_files.py",
    "lib/privsvm/pipeline/training.py",
    "lib/privsvm/privacy",
    "lib/privsvm/numerics",
    "lib/privsvm/solvers",
]


rule train:
    input:
        data="data/prepared/{dataset}.npz",
        description="data/prepared/{dataset}.json",
        condensed=f"data/condensed/{CONDENSE}/{{dataset}}.npz",
        condensed_record=f"data/condensed/{CONDENSE}/{{dataset}}.json",
        # A method's file is its own room: editing it reruns its jobs and no other method's.
        code=lambda wildcards: source_files(
            "stages/train.smk",
            "stages/train.py",
            # DVC cannot say that only some methods have a protocol.
            "stages/protocol",
            f"lib/privsvm/methods/{IMPLEMENTATION[wildcards.method]}.py",
            *SHARED_METHOD_CODE,
        ),
    output:
        models="data/models/{method}/{dataset}.npz",
        record="data/models/{method}/{dataset}.json",
        timings="data/timings/{method}/{dataset}.train.json",
    log:
        "logs/train/{method}/{dataset}.log",
    benchmark:
        "benchmarks/train/{method}/{dataset}.tsv"
    wildcard_constraints:
        method=PLAIN_PATTERN,
    conda:
        "../environment.yml"
    threads: 1
    resources:
        mem_mb=4000,
    params:
        parameters=lambda wildcards: canonical_json(
            {
                "condense": CONDENSE,
                "experiment": PARAMS["experiment"],
                "implementation": IMPLEMENTATION[wildcards.method],
                "parameters": method_parameters(
                    PARAMS, wildcards.method, wildcards.dataset
                ),
                "privacy": PARAMS["privacy"],
                "seed": PARAMS["seed"],
            }
        ),
    shell:
        "exec python stages/train.py --method {wildcards.method:q}"
        " --prepared {input.data:q} --condensed {input.condensed:q}"
        " --condensed-record {input.condensed_record:q} --models {output.models:q}"
        " --record {output.record:q} --timings {output.timings:q} --parameters {params.parameters:q} > {log:q} 2>&1"
