"""Gather the pages of the repository and build the site from them: site/index.html."""

import argparse
import importlib
import importlib.util
import inspect
import posixpath
import re
import shutil
import subprocess
import sys
from pathlib import Path

import run_examples

REPOSITORY = Path(__file__).resolve().parents[1]
SOURCE = REPOSITORY / ".cache" / "site"
TARGET = REPOSITORY / "site"

# Pages outside docs/ by their place in the site.
OTHERS = {
    "README.md": "start.md",
    "ARCHITECTURE.md": "ARCHITECTURE.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "CODE_OF_CONDUCT.md": "CODE_OF_CONDUCT.md",
    "SECURITY.md": "SECURITY.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "examples/ppsvm_three_entities/README.md": "ppsvm_example.md",
}
# A line of the gallery's list.
LISTED = re.compile(r"^(- \[.*\]\((gallery/(\w+))\.md\))$", re.MULTILINE)
LINK = re.compile(r"(?<!\\)\]\(([^)\s]+)\)")
# What a class offers its users; the rest is scikit-learn's own.
MEMBERS = ("fit", "fit_resample", "predict", "predict_proba", "decision_function", "score", "transform", "release_path")


class DeadLinkError(Exception):
    """A link that leads nowhere."""


def pages():
    """Return the place in the site of every page of the repository."""
    found = {path.relative_to(REPOSITORY).as_posix(): None for path in sorted((REPOSITORY / "docs").rglob("*.md"))}
    scripts = {path.relative_to(REPOSITORY).as_posix(): f"gallery/{path.stem}.md" for path in run_examples.examples()}
    return {name: posixpath.relpath(name, "docs") for name in found} | OTHERS | scripts


def relinked(text, page, places, files):
    """Point the links of a page to their places in the site.

    A file that is no page becomes one to download; `files` collects these. Raises `DeadLinkError`.
    """
    here = posixpath.dirname(places[page])

    def link(match):
        target, hash_sign, anchor = match[1].partition("#")
        if "://" in target or target.startswith("mailto:") or not target:
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), target))
        if path in places:
            return f"]({posixpath.relpath(places[path], here or '.')}{hash_sign}{anchor})"
        if not (REPOSITORY / path).exists():
            raise DeadLinkError(f"{page}: ({match[1]}): there is no {path}")
        if (REPOSITORY / path).is_dir():
            raise DeadLinkError(f"{page}: ({match[1]}): a folder, which a site cannot show; name a file in it")
        place = f"images/{posixpath.basename(path)}" if path.endswith((".svg", ".png")) else f"_files/{path}"
        files[path] = place
        return f"]({posixpath.relpath(place, here or '.')})"

    return LINK.sub(link, text)


def public_classes():
    """Return the library's public names by kind."""
    library = importlib.import_module("privsvm")
    objects = {name: getattr(library, name) for name in sorted(dir(library)) if not name.startswith("_")}
    public = {
        name: item for name, item in objects.items() if getattr(item, "__module__", "").startswith("privsvm")
    }  # fmt: skip
    classes = {name: item for name, item in public.items() if inspect.isclass(item)}
    functions = {name: item for name, item in public.items() if inspect.isfunction(item)}
    return classes, functions


def reference():
    """Write the part of the reference that follows from the declarations."""
    classes, functions = public_classes()
    lines = ["", "## Classes", ""]
    for name, item in classes.items():
        members = [member for member in MEMBERS if member in vars(item) or hasattr(item, member)]
        shown = [member for member in members if getattr(item, member).__module__.startswith("privsvm")]
        lines += [f"### {name}", "", "```{eval-rst}", f".. autoclass:: privsvm.{name}", ""]
        # One by one: what a class has from scikit-learn is documented there.
        lines += [line for member in shown for line in (f"   .. automethod:: privsvm.{name}.{member}", "")]
        lines += ["```", ""]
    lines += ["## Functions", ""]
    for name in functions:
        lines += [f"### {name}", "", "```{eval-rst}", f".. autofunction:: privsvm.{name}", "```", ""]
    lines += ["## Commands", ""]
    from privsvm.command import _parser

    parser = _parser()
    choices = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction)).choices
    for name, command in choices.items():
        lines += [f"### privsvm {name}", "", "```text", command.format_help().rstrip(), "```", ""]
    lines += ["## make", "", "```text", make_help(), "```", ""]
    return "\n".join(lines)


def make_help():
    """List the targets of the Makefile, as `make help` does."""
    found = re.findall(r"^([a-z-]+):.*?## (.*)$", (REPOSITORY / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    return "\n".join(f"make {name:10} {words}" for name, words in found)


def _thumbnail(line, pictures):
    """Put the first picture of an example below its line in the gallery's list."""
    if not pictures[line[3]]:
        return line[1]
    image = ["", "", "  ```{image} " + f"{line[2]}_0.svg", "  :width: 260px", f"  :alt: What {line[3]}.py draws"]
    return line[1] + "\n".join([*image, "  ```", ""])


def gather():
    """Write the sources of the site; return the number of pages."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    places, files = pages(), {}
    (SOURCE / "gallery").mkdir(parents=True)
    pictures = {}
    for page, place in places.items():
        if page.endswith(".py"):
            path = REPOSITORY / page
            shown = run_examples.run(path)
            for number, picture in enumerate(shown.pictures):
                (SOURCE / "gallery" / f"{path.stem}_{number}.svg").write_bytes(picture)
            pictures[path.stem] = shown.pictures
            text = run_examples.page(path, shown, relinked(shown.words, page, places, files))
        else:
            text = relinked((REPOSITORY / page).read_text(encoding="utf-8"), page, places, files)
        if page == "docs/reference.md":
            text += reference()
        if place.startswith("proofs/") or place == "ppsvm_example.md":
            # Reached from the list of proofs, or from the page that names it.
            text = text if place == "proofs/README.md" else f"---\norphan: true\n---\n\n{text}"
        (SOURCE / place).parent.mkdir(parents=True, exist_ok=True)
        (SOURCE / place).write_text(text, encoding="utf-8")
    gallery = SOURCE / places["docs/gallery.md"]
    gallery.write_text(LISTED.sub(lambda line: _thumbnail(line, pictures), gallery.read_text("utf-8")), "utf-8")
    for path, place in files.items():
        (SOURCE / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(REPOSITORY / path, SOURCE / place)
    shutil.copyfile(REPOSITORY / "docs/conf.py", SOURCE / "conf.py")
    return len(places)


def main():
    """Gather, then let Sphinx build; a warning is an error."""
    if importlib.util.find_spec("sphinx") is None:
        sys.exit("error: site: Sphinx is not installed; run pip install -e '.[docs]'")
    try:
        count = gather()
    except DeadLinkError as dead:
        sys.exit(f"error: {dead}; mend the link")
    shutil.rmtree(TARGET, ignore_errors=True)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-d", SOURCE / "_doctrees"]
    done = subprocess.run([*command, SOURCE, TARGET], check=False)
    if done.returncode:
        sys.exit("error: site: Sphinx warned; see above")
    print(f"{count} pages: open {TARGET.relative_to(REPOSITORY)}/index.html")


if __name__ == "__main__":
    main()
