"""Where conditions on quantities hold in a region: cells of a partition, each bounded once, and cut
by planes where the quantity has affine bounds.

Proofs: docs/mathematics.md, statements 17.1 and 21.2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated

import numpy as np

from gpcert.enclosures import Evaluation, Portfolio
from gpcert.enclosures.affine import has_affine, least_affine, through_origin
from gpcert.enclosures.goals import Goal
from gpcert.errors import SoundnessError
from gpcert.model.committee import Model
from gpcert.numerics.arrays import Backend, PerRow, Rows, namespace, running_on, to_numpy
from gpcert.numerics.rounding import down, up
from gpcert.quantities import OutputQuantity
from gpcert.regions import Ball, Box, Cells, Polytope, Region
from gpcert.search.cut_cells import (
    FAILS,
    HOLDS,
    INSIDE,
    OUTSIDE,
    CutCells,
    Planes,
    cell_shares,
    everywhere,
    least_over,
    nowhere,
)
from gpcert.search.partition import (
    CellData,
    Contributions,
    PartitionCells,
    PartitionProblem,
    PartitionResult,
    partition,
)
from gpcert.search.problem import Budget, Progress, bound_of
from gpcert.search.region_evaluator import RegionEvaluator
from gpcert.utils.archive import digest

MAX_CORNERS = 12
"""Free features up to which it is asked whether all corners of a cell are in a region."""

SELDOM = 0.02
"""Part of a batch's cells that a bound must settle beyond the planes, else it rests."""

MIDDLE_BYTES = 2.0e8
"""Most memory of one batch of cells: much of it stays in the caches."""


@dataclass(frozen=True, eq=False)
class Condition:
    """`quantity >= level` for `at_least`, else `quantity <= level`; `above` is the quantity of a
    model as a goal, `below` its negative, and the level an exact number."""

    model: Model
    above: Goal
    below: Goal
    level: Fraction
    at_least: bool = True

    def levels(self) -> tuple[float, float]:
        """What a lower bound of `above`, and of `below`, must exceed for the quantity to be above
        the level, and below it."""
        return _above(self.level), _above(-self.level)


def _above(level: Fraction) -> float:
    """The least float at least as large as an exact number."""
    value = float(level)
    return math.nextafter(value, math.inf) if Fraction(value) < level else value


@dataclass(frozen=True, eq=False)
class SetProblem:
    """The set where all conditions hold in a region; or, of `classes`, the sets where each does,
    which are apart from each other. It ends once at most `tol` of the volume of the box around the
    region is undecided."""

    region: Region
    conditions: Sequence[Condition]
    classes: bool = False
    tol: float = 0.01
    planes: bool = True
    """Whether cells are cut, where planes are known; else they are in or out as wholes."""
    budget: Budget = field(default_factory=Budget)
    backend: Backend = field(default_factory=Backend)
    progress: Progress = field(default_factory=Progress)


def find_sets(problem: SetProblem) -> tuple[CutCells, PartitionResult]:
    """Cells that cover the box around the region, and what it cost; the sum whose bounds the result
    has is the set's share of that box's volume (of classes, the share that is decided).

    Whatever ends it, the planes of every cell hold: they are those of the cell or of one that it is
    a part of (Statement 21.2).
    """
    search = _CellWork(problem)
    whole, free = search.hull, search.hull.free
    data = search.packed(np.zeros(1), nowhere(1, len(problem.conditions), len(free)))[0]
    result = partition(
        PartitionProblem(
            whole.lower[None, free],
            whole.upper[None, free],
            search,
            lambda lower, upper: upper - lower <= problem.tol,
            search.batch_size,
            search.bytes_per_cell,
            data,
            record=True,
            budget=problem.budget,
            progress=problem.progress,
            key=search.key,
            hints=search,
        )
    )
    assert result.decided is not None, "they are recorded"
    parts = [search.cut_cells(each) for each in (result.open, result.decided)]
    columns = zip(*(vars(part).values() for part in parts), strict=True)
    return CutCells(*map(np.concatenate, columns)), result


class _CellWork:
    """What bounds the cells of a partition; `portfolio` says which optional bounds pay."""

    def __init__(self, problem: SetProblem) -> None:
        self.problem, region = problem, problem.region
        self.hull = region if isinstance(region, Box) else Box(region.lower, region.upper)
        self.plain = isinstance(region, Box)
        by_model: dict[int, list[int]] = {}
        for c, condition in enumerate(problem.conditions):
            by_model.setdefault(id(condition.model), []).append(c)
        self.groups = [_Group(self, numbers) for numbers in by_model.values()]
        self.bytes_per_cell = max(group.evaluator.bytes_per_box for group in self.groups)
        sizes = [group.evaluator.batch_size for group in self.groups]
        room = max(64, int(MIDDLE_BYTES / self.bytes_per_cell))
        self.batch_size = max(2, min(sizes if problem.backend.gpu else [*sizes, room]))
        self.shape = (len(problem.conditions), 2, len(self.hull.free) + 1)

    @property
    def key(self) -> str:
        """The same for the same question, whatever it may cost."""
        asked = self.problem
        how = (asked.classes, asked.tol, asked.planes)
        return digest("sets", asked.region, list(asked.conditions), *how)

    def remembered(self) -> tuple[Portfolio, ...]:
        """Which optional bounds pay."""
        return tuple(group.portfolio for group in self.groups)

    def recall(self, remembered: tuple[Portfolio, ...]) -> None:
        """Go on with these."""
        for group, portfolio in zip(self.groups, remembered, strict=True):
            group.portfolio = portfolio

    def __call__(self, low: Rows, high: Rows, data: CellData) -> Contributions:
        """Contributions of cells to the volume of the set."""
        problem, cells = self.problem, self.unpacked(low, high, data)
        if not self.plain:
            cells = CutCells(low, high, cells.planes, self.placed(cells))
        cells = cells.simplified()
        scores = (high - low) / (self.hull.upper - self.hull.lower)[self.hull.free]
        for group in self.groups:
            rows = np.flatnonzero(~self.decided(cells) & group.left(cells, problem.classes))
            if len(rows):
                planes, scores[rows] = group.bounded(cells.take(rows))
                cells.planes[rows] = planes
        cells = cells.simplified()
        decided, shares = self.decided(cells), cells.shares(problem.classes)
        least, most = cell_shares(low, high, self.bounds)
        if problem.classes:
            known = np.minimum(down(shares.sum(axis=1), shares.shape[1]), 1.0)
            lower, rest = np.zeros(len(low)), 1.0 - np.where(decided, 1.0, known)
        else:
            lower, rest = down(least * shares[:, 1], 1), 1.0 - shares[:, 0]
        upper = np.where(rest > 0, up(most * rest, 3), 0.0)
        data = self.packed(cells.within, cells.planes)
        return Contributions(np.maximum(lower, 0.0), upper, decided, scores, data)

    @property
    def bounds(self) -> Annotated[np.ndarray, "2 f"]:
        """(2, f) the ends of the box around the region."""
        free = self.hull.free
        return np.stack([self.hull.lower[free], self.hull.upper[free]])

    def decided(self, cells: CutCells) -> PerRow:
        """(n,) whether a cell as a whole is proved to be in one of the sets, or out of all."""
        whole, inside = cells.whole, cells.within == INSIDE
        out = cells.within == OUTSIDE
        if self.problem.classes:
            return out | (inside & np.any(whole[:, :, HOLDS], axis=1))
        holds, fails = np.all(whole[:, :, HOLDS], axis=1), np.any(whole[:, :, FAILS], axis=1)
        return out | fails | (inside & holds)

    def placed(self, cells: CutCells) -> PerRow:
        """(n,) which cells are proved to be inside the region, and outside.

        Reason: the region is convex, so a cell is inside if its corners are.
        """
        within, region = cells.within.copy(), self.problem.region
        rows = np.flatnonzero(within == 0)
        low, high = cells.low[rows], cells.high[rows]
        _, empty = Cells(region, low, high).contract()
        within[rows[to_numpy(empty)]] = OUTSIDE
        f = low.shape[1]
        inside = np.full(len(rows), f <= MAX_CORNERS)
        point = np.tile(region.center, (len(rows), 1))
        for corner in range(2**f if f <= MAX_CORNERS else 0):
            ends = np.array([(corner >> j) & 1 for j in range(f)], dtype=bool)
            left = np.flatnonzero(inside)
            point[:, self.hull.free] = np.where(ends, high, low)
            inside[left] = region.contains(point[left])
        within[rows[inside]] = INSIDE
        return within

    def packed(self, within: PerRow, planes: Planes) -> CellData:
        """Cells' data as bytes."""
        flat = np.concatenate([within[:, None], planes.reshape(len(planes), -1)], axis=1)
        return np.ascontiguousarray(flat).view(np.uint8)

    def unpacked(self, low: Rows, high: Rows, data: CellData) -> CutCells:
        """Cells and their data."""
        flat = np.ascontiguousarray(data).view(np.float64)
        within = np.full(len(low), INSIDE) if self.plain else flat[:, 0].copy()
        return CutCells(low, high, flat[:, 1:].reshape(len(low), *self.shape).copy(), within)

    def cut_cells(self, cells: PartitionCells) -> CutCells:
        """The cells of a result."""
        return self.unpacked(cells.low, cells.high, cells.data)


class _Group:
    """The conditions of one model, whose enclosures they share."""

    def __init__(self, work: _CellWork, numbers: list[int]) -> None:
        problem = work.problem
        self.numbers, self.conditions = numbers, [problem.conditions[c] for c in numbers]
        self.classes, self.backend = problem.classes, problem.backend
        model, goals = self.conditions[0].model, []
        for each in self.conditions:
            goals += [each.above] if self.classes else [each.above, each.below]
        self.evaluator = RegionEvaluator(model, work.hull, goals, problem.backend)
        self.portfolio = Portfolio()
        mapped = any(member.features is not None for member in model.members)
        self.planes = problem.planes and not mapped

    def left(self, cells: CutCells, classes: bool) -> PerRow:
        """(n,) whether some condition of the group is open in a cell."""
        whole = cells.whole[:, self.numbers]
        return np.any(~whole[:, :, HOLDS] & ~(whole[:, :, FAILS] & (not classes)), axis=1)

    def bounded(self, cells: CutCells) -> tuple[Planes, Rows]:
        """Planes (n, m, 2, f + 1) of the cells, those of the group's conditions better than before,
        and what halving each axis would gain (n, f)."""
        planes, scores = cells.planes, np.zeros_like(cells.low)
        evaluation = self.evaluator.evaluation(
            np.zeros(len(cells)), cells.low, cells.high, True, self.portfolio
        )
        with running_on(self.evaluator.backend):
            for c, each in zip(self.numbers, self.conditions, strict=True):
                goals = (each.above,) if self.classes else (each.above, each.below)
                for side, (goal, level) in enumerate(zip(goals, each.levels(), strict=False)):
                    place = side if each.at_least else 1 - side
                    new, gains = self._plane(evaluation, goal, level, f"whole {c} {side}")
                    planes[:, c, place] = _better(planes[:, c, place], new, cells)
                    scores += gains
        self.portfolio = evaluation.portfolio
        return planes, scores

    def _plane(
        self, evaluation: Evaluation, goal: Goal, level: float, name: str
    ) -> tuple[np.ndarray, np.ndarray]:
        """A half-space (n, f + 1) of each cell where `goal > level`, and what halving gains.

        Where there are affine functions, the bound over cells as wholes rests (`Portfolio`) while
        it settles hardly any cell that they do not: both hold, so any choice is valid.
        """
        n, f = len(evaluation.cells), evaluation.cells.lower.shape[1]
        plane, cut = nowhere(n, 1, f)[:, 0, 0], self.planes and has_affine(goal.quantity)
        lower, scores = None, None
        if not cut or evaluation.wants(name):
            bound = bound_of(goal, evaluation, level)
            lower, scores = bound.lower, to_numpy(bound.scores)
        if cut:
            assert isinstance(goal.quantity, OutputQuantity), "known to have affine functions"
            if scores is None:
                owner, _ = evaluation.output(goal.quantity.output)
                scores = to_numpy(owner.expansion.geometry.split_scores())
            line = least_affine(evaluation, goal.quantity)
            nothing = namespace(line.value).full_like(line.value, -math.inf)
            line = line.or_constant(nothing if lower is None else lower)
            offset = to_numpy(through_origin(line, evaluation.cells.center))
            plane[:, :-1], plane[:, -1] = to_numpy(line.slope), down(offset - level, 1)
        if lower is not None:
            sure = to_numpy(lower) > level
            if cut:
                ends = to_numpy(evaluation.cells.lower), to_numpy(evaluation.cells.upper)
                pair = np.stack([plane, plane], axis=1)[:, None]
                more = sure & ~(least_over(pair, *ends)[:, 0, 0] > 0)
                evaluation.report(name, bool(more.sum() > SELDOM * n))
            plane[sure] = everywhere(f)
        if np.isnan(plane).any():
            raise SoundnessError("an affine bound is NaN; please report this model")
        plane[plane[:, -1] == -math.inf, :-1] = 0.0
        assert scores is not None, "known where a bound is"
        return plane, scores


def _better(old: np.ndarray, new: np.ndarray, cells: CutCells) -> np.ndarray:
    """Of two half-spaces (n, f + 1) of each cell the one that is larger about its middle; both
    hold, so that any choice is valid."""
    middle = 0.5 * cells.low + 0.5 * cells.high

    def height(plane: np.ndarray) -> np.ndarray:
        size = np.sqrt(np.sum((plane[:, :-1] * (cells.high - cells.low)) ** 2, axis=1))
        value = np.sum(plane[:, :-1] * middle, axis=1) + plane[:, -1]
        return np.where(size > 0, value / np.where(size > 0, size, 1.0), np.sign(value) * math.inf)

    with np.errstate(all="ignore"):
        keep = height(old) > height(new)
    return np.where(keep[:, None], old, new)


def convex(region: Region) -> bool:
    """Whether cells can be proved to lie inside a region by their corners."""
    return isinstance(region, Box | Ball | Polytope)
