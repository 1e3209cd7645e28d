"""Without `.git`, or if DVC fails, results are complete and one line names the missing part."""

import shutil

import pytest

pytestmark = pytest.mark.workflow

RESULTS = ("data/prepared", "data/models", "data/results", "reports/curves.csv", "reports/tracking.json")


@pytest.mark.long
def test_without_git_results_stand_and_a_note_says_so(finished):
    before, lock = finished.hashes(*RESULTS), (finished.folder / "dvc.lock").read_bytes()
    shutil.rmtree(finished.folder / ".git")
    finished.change("methods.svm.C", 2.0)
    output = finished.snakemake()
    assert output.count("no Git repository here") == 1
    assert "Traceback" not in output
    assert finished.nothing_to_do()
    changed = {name for name, digest in finished.hashes(*RESULTS).items() if digest != before[name]}
    assert "data/models/svm/wine.npz" in changed
    assert not any("/majority/" in name for name in changed)
    # DVC has recorded nothing.
    assert (finished.folder / "dvc.lock").read_bytes() == lock
    output = finished.make("check", check=False)
    assert finished.code != 0
    assert "error: dvc.lock: DVC needs a Git repository, and all else is in order; run `git init`, then" in output
    # Follow the remedy of the note.
    finished.git("init", "--quiet", "--initial-branch", "main")
    output = finished.snakemake()
    assert "no Git repository" not in output
    assert (finished.folder / "dvc.lock").read_bytes() != lock
    assert "in order" in finished.make("check")


def break_cache(folder):
    shutil.move(folder / ".dvc/cache", folder / ".dvc/kept")
    (folder / ".dvc/cache").write_text("no folder")
    return lambda: ((folder / ".dvc/cache").unlink(), shutil.move(folder / ".dvc/kept", folder / ".dvc/cache"))


def break_git(folder):
    (folder / ".git").rename(folder / "kept")
    (folder / ".git").mkdir()
    return lambda: ((folder / ".git").rmdir(), (folder / "kept").rename(folder / ".git"))


@pytest.mark.long
def test_failing_dvc_leaves_results_and_one_line(finished):
    before = finished.hashes(*RESULTS)
    for epsilon, fault in ((4.0, break_cache), (0.5, break_git)):
        finished.change("report.reference_epsilon", epsilon)
        mend = fault(finished.folder)
        try:
            output = finished.snakemake(check=False)
        finally:
            mend()
        assert finished.code != 0, fault.__name__
        messages = {line for line in output.splitlines() if "dvc commit: failed (" in line}
        assert len(messages) == 1, (fault.__name__, output)
        assert "results and reports are complete" in messages.pop()
        assert "Traceback" not in output, fault.__name__
        assert finished.hashes(*RESULTS) == before
    finished.snakemake()
    assert finished.nothing_to_do()
    assert "up to date" in finished.call("dvc", "status")
