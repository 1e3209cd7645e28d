"""The profile for Slurm agrees with the default profile and with the rules."""

import re

import yaml

from tests.scripts import REPOSITORY


def profile(name):
    return yaml.safe_load((REPOSITORY / f"profiles/{name}/profile.yaml").read_text())


def test_settings_of_the_default_profile_hold_through_slurm():
    default, slurm = profile("default"), profile("slurm")
    assert {key for key in default if slurm.get(key) != default[key]} == {"latency-wait"}


def test_every_rule_is_in_a_group_or_local():
    texts = [path.read_text() for path in [REPOSITORY / "Snakefile", *(REPOSITORY / "stages").glob("*.smk")]]
    bodies = dict(re.findall(r"^rule (\w+):\n((?:    .*\n|\n)+)", "".join(texts), re.MULTILINE))
    slurm = profile("slurm")
    local = {name for name, body in bodies.items() if "    localrule: True\n" in body}
    assert set(bodies) == local | set(slurm["groups"])
    assert set(slurm["set-resources"]) <= set(slurm["groups"])
    assert set(slurm["groups"].values()) == set(slurm["group-components"])
