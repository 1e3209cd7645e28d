"""Examples of the gallery run as the site runs them, and every method has a picture, its own or its family's."""

import re

import draw_methods
import proof_pages
import pytest
import run_examples

from privsvm.families.moments.joint_moments import JointMomentsClassifier
from privsvm.registry import implementations
from tests.processes import run_python
from tests.scripts import REPOSITORY

EXAMPLES = run_examples.examples()
# Required output of each example.
PRINTS = {
    "accuracy_against_epsilon": r"recommended +0\.\d{3}( 0\.\d{3}){6}\n",
    "audit_an_estimator": r"^REFUTED.*\n\nnot refuted",
    "condense_before_svm": r"240 rows became 80",
    "own_method": r"^status: claimed",
    "private_pipeline": r"with a schema: proved.*\n.*consent with allow_unsound=True\nfiles: model.json, model.npz\n",
    "recommended": r"^status +seeded\n",
    "results_in_pandas": r"\nrecommended +0\.\d{3}",
    "search_for_c": r"\nseeded: epsilon (4|3\.9\d*) for the whole search",
    "solver_instead_of_svc": r"decision values differ by at most [\d.]+e-0[3-9]",
}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(path):
    shown = run_examples.run(path)
    assert re.search(PRINTS[path.stem], shown.printed, re.DOTALL), shown.printed
    assert shown.pictures or "plt" not in shown.code
    assert all(picture.startswith(b"<?xml") and len(picture) < 200_000 for picture in shown.pictures)
    assert 15 <= sum(bool(line.strip()) for line in shown.code.splitlines()) <= 40


def test_an_example_runs_as_a_script():
    assert run_python("examples/own_method.py", cwd=REPOSITORY).startswith("status: claimed")


def test_the_gallery_lists_every_example_by_its_title():
    page = (REPOSITORY / "docs/python.md").read_text(encoding="utf-8")
    listed = {name: title for title, name in re.findall(r"^- \[(.*)\]\(\.\./examples/(\w+)\.py\)$", page, re.MULTILINE)}
    assert listed == {path.stem: run_examples.title_of(path) for path in EXAMPLES}
    assert set(PRINTS) == set(listed)


@pytest.mark.parametrize("name", implementations())
def test_the_picture_of_a_method_can_be_drawn(name):
    text = draw_methods.draw(name)
    assert len(text) < 60_000
    assert f'aria-label="{name}: ' in text


def test_a_picture_is_drawn_again_only_when_its_code_has_changed(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(draw_methods, "FOLDER", tmp_path / "pictures")
    monkeypatch.setattr(draw_methods, "draw", lambda name: drawn.append(name) or f"<svg>{name}</svg>\n")
    for digest in ("1", "1", "2"):
        monkeypatch.setattr(draw_methods, "closure_digest", lambda *entries, digest=digest: f"{digest} {entries[-1]}")
        draw_methods.draw_stale(["svm", "dp_lda"])
    assert drawn == ["svm", "dp_lda"] * 2
    (tmp_path / "pictures/svm.svg").unlink()
    draw_methods.draw_stale(["svm", "dp_lda"])
    assert drawn[4:] == ["svm"]


def test_a_new_method_has_the_picture_of_its_family(monkeypatch):
    class New(JointMomentsClassifier):
        pass

    monkeypatch.setattr(draw_methods, "estimator_class", lambda name: New)
    assert draw_methods.panels_of("new") == draw_methods.FAMILIES["moments"]


def test_the_gallery_shows_every_method_and_its_proof():
    page = draw_methods.gallery()
    for name in implementations():
        assert f"### {name}\n" in page
        assert draw_methods.picture(name, "") in page
    assert set(implementations()) >= set(draw_methods.proofs())
    assert "[Proof](proofs/recommended.md)." in page


def test_a_proof_page_shows_the_pictures_of_its_methods(tmp_path, monkeypatch):
    header = "\n```yaml\nstatus: proved\n```\n"
    pages = {
        "moments": f"# Moments\n{header}\nBoth.\n\n## dp_lda\n{header}\nOne.\n\n## adassp\n\nAnother.\n",
        "opera": f"# OPERA\n{header}\nText.\n\n## Tests\n\nMore.\n",
        "risk": "# Risk\n\nNo method.\n",
    }
    (tmp_path / "proofs").mkdir()
    for name, text in pages.items():
        (tmp_path / f"proofs/{name}.md").write_text(text)
    monkeypatch.setattr(proof_pages, "PROOFS", tmp_path / "proofs")
    shown = {name: draw_methods.with_pictures(text, name) for name, text in pages.items()}
    found = [re.findall(r"images/(\w+)\.svg|(\w+)\.$", text, re.MULTILINE) for text in shown.values()]
    assert [["".join(match) for match in matches] for matches in found] == [
        ["Both", "dp_lda", "One", "adassp", "Another"], ["opera", "Text", "More"], ["method"]
    ]  # fmt: skip
    assert shown["moments"].index("```\n\n![", 80) > shown["moments"].index("## dp_lda")
    assert "[Proof](proofs/moments.md#adassp)." in draw_methods.gallery()
