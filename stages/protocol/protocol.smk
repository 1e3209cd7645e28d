# PPSVM as a protocol: a job of an entity reads that entity's own private files and what is public, and the trainer
# reads what is public alone. docs/ppsvm.md says which file is which.
#
# Private files are in data/entities and are temp(): Snakemake deletes them when no job needs them any more, and no DVC
# output holds them. Columns and secrets of an entity are inputs of its own jobs only. `partition` sets the scene before
# the protocol, and `attack` is an audit outside of it; no party could run them.
include: "common.smk"


# What all parties know at the start. The test labels are for the evaluation.
rule agree:
    input:
        data="data/prepared/{dataset}.npz",
        description="data/prepared/{dataset}.json",
    output:
        agreement=f"{PUBLIC}/agreement.json",
        labels=f"{PUBLIC}/labels.npz",
        test_labels=f"{PUBLIC}/test_labels.npz",
    log:
        "logs/agree/{method}/{dataset}.log",
    wildcard_constraints:
        method=PROTOCOL_PATTERN,
        dataset=DATASET_PATTERN,
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=2000,
    params:
        code=rule_code("agree"),
        parameters=lambda wildcards: canonical_json(
            {
                "columns_seed": seed_of("columns", wildcards.dataset),
                "parameters": protocol_parameters(wildcards),
            }
        ),
    shell:
        f"exec python -IS {STAGES}protocol/agree.py"
        " --method {wildcards.method:q}"
        " --prepared {input.data:q} --agreement {output.agreement:q} --labels {output.labels:q}"
        " --test-labels {output.test_labels:q} --parameters {params.parameters:q} > {log:q} 2>&1"


# One job per entity: the columns that it holds.
rule partition:
    input:
        data="data/prepared/{dataset}.npz",
        description="data/prepared/{dataset}.json",
    output:
        columns=temp(f"{PRIVATE}/columns.npz"),
    log:
        "logs/partition/{method}/{dataset}/{entity}.log",
    wildcard_constraints:
        method=PROTOCOL_PATTERN,
        dataset=DATASET_PATTERN,
        entity=ENTITY_PATTERN,
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=2000,
    params:
        code=rule_code("partition"),
        parameters=lambda wildcards: canonical_json(
            {
                "columns_seed": seed_of("columns", wildcards.dataset),
                "entities": protocol_parameters(wildcards)["entities"],
            }
        ),
    shell:
        f"exec python -IS {STAGES}protocol/partition.py"
        " --method {wildcards.method:q}"
        " --entity {wildcards.entity:q} --prepared {input.data:q} --columns {output.columns:q}"
        " --parameters {params.parameters:q} > {log:q} 2>&1"


# One job per entity: its secrets, before anything is published.
rule draw:
    input:
        columns=f"{PRIVATE}/columns.npz",
        agreement=f"{PUBLIC}/agreement.json",
    output:
        secret=temp(f"{PRIVATE}/secret.npz"),
    log:
        "logs/draw/{method}/{dataset}/{entity}.log",
    wildcard_constraints:
        method=PROTOCOL_PATTERN,
        dataset=DATASET_PATTERN,
        entity=ENTITY_PATTERN,
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=1000,
    params:
        code=rule_code("draw"),
        parameters=lambda wildcards: canonical_json(
            {
                "seed": seed_of(
                    "ppsvm", wildcards.dataset, wildcards.method, wildcards.entity
                )
            }
        ),
    shell:
        f"exec python -IS {STAGES}protocol/draw.py"
        " --entity {wildcards.entity:q}"
        " --columns {input.columns:q} --agreement {input.agreement:q} --secret {output.secret:q}"
        " --parameters {params.parameters:q} > {log:q} 2>&1"


# One job per entity: its public block of the training rows.
rule publish:
    input:
        columns=f"{PRIVATE}/columns.npz",
        secret=f"{PRIVATE}/secret.npz",
        agreement=f"{PUBLIC}/agreement.json",
        labels=f"{PUBLIC}/labels.npz",
    output:
        block=f"{PUBLIC}/train.{{entity}}.npz",
    log:
        "logs/publish/{method}/{dataset}/{entity}.log",
    wildcard_constraints:
        method=PROTOCOL_PATTERN,
        dataset=DATASET_PATTERN,
        entity=ENTITY_PATTERN,
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=1000,
    params:
        code=rule_code("publish"),
    shell:
        f"exec python -IS {STAGES}protocol/publish.py"
        " --entity {wildcards.entity:q}"
        " --part train --columns {input.columns:q} --secret {input.secret:q} --agreement {input.agreement:q}"
        " --labels {input.labels:q} --block {output.block:q} > {log:q} 2>&1"


# The trainer: blocks, labels and the agreement are all it has.
rule train_on_blocks:
    input:
        blocks=of_all_entities(f"{PUBLIC}/train.{{entity}}.npz"),
        labels=f"{PUBLIC}/labels.npz",
        agreement=f"{PUBLIC}/agreement.json",
    output:
        models="data/models/{method}/{dataset}.npz",
        record="data/models/{method}/{dataset}.json",
        timings="data/timings/{method}/{dataset}.train.json",
    log:
        "logs/train_on_blocks/{method}/{dataset}.log",
    wildcard_constraints:
        method=PROTOCOL_PATTERN,
        dataset=DATASET_PATTERN,
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=4000,
    params:
        code=rule_code("train_on_blocks"),
        parameters=lambda wildcards: canonical_json(
            {
                "condense": CONDENSE,
                "experiment": PARAMS.experiment,
                "implementation": IMPLEMENTATION[wildcards.method],
                "parameters": protocol_parameters(wildcards),
                # Not the experiment's seed, from which the random matrices could be drawn again.
                "trainer_seed": seed_of(
                    "trainer", wildcards.dataset, wildcards.method
                ),
            }
        ),
    shell:
        f"exec python -IS {STAGES}protocol/train_on_blocks.py"
        " --method {wildcards.method:q} --blocks {input.blocks:q} --labels {input.labels:q}"
        " --agreement {input.agreement:q} --models {output.models:q} --record {output.record:q}"
        " --timings {output.timings:q} --parameters {params.parameters:q} > {log:q} 2>&1"


# One job per entity: its public block of the test rows.
rule answer:
    input:
        columns=f"{PRIVATE}/columns.npz",
        secret=f"{PRIVATE}/secret.npz",
        agreement=f"{PUBLIC}/agreement.json",
    output:
        block=f"{PUBLIC}/test.{{entity}}.npz",
    log:
        "logs/answer/{method}/{dataset}/{entity}.log",
    wildcard_constraints:
        method=PROTOCOL_PATTERN,
        dataset=DATASET_PATTERN,
        entity=ENTITY_PATTERN,
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=1000,
    params:
        code=rule_code("answer"),
    shell:
        f"exec python -IS {STAGES}protocol/publish.py"
        " --entity {wildcards.entity:q}"
        " --part test --columns {input.columns:q} --secret {input.secret:q} --agreement {input.agreement:q}"
        " --block {output.block:q} > {log:q} 2>&1"


rule evaluate_blocks:
    input:
        blocks=of_all_entities(f"{PUBLIC}/test.{{entity}}.npz"),
        labels=f"{PUBLIC}/test_labels.npz",
        agreement=f"{PUBLIC}/agreement.json",
        models="data/models/{method}/{dataset}.npz",
        record="data/models/{method}/{dataset}.json",
    output:
        results="data/results/{method}/{dataset}.json",
        timings="data/timings/{method}/{dataset}.evaluate.json",
    log:
        "logs/evaluate_blocks/{method}/{dataset}.log",
    wildcard_constraints:
        method=PROTOCOL_PATTERN,
        dataset=DATASET_PATTERN,
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=2000,
    params:
        code=rule_code("evaluate_blocks"),
    shell:
        f"exec python -IS {STAGES}protocol/evaluate_blocks.py"
        " --blocks {input.blocks:q}"
        " --labels {input.labels:q} --agreement {input.agreement:q} --models {input.models:q}"
        " --record {input.record:q} --results {output.results:q} --timings {output.timings:q} > {log:q} 2>&1"


# The audit: what the blocks give away.
rule attack:
    input:
        columns=of_all_entities(f"{PRIVATE}/columns.npz"),
        secrets=of_all_entities(f"{PRIVATE}/secret.npz"),
        blocks=of_all_entities(f"{PUBLIC}/train.{{entity}}.npz"),
        agreement=f"{PUBLIC}/agreement.json",
    output:
        "data/results/{method}/{dataset}.attacks.json",
    log:
        "logs/attack/{method}/{dataset}.log",
    wildcard_constraints:
        method=PROTOCOL_PATTERN,
        dataset=DATASET_PATTERN,
    conda:
        "../../environment.yml"
    threads: 1
    resources:
        mem_mb=2000,
    params:
        code=rule_code("attack"),
        parameters=lambda wildcards: canonical_json(
            {
                "attack_seed": seed_of("attack", wildcards.dataset, wildcards.method),
            }
        ),
    shell:
        f"exec python -IS {STAGES}protocol/attack.py"
        " --method {wildcards.method:q}"
        " --columns {input.columns:q} --secrets {input.secrets:q} --blocks {input.blocks:q}"
        " --agreement {input.agreement:q} --output {output:q} --parameters {params.parameters:q} > {log:q} 2>&1"
