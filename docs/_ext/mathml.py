"""Formulas as MathML, which browsers show without any script: pages work offline."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util import logging

BIG = re.compile(r"(\\[bB]ig{1,2}[lr]?)\\([lr]?)(vert|Vert)\b")


def spelled(formula: str) -> str:
    r"""The formula in the words that the converter knows.

    >>> spelled(r"\bigl\lVert x\bigr\rVert")
    '\\bigl\\| x\\bigr\\|'
    """
    text = BIG.sub(lambda m: m[1] + ("|" if m[3] == "vert" else r"\|"), formula)
    return text.replace(r"\arg", r"\operatorname{arg}")


def mathml(formula: str, display: str) -> str:
    """A formula of LaTeX as a MathML element; an unknown command is a `ValueError`."""
    element = convert(spelled(formula), display=display)
    unknown = re.findall(r">[^<]*\\[a-zA-Z]+", element)
    if unknown:
        raise ValueError(f"unknown commands: {unknown}")
    return element


def visit_math(writer: Any, node: nodes.Element) -> None:
    """Write a formula within a line, or one of its own."""
    display = "inline" if isinstance(node, nodes.math) else "block"
    try:
        element = mathml(node.astext(), display)
    except Exception as error:
        logging.getLogger(__name__).warning("%s: %s", node.astext(), error, location=node)
        element = node.astext()
    if display == "inline":
        writer.body.append(element)
    else:
        writer.body.append(f'<div class="math-block">{element}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, Any]:
    """Use it for every HTML page."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
