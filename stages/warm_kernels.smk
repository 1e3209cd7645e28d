# Compile every Numba kernel once. No job has this as its input: a job whose `ancient` input is about to be made again
# is not checked for other changes by Snakemake 9.27, and would go stale silently. Jobs wait for each other instead
# (`privsvm.solvers.compile_once`); this rule only starts the compilation early.
rule warm_kernels:
    output:
        f".cache/numba/{NUMBA_KEY}/warm",
    log:
        "logs/warm_kernels.log",
    benchmark:
        "benchmarks/warm_kernels.tsv"
    priority: 100
    conda:
        "../environment.yml"
    threads: 1
    resources:
        mem_mb=500,
    shell:
        "exec python stages/warm_kernels.py > {log} 2>&1"
