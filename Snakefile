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
        REPORTS,
        # Snakemake makes a missing file between others again only if a rule asks for it.
        lambda wildcards: [name for name in VERSIONED if not os.path.exists(name)],
        DATABASE,
        "logs/recorded" if RECORD else [],
    localrule: True
