"""Sphinx configuration of the documentation site: `make docs` builds it, offline, into build/docs.

Pages are written in Markdown. What is generated before a build goes to docs/generated, which git
ignores: chapters of mathematics.md, the API reference, the command line, pages from outside docs.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_ext"))

from importlib.metadata import version as installed_version

import api_pages
import command_pages
import source_pages

project = "gpcert"
author = "the gpcert developers"
copyright = "the gpcert developers"
release = version = installed_version("gpcert")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "docstrings",
    "mathml",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["mathematics.md", "tutorials", "generated/tutorials/**/*.py.md5"]
nitpicky = False
highlight_language = "none"

myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist"]
myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints = "none"
default_role = "code"

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": "tutorials",
    "gallery_dirs": "generated/tutorials",
    "filename_pattern": r"\.py$",
    # without BoTorch its tutorial is left out
    "ignore_pattern": r"__init__\.py" if find_spec("botorch") else r"__init__\.py|botorch\.py",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "remove_config_comments": True,
    "min_reported_time": 3600,
    "show_signature": False,
    "copyfile_regex": r".*\.rst",
    "reset_modules": ("matplotlib",),
    "write_computation_times": False,
    "plot_gallery": "True",
}

html_theme = "pydata_sphinx_theme"
html_title = "gpcert"
html_static_path = ["_static"]
html_css_files = ["gpcert.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options: dict[str, Any] = {
    "logo": {"text": "gpcert"},
    "navbar_align": "left",
    "header_links_before_dropdown": 5,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "navigation_depth": 2,
    "show_toc_level": 2,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_context = {"default_mode": "auto"}
html_sidebars = {"index": [], "start": []}


def setup(app: Any) -> None:
    """Write the generated pages, and mend links in all of them as they are read."""
    generated = DOCS / "generated"
    pages = source_pages.Pages(DOCS.parent, generated)
    pages.write()
    api_pages.write(generated / "api")
    command_pages.write(generated / "commands.md")
    app.connect("source-read", pages.read)
