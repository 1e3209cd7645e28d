# Numbers of your own data lie apart: DVC caches and pushes the others.
PRIVATE_NUMBERS = (
    ["data/private/reports/metrics.json", "data/private/reports/curves.csv"]
    if any(FOLDER.values())
    else []
)


# What people look at, and what `dvc metrics` and `dvc plots` read.
rule report:
    input:
        results=RESULTS,
        audits=AUDITS,
        prepared=PREPARED,
    output:
        html="reports/index.html",
        # What `snakemake --report` packs beside the graph of jobs and their times.
        metrics=report("reports/metrics.json", "captions/metrics.rst", "Numbers"),
        curves=report("reports/curves.csv", "captions/curves.rst", "Numbers"),
        pages=report(
            directory("reports/pages"),
            patterns=["{dataset}.svg"],
            caption="captions/figure.rst",
            category="Accuracy against epsilon",
            labels={"dataset": "{dataset}"},
        ),
        assets=directory("reports/assets"),
        private=PRIVATE_NUMBERS,
    log:
        "logs/report.log",
    localrule: True
    conda:
        "../environment.yml"
    threads: 1
    resources:
        mem_mb=1000,
    params:
        code=rule_code("report"),
        files=argument_file(
            "report",
            *("--results", *RESULTS, "--audits", *AUDITS, "--prepared", *PREPARED),
            *("--output-private", *PRIVATE_NUMBERS),
        ),
        parameters=report_parameters(PARAMS),
    shell:
        f"exec python {STAGES}report.py"
        " {params.files:q} --output-html {output.html:q}"
        " --output-metrics {output.metrics:q} --output-curves {output.curves:q}"
        " --parameters {params.parameters:q} > {log:q} 2>&1"


# The pages show times and are made again from what is versioned.
NUMBERS = ["reports/metrics.json", "reports/curves.csv", *PRIVATE_NUMBERS]
REPORTS = [
    *NUMBERS,
    "reports/index.html",
    "reports/pages",
    "reports/assets",
    "reports/tracking.json",
]


rule reported:
    input:
        REPORTS,
    localrule: True
