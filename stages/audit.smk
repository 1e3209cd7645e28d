# One job per private method: audit its releases on synthetic neighbours. It reads no data.
rule audit:
    output:
        "data/audits/{method}.json",
    log:
        "logs/audit/{method}.log",
    # Started early: needs no data, and the longest of these jobs would otherwise end the run.
    priority: 1
    conda:
        "../environment.yml"
    threads: 1
    resources:
        mem_mb=2000,
    params:
        # As for `train`: the method's own file and its imports.
        code=lambda wildcards: method_code("audit", IMPLEMENTATION[wildcards.method]),
        parameters=lambda wildcards: audit_parameters(PARAMS, wildcards.method),
    shell:
        f"exec python {STAGES}audit.py"
        " --code {params.code:q} --output {output:q} --parameters {params.parameters:q} > {log:q} 2>&1"


AUDITS = [f"data/audits/{method}.json" for method in PARAMS.methods_to_audit()]


# One stage of DVC, so that one Snakemake runs all jobs of all methods side by side.
rule trained:
    input:
        RESULTS,
        AUDITS,
    localrule: True
