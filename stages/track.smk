# One process logs all results to MLflow; running it again adds nothing.
rule track:
    input:
        results=RESULTS,
        audits=AUDITS,
    output:
        "reports/tracking.json",
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
        files=argument_file("track", "--results", *RESULTS, "--audits", *AUDITS),
        parameters=track_parameters(PARAMS),
    shell:
        f"exec python {STAGES}track.py"
        " {params.files:q}"
        " --output {output:q} --parameters {params.parameters:q} > {log:q} 2>&1"
