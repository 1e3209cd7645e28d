"""Headers of proof pages match the code and its records."""

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
    """Read the YAML header of a method's page; None without a page."""
    page = PAGES / f"{name}.md"
    if not page.exists():
        return None
    match = re.match(r"# [^\n]+\n\n```yaml\n(.*?)```\n", page.read_text(encoding="utf-8"), re.DOTALL)
    assert match, f"{page.name}: has no header after its title"
    return yaml.safe_load(match[1])


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


def test_every_page_of_a_method_is_read():
    assert sum(header(name) is not None for name in PRIVATE) >= 16
