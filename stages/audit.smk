# One job per private method: what its releases show on made-up neighbours. It reads no data.
rule audit:
    output:
        "data/audits/{method}.json",
    log:
        "logs/audit/{method}.log",
    # Nothing waits for data here, and the longest of these would be a run's last job.
    priority: 1
    conda:
        "../environment.yml"
    threads: 1
    resources:
        mem_mb=2000,
    params:
        # As for `train`: the method's own file, and what it imports.
        code=lambda wildcards: method_code("audit", IMPLEMENTATION[wildcards.method]),
        parameters=lambda wildcards: audit_parameters(PARAMS, wildcards.method),
    shell:
        f"exec python {STAGES}audit.py"
        " --code {params.code:q} --method {wildcards.method:q}"
        " --output {output:q} --parameters {params.parameters:q} > {log:q} 2>&1"


AUDITS = [f"data/audits/{method}.json" for method in PARAMS.audited_methods()]


# One stage of DVC, so that one Snakemake runs all jobs of all methods side by side.
rule trained:
    input:
        RESULTS,
        AUDITS,
    localrule: True
