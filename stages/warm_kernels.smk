# Compile every Numba kernel once, before jobs that would all compile it at the same time.
rule warm_kernels:
    output:
        ".cache/numba/warm",
    params:
        key=NUMBA_KEY,
    log:
        "logs/warm_kernels.log",
    benchmark:
        "benchmarks/warm_kernels.tsv"
    threads: 1
    resources:
        mem_mb=500,
    conda:
        "../environment.yml"
    shell:
        "exec env NUMBA_NUM_THREADS={threads} {PYTHON} stages/warm_kernels.py"
        " --key {params.key} --output {output} > {log} 2>&1"
