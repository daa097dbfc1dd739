"""The counts of roundings in the sources: every call of a function that takes one.

A count is known by module, function and place among the counts of that function, so that moved
lines keep theirs.
"""

from __future__ import annotations

import ast
import functools
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gpcert

SOURCES = Path(gpcert.__file__).parent
STEPS = ("up", "down", "up_float", "raised")
"""Functions that step over so many roundings of their first argument."""

CALLS = (*STEPS, "gamma")
"""All functions that take a count."""

SKIPPED = ("gpcert.testing", "gpcert.numerics.rounding")
"""Modules that are not looked at; `rounding` defines these functions."""


@dataclass(frozen=True, order=True)
class Count:
    """One count: the `place`-th call in its function that takes one, and its text."""

    module: str
    function: str
    place: int
    call: str
    text: str = field(compare=False)
    line: int = field(compare=False)

    def __str__(self) -> str:
        inside = self.text if self.call == "gamma" else f"..., {self.text}"
        return f"{self.module}:{self.line} {self.function}#{self.place} {self.call}({inside})"


class _Finder(ast.NodeVisitor):
    """The counts of a module by line and column of their calls."""

    def __init__(self, module: str) -> None:
        self.module = module
        self.scope: list[str] = []
        self.places: dict[str, int] = {}
        self.counts: dict[tuple[int, int], Count] = {}

    def _visit_scope(self, node: Any) -> None:
        self.scope.append(node.name)
        self.generic_visit(node)
        self.scope.pop()

    visit_FunctionDef = visit_ClassDef = _visit_scope

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        if not (isinstance(node.func, ast.Name) and node.func.id in CALLS):
            return
        given = node.args if node.func.id == "gamma" else node.args[1:]
        text, scope = ast.unparse(given[0]) if given else "1", ".".join(self.scope) or "<module>"
        place = self.places[scope] = self.places.get(scope, 0) + 1
        count = Count(self.module, scope, place, node.func.id, text, node.lineno)
        self.counts[node.lineno, node.col_offset] = count


@functools.cache
def syntax_of(module: str) -> ast.Module:
    """The parsed source of a module of the library."""
    path = SOURCES.parent.joinpath(*module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(path.read_text())


@functools.cache
def counts_of(module: str) -> dict[tuple[int, int], Count]:
    """The counts of a module of the library, by line and column of their calls."""
    finder = _Finder(module)
    finder.visit(syntax_of(module))
    return finder.counts


def all_counts() -> list[Count]:
    """Every count of the library, file by file."""
    paths = (path.relative_to(SOURCES).with_suffix("") for path in sorted(SOURCES.rglob("*.py")))
    names = (".".join(("gpcert", *path.parts)).removesuffix(".__init__") for path in paths)
    return [c for n in names if not n.startswith(SKIPPED) for c in counts_of(n).values()]


@functools.cache
def count_at(module: str, code: Any, instruction: int) -> Count | None:
    """The count that a function of the library is about to use at this instruction."""
    positions = list(code.co_positions())[instruction // 2]
    line, column = positions[0], positions[2]
    return counts_of(module).get((line, column)) if line and column is not None else None
