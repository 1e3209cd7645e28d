"""Check what lists of software ask for, and print what is missing: `make publishable`, which builds the site first.

`publishable.yaml` has the checks: text that a file must have, a command that must succeed, or a function of this
program that says what is missing.
"""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import yaml

REPOSITORY = Path(__file__).resolve().parents[1]


def read_yaml(root: Path, name: str):
    """Read a YAML file of the repository."""
    return yaml.safe_load((root / name).read_text(encoding="utf-8"))


LISTS = read_yaml(REPOSITORY, "tools/publishable.yaml")


def lacking_text(root: Path, name: str, patterns: Sequence[str]) -> str:
    """Name the patterns that a file lacks."""
    text = (root / name).read_text(encoding="utf-8") if (root / name).is_file() else ""
    return ", ".join(f"{name}: {pattern}" for pattern in patterns if not re.search(pattern, text, re.M | re.I))


def failing_command(root: Path, command: str) -> str:
    """Return a command with its last line if it fails."""
    # Tools of the environment that runs this, activated or not.
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    done = subprocess.run(
        shlex.split(command), cwd=root, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
    )
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()] or ["no output"]
    return f"{command}: {lines[-1].strip()}" if done.returncode else ""


def conda_names(root: Path) -> str:
    """Name the requirements that are not known as conda packages."""
    needs = read_yaml(root, "conda/recipe.yaml")["requirements"]
    return ", ".join(sorted({line.split()[0] for line in needs["host"] + needs["run"]} - {*LISTS["conda"]}))


def paper(root: Path) -> tuple[str, dict[str, str]]:
    """Return the text of the paper, and the entries of its bibliography by name."""
    text = (root / "paper/paper.md").read_text(encoding="utf-8").split("---\n", 2)[2]
    entries = re.split(r"^@\w+\{", (root / "paper/paper.bib").read_text(encoding="utf-8"), flags=re.M)[1:]
    return text, {entry.partition(",")[0]: entry for entry in entries}


def paper_length(root: Path) -> str:
    """JOSS takes 750 to 1,750 words."""
    words = len(re.sub(r"^#.*$|^!\[.*$|\[@[^\]]*\]", "", paper(root)[0], flags=re.M).split())
    return "" if 750 <= words <= 1750 else f"{words} words; 750 to 1,750 are asked for"


def references(root: Path) -> str:
    """Name what is cited without an entry, listed without a citation, or has neither a DOI nor an address."""
    text, entries = paper(root)
    cited = set(re.findall(r"@([\w-]+)", text))
    bare = [f"{name}: a DOI" for name, entry in entries.items() if not re.search(r"\b(doi|url)=\{\S+\}", entry)]
    return ", ".join([*sorted(f"{name}: cited and listed" for name in cited ^ set(entries)), *bare])


def statements(root: Path) -> str:
    """Name what files state differently; nothing is an address as long as there is none."""
    zenodo, citation = read_yaml(root, ".zenodo.json"), read_yaml(root, "CITATION.cff")
    table = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    tested = read_yaml(root, ".github/workflows/ci.yml")["jobs"]["unit"]["strategy"]["matrix"]["python"]
    readme, images = (root / "README.md").read_text(encoding="utf-8"), root / "docs" / "images"
    badges = dict(re.findall(r"!\[([^\]]+)\]\(docs/images/(badge-\w+\.svg)\)", readme))
    written = [text for text, name in badges.items() if f"<title>{text}</title>" in (images / name).read_text("utf-8")]
    prefixes = "Programming Language :: Python :: 3.", "Operating System :: "
    systems = ["POSIX :: Linux", "MacOS", "Microsoft :: Windows"]
    stated = {
        "title": [zenodo["title"], citation["title"]],
        "licence": [zenodo["license"], citation["license"], table["license"]],
        "list of keywords": [zenodo["keywords"], citation["keywords"], table["keywords"]],
        "version": [zenodo.get("version"), citation["version"], table["version"]],
        "list of authors": [
            [one["name"] for one in people] for people in (zenodo["creators"], citation["authors"], table["authors"])
        ],
        "address": [
            table.get("urls", {}).get("Repository"), citation.get("repository-code"),
            read_yaml(root, "conda/recipe.yaml")["about"].get("homepage"),
        ],
        "list of classifiers": [
            sorted([f"{prefixes[0]}{version[2:]}" for version in tested] + [prefixes[1] + name for name in systems]),
            sorted(line for line in table["classifiers"] if line.startswith(prefixes)),
        ],
        "list of badges": [[f"Python {tested[0]} to {tested[-1]}", table["license"]], list(badges), written],
    }  # fmt: skip
    return ", ".join(f"one {name}: {values}" for name, values in stated.items() if values != values[:1] * len(values))


def artifacts(root: Path) -> str:
    """Name the data sets whose recommended model DVC's registry would not find."""
    declared = read_yaml(root, "dvc.yaml").get("artifacts", {})
    models = {one["path"]: name for name, one in declared.items() if one.get("type") == "model" and one.get("desc")}
    valid = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?"
    wanted = {name: f"data/models/recommended/{name}.npz" for name in read_yaml(root, "params.yaml")["datasets"]}
    return ", ".join(name for name, path in wanted.items() if not re.fullmatch(valid, models.get(path, "")))


def site(root: Path) -> str:
    """Name the pages that a host of plain files would not serve."""
    wrong = [name for name in ("index.html", ".nojekyll") if not (root / "site" / name).is_file()]
    local = re.compile(r"""\b(?:href|src)=["'](?:/|file:)""")
    pages = [page for page in (root / "site").rglob("*.html") if local.search(page.read_text(encoding="utf-8"))]
    return ", ".join([*wrong, *sorted(page.relative_to(root / "site").as_posix() for page in pages)])


FUNCTIONS = (statements, conda_names, paper_length, references, artifacts, site)


def find_missing(check: dict, root: Path) -> str:
    """Say what is missing for a check; empty if nothing is."""
    if "command" in check:
        return failing_command(root, check["command"])
    if "patterns" in check:
        return lacking_text(root, check["file"], check["patterns"])
    (function,) = (one for one in FUNCTIONS if one.__name__ == check["function"])
    return function(root)


def main() -> None:
    """Print the table and the person's list; exit with 1 if anything is missing."""
    failed = 0
    for check in LISTS["checks"]:
        missing = find_missing(check, REPOSITORY)
        failed += bool(missing)
        print(f"{check['list']:20} {check['asks']:25} {'✗ ' + missing if missing else '✓'}", flush=True)
    print("\nOnly a person can do or state:", *LISTS["person"], sep="\n")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
