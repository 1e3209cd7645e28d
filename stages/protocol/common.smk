# What the rules of the protocol share: where public and private files are, and to whom they belong.
from privsvm.pipeline.params import entity_names
from privsvm.numerics.streams import job_seed

PUBLIC = "data/models/{method}/{dataset}.public"
PRIVATE = "data/entities/{method}/{dataset}/{entity}"
PROTOCOL_JOBS = [job for job in JOBS if job[0] in PROTOCOL_METHODS]
PROTOCOL_PATTERN = one_of(PROTOCOL_METHODS)
# The names themselves: `wine.attacks` is no dataset.
DATASET_PATTERN = one_of(DATASETS)
ENTITY_PATTERN = "entity-[0-9]+"


# What the last stages read besides results and timings.
ATTACKS = [
    f"data/results/{method}/{dataset}.attacks.json" for method, dataset in PROTOCOL_JOBS
]


def of_all_entities(pattern):
    """The files of all entities of a job, in their order."""
    return lambda wildcards: [
        pattern.format(
            method=wildcards.method, dataset=wildcards.dataset, entity=entity
        )
        for entity in entity_names(PARAMS, wildcards.method, wildcards.dataset)
    ]


def protocol_parameters(wildcards):
    return PARAMS.method_parameters(wildcards.method, wildcards.dataset)


def seed_of(*purpose):
    """A job's own seed, so that none is handed the one that all derive from."""
    return job_seed(PARAMS.seed, PARAMS.experiment, *purpose)
