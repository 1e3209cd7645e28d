"""Gather the pages of the repository and build the site from them: site/index.html.

With ``--version`` the site of a tag is built, by the tag's own sources, in a folder of its own: site/<tag>/index.html.
"""

import argparse
import importlib
import importlib.util
import inspect
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import run_examples

REPOSITORY = Path(__file__).resolve().parents[1]
SOURCE = REPOSITORY / ".cache" / "site"
TARGET = REPOSITORY / "site"

# The list of all pages: headings become captions of the menu, and the items below them its entries.
MENU = REPOSITORY / "docs" / "README.md"
# Pages outside docs/ by their place in the site. The README is the landing page, with the menu at its end.
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
# An entry of the menu, and one below the last of these.
ENTRY = re.compile(r"^(  )?- \[(.+)\]\((\S+)\)$")
# A line of the list of examples.
LISTED = re.compile(r"^(- \[.*\]\((gallery/(\w+))\.md\))$", re.MULTILINE)
LINK = re.compile(r"(?<!\\)\]\(([^)\s]+)\)")
# What a class offers its users; the rest is scikit-learn's own.
MEMBERS = ("fit", "fit_resample", "predict", "predict_proba", "decision_function", "score", "transform", "release_path")


class DeadLinkError(Exception):
    """A link that leads nowhere."""


def pages():
    """Return the place in the site of every page of the repository."""
    found = [path.relative_to(REPOSITORY).as_posix() for path in sorted((REPOSITORY / "docs").rglob("*.md"))]
    scripts = {path.relative_to(REPOSITORY).as_posix(): f"gallery/{path.stem}.md" for path in run_examples.examples()}
    others = {name: place for name, place in OTHERS.items() if (REPOSITORY / name).exists()}
    # Scripts first: the gallery shows what they draw.
    return scripts | {name: posixpath.relpath(name, "docs") for name in found if name != "docs/README.md"} | others


def menu(places):
    """Read the menu: a list of (caption, entries), and the entries below each page.

    Entries are (title, place in the site). Raises `DeadLinkError`.
    """
    captions, below = [], {}
    for line in MENU.read_text(encoding="utf-8").splitlines():
        entry = ENTRY.match(line)
        if line.startswith("## "):
            captions.append((line.removeprefix("## "), []))
        elif entry:
            inner, title, target = entry.groups()
            path = posixpath.normpath(posixpath.join("docs", target))
            if path not in places:
                raise DeadLinkError(f"docs/README.md: ({target}): there is no page {path}")
            if inner:
                below.setdefault(captions[-1][1][-1][1], []).append((title, places[path]))
            else:
                captions[-1][1].append((title, places[path]))
    return captions, below


def toctree(entries, caption=""):
    """Write a list of pages for Sphinx, which the page itself does not show."""
    head = ["```{toctree}", ":hidden:", *([f":caption: {caption}"] if caption else []), ""]
    return "\n".join(["", *head, *(f"{title} </{place.removesuffix('.md')}>" for title, place in entries), "```", ""])


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
        # The landing page ends in the menu.
        path = "README.md" if path == "docs/README.md" else path
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
    captions, below = menu(places)
    listed = {place for entries in (*dict(captions).values(), *below.values()) for _, place in entries}
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
        text = LISTED.sub(lambda line: _thumbnail(line, pictures), text)
        text += toctree(below[place]) if place in below else ""
        if place == "index.md":
            text += "".join(toctree(entries, caption) for caption, entries in captions)
        elif place not in listed and not page.endswith(".py"):
            # Reached from a page that names it, such as the list of proofs.
            text = f"---\norphan: true\n---\n\n{text}"
        (SOURCE / place).parent.mkdir(parents=True, exist_ok=True)
        (SOURCE / place).write_text(text, encoding="utf-8")
    for path, place in files.items():
        (SOURCE / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(REPOSITORY / path, SOURCE / place)
    shutil.copyfile(REPOSITORY / "docs/conf.py", SOURCE / "conf.py")
    shutil.copytree(REPOSITORY / "docs/templates", SOURCE / "templates")
    return len(places)


def git(*arguments):
    """Ask git about this repository; nothing where there is none."""
    done = subprocess.run(["git", *arguments], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    return done.stdout.split() if done.returncode == 0 else []


def built_tags():
    """List the tags whose site has been built, the newest first."""
    return [tag for tag in git("tag", "--sort=-version:refname") if (TARGET / tag / "index.html").exists()]


def write_versions():
    """Tell every built site of all others: versions.json for programs, a script for the pages' own list.

    A page that is opened as a file may not read another file, but may load a script.
    """
    built = built_tags()
    present = "".join(git("describe", "--tags", "--always")) or "present"
    names = ([f"{present} (present)"] if (TARGET / "index.html").exists() else []) + built
    urls = [*(["index.html"] if len(names) > len(built) else []), *(f"{tag}/index.html" for tag in built)]
    listed = [{"name": name, "url": url} for name, url in zip(names, urls, strict=True)]
    (TARGET / "versions.json").write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")
    for url in urls:
        folder = posixpath.dirname(url)
        seen = [
            {"name": one["name"], "url": posixpath.relpath(one["url"], folder or "."), "here": one["url"] == url}
            for one in listed
        ]
        script = TARGET / folder / "_static" / "versions.js"
        script.write_text(f"window.VERSIONS = {json.dumps(seen)};\n", encoding="utf-8")


def build_tag(tag):
    """Build the site of a tag in a clone of it, by its own sources, and put it into its folder."""
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "clone"
        command = ["git", "clone", "--quiet", "--branch", tag, "--config", "advice.detachedHead=false"]
        subprocess.run([*command, REPOSITORY, clone], check=True)
        environment = {**os.environ, "PYTHONPATH": str(clone / "lib")}
        done = subprocess.run([sys.executable, "docs/build_site.py"], cwd=clone, env=environment, check=False)
        if done.returncode:
            sys.exit(f"error: --version {tag}: its own docs/build_site.py failed; see above")
        shutil.rmtree(TARGET / tag, ignore_errors=True)
        shutil.copytree(clone / "site", TARGET / tag)


def build_present():
    """Gather, then let Sphinx build; a warning is an error."""
    try:
        count = gather()
    except DeadLinkError as dead:
        sys.exit(f"error: {dead}; mend the link")
    kept = built_tags()
    for path in TARGET.iterdir() if TARGET.exists() else ():
        if path.name not in kept:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "-d", SOURCE / "_doctrees"]
    done = subprocess.run([*command, SOURCE, TARGET], check=False)
    if done.returncode:
        sys.exit("error: site: Sphinx warned; see above")
    print(f"{count} pages: open {TARGET.relative_to(REPOSITORY)}/index.html")


def main():
    """Build the site of what is checked out, or those of tags."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--version", metavar="TAG", help="the site of a tag, or of `all` of them")
    version = parser.parse_args().version
    if importlib.util.find_spec("sphinx") is None:
        sys.exit("error: site: Sphinx is not installed; run pip install -e '.[docs]'")
    tags = git("tag")
    if version is None:
        build_present()
    elif version == "all" and tags:
        for tag in tags:
            build_tag(tag)
    elif version in tags:
        build_tag(version)
    else:
        sys.exit(f"error: --version {version}: no such tag; there are: {', '.join(tags) or 'none'}")
    write_versions()


if __name__ == "__main__":
    main()
