"""Docstrings as reStructuredText: ours have Markdown's code spans, free text elsewhere, and lists
of parameters under "Parameters" or "Args:"."""

from __future__ import annotations

import re
from typing import Any

SPAN = re.compile(r"(``[^`]+``|`[^`]+`)", re.DOTALL)
UNDERLINED = re.compile(r"^-{3,}$")
LISTED = {"Parameters", "Returns", "Raises", "Args", "Attributes"}
ITEM = re.compile(r"^([\w*`][\w*,. `\"()]*?)\s?: (.*)$")
NUMBER = r"\d+\.\d+"
NUMBERED = re.compile(NUMBER)
CITED = re.compile(rf"\b[Ss]tatements?\s+{NUMBER}(?:(?:,|\s+and|\s+to)\s+{NUMBER})*")


def escaped(text: str) -> str:
    r"""Text in which nothing is markup but code spans and cited statements.

    >>> escaped("`a * b` is |a| times weights_")
    '``a * b`` is \\|a\\| times weights\\_'
    """
    parts = SPAN.split(text)
    for k, part in enumerate(parts):
        if k % 2 == 0:
            plain = re.sub(r"([*_|\\])", r"\\\1", part)
            parts[k] = CITED.sub(lambda m: NUMBERED.sub(reference, m[0]), plain)
            continue
        # a span must be parted from a letter beside it
        before = "\\ " if parts[k - 1][-1:].isalnum() else ""
        after = "\\ " if parts[k + 1][:1].isalnum() else ""
        parts[k] = f"{before}``{part.strip('`').strip()}``{after}"
    return "".join(parts)


def reference(number: re.Match[str]) -> str:
    """A link to a statement."""
    return f":ref:`{number[0]} <statement-{number[0].replace('.', '-')}>`"


def blocks(lines: list[str]) -> list[list[str]]:
    """Runs of lines between blank ones."""
    runs: list[list[str]] = [[]]
    for line in lines:
        if line.strip():
            runs[-1].append(line)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]


def items(block: list[str]) -> list[str]:
    """A list of parameters as a definition list; other blocks as they are."""
    least = min(len(line) - len(line.lstrip()) for line in block)
    result: list[str] = []
    for line in block:
        bare = line[least:]
        item = ITEM.match(bare) if not bare.startswith(" ") else None
        if item:
            names = item[1].strip("`")
            result += ["", f"**{escaped(names)}**", f"    {item[2]}"]
        else:
            result.append(f"    {bare.strip()}")
    return result


def converted(lines: list[str]) -> list[str]:
    """A docstring's lines as reStructuredText."""
    result: list[str] = []
    listing = False
    for block in blocks(lines):
        title, body = titled(block)
        if title:
            listing = title in LISTED
            result += ["", f".. rubric:: {title}", ""]
        if not body:
            continue
        if body[0].lstrip().startswith(">>>"):
            depth = len(body[0]) - len(body[0].lstrip())
            result += ["", *(line[depth:] for line in body), ""]
            continue
        listing = listing and ITEM.match(body[0].strip()) is not None
        if listing:
            result += [*escaped("\n".join(items(body))).replace("\\*\\*", "**").split("\n"), ""]
        else:
            result += ["", *text_block(body), ""]
    return result


def titled(block: list[str]) -> tuple[str, list[str]]:
    """The title of a section that a block begins, or "", and the other lines."""
    head = block[0].strip()
    if len(block) > 1 and UNDERLINED.match(block[1].strip()):
        return head, block[2:]
    if head.endswith(":") and head[:-1] in LISTED:
        return head[:-1], block[1:]
    return "", block


def text_block(block: list[str]) -> list[str]:
    """A paragraph, or a list whose items begin with a dash or a number."""
    text = escaped("\n".join(line.strip() for line in block)).split("\n")
    example = [k for k, line in enumerate(text) if line.startswith(">>>")]
    if example:
        text[example[0] : example[0]] = [""]
        raw = [line.strip() for line in block]
        text[example[0] + 1 :] = raw[example[0] :]
        return text
    result: list[str] = []
    for line in text:
        begins = re.match(r"([-•]|\(?[0-9a-z][.)]) ", line)
        if begins and not result:
            result.append(line)
        elif begins and result[0][:1] == line[:1] and line[0] in "-•":
            result += ["", line]
        elif result and re.match(r"[-•] ", result[0]):
            result.append("  " + line)
        else:
            result.append(line)
    if result and re.match(r"\(?[0-9a-z][.)] ", result[0]):
        result[0] = "\\" + result[0]
    return result


def process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Replace the lines that autodoc is about to parse."""
    del app, what, name, obj, options
    lines[:] = converted(lines)


def setup(app: Any) -> dict[str, Any]:
    """Convert every docstring that autodoc shows."""
    app.connect("autodoc-process-docstring", process)
    return {"parallel_read_safe": True}
