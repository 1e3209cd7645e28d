"""The header of a proof page against the code and the records that it makes."""

import re
from pathlib import Path

import numpy as np
import pytest
import yaml

from privsvm.privacy.events import leaves
from privsvm.privacy.guarantee import NEIGHBOURS
from privsvm.registry import estimator_class, implementations

PAGES = Path(__file__).resolve().parents[1] / "docs" / "proofs"
PRIVATE = [name for name in implementations() if "epsilon" in estimator_class(name).declared]
X = np.array([[0.0, 0.1], [0.2, 0.0], [1.0, 0.9], [0.8, 1.0]] * 5)
Y = np.array(["no", "no", "yes", "yes"] * 5)


def header(name):
    """What the page of a method says of it for machines; None where it has no page."""
    page = PAGES / f"{name}.md"
    if not page.exists():
        return None
    found = re.match(r"# [^\n]+\n\n```yaml\n(.*?)```\n", page.read_text(encoding="utf-8"), re.DOTALL)
    assert found, f"{page.name}: has no header after its title"
    return yaml.safe_load(found[1])


def record(name, neighbours, consent=False):
    method = estimator_class(name)
    chosen = {
        "classes": ["no", "yes"], "neighbours": neighbours, "n_rows": len(Y), "epsilon": 2.0, "allow_unsound": consent
    }  # fmt: skip
    return method(**{key: value for key, value in chosen.items() if key in method.declared}).fit(X, Y).guarantee_


@pytest.mark.parametrize("name", PRIVATE)
def test_a_page_says_what_the_records_say(name):
    said = header(name)
    if said is None:
        # No page, no proof.
        assert record(name, "replace_one", consent=True).status != "proved"
        return
    assert set(said) == {"status", "relations", "events", "facts"}
    accepts = estimator_class(name).declared["neighbours"].constraint.accepts
    assert said["relations"] == [relation for relation in NEIGHBOURS if accepts(relation)]
    for relation in said["relations"]:
        made = record(name, relation)
        assert made.status == said["status"] == "proved"
        assert sorted({event.kind for event, _ in leaves(made.event)}) == said["events"]
        assert {fact: getattr(made.facts, fact) for fact in said["facts"]} == said["facts"]
        assert set(said["facts"]) == {"classes", "n_rows", "features", "solution"}


def test_every_page_of_a_method_is_read():
    assert sum(header(name) is not None for name in PRIVATE) >= 16
