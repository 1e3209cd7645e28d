# One private model of a data set of one's own, as `privsvm release` makes it, with the schema in params.yaml:
# `snakemake release --cores 1 --config dataset=my_patients epsilon=1 out=private/model`. It has no output that Snakemake
# knows: a release spends budget, so nothing but this command may ask for one.
rule release:
    log:
        "logs/release.log",
    localrule: True
    conda:
        "../environment.yml"
    threads: 1
    resources:
        mem_mb=4000,
    params:
        path=lambda wildcards: released_file(PARAMS, RELEASE),
        settings=canonical_json(RELEASE),
        tracking=track_parameters(PARAMS),
    shell:
        f"python {STAGES}release.py"
        " --data {params.path:q}"
        " --tracking {params.tracking:q}"
        " --settings {params.settings:q} 2>&1 | tee {log:q}"
