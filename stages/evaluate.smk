# One job per method and dataset: predict the test rows with every released model.
rule evaluate:
    input:
        data="data/{folder}prepared/{dataset}.npz",
        description="data/{folder}prepared/{dataset}.json",
        models="data/{folder}models/{method}/{dataset}.npz",
        record="data/{folder}models/{method}/{dataset}.json",
    output:
        "data/{folder}results/{method}/{dataset}.json",
    log:
        "logs/{folder}evaluate/{method}/{dataset}.log",
    conda:
        "../environment.yml"
    threads: 1
    resources:
        mem_mb=4000,
    params:
        code=rule_code("evaluate"),
        timings="logs/timings/{method}/{dataset}.evaluate.json",
    shell:
        f"exec python {STAGES}evaluate.py"
        " --code {params.code:q} --prepared {input.data:q}"
        " --models {input.models:q} --record {input.record:q} --results {output:q}"
        " --timings {params.timings:q} > {log:q} 2>&1"


RESULTS = [
    f"data/{FOLDER[dataset]}results/{method}/{dataset}.json"
    for method, dataset in PARAMS.train_jobs()
]
MODELS = [name.replace("results/", "models/", 1) for name in RESULTS]
