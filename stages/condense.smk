# One job per dataset: fewer training rows, or the same ones (`none`).
rule condense:
    input:
        data="data/{folder}prepared/{dataset}.npz",
        description="data/{folder}prepared/{dataset}.json",
    output:
        rows=f"data/{{folder}}condensed/{CONDENSE}/{{dataset}}.npz",
        record=f"data/{{folder}}condensed/{CONDENSE}/{{dataset}}.json",
    log:
        "logs/{folder}condense/{dataset}.log",
    conda:
        "../environment.yml"
    threads: 1
    resources:
        mem_mb=4000,
    params:
        code=rule_code("condense"),
        # No output: it differs from run to run. No method's name begins with this letter.
        timings="logs/timings/_condense/{dataset}.json",
        parameters=condense_parameters(PARAMS),
    shell:
        f"exec python {STAGES}condense.py"
        " --code {params.code:q} --prepared {input.data:q}"
        " --rows {output.rows:q} --record {output.record:q} --timings {params.timings:q}"
        " --parameters {params.parameters:q} > {log:q} 2>&1"


CONDENSED = [
    f"data/{FOLDER[dataset]}condensed/{CONDENSE}/{dataset}.json" for dataset in DATASETS
]


rule condensed:
    input:
        CONDENSED,
    localrule: True
