"""Settings of Sphinx for the site that build_site.py gathers."""

import subprocess
from pathlib import Path

project = "PrivSVM"
author = "The PrivSVM authors"
copyright = "The PrivSVM authors, Apache-2.0"
_described = subprocess.run(
    ["git", "describe", "--tags", "--always"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
)
release = version = _described.stdout.strip() or "unreleased"

# githubpages writes .nojekyll, without which that host leaves out folders like _static.
extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.githubpages"]
myst_heading_anchors = 4
myst_enable_extensions = ["dollarmath"]
# Types of Python and other packages would need their sites.
nitpicky = False
numpydoc_show_class_members = False
autodoc_typehints = "none"
# Warnings about docstrings of other packages.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_title = f"PrivSVM {release}"
html_copy_source = False
html_show_sphinx = False
