"""Boxes of a batch problem bounded in batches, and goals evaluated at points: what changes the
state of a search.

Proofs: docs/mathematics.md, statement 14.1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import numpy as np

from gpcert.enclosures import Evaluation, Portfolio
from gpcert.errors import SoundnessError
from gpcert.numerics.arrays import Index, Rows, running_on, to_numpy
from gpcert.search.problem import Resolution, bound_of
from gpcert.search.questions import BatchProblem
from gpcert.search.region_evaluator import Part
from gpcert.search.state import (
    Boxes,
    Frontier,
    QuestionsAndGoals,
    State,
    least_of_each,
    split_order,
)
from gpcert.utils.processes import checkpoint

Places = list[tuple[np.ndarray, np.ndarray]]
"""Questions (n,) and points of them (n, f), goal by goal."""


FEW_VALUES = 16
"""Of the values at the centres of one question's boxes so many are certified."""


class Bounding:
    """`state` is all that is known so far; every step puts a whole new record in its place."""

    def __init__(self, problem: BatchProblem, state: State) -> None:
        self.problem, self.state = problem, state
        self.questions, self.evaluator = problem.questions, problem.evaluator

    def first_points(self) -> None:
        """Values at a point of every question: an interrupt from here on finds at least one."""
        first, goals = self.problem.first_points, range(len(self.problem.goals))
        if first is None:
            return
        _, chosen, group = np.unique(first.group, return_index=True, return_inverse=True)
        if len(chosen) < len(group):
            inside = self.questions.contains(np.arange(len(group)), first.points)
            if not inside.all():
                raise SoundnessError("expected a point that questions share; please report this")
        self.offer(chosen, first.points[chosen], goals)
        self.state = replace(self.state, incumbents=self.state.incumbents.take(chosen[group]))

    def bound(
        self,
        index: Index,
        parts: Boxes,
        needed: QuestionsAndGoals,
        goals: Sequence[int],
        optional: bool = True,
        every: bool = False,
    ) -> Annotated[np.ndarray, "kept"]:
        """Bound the parts of the boxes `index`, put them in their place, and evaluate the goals at
        centres and where they may be small: of `every` question, or of those that stay open.

        Bounds are no worse than the inherited ones. Returns which parts are not outside.
        """
        evaluation = self._enclosed(parts, optional)
        inside, boxes, outside = np.arange(len(parts)), parts, None
        cells, empty = evaluation.cells.contract()
        empty = to_numpy(empty)
        if cells is not evaluation.cells:  # what is left of them in the region
            boxes = replace(parts, low=to_numpy(cells.lower), high=to_numpy(cells.upper))
        if empty.any():  # proved to lie outside the region
            inside, outside = np.flatnonzero(~empty), parts.take(empty)
            boxes = boxes.take(inside)
        if boxes is not parts and len(inside) and self.problem.slices is None:
            evaluation = self._enclosed(boxes, optional)
        places: Places = []
        portfolio = evaluation.portfolio
        if len(inside):
            with running_on(self.evaluator.backend):
                order, boxes, places, portfolio = self._parts(
                    evaluation, boxes, needed, goals, (optional, every)
                )
            inside = inside[order]
        if self.problem.record:  # leaves are halves of halves
            boxes = replace(boxes, low=parts.low[inside], high=parts.high[inside])
        state = self.state
        self.state = replace(
            state,
            frontier=state.frontier.replacing(index, boxes, outside),
            portfolio=portfolio,
            boxes=state.boxes + len(parts),
        )
        if places:
            question, points = map(np.concatenate, zip(*places, strict=True))
            self.offer(question, points, goals)
        return inside

    def _enclosed(self, boxes: Boxes, optional: bool) -> Evaluation:
        ends, portfolio = (boxes.low, boxes.high), self.state.portfolio
        return self.evaluator.evaluation(boxes.question, *ends, optional, portfolio)

    def _parts(
        self,
        evaluation: Evaluation,
        boxes: Boxes,
        needed: QuestionsAndGoals,
        goals: Sequence[int],
        how: tuple[bool, bool],
    ) -> tuple[Index, Boxes, Places, Portfolio]:
        """`_bounds` of all boxes, by their evaluation or part by part (`SliceEvaluator`), and
        values at their centres; in which order they come back, and what was learnt."""
        slices, (optional, every) = self.problem.slices, how
        parts, portfolio = [Part(np.arange(len(boxes)), evaluation)], evaluation.portfolio
        if slices is not None:
            parts = slices.parts(boxes, optional, portfolio)
        bounded, places = [], []
        for part in parts:
            some = boxes.take(part.rows)
            if part.evaluation is not None:
                some, near = self._bounds(part, some, needed, goals, every)
                places += near
            else:
                assert slices is not None
                axes = np.repeat(slices.axes(some)[:, None], some.axes.shape[1], axis=1)
                some = replace(some, axes=axes.astype(some.axes.dtype))
            if part.evaluation is not None and (part.columns is not None or slices is None):
                portfolio = part.evaluation.portfolio
            bounded.append(some)
        order = np.concatenate([part.rows for part in parts])
        return order, Boxes.concatenate(bounded), places, portfolio

    def _bounds(
        self,
        part: Part,
        boxes: Boxes,
        needed: QuestionsAndGoals,
        goals: Sequence[int],
        every: bool,
    ) -> tuple[Boxes, Places]:
        """The boxes with the better bounds, and where the goals may be small; values at centres."""
        evaluation = part.evaluation
        assert evaluation is not None, "of boxes that are enclosed"
        lower, axes, places = boxes.lower.copy(), boxes.axes.copy(), []
        center = part.wide(to_numpy(evaluation.cells.center), boxes.low)
        none, target = np.zeros_like(center), self.problem.stop.target
        refined = not self.evaluator.backend.gpu  # sub-boxes take steps, which a GPU is slow at
        for g in goals:
            evaluation.enough = self._enough(g, boxes.question, needed) if refined else None
            bound = bound_of(self.problem.goals[g], evaluation, target)
            lower[:, g] = np.maximum(lower[:, g], to_numpy(bound.lower))
            if boxes.low.shape[1]:
                axes[:, g] = split_order(part.wide(to_numpy(bound.scores), none))
            rows = np.arange(len(boxes))
            if not every:
                rows = np.flatnonzero(lower[:, g] < needed[boxes.question, g])
            if len(rows):
                best = rows[least_of_each(boxes.question[rows], lower[rows, g])]
                point = part.wide(to_numpy(bound.point), none)
                places.append((boxes.question[best], center[best] + point[best]))
        self._take(evaluation, boxes.question, center, goals)
        return replace(boxes, lower=lower, axes=axes), places

    def _enough(self, g: int, question: Index, needed: QuestionsAndGoals) -> float | None:
        """A bound that settles every box of a batch for goal g, and a little more: bounds are
        rounded. None where questions differ."""
        first = int(question[0])
        if np.any(question != first):
            return None
        value, settled = self.state.incumbents.values[first, g], needed[first, g]
        with np.errstate(invalid="ignore"):
            enough = float(settled + 1e-6 * (value - settled))
        return enough if math.isfinite(enough) else None

    def offer(self, question: Index, points: Rows, goals: Sequence[int]) -> None:
        """Evaluate goals at points (n, f), drawn into their questions."""
        points, size = self.questions.project(question, points), self.evaluator.batch_size
        for k in range(0, len(points), size):
            q, x = question[k : k + size], points[k : k + size]
            evaluation = self.evaluator.evaluation(q, x, None, False)
            with running_on(self.evaluator.backend):
                self._take(evaluation, q, x, goals)

    def _take(
        self, evaluation: Evaluation, question: Index, points: Rows, goals: Sequence[int]
    ) -> None:
        """Keep the smallest values at those of the evaluated points that are inside."""
        inside = self.questions.contains(question, points)
        alone = inside.all() and not np.any(question != question[0])
        evaluation.few = FEW_VALUES if alone else None
        for g in goals if inside.any() else ():
            checkpoint()
            values = to_numpy(self.problem.goals[g].ceiling(evaluation))
            values = np.where(inside, values, np.inf)
            better = self.state.incumbents.improved(g, question, values, points)
            self.state = replace(self.state, incumbents=better)

    def polish(self, g: int, question: Index, extra: Rows | None = None) -> None:
        """Search locally from the best points known of some questions, and from `extra` ones."""
        search = self.problem.local_search
        if search is None or len(question) == 0:
            return
        starts, ends = self.state.incumbents.points[question, g], self.questions
        middle = 0.5 * ends.low[question] + 0.5 * ends.high[question]
        starts = np.where(np.isnan(starts), middle, starts)  # no finite value is known
        if extra is not None and len(extra):
            starts = np.concatenate([starts, np.tile(extra, (len(question), 1))])
            question = np.concatenate([question, np.repeat(question, len(extra))])
        self.offer(question, search.improved(g, question, starts), [g])

    def floors(
        self, frontier: Frontier, open_: Annotated[np.ndarray, "n G"]
    ) -> tuple[QuestionsAndGoals, QuestionsAndGoals]:
        """(Q, G) each: the least bounds of small boxes, and of points, about the best known point
        and the middle of the worst open box of every question and goal; infinite for others.

        `open_` (n, G) says for which goals the frontier's boxes are open.
        """
        boxes, known = frontier.boxes, self.state.incumbents
        both = np.full((2, *known.values.shape), np.inf)
        goals = np.flatnonzero(open_.any(axis=0)).tolist()
        if not goals:
            return both[0], both[1]
        worst = [_worst(boxes, g, open_[:, g]) for g in goals]
        goal = np.repeat(goals, [len(rows) for rows in worst])
        asked = boxes.take(np.concatenate(worst))
        best = known.points[asked.question, goal]
        points = np.concatenate([np.where(np.isnan(best), asked.middle, best), asked.middle])
        question = np.tile(asked.question, 2)
        widths = np.tile(asked.high - asked.low, (2, 1))
        inside = np.flatnonzero(self.questions.contains(question, points))
        size = max(1, self.evaluator.batch_size // 2)
        for k in range(0, len(inside), size):
            rows = inside[k : k + size]
            q = question[rows]
            ends = self.questions.low[q], self.questions.high[q]
            corners = Resolution.around(points[rows], widths[rows], *ends)
            evaluation = self.evaluator.evaluation(np.tile(q, 2), *corners)
            with running_on(self.evaluator.backend):
                for g in goals:
                    bound = bound_of(self.problem.goals[g], evaluation, self.problem.stop.target)
                    parts = np.reshape(to_numpy(bound.lower), (2, -1))
                    for floor, part in zip(both[:, :, g], parts, strict=True):
                        np.minimum.at(floor, q, part)
        return both[0], both[1]


def _worst(boxes: Boxes, g: int, mask: np.ndarray) -> Index:
    """Of the boxes under a mask that with the least bound of goal g, for every question."""
    rows = np.flatnonzero(mask)
    return rows[least_of_each(boxes.question[rows], boxes.lower[rows, g])]
