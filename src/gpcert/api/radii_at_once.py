"""Brackets of many radii in shared batches: in every round one box around each point.

Proofs: docs/mathematics.md, statements 14.3, 14.4 and 14.5.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpcert.api.at_once import Hint, by_guess, decided_boxes, end_of, proved_at_x
from gpcert.api.decisions import Candidates, margin_of
from gpcert.api.radius import Bracket, RadiusQuestion, distance_of, radius_of
from gpcert.api.rules import common_candidates
from gpcert.certificates import Radius
from gpcert.committee import Model
from gpcert.deadline import OutOfTime, until
from gpcert.search import StopReason

MOST_ROUNDS = 60
"""Boxes around one point; brackets shrink to half in most rounds."""

MOST_FEATURES = 12
"""Beyond, a box by itself has better bounds than one of a large batch (from the Gram matrix of the
points): on whole images brackets from batches were wider, and took longer."""


def radii_at_once(posterior: Model, work: Sequence[tuple[Any, ...]]) -> dict[int, Radius | Hint]:
    """The radii, by number, of the points at which single boxes bracket it well enough, and what
    they found at others.

    `work` are points and the `RadiusQuestion`, the same for all.
    """
    start = time.perf_counter()
    question: RadiusQuestion = work[0][1]
    X = np.stack([x for x, _ in work])
    each = common_candidates(posterior, X, question.options)
    if each is None or question.options.method.name != "taylor" or X.shape[1] > MOST_FEATURES:
        return {}
    searches = []
    try:
        with until(end_of(start, question.means, len(work))):
            for rows in by_guess(each):
                sure = proved_at_x([each[k] for k in rows], question.means)
                own = [k for k, proved in zip(rows, sure, strict=True) if proved]
                if own:
                    largest = [question.largest(posterior, X[k]) for k in own]
                    searches.append(_Radii(question, [each[k] for k in own], own, largest))
                    searches[-1].run()
    except OutOfTime:
        pass  # what is not bracketed has a search of its own
    seconds = (time.perf_counter() - start) / len(work)
    found = [item for search in searches for item in search.records(seconds)]
    return dict(sorted(found, key=lambda item: item[0]))


class _Radii:
    """Brackets of points whose decision is the same, in lockstep.

    `lower` (n,) are proved radii, `upper` distances of counter-examples `points` (n, d). Between
    `dark_low` and `dark_high` lie radii that one box did not decide.
    """

    def __init__(
        self,
        question: RadiusQuestion,
        candidates: Sequence[Candidates],
        rows: Sequence[int],
        largest: Sequence[float],
    ) -> None:
        self.question, self.candidates, self.rows = question, candidates, rows
        self.largest = np.asarray(largest, dtype=float)
        n = len(rows)
        self.lower, self.upper = np.zeros(n), np.full(n, np.inf)
        self.dark_low, self.dark_high = np.full(n, np.inf), np.zeros(n)
        self.points = np.stack([each.guess.x for each in candidates])
        self.boxes = np.zeros(n, dtype=int)

    def run(self) -> None:
        """Rounds until no bracket can be improved."""
        limit = self.question.means.budget.boxes
        rounds = MOST_ROUNDS if limit is None else min(MOST_ROUNDS, limit)
        for _ in range(rounds):
            radius = self._next()
            left = np.flatnonzero(np.isfinite(radius))
            if len(left) == 0 or not self._round(left, radius[left]):
                return

    @property
    def done(self) -> np.ndarray:
        """(n,) whether a bracket is as narrow as asked for, or all of it is proved."""
        top = np.minimum(self.upper, self.largest)
        narrow = self.lower >= (1.0 - self.question.rtol) * top
        return narrow & (
            (self.lower > 0) & (np.isfinite(self.upper) | (self.lower == self.largest))
        )

    def _next(self) -> np.ndarray:
        """(n,) the radius to be tried; NaN where nothing is left to try.

        All of it first. Then the middle of the bracket; where one box says nothing of that, the
        middles of what lies below and above such radii, the wider part first.
        """
        top = np.minimum(self.upper, self.largest)
        dark = self.dark_low <= self.dark_high
        below = np.where(dark, np.minimum(self.dark_low, top), top) - self.lower
        above = np.where(dark, top - np.maximum(self.dark_high, self.lower), 0.0)
        under = self.lower + 0.5 * below
        over = np.maximum(self.dark_high, self.lower) + 0.5 * above
        chosen = np.where(above > below, over, under)
        step = 0.25 * self.question.rtol * top
        idle = np.maximum(below, above) <= step
        chosen = np.where(self.boxes == 0, self.largest, chosen)
        return np.where((self.done | idle) & (self.boxes > 0), np.nan, chosen)

    def _round(self, left: np.ndarray, radius: np.ndarray) -> bool:
        """One box each; whether the regions could share their coordinates."""
        shape = self.question.shape
        rules = [self.candidates[k].guess for k in left]
        balls = [shape.ball(rule.x, r) for rule, r in zip(rules, radius.tolist(), strict=True)]
        rule = rules[0]
        box = decided_boxes(rule, balls, self.question.means)
        if box is None:
            return False
        self.boxes[left] += 1
        for k, r, low, high, point in zip(
            left, radius, box.lower[:, 0], box.upper[:, 0], box.points[:, 0], strict=True
        ):
            margin = margin_of(float(low), float(high), rule.level)
            if margin.lower > 0:
                self.lower[k] = max(self.lower[k], r)
            elif margin.upper < 0:
                self._take(int(k), point)
            else:
                self.dark_low[k] = min(self.dark_low[k], r)
                self.dark_high[k] = max(self.dark_high[k], r)
        return True

    def _take(self, k: int, point: np.ndarray) -> None:
        distance = distance_of(self.question.shape, self.candidates[k].guess.x, point)
        if distance < self.upper[k]:
            self.upper[k], self.points[k] = distance, point

    def records(self, seconds: float) -> list[tuple[int, Radius | Hint]]:
        """Of the points that are done; brackets of those whose both ends are known."""
        found: list[tuple[int, Radius | Hint]] = []
        for k, done in enumerate(self.done):
            upper = float(self.upper[k])
            point = self.points[k].copy() if np.isfinite(upper) else None
            bracket = Bracket(float(self.lower[k]), upper, point, int(self.boxes[k]))
            rule, cost = self.candidates[k].guess, (bracket.boxes, seconds)
            if done:
                item = radius_of(rule, self.question.shape, bracket, StopReason.CONVERGED, cost)
                found.append((self.rows[k], item))
            elif point is not None and bracket.lower > 0:
                found.append((self.rows[k], Hint(bracket)))
        return found
