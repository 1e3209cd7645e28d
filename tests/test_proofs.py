"""Headers of proof pages match the code and its records."""

import re

import numpy as np
import proof_pages
import pytest
import yaml

from privsvm.privacy.events import leaves
from privsvm.privacy.statement import NEIGHBOURS
from privsvm.registry import estimator_class, implementations

LINKS = proof_pages.proofs()
PRIVATE = [name for name in implementations() if "epsilon" in estimator_class(name).declared]
X = np.array([[0.0, 0.1], [0.2, 0.0], [1.0, 0.9], [0.8, 1.0]] * 5)
Y = np.array(["no", "no", "yes", "yes"] * 5)


def header(name):
    """Read the YAML header of a method: its page's, with the changes of its section; None without a page."""
    if name not in LINKS:
        return None
    file, _, section = LINKS[name].partition("#")
    text = (proof_pages.PROOFS / file).read_text(encoding="utf-8")
    match = re.match(r"# [^\n]+\n\n```yaml\n(.*?)```\n", text, re.DOTALL)
    assert match, f"{file}: has no header after its title"
    stated = yaml.safe_load(match[1])
    changes = re.search(rf"^## {section}\n\n```yaml\n(.*?)```\n", text, re.DOTALL | re.MULTILINE)
    if changes:
        changed = yaml.safe_load(changes[1])
        stated |= changed | {"facts": stated["facts"] | changed.get("facts", {})}
    return stated


def record(name, neighbours, consent=False):
    method = estimator_class(name)
    chosen = {
        "classes": ["no", "yes"], "neighbours": neighbours, "n_rows": len(Y), "epsilon": 2.0, "allow_unsound": consent
    }  # fmt: skip
    return method(**{key: value for key, value in chosen.items() if key in method.declared}).fit(X, Y).guarantee_


@pytest.mark.parametrize("name", PRIVATE)
def test_a_page_says_what_the_records_say(name):
    stated = header(name)
    if stated is None:
        # A method without a page must not be proved.
        assert record(name, "replace_one", consent=True).status != "proved"
        return
    assert set(stated) == {"status", "relations", "events", "facts"}
    accepts = estimator_class(name).declared["neighbours"].constraint.accepts
    assert stated["relations"] == [relation for relation in NEIGHBOURS if accepts(relation)]
    for relation in stated["relations"]:
        made = record(name, relation)
        assert made.status == stated["status"] == "proved"
        assert sorted({event.kind for event, _ in leaves(made.event)}) == stated["events"]
        assert {fact: getattr(made.facts, fact) for fact in stated["facts"]} == stated["facts"]
        assert set(stated["facts"]) == {"classes", "n_rows", "features", "solution"}


def test_every_section_is_of_one_private_method():
    sections = [
        name
        for page in proof_pages.PROOFS.glob("*.md")
        for name in re.findall(r"^## ([a-z0-9_]+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert len(sections) == len(set(sections))
    assert set(sections) <= LINKS.keys() <= set(PRIVATE)
