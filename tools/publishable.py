"""Check what lists of software ask for, and print what is missing: `make publishable`, which builds the site first.

A check is text that a file must have, a command that must succeed, or a function that says what is missing.
"""

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import yaml

REPOSITORY = Path(__file__).resolve().parents[1]
# Names of conda-forge's packages, by their feedstocks.
CONDA = {
    "python", "pip", "setuptools", "dp-accounting", "filelock", "jinja2", "numba", "numpy", "pydantic", "ruamel.yaml",
    "scikit-learn", "scipy",
}  # fmt: skip
SECTIONS = (
    "Summary", "Statement of need", "State of the field", "Software design", "Research impact statement",
    "AI usage disclosure", "Acknowledgements", "References",
)  # fmt: skip
# What a reviewer of conda-forge asks of a recipe.
RULES = (
    r"^  number: 0", r"^  noarch: python", r"--no-deps --no-build-isolation", r"imports: \[", r"pip_check: true",
    r"python_version: .*python_min", r"^  summary: ", r"^  license: ", r"^  license_file: ",
)  # fmt: skip
LINKS = ("docs/install.md", "docs/guide.md", "docs/comparison.md", "CITATION.cff")
CATALOGUE = ".snakemake-workflow-catalog.yml"
SYSTEMS = {"ubuntu-latest", "macos-latest", "windows-latest"}
USED_WHEEL = "tests/wheel/use.py"
PERSON = """\
The address of the public repository: [project.urls], repository-code (CITATION.cff), about.homepage (conda/recipe.yaml)
Names, ORCIDs, affiliations and addresses of the authors: CITATION.cff, .zenodo.json, paper/paper.md, pyproject.toml
The paper's AI usage disclosure and acknowledgements of funding; conflicts of interest, at submission
Six months of public history, and a work that used the software: JOSS asks for both before it reviews
Accounts at the package index, Zenodo and the host of the site; the maintainers in conda/recipe.yaml
Tags of the version and of DVC's models (`wine@v0.1.0`); then the source in conda/recipe.yaml, and a DOI in CITATION.cff
Badges of CI, coverage, site and version, which need the address
A green run of CI's job `systems`: the wheel has run on Linux alone so far
Pull requests: conda-forge/staged-recipes, and paper/related-projects.rst into scikit-learn's list"""


def read_yaml(root: Path, name: str):
    """Read a YAML file of the repository."""
    return yaml.safe_load((root / name).read_text(encoding="utf-8"))


def has_text(name: str, *patterns: str) -> Callable[[Path], str]:
    """Make a check that names the patterns that a file lacks."""

    def missing(root: Path) -> str:
        text = (root / name).read_text(encoding="utf-8") if (root / name).is_file() else ""
        return ", ".join(f"{name}: {pattern}" for pattern in patterns if not re.search(pattern, text, re.M | re.I))

    return missing


def succeeds(*command: str) -> Callable[[Path], str]:
    """Make a check that returns the last line of a command that fails."""

    def missing(root: Path) -> str:
        # Tools of the environment that runs this, activated or not.
        path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
        done = subprocess.run(
            command, cwd=root, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False
        )
        lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()] or ["no output"]
        return f"{' '.join(command)}: {lines[-1].strip()}" if done.returncode else ""

    return missing


def conda_names(root: Path) -> str:
    """Name the requirements that are not known as conda packages."""
    needs = read_yaml(root, "conda/recipe.yaml")["requirements"]
    return ", ".join(sorted({line.split()[0] for line in needs["host"] + needs["run"]} - CONDA))


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


def systems(root: Path) -> str:
    """Name the systems on which CI does not use the wheel."""
    jobs = read_yaml(root, ".github/workflows/ci.yml")["jobs"].values()
    used = [job for job in jobs if any(USED_WHEEL in step.get("run", "") for step in job["steps"])]
    on = {system for job in used for system in job.get("strategy", {}).get("matrix", {}).get("system", [])}
    return ", ".join(sorted(SYSTEMS - on))


TOOL = ("uv", "tool", "run", "--quiet")
RECIPE = "import rattler_build; rattler_build.Stage0Recipe.from_file('conda/recipe.yaml').render()"
# The list that asks, the thing that it asks for, and a function that names what is missing.
CHECKS: tuple[tuple[str, str, Callable[[Path], str]], ...] = (
    ("all lists", "one statement", statements),
    ("Snakemake catalogue", "words in README", has_text("README.md", r"snakemake", r"\bworkflow\b")),
    ("Snakemake catalogue", "workflow/Snakefile", has_text("workflow/Snakefile", r'^include: "\.\./Snakefile"')),
    ("Snakemake catalogue", "how to configure", has_text("config/README.md", r"params\.yaml", r"--config")),
    # Its page names one place of the flag, and its program has read the other.
    ("Snakemake catalogue", "flag of reports", has_text(CATALOGUE, r"^  report: true", r"^    report: true")),
    ("Snakemake catalogue", "reports", has_text("stages/report.smk", r"=report\(")),
    ("Snakemake catalogue", "lint", succeeds("snakemake", "--lint")),
    ("Snakemake catalogue", "format", succeeds("snakefmt", "--check", "workflow", "Snakefile", "stages")),
    ("conda-forge", "packages it has", conda_names),
    ("conda-forge", "rules of recipes", has_text("conda/recipe.yaml", *RULES)),
    ("conda-forge", "a recipe that renders", succeeds(*TOOL, "--from", "py-rattler-build", "python", "-c", RECIPE)),
    ("PyPI", "sdist and wheel", succeeds(sys.executable, "tests/wheel/check.py", "--build")),
    ("PyPI", "valid metadata", succeeds(*TOOL, "--with", "trove-classifiers", "validate-pyproject", "pyproject.toml")),
    ("pyOpenSci", "README", has_text("README.md", *LINKS)),
    ("pyOpenSci", "how to contribute", has_text("CONTRIBUTING.md", "^## Set up", "^## Rules")),
    ("pyOpenSci", "code of conduct", has_text("CODE_OF_CONDUCT.md", "Contributor Covenant")),
    ("JOSS", "length of the paper", paper_length),
    ("JOSS", "sections", has_text("paper/paper.md", *(f"^# {name}$" for name in SECTIONS))),
    ("JOSS", "references", references),
    ("JOSS", "licence", has_text("LICENSE", "Apache License")),
    ("CITATION", "valid", succeeds(*TOOL, "--with", "setuptools<81", "cffconvert", "--validate")),
    ("scikit-learn", "entry", has_text("paper/related-projects.rst", r"^- `PrivSVM <.+>`_ \S")),
    ("DVC", "artifacts", artifacts),
    ("static host", "site", site),
    ("systems", "fit, save, load, predict", systems),
)


def main() -> None:
    """Print the table and the person's list; exit with 1 if anything is missing."""
    failed = 0
    for asker, thing, check in CHECKS:
        missing = check(REPOSITORY)
        failed += bool(missing)
        print(f"{asker:20} {thing:25} {'✗ ' + missing if missing else '✓'}", flush=True)
    print(f"\nOnly a person can do or state:\n{PERSON}")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
