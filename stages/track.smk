# One process logs all results to MLflow; running it again adds nothing.
rule track:
    input:
        results=RESULTS,
        timings=TIMINGS,
        code=source_files("stages/track.smk", "stages/track.py", "lib/privsvm/tracking"),
    output:
        "reports/tracking.json",
    log:
        "logs/track.log",
    benchmark:
        "benchmarks/track.tsv"
    conda:
        "../environment.yml"
    threads: 1
    resources:
        mem_mb=1000,
    params:
        parameters=canonical_json({"tracking_uri": PARAMS["mlflow"]["tracking_uri"]}),
    shell:
        "exec python stages/track.py --results {input.results:q}"
        " --timings {input.timings:q} --output {output:q} --parameters {params.parameters:q} > {log:q} 2>&1"
