# One job per method and dataset: predict the test rows with every released model.
rule evaluate:
    input:
        data="data/prepared/{dataset}.npz",
        description="data/prepared/{dataset}.json",
        models="data/models/{method}/{dataset}.npz",
        record="data/models/{method}/{dataset}.json",
    output:
        results="data/results/{method}/{dataset}.json",
        timings="data/timings/{method}/{dataset}.evaluate.json",
    log:
        "logs/evaluate/{method}/{dataset}.log",
    conda:
        "../environment.yml"
    threads: 1
    resources:
        mem_mb=4000,
    params:
        code=rule_code("evaluate"),
    shell:
        f"exec python -IS {STAGES}evaluate.py"
        " --prepared {input.data:q}"
        " --models {input.models:q} --record {input.record:q} --results {output.results:q}"
        " --timings {output.timings:q} > {log:q} 2>&1"


# What the last stages read: the results of all jobs, and how long they took.
RESULTS = [f"data/results/{method}/{dataset}.json" for method, dataset in JOBS]
TIMINGS = [
    f"data/timings/{method}/{dataset}.{stage}.json"
    for method, dataset in JOBS
    for stage in ("train", "evaluate")
]
PREPARED = [f"data/prepared/{dataset}.json" for dataset in DATASETS]
