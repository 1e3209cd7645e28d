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
        code=lambda wildcards: audit_code(IMPLEMENTATION[wildcards.method]),
        parameters=lambda wildcards: audit_parameters(PARAMS, wildcards.method),
    shell:
        f"exec python -IS {STAGES}audit.py"
        " --method {wildcards.method:q}"
        " --output {output:q} --parameters {params.parameters:q} > {log:q} 2>&1"


# What the report reads of it.
AUDITS = [f"data/audits/{method}.json" for method in PARAMS.audited_methods()]
