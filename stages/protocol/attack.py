"""Audit: attack every entity's public block and compare the result with its columns. Not part of the protocol."""

from __future__ import annotations

import argparse

from privsvm.pipeline.stage import die_with_parent, json_argument, run


def main(arguments: list[str] | None = None) -> None:
    """Read the blocks of split 0 and what they hide; write how much the attack recovers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--method", required=True, help="name of the method's entry in params.yaml")
    parser.add_argument("--columns", required=True, nargs="+", metavar="NPZ", help="of all entities, in their order")
    parser.add_argument("--secrets", required=True, nargs="+", metavar="NPZ", help="of all entities, for the units")
    parser.add_argument("--blocks", required=True, nargs="+", metavar="NPZ", help="of all entities, training rows")
    parser.add_argument("--agreement", required=True, metavar="JSON")
    parser.add_argument("--output", required=True, metavar="JSON", help="attacks to write")
    parser.add_argument("--parameters", required=True, type=json_argument, metavar="JSON", help="attack_seed")
    options = parser.parse_args(arguments)
    die_with_parent()

    from privsvm.base.ppsvm_protocol import read_private, secret_of
    from privsvm.files import read_json, read_npz
    from privsvm.numerics.streams import seeded_stream
    from privsvm.privacy.attacks.known_sample import audit_entity
    from privsvm.records import Entity, KnownSampleAttack, write

    agreement = read_json(options.agreement)
    entities = []
    for item, columns, secret, block in zip(
        agreement["entities"], options.columns, options.secrets, options.blocks, strict=True
    ):
        hidden = secret_of(read_private(secret), 0).standardized(read_private(columns)["train_0"])
        rng = seeded_stream(options.parameters["attack_seed"], "attack", item["name"])
        found = audit_entity(read_npz(block)["train_0"], hidden, agreement["kernel"], agreement["gamma"], rng)
        entities.append(Entity.of_audit(item["name"], found))
    attack = KnownSampleAttack(
        method=options.method,
        dataset=agreement["dataset"],
        kernel=agreement["kernel"],
        gamma=agreement["gamma"],
        mbar=agreement["mbar"][0],
        n_rows=agreement["rows"]["train"][0],
        entities=tuple(entities),
    )
    write(options.output, attack)
    print(f"attack: {options.method} on {agreement['dataset']}")


if __name__ == "__main__":
    run(main)
