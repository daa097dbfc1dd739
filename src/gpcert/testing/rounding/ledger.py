"""What a run on shadow arrays saw of the counts of roundings: every call in the sources of a
function that takes one, and where computed numbers are taken as given though no function rounded
them, as any number would do, or their errors are bounded by something else than a count.

A count is known by module, function and place among the counts of that function, so that moved
lines keep theirs. Names are qualified names without modules; one that no longer exists fails a
test.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import gpcert
from gpcert.kernels import KERNELS
from gpcert.testing.rounding.arrays import Shadow
from gpcert.testing.rounding.rules import plain

Pairs = Sequence[tuple[Any, Any]]


@dataclass(frozen=True)
class Given:
    """Records whose fields, functions whose arguments and functions whose results are given."""

    records: frozenset[str] = frozenset()
    arguments: frozenset[str] = frozenset()
    results: frozenset[str] = frozenset()


LIBRARY_KERNELS = [kind for kind in KERNELS.values() if kind.__module__.startswith("gpcert.")]

RECORDS = {
    # what is certified is the model with these stored numbers
    "Posterior": "stored",
    **dict.fromkeys((kind.__name__ for kind in LIBRARY_KERNELS), "parameters as stored"),
    **dict.fromkeys(("Box", "Ball"), "ends and radius as stored; rounded by the constructors"),
    **dict.fromkeys(("Cells", "ImageCells"), "floats; that they cover is checked exactly"),
    **dict.fromkeys(("Frame", "ScaledCells"), "units are powers of two, widths are rounded up"),
    "SquaredExponentialTable": "coordinates carry 3 roundings, which `relative_error` counts",
    "WeightedExpansion": "K is known up to `relative_error`",
}

ARGUMENTS = {
    "SquaredExponentialTable.known_squared_norm": "less their errors, by the callers",
    **dict.fromkeys(
        ("QuadraticLowerModel.minimum", "QuadraticLowerModel.at_level", "above_level", "at_level"),
        "any level is valid",
    ),
    **dict.fromkeys(("form_size", "entry_sum", "reach"), "sizes of the computed tensor"),
    "transforms": "`shift` bounds what moved d",
    **dict.fromkeys(("split_bound", "split_maximum"), "any multiplier is valid"),
    "Cells.linear_minimum": "roundings of slopes are counted by the callers",
    "_least_bend": "the computed matrix: the model's `error` counts its roundings",
    "score": "gaps round once, which `_probability` counts, or are bounds",
    **dict.fromkeys(
        ("gaussian_integral_range", "conditional_mean"),
        "intervals share their ends, whatever these are; ranges are bounds",
    ),
    "Tolerance.needed": "when a search ends is no part of a bound",
    "SquareForm.tangent": "any point of contact is valid",
    "SmoothedLink._chord_minimum": "pieces share their ends, whatever these are",
}

RESULTS = {
    **dict.fromkeys(
        ("ScaledCells.center", "Frame.points"), "one rounding, which the kernels' extents count"
    ),
    **dict.fromkeys(
        ("Cells.half", "Cells.center", "Cells.middle"),
        "floats; that they cover is checked exactly",
    ),
    "SmoothedLink.enclose": "`error` counts the value's roundings and its own subtraction",
    "SquaredExponentialTable.values": "known up to `relative_error`",
    "independent_maximum": "factors of 1.01 cover the roundings of the errors",
    "Jet.sizes": "sizes of the computed parts: errors of these are bounded beside them",
    "WavesBatch._parts": "known up to `part_errors`",
    **dict.fromkeys(
        (
            "LocalRadial.regular_accuracy",
            "LocalRadial.accuracy",
            "LocalRadial.regular_values",
            "LocalRadial.general_values",
        ),
        "factors from 1.01 on cover their roundings",
    ),
}

GIVEN = Given(frozenset(RECORDS), frozenset(ARGUMENTS), frozenset(RESULTS))


def _both(result: Any) -> Pairs:
    """A value and its error."""
    return [(result[0], result[1])]


def _coefficients(model: Any) -> Pairs:
    """Value and gradient of a model, and their errors."""
    return [(model.value, model.errors[:, 0]), (model.gradient, model.errors[:, 1])]


STATED: Mapping[str, Callable[[Any], Pairs]] = {
    "LocalSquaredExponential.center_values": _both,
    "LocalTaylor._center_values": _both,
    "LocalSquaredExponential.model": _coefficients,
    "LocalTaylor.model": _coefficients,
    "exponential": _both,
    "AffinePhase.at": _both,
}
"""Functions that return values with their errors: the errors that arrive must be within them."""

STATED_ARGUMENTS: Mapping[str, Callable[[Any], Pairs]] = {
    "LiftedBox.minimum": lambda names: [(names["coefficients"], names["errors"])],
}
"""Functions that are called with values and their errors, by the names of their arguments."""


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


TOLERANCE = 1e-5
"""Of a count: what terms that are tiny beside the others add to it."""


@dataclass
class Need:
    """What was seen at one count: how often it was used, and how large it had to be."""

    runs: int = 0
    of_allowances: int = 0
    """Runs on what is an allowance for the most part, whose own accuracy is of second order."""
    given: float = math.inf
    """The least count of a run."""
    weighted: float = 0.0
    """The largest error over `U |x|`: what the count had to be for these numbers."""
    counted: float = 0.0
    """The largest number of roundings, whatever the sizes of terms."""
    observed: float = 0.0
    """The largest share of the count that the errors of a run took."""
    share: float = 0.0
    """The largest share that was needed by counting; of a `gamma`, of its allowance."""

    def add(self, given: float, weighted: float, counted: float) -> None:
        """One more run."""
        self.runs += 1
        self.given = min(self.given, given)
        self.weighted, self.counted = max(self.weighted, weighted), max(self.counted, counted)
        self.observed = max(self.observed, weighted / max(given, 1.0))
        self.share = max(self.share, counted / max(given, 1.0))

    def join(self, other: Need) -> None:
        """With what another run saw."""
        self.runs += other.runs
        self.of_allowances += other.of_allowances
        self.given = min(self.given, other.given)
        for name in ("weighted", "counted", "observed", "share"):
            setattr(self, name, max(getattr(self, name), getattr(other, name)))

    @property
    def verdict(self) -> str:
        """In a word; `needed` counts are those whose half would be too small."""
        if self.runs == self.of_allowances and self.runs:
            return "second order"
        if self.share > 0.5:
            return "needed"
        return "generous" if self.share > 0.0 else "nothing seen"


@dataclass
class Ledger:
    """All that was seen; `faults` says in words where a count was too small."""

    halved: Count | None = None
    """A count that is taken for half of what stands there."""
    needs: dict[Count, Need] = field(default_factory=dict)
    faults: dict[Count | str, str] = field(default_factory=dict)

    def met(self, count: Count, x: Any, given: float, frame: FrameType) -> None:
        """A step over `given` roundings of x."""
        need = self.needs.setdefault(count, Need())
        if not isinstance(x, Shadow) or not x.size:
            need.add(given, 0.0, 0.0)
            return
        size = np.abs(plain(x))
        if np.any(x.allowance) and np.all((x.allowance > 0.25 * size) | ~(size > 0)):
            need.runs, need.of_allowances = need.runs + 1, need.of_allowances + 1
            return
        weighted, counted = (float(np.max(x.roundings(which))) for which in (False, True))
        need.add(given, weighted, counted)
        if weighted > given * (1.0 + TOLERANCE) and count not in self.faults:
            known, callers = ", ".join(_accuracies(frame.f_locals)), " < ".join(_callers(frame))
            text = f"needs {weighted:.3g}, has {given:g}; roundings: {known}; called by {callers}"
            self.faults[count] = text

    def used(self, count: Count, given: float) -> None:
        """An allowance of so many roundings is made."""
        need = self.needs.setdefault(count, Need())
        need.runs, need.given = need.runs + 1, min(need.given, given)

    def taken(self, count: Count, share: float) -> None:
        """Of an allowance, so much was needed."""
        need = self.needs.setdefault(count, Need())
        need.share = max(need.share, share)

    def stated(self, where: str, value: Shadow, error: Any) -> None:
        """A value, and what is stated for its error."""
        off, allowed = value.bounds[0] * 2.0**-53, np.asarray(plain(error))
        while off.ndim > allowed.ndim:
            off = np.sqrt(np.sum(off * off, axis=-1))
        with np.errstate(all="ignore"):
            share = float(np.max(np.where(off > 2.0**-900, off / allowed, 0.0), initial=0.0))
        for site in getattr(error, "sites", ()):
            if site.call == "gamma":
                self.taken(site, share)
        if not share <= 1.0 + TOLERANCE:
            self.faults.setdefault(where, f"is off by {share:.3g} times what it states")


def _accuracies(names: dict[str, Any]) -> Iterator[str]:
    """The largest count of roundings of each array among local names and fields of records."""
    for name, value in names.items():
        parts = {"": value}
        if dataclasses.is_dataclass(value):
            parts = {f".{key}": each for key, each in vars(value).items()}
        elif isinstance(value, list | tuple):
            parts = {f"[{i}]": each for i, each in enumerate(value)}
        for part, each in parts.items():
            if isinstance(each, Shadow) and each.size and np.any(each.roundings()):
                yield f"{name}{part} {np.max(each.roundings(False)):.3g}"


def _callers(frame: FrameType | None, most: int = 4) -> Iterator[str]:
    """The functions of the library that a frame was called by."""
    while frame is not None and most:
        if frame.f_globals.get("__name__", "").startswith("gpcert."):
            code = frame.f_code
            yield f"{Path(code.co_filename).stem}.{code.co_qualname}:{frame.f_lineno}"
            most -= 1
        frame = frame.f_back
