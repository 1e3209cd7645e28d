"""Gather the pages of the repository and build the site: site/index.html."""

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

import draw_methods
import run_examples
from rendering import render

from privsvm.registry import estimator_class, implementations

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY))
from tests.mutants.mutant import MUTANTS  # noqa: E402

SOURCE = REPOSITORY / ".cache" / "site"
TARGET = REPOSITORY / "site"

# The list of all pages: headings become captions of the menu, and the items below them its entries.
MENU = REPOSITORY / "docs" / "README.md"
# Pages outside docs/ and their paths in the site. The README is the landing page, with the menu at its end.
OTHERS = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "ARCHITECTURE.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "CODE_OF_CONDUCT.md": "CODE_OF_CONDUCT.md",
    "SECURITY.md": "SECURITY.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "config/README.md": "config.md",
    "examples/ppsvm_three_entities/README.md": "ppsvm_example.md",
}
# Pages that only the site has, by their templates. Other pages name their address, which the site makes a link.
BUILT = ("docs/method-parameters.md", "docs/mutants.md")
ADDRESS = re.compile(r"`site/([\w-]+)\.html`")
# An entry of the menu, and one below the last of these.
ENTRY = re.compile(r"^(  )?- (?:\[(.+)\]\((\S+)\)|(.+): `site/([\w-]+)\.html`)$")
# A line of the list of examples.
LISTED = re.compile(r"^(- \[.*\]\((gallery/(\w+))\.md\))$", re.MULTILINE)
LINK = re.compile(r"(?<!\\)\]\(([^)\s]+)\)")
# Documented methods of a class; scikit-learn documents the others.
MEMBERS = ("fit", "fit_resample", "predict", "predict_proba", "decision_function", "score", "transform", "release_path")


class DeadLinkError(Exception):
    """Link to a missing file."""


def pages():
    """Return the path in the site of every page of the repository."""
    files = sorted((REPOSITORY / "docs").rglob("*.md"))
    names = [*(path.relative_to(REPOSITORY).as_posix() for path in files), *BUILT]
    scripts = {path.relative_to(REPOSITORY).as_posix(): f"gallery/{path.stem}.md" for path in run_examples.examples()}
    # Scripts first: the gallery shows their pictures.
    return scripts | {name: posixpath.relpath(name, "docs") for name in names if name != "docs/README.md"} | OTHERS


def menu(targets):
    """Read the menu: a list of (caption, entries), and the entries below each page.

    Entries are (title, path in the site). Raises `DeadLinkError`.
    """
    captions, below = [], {}
    for line in MENU.read_text(encoding="utf-8").splitlines():
        entry = ENTRY.match(line)
        if line.startswith("## "):
            captions.append((line.removeprefix("## "), []))
        elif entry:
            inner, title, address = entry[1], entry[2] or entry[4], entry[3] or f"{entry[5]}.md"
            path = posixpath.normpath(posixpath.join("docs", address))
            if path not in targets:
                raise DeadLinkError(f"docs/README.md: ({address}): there is no page {path}")
            if inner:
                below.setdefault(captions[-1][1][-1][1], []).append((title, targets[path]))
            else:
                captions[-1][1].append((title, targets[path]))
    return captions, below


def toctree(entries, caption=""):
    """Write a hidden list of pages for Sphinx's menu."""
    head = ["```{toctree}", ":hidden:", *([f":caption: {caption}"] if caption else []), ""]
    return "\n".join(["", *head, *(f"{title} </{target.removesuffix('.md')}>" for title, target in entries), "```", ""])


def relink(text, page, targets, files):
    """Point the links of a page to their targets in the site.

    A file that is not a page becomes a download; `files` collects these. Raises `DeadLinkError`.
    """
    here = posixpath.dirname(targets[page])

    def link(match):
        address, hash_sign, anchor = match[1].partition("#")
        if "://" in address or address.startswith("mailto:") or not address:
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page), address))
        # The landing page ends in the menu.
        path = "README.md" if path == "docs/README.md" else path
        if path in targets:
            return f"]({posixpath.relpath(targets[path], here or '.')}{hash_sign}{anchor})"
        if not (REPOSITORY / path).exists():
            raise DeadLinkError(f"{page}: ({match[1]}): there is no {path}")
        if (REPOSITORY / path).is_dir():
            raise DeadLinkError(f"{page}: ({match[1]}): a folder, which a site cannot show; name a file in it")
        target = f"images/{posixpath.basename(path)}" if path.endswith((".svg", ".png")) else f"_files/{path}"
        files[path] = target
        return f"]({posixpath.relpath(target, here or '.')})"

    def link_address(match):
        path = f"docs/{match[1]}.md"
        return f"[{match[0]}]({posixpath.relpath(targets[path], here or '.')})" if path in targets else match[0]

    return ADDRESS.sub(link_address, LINK.sub(link, text))


def public_classes():
    """Return the library's public names by kind."""
    library = importlib.import_module("privsvm")
    objects = {name: getattr(library, name) for name in sorted(dir(library)) if not name.startswith("_")}
    public = [(name, item) for name, item in objects.items() if getattr(item, "__module__", "").startswith("privsvm")]
    return [{name: item for name, item in public if kind(item)} for kind in (inspect.isclass, inspect.isfunction)]


def reference():
    """Write the generated section of the reference."""
    from privsvm.command import _parser

    classes, functions = public_classes()
    parser = _parser()
    commands = next(action for action in parser._actions if isinstance(action, argparse._SubParsersAction)).choices
    return render(
        "reference", classes=classes, functions=functions, commands=commands, members=MEMBERS, getattr=getattr,
        make_help=make_help(), nothing=object,
    )  # fmt: skip


def built_page(page):
    """Write a page of `BUILT`: parameters of the methods from their declarations, or planted bugs from their list."""
    methods = {name: estimator_class(name) for name in implementations()}
    return render(Path(page).stem, methods=methods, mutants=MUTANTS, repr=repr)


def make_help():
    """List the targets of the Makefile, as `make help` does."""
    goals = re.findall(r"^([a-z-]+):.*?## (.*)$", (REPOSITORY / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    return "\n".join(f"make {name:10} {words}" for name, words in goals)


def _thumbnail(line, pictures):
    """Put the first picture of an example below its line in the gallery's list."""
    if not pictures[line[3]]:
        return line[1]
    image = ["", "", "  ```{image} " + f"{line[2]}_0.svg", "  :width: 260px", f"  :alt: What {line[3]}.py draws"]
    return line[1] + "\n".join([*image, "  ```", ""])


def with_built_parts(text, page):
    """Add the reference and the pictures of the methods to their pages."""
    if page == "docs/reference.md":
        return text + reference()
    if page == "docs/methods.md" or page.startswith("docs/proofs/"):
        name = Path(page).stem
        return text + draw_methods.gallery() if name == "methods" else draw_methods.with_pictures(text, name)
    return text


def gather():
    """Write the sources of the site; return the number of pages."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    targets, files = pages(), {}
    captions, below = menu(targets)
    listed = {target for entries in (*dict(captions).values(), *below.values()) for _, target in entries}
    (SOURCE / "gallery").mkdir(parents=True)
    pictures = {}
    for page, target in targets.items():
        if page.endswith(".py"):
            path = REPOSITORY / page
            shown = run_examples.run(path)
            for number, picture in enumerate(shown.pictures):
                (SOURCE / "gallery" / f"{path.stem}_{number}.svg").write_bytes(picture)
            pictures[path.stem] = shown.pictures
            text = run_examples.page(path, shown, relink(shown.words, page, targets, files))
        elif page in BUILT:
            text = built_page(page)
        else:
            text = relink((REPOSITORY / page).read_text(encoding="utf-8"), page, targets, files)
            text = with_built_parts(text, page)
        text = LISTED.sub(lambda line: _thumbnail(line, pictures), text)
        text += toctree(below[target]) if target in below else ""
        if target == "index.md":
            text += "".join(toctree(entries, caption) for caption, entries in captions)
        elif target not in listed and not page.endswith(".py"):
            # Reached from a page that names it, such as the list of proofs.
            text = f"---\norphan: true\n---\n\n{text}"
        (SOURCE / target).parent.mkdir(parents=True, exist_ok=True)
        (SOURCE / target).write_text(text, encoding="utf-8")
    for path, target in files.items():
        (SOURCE / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(REPOSITORY / path, SOURCE / target)
    draw_methods.draw_stale(draw_methods.implementations())
    shutil.copytree(draw_methods.FOLDER, SOURCE / "images", dirs_exist_ok=True)
    shutil.copyfile(REPOSITORY / "docs/conf.py", SOURCE / "conf.py")
    return len(targets)


def main():
    """Gather the sources and run Sphinx, whose warnings are errors."""
    if importlib.util.find_spec("sphinx") is None:
        sys.exit("error: site: Sphinx is not installed; run pip install -e '.[docs]'")
    try:
        count = gather()
    except DeadLinkError as dead:
        sys.exit(f"error: {dead}; mend the link")
    shutil.rmtree(TARGET, ignore_errors=True)
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-d", SOURCE / "_doctrees"]
    result = subprocess.run([*command, SOURCE, TARGET], check=False)
    if result.returncode:
        sys.exit("error: site: Sphinx warned; see above")
    print(f"{count} pages: open {TARGET.relative_to(REPOSITORY)}/index.html")


if __name__ == "__main__":
    main()
