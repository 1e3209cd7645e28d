"""Run the PPSVM protocol with three entities and a trainer, in separate processes and folders.

As root, every party is a separate operating-system user, and every process tries to open the private files of all
others before its step; the run fails if one can. Otherwise all parties are the same user, and the output says so.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import multiprocessing
import os
import pwd
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd
import party
from sklearn.datasets import load_breast_cancer

ENTITIES = ("entity-1", "entity-2", "entity-3")
PARTIES = (*ENTITIES, "trainer")
N_TRAIN = 500
# Children share the modules that are loaded already: another user may be unable to read the installation of Python.
FORK = multiprocessing.get_context("fork")


class Deployment:
    """Folders and users of all parties below a folder; with `one_user` all are the current user.

    A `rehearsal` takes all steps in this process.
    """

    def __init__(self, folder: Path, one_user: bool = False, rehearsal: bool = False):
        self.folder = folder
        self.rehearsal = rehearsal
        self.private = {name: folder / name for name in ENTITIES}
        self.public = {name: folder / "shared" / name for name in PARTIES}
        self.users = {} if one_user else dict(zip(PARTIES, free_users(), strict=False))
        folder.chmod(0o755)
        (folder / "shared").mkdir(mode=0o755)
        # Every party reads shared folders, and only their owner writes them.
        for folders, mode in ((self.private, 0o700), (self.public, 0o755)):
            for name, path in folders.items():
                path.mkdir()
                path.chmod(mode)
                self.give(path, name)

    def give(self, path: Path, name: str) -> None:
        """Make a party the owner of a file or folder."""
        if self.users:
            os.chown(path, self.users[name], self.users[name])

    def write(self, path: Path, name: str, table: pd.DataFrame) -> None:
        """Write a party's CSV file."""
        table.to_csv(path)
        path.chmod(0o600 if path.parent in self.private.values() else 0o644)
        self.give(path, name)

    def list_others(self, name: str) -> list[Path]:
        """List all private folders and files of the others."""
        others = (folder for owner, folder in self.private.items() if owner != name)
        return [path for folder in others for path in (folder, *folder.rglob("*"))]

    def run(self, steps: dict[str, Sequence[str | Path]]) -> None:
        """Let parties take a step in parallel processes; show the files that they touched."""
        if self.rehearsal:
            for arguments in steps.values():
                party.main([str(item) for item in arguments])
            return
        sys.stdout.flush()
        tasks = [(name, [str(item) for item in step], self.list_others(name)) for name, step in steps.items()]
        with FORK.Pool(len(tasks), maxtasksperchild=1) as pool:
            outcomes = pool.starmap(self.take, tasks, chunksize=1)
        for (name, (step, *_), _closed), (_failed, output) in zip(tasks, outcomes, strict=True):
            print(f"{name}: {step}\n{output}", end="")
        if failed := [name for (name, *_), (is_failed, _) in zip(tasks, outcomes, strict=True) if is_failed]:
            sys.exit(f"error: {', '.join(failed)} failed")

    def take(self, name: str, arguments: list[str], closed: list[Path]) -> tuple[bool, str]:
        """Become a party's user, check that the files of others are closed, take the step.

        Returns whether that failed, and the output.
        """
        os.umask(0o022)
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            if self.users:
                become(self.users[name])
                if opened := [path for path in closed if can_open(path)]:
                    print(f"  could open {opened[0]}, which belongs to another party")
                    return True, output.getvalue()
                print(f"  was refused all {len(closed)} private folders and files of the others")
            seen = trace_files(self.folder)
            failed = False
            try:
                party.main(arguments)
            except SystemExit as end:
                print(f"  {end.code}")
                failed = True
            for verb, names in seen.items():
                if names:
                    print(f"  {verb} {', '.join(names)}")
        return failed, output.getvalue()


def become(user: int) -> None:
    """Give up the rights of root, and take a user's."""
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)


def can_change_user() -> bool:
    """Say whether this process may become another user, by trying in a child."""
    if os.geteuid() != 0:
        return False
    with FORK.Pool(1) as pool:
        try:
            pool.apply(become, [next(free_users())])
        except OSError:
            return False
    return True


def free_users() -> Iterator[int]:
    """Yield unused user ids."""
    for number in range(61001, 65000):
        try:
            pwd.getpwuid(number)
        except KeyError:
            yield number


def can_open(path: Path) -> bool:
    """Say whether this process can read a file or list a folder."""
    try:
        os.close(os.open(path, os.O_RDONLY))
    except PermissionError:
        return False
    return True


def trace_files(folder: Path) -> dict[str, list[str]]:
    """Record the files below a folder that this process reads and writes."""
    seen: dict[str, list[str]] = {"read": [], "wrote": []}

    def hook(event: str, details: tuple) -> None:
        if event == "open" and not (details[2] or 0) & (os.O_WRONLY | os.O_RDWR):
            verb, path = "read", details[0]
        elif event == "os.rename":
            # Files are written under a temporary name and renamed.
            verb, path = "wrote", details[1]
        else:
            return
        name = os.path.relpath(os.path.abspath(path), folder) if isinstance(path, (str, os.PathLike)) else ".."
        is_file = verb == "wrote" or (".part" not in name and os.path.isfile(path))
        if is_file and not name.startswith("..") and name not in seen[verb]:
            seen[verb].append(name)

    sys.addaudithook(hook)
    return seen


def share_out(deployment: Deployment) -> list[str]:
    """Give every entity ten columns of all rows, and the labels."""
    data = load_breast_cancer(as_frame=True)
    rows = data.data.assign(label=data.target_names[data.target]).sample(frac=1)
    rows.index = pd.Index([f"patient-{row:03d}" for row in rows.index], name="id")
    train, clients = rows[:N_TRAIN], rows[N_TRAIN:]
    for number, entity in enumerate(ENTITIES):
        folder, held = deployment.private[entity], rows.columns[10 * number : 10 * number + 10]
        deployment.write(folder / "columns.csv", entity, train[held])
        deployment.write(folder / "clients.csv", entity, clients[held])
        deployment.write(folder / "labels.csv", entity, train[["label"]])
    deployment.write(deployment.public["trainer"] / "labels.csv", "trainer", train[["label"]])
    deployment.write(deployment.public["trainer"] / "clients.csv", "trainer", clients[[]])
    return clients["label"].tolist()


def main() -> None:
    """Run all steps in a new folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernel", default="linear", choices=("linear", "gaussian"))
    parser.add_argument("--keep", metavar="FOLDER", help="a new folder to keep; default: a temporary one")
    parser.add_argument("--one-user", action="store_true", help="do not separate the parties, even as root")
    options = parser.parse_args()
    one_user = options.one_user or not can_change_user()
    if not one_user:
        # Load all modules now: without root's rights a process may be unable to read the installation of Python.
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            play(Deployment(Path(folder), one_user=True, rehearsal=True), options.kernel)
    if options.keep:
        Path(options.keep).mkdir(parents=True)
    kept = contextlib.nullcontext(options.keep) if options.keep else tempfile.TemporaryDirectory(prefix="ppsvm-")
    with kept as folder:
        play(Deployment(Path(folder).resolve(), one_user), options.kernel)


def play(deployment: Deployment, kernel: str) -> None:
    """Take all steps of the protocol."""
    private, public = deployment.private, deployment.public
    if deployment.users:
        print("Every party is a separate user:", ", ".join(f"{name} {user}" for name, user in deployment.users.items()))
    else:
        print("All parties are the same user: the private folders are NOT closed to the others here. Run as root.")
    truth = share_out(deployment)
    agreement = public["trainer"] / "agreement.json"
    files = {
        name: ["--name", name, "--secret", private[name] / "secret.npz", "--agreement", agreement] for name in private
    }
    columns = {name: ["--columns", private[name] / "columns.csv"] for name in private}
    labels_of = {name: folder / "labels.csv" for name, folder in private.items()}
    block = {name: public[name] / "train.npz" for name in private}
    answers = {name: public[name] / "clients.npz" for name in private}
    model = ["--model", public["trainer"] / "model.npz", "--record", public["trainer"] / "model.json"]
    labels = ["--classes", "malignant", "benign", "--rows", str(N_TRAIN)]
    entities = ["--entities", *(f"{name}=10" for name in ENTITIES)]

    print("\n1. All agree on the kernel and on how many rows and columns there are.")
    deployment.run({"trainer": ["agree", "--agreement", agreement, "--kernel", kernel, *labels, *entities]})
    print("\n2. Every entity draws its secrets.")
    deployment.run({name: ["draw", *columns[name], *files[name]] for name in ENTITIES})
    print("\n3. Every entity publishes its block of the training rows.")
    deployment.run({
        name: ["publish", *columns[name], *files[name], "--labels", labels_of[name], "--block", block[name]]
        for name in ENTITIES
    })  # fmt: skip
    print("\n4. The trainer trains on blocks and labels.")
    deployment.run({"trainer": [
        "train", "--blocks", *block.values(), "--labels", public["trainer"] / "labels.csv", "--agreement", agreement,
        *model,
    ]})  # fmt: skip
    print("\n5. New clients: every entity answers with its block of their rows.")
    deployment.run({
        name: ["answer", "--columns", private[name] / "clients.csv", *files[name], "--block", answers[name]]
        for name in ENTITIES
    })  # fmt: skip
    print("\n6. The trainer predicts from the three answers.")
    predictions = public["trainer"] / "predictions.csv"
    deployment.run({"trainer": [
        "predict", "--blocks", *answers.values(), "--rows", public["trainer"] / "clients.csv", "--agreement", agreement,
        *model, "--predictions", predictions,
    ]})  # fmt: skip
    names, predicted = party.read_labels(predictions)
    right = sum(ours == true for ours, true in zip(predicted, truth, strict=True))
    print(f"\n{names[0]}: {predicted[0]} (it is {truth[0]}); of {len(truth)} new clients {right} are predicted right.")

    print("\nWhat each entity finds when it attacks its own block:")
    deployment.run({name: ["audit", *columns[name], *files[name], "--block", block[name]] for name in ENTITIES})


if __name__ == "__main__":
    main()
