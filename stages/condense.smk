# One job per dataset: fewer training rows, or the same ones (`none`).
rule condense:
    input:
        data="data/prepared/{dataset}.npz",
        description="data/prepared/{dataset}.json",
    output:
        rows=f"data/condensed/{CONDENSE}/{{dataset}}.npz",
        record=f"data/condensed/{CONDENSE}/{{dataset}}.json",
        # No method's name begins with this letter.
        timings="data/timings/_condense/{dataset}.json",
    log:
        "logs/condense/{dataset}.log",
    conda:
        "../environment.yml"
    threads: 1
    resources:
        mem_mb=4000,
    params:
        code=rule_code("condense"),
        parameters=condense_parameters(PARAMS),
    shell:
        f"exec python -IS {STAGES}condense.py"
        " --prepared {input.data:q}"
        " --rows {output.rows:q} --record {output.record:q} --timings {output.timings:q}"
        " --parameters {params.parameters:q} > {log:q} 2>&1"


# What the report reads of it: how long it took.
CONDENSING = (
    [f"data/timings/_condense/{dataset}.json" for dataset in DATASETS]
    if CONDENSE != "none"
    else []
)
