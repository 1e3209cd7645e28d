# One job per dataset: fewer training rows, or the same ones (`none`).
rule condense:
    input:
        data="data/prepared/{dataset}.npz",
        description="data/prepared/{dataset}.json",
        code=source_files(
            "stages/condense.smk", "stages/condense.py", "lib/privsvm/data"
        ),
    output:
        "data/condensed/{condense}/{dataset}.npz",
    log:
        "logs/condense/{condense}/{dataset}.log",
    benchmark:
        "benchmarks/condense/{condense}/{dataset}.tsv"
    conda:
        "../environment.yml"
    threads: 1
    resources:
        mem_mb=4000,
    params:
        parameters=lambda wildcards: canonical_json({"condense": wildcards.condense}),
    shell:
        "exec env NUMBA_NUM_THREADS={threads} python stages/condense.py --prepared {input.data:q}"
        " --output {output:q} --parameters {params.parameters:q} > {log:q} 2>&1"


# For DVC: everything its stage `condense` owns.
rule condensed:
    input:
        [f"data/condensed/{CONDENSE}/{dataset}.npz" for dataset in DATASETS],
    localrule: True
