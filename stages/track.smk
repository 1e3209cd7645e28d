# One process logs all results to MLflow; running it again adds nothing. The database keeps the runs of earlier
# parameters, so it is an output only where it is missing: Snakemake removes outputs before it makes them.
DATABASE = [
    str(file).replace("{", "{{").replace("}", "}}")
    for file in [PARAMS.mlflow.file]
    if file is not None and not file.exists()
]


# For MLflow's registry.
REGISTERED = [
    f"data/{FOLDER[dataset]}models/{method}/{dataset}.npz"
    for method, dataset in PARAMS.models_to_register()
]


rule track:
    input:
        results=RESULTS,
        models=REGISTERED,
        audits=AUDITS,
    output:
        record="reports/tracking.json",
        database=DATABASE,
    log:
        "logs/track.log",
    localrule: True
    conda:
        "../environment.yml"
    threads: 1
    resources:
        mem_mb=1000,
    params:
        code=rule_code("track"),
        files=argument_file(
            "track",
            "--results",
            *RESULTS,
            "--audits",
            *AUDITS,
            "--models",
            *REGISTERED,
        ),
        parameters=track_parameters(PARAMS),
    shell:
        f"exec python {STAGES}track.py"
        " {params.files:q}"
        " --output {output.record:q} --parameters {params.parameters:q} > {log:q} 2>&1"
