<<<<<<< HEAD
"""The picture of each method is current, and the page on methods shows it."""

import re
=======
"""Every method has a picture, of its own or of its family, and its pages on the site show it."""
>>>>>>> baf87385 (Build pages, pictures and stubs instead of tracking them)

import draw_methods
import pytest

from privsvm.families.moments.joint_moments import JointMomentsClassifier
from privsvm.registry import implementations


@pytest.mark.parametrize("name", implementations())
def test_the_picture_of_a_method_can_be_drawn(name):
    text = draw_methods.draw(name)
    assert len(text) < 60_000
    assert f'aria-label="{name}: ' in text


<<<<<<< HEAD
def test_every_method_has_a_picture():
    assert draw_methods.PAGE.read_text() == draw_methods.page(), "run make docs"
    assert {path.stem for path in draw_methods.FOLDER.glob("*.svg")} == set(implementations())
=======
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
    assert draw_methods.figure_of("new") == draw_methods.FAMILIES["moments"]


def test_the_gallery_shows_every_method_and_its_proof():
    page = draw_methods.gallery()
    for name in implementations():
        assert f"### {name}\n" in page
        assert draw_methods.picture(name, "") in page
    proofs = draw_methods.proofs()
    assert set(implementations()) >= {name for names in proofs.values() for name in names}
    assert sum(map(len, proofs.values())) >= 16
    assert "[Proof](proofs/recommended.md)." in page


def test_a_proof_page_shows_each_picture_of_its_methods_once(tmp_path, monkeypatch):
    header = "# Moments\n\n```yaml\n{}: proved\n```\n"
    text = "".join([header.format("dp_lda, dp_least_squares, svm"), "\nText.\n\n```yaml\nlater: 1\n```\n"])
    (tmp_path / "proofs").mkdir()
    (tmp_path / "proofs/moments.md").write_text(text)
    monkeypatch.setattr(draw_methods, "DOCS", tmp_path)
    shown = draw_methods.with_pictures(text, "moments")
    assert shown.count("](../images/") == 2
    assert shown.index("images/dp_lda.svg") < shown.index("images/svm.svg") < shown.index("Text.")
>>>>>>> baf87385 (Build pages, pictures and stubs instead of tracking them)
