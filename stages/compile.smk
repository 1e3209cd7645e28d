# Compile all jit functions once. No job has this as its input: a job whose `ancient` input is about to be made again
# is not checked for other changes by Snakemake 9.27 and would go stale silently. Jobs wait for each other instead
# (`privsvm.solvers.compile_once`); this rule only starts the compilation early.
rule compile:
    output:
        f".cache/numba/{NUMBA_KEY}/warm",
    log:
        "logs/compile.log",
    priority: 100
    conda:
        "../environment.yml"
    threads: 1
    resources:
        mem_mb=500,
    message:
        "compiling the solvers: once, about a minute; a change of their sources repeats it"
    shell:
        f"exec python -IS {STAGES}compile.py" " > {log:q} 2>&1"
