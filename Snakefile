# The benchmark as one graph of files. Each rule lives beside its script in stages/.
from snakemake.utils import min_version

min_version("9.0")


report: "stages/captions/workflow.rst"


include: "stages/common.smk"
include: "stages/download.smk"
include: "stages/prepare.smk"
include: "stages/condense.smk"
include: "stages/train.smk"
include: "stages/evaluate.smk"
include: "stages/audit.smk"
include: "stages/track.smk"
include: "stages/report.smk"
include: "stages/record.smk"
include: "stages/release.smk"


# A `localrule` runs where Snakemake does, also where all others run on a cluster: it needs the network, Git or the
# database, and takes seconds.
rule all:
    default_target: True
    input:
        FINAL_FILES,
        "logs/recorded" if RECORD else [],
        # Looked for only where this rule is asked for, not by each of DVC's stages or a cluster's jobs.
        lambda wildcards: missing_sources(PARAMS),
    localrule: True
