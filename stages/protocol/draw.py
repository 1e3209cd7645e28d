"""Draw the secrets of one entity: centre and spread of its columns, and its random matrix."""

from __future__ import annotations

import argparse

from privsvm.pipeline.stage import die_with_parent, json_argument, run


def main(arguments: list[str] | None = None) -> None:
    """Read one entity's own columns, write its secrets to a file that only its user can read."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entity", required=True, metavar="NAME")
    parser.add_argument("--columns", required=True, metavar="NPZ", help="its own columns")
    parser.add_argument("--agreement", required=True, metavar="JSON")
    parser.add_argument("--secret", required=True, metavar="NPZ", help="secrets to write")
    parser.add_argument("--parameters", required=True, type=json_argument, metavar="JSON", help="seed: a benchmark's")
    options = parser.parse_args(arguments)
    die_with_parent()

    from privsvm.base.ppsvm_protocol import draw_secrets, read_private, write_private
    from privsvm.files import read_json
    from privsvm.numerics.streams import seeded_stream

    seed = options.parameters["seed"]
    secrets = draw_secrets(
        read_private(options.columns),
        read_json(options.agreement),
        options.entity,
        lambda split: seeded_stream(seed, "ppsvm", split),
    )
    write_private(options.secret, secrets)


if __name__ == "__main__":
    run(main)
