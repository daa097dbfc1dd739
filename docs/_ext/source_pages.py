"""Pages that are made from files of the repository: chapters of the mathematics, and Markdown files
outside docs. Links between the files become links between the pages."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

OUTSIDE = (
    *("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "GLOSSARY.md", "SECURITY.md"),
    "benchmarks/results/*.md",
)
"""Files outside docs that have a page."""

INDEXES = ("index.md", "start.md", "howto.md", "reference.md", "explanation.md")
"""Pages that list others."""

OTHERS = "%%others%%"
"""Stands in howto.md for the pages that no index lists."""

CODE = re.compile(r"(^(`{3,}|:{3,}).*?^\2[ \t]*$|`[^`\n]+`|\$\$.+?\$\$|\$[^$]+\$)", re.M | re.S)
LINK = re.compile(r"\]\(([^)\s]+)\)")
NUMBER = r"\d+\.\d+"
CITED = re.compile(rf"\b[Ss]tatements?\s+{NUMBER}(?:(?:,|\s+and|\s+to)\s+{NUMBER})*")
CHAPTER = re.compile(r"^## (\d+) (.+)$", re.MULTILINE)
STATEMENT = re.compile(rf"^### ({NUMBER}) ", re.MULTILINE)


def slug(heading: str) -> str:
    """The anchor of a heading, as GitHub has it.

    >>> slug("12 The paper's lines and programs")
    '12-the-papers-lines-and-programs'
    """
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def label(number: str) -> str:
    """The target of a statement.

    >>> label("4.3")
    'statement-4-3'
    """
    return f"statement-{number.replace('.', '-')}"


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """The text, changed wherever it is neither code nor a formula."""
    parts = CODE.split(text)
    # a match has two groups: the code itself, and its fence
    return "".join(
        change(part) if k % 3 == 0 else part for k, part in enumerate(parts) if k % 3 != 2 and part
    )


class Pages:
    """The pages of a repository that are generated into a folder of its docs."""

    def __init__(self, root: Path, generated: Path) -> None:
        self.root, self.docs, self.generated = root, root / "docs", generated
        self.sources: dict[str, Path] = {}
        """The file that each generated page is made of, by the name of the page."""
        self.places: dict[Path, str] = {root / "README.md": "/index.md"}
        """The page of each file that does not lie where its page does."""
        self.anchors: dict[str, str] = {}
        """The chapter of each heading of the mathematics."""

    def write(self) -> None:
        """Write all pages; unchanged ones are left, so that Sphinx does not read them again."""
        for pattern in OUTSIDE:
            for file in sorted(self.root.glob(pattern)):
                name = f"generated/pages/{file.relative_to(self.root)}"
                self._add(name, file, file.read_text(encoding="utf-8"))
                self.places[file] = f"/{name}"
        self._write_chapters(self.docs / "mathematics.md")

    def _write_chapters(self, file: Path) -> None:
        """One page per section; headings rise by a level, and statements become targets."""
        head, *pieces = CHAPTER.split(file.read_text(encoding="utf-8"))
        head = re.sub(r"^Contents:.*?\n\n", "", head, flags=re.MULTILINE | re.DOTALL)
        names = []
        for number, title, body in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
            name = f"{int(number):02d}-{slug(title)}"
            names.append(name)
            self.anchors[slug(f"{number} {title}")] = f"/generated/mathematics/{name}.md"
            targets = STATEMENT.sub(lambda m: f"({label(m[1])})=\n{m[0]}", body)
            text = re.sub(r"^#(#+ )", r"\1", targets, flags=re.MULTILINE)
            self._add(f"generated/mathematics/{name}.md", file, f"# {number} {title}\n{text}")
        tree = "\n".join(names)
        index = f"{head.rstrip()}\n\n```{{toctree}}\n:maxdepth: 2\n\n{tree}\n```\n"
        self._add("generated/mathematics/index.md", file, index)
        self.places[file] = "/generated/mathematics/index.md"

    def _add(self, name: str, source: Path, text: str) -> None:
        self.sources[name.removesuffix(".md")] = source
        write_if_changed(self.docs / name, text)

    def read(self, app: Any, page: str, content: list[str]) -> None:
        """Sphinx reads a page: links lead to pages, and cited statements become links."""
        del app
        file = self.sources.get(page, self.docs / f"{page}.md")
        if file.suffix == ".md" and file.exists():
            content[0] = outside_code(content[0], lambda text: self._linked(text, file))
            content[0] = content[0].replace(OTHERS, "\n".join(self.unlisted()))

    def unlisted(self) -> list[str]:
        """Pages of docs that no index lists."""
        listed = "\n".join((self.docs / name).read_text(encoding="utf-8") for name in INDEXES)
        listed += "\nmathematics\n" + "\n".join(name.removesuffix(".md") for name in INDEXES)
        names = sorted(path.stem for path in self.docs.glob("*.md"))
        return [name for name in names if not re.search(rf"^{name}$", listed, re.MULTILINE)]

    def _linked(self, text: str, file: Path) -> str:
        def statement(cited: re.Match[str]) -> str:
            return re.sub(NUMBER, lambda m: f"[{m[0]}](#{label(m[0])})", cited[0])

        return CITED.sub(statement, LINK.sub(lambda m: f"]({self._target(m[1], file)})", text))

    def _target(self, link: str, file: Path) -> str:
        """Where a link of a file leads on the site."""
        path, _, anchor = link.partition("#")
        end = Path(os.path.normpath(file.parent / path)) if path else file
        tail = f"#{anchor}" if anchor else ""
        if end == self.docs / "mathematics.md" and anchor in self.anchors:
            return self.anchors[anchor]
        if end in self.places and end.name != "README.md":
            return self.places[end] + tail
        if end in self.places:  # the first page has other headings
            return self.places[end]
        moved = file.name == "mathematics.md" or not file.is_relative_to(self.docs)
        if not moved or "://" in link or path.startswith("/"):
            return link
        return f"/{os.path.relpath(end, self.docs)}{tail}"


def write_if_changed(path: Path, text: str) -> None:
    """Write a file unless it holds this text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
