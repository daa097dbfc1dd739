"""Proved ranges over the one-sided intervals `[x, x + r e_j]` and `[x - r e_j, x]`.

For squared exponentials all intervals of all points share batches (`gpcert.search.shared`); any
other kernel or method is asked interval by interval through `gpcert.prediction_ranges`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import joblib
import numpy as np

from gpcert.api import prediction_ranges
from gpcert.api.methods import MethodName
from gpcert.api.questions import RangeQuestion
from gpcert.arrays import Backend
from gpcert.committee import Model
from gpcert.enclosures.lines import LineModel, has_lines
from gpcert.enclosures.portfolio import Portfolio
from gpcert.regions import Ball
from gpcert.rounding import down, up
from gpcert.search import Budget, StopReason
from gpcert.search.shared import SharedProblem, SharedResult, solve_shared

__all__ = ["Effort", "Intervals", "Sides", "one_sided_ranges"]

NUMBERS_AT_ONCE = 400_000
"""Lines times points of one chunk: its arrays stay in the caches, and are given to one thread."""

SHORTEST_TIME = 1e-3
"""Seconds that a chunk gets when the time is up: its bounds are then wide, but valid."""


@dataclass(frozen=True)
class Effort:
    """How hard to try: tolerance of every end (one per output), budget, backend, jobs, seed."""

    tol: np.ndarray
    budget: Budget
    backend: Backend
    n_jobs: int
    random_state: int | None
    method: MethodName = "taylor"


@dataclass(frozen=True, eq=False)
class Intervals:
    """Points X (P, d), the features (F,) that move by `radius` (F,), inside a domain."""

    X: np.ndarray
    features: np.ndarray
    radius: np.ndarray
    domain: tuple[np.ndarray, np.ndarray] | None

    def lengths(self) -> tuple[np.ndarray, np.ndarray]:
        """(P, F, 2) each, upwards and downwards: outer and inner bounds of the real lengths.

        They are the radius itself but where the domain ends first: that difference is rounded.
        """
        free = np.broadcast_to(self.radius, (len(self.X), len(self.features)))
        outer = np.stack([free, free], axis=-1)
        inner = outer.copy()
        if self.domain is not None:
            x = self.X[:, self.features]
            for side, room in enumerate(
                (self.domain[1][self.features] - x, x - self.domain[0][self.features])
            ):
                cut = room < free
                more = np.where(room > 0, up(room, 1), 0.0)
                less = np.maximum(np.where(room > 0, down(room, 1), 0.0), 0.0)
                outer[..., side] = np.where(cut, np.minimum(more, free), free)
                inner[..., side] = np.where(cut, less, free)
        return outer, inner


@dataclass(frozen=True, eq=False)
class Sides:
    """Bounds of minimum and maximum, each (P, F, 2, C) for the sides (up, down) and outputs."""

    minimum_lower: np.ndarray
    minimum_upper: np.ndarray
    maximum_lower: np.ndarray
    maximum_upper: np.ndarray
    reason: StopReason
    boxes: int
    seconds: float


def one_sided_ranges(
    question: RangeQuestion, model: Model, intervals: Intervals, effort: Effort
) -> Sides:
    """The ranges of every output on both sides of every feature and point."""
    start = time.perf_counter()
    shape = (len(intervals.X), len(intervals.features), 2, len(question.labels))
    if effort.method == "taylor" and has_lines(question.model):
        lower, upper, reasons, boxes = _by_lines(question, intervals, effort)
    else:
        lower, upper, reasons, boxes = _by_regions(question, model, intervals, effort)
    # goals come in pairs: each output, and its negative
    lower, upper = (np.reshape(part, (*shape, 2)) for part in (lower, upper))
    reason = next((r for r in reasons if r is not StopReason.CONVERGED), StopReason.CONVERGED)
    return Sides(
        lower[..., 0],
        upper[..., 0],
        -upper[..., 1],
        -lower[..., 1],
        reason,
        boxes,
        time.perf_counter() - start,
    )


Found = tuple[np.ndarray, np.ndarray, list[StopReason], int]


def _by_lines(question: RangeQuestion, intervals: Intervals, effort: Effort) -> Found:
    outputs = range(len(question.labels))
    goals = [question.goal(c, sign) for c in outputs for sign in (1, -1)]
    variance = any(goal.needs_variance for goal in goals)
    parts = LineModel.parts_of(question.model, effort.backend, variance)
    P, F = len(intervals.X), len(intervals.features)
    rows = np.repeat(np.arange(P), 2 * F)
    features = np.tile(np.repeat(intervals.features, 2), P)
    outer, inner = (np.reshape(part, (-1, 1)) for part in intervals.lengths())
    upward = np.tile([True, False], P * F)[:, None]
    ends = [np.where(upward, 0.0, -outer), np.where(upward, outer, 0.0)]
    ends += [np.where(upward, 0.0, -inner), np.where(upward, inner, 0.0)]
    deadline = _deadline(effort.budget)

    def solved(chunk: slice) -> SharedResult:
        own = tuple(replace(part, portfolio=Portfolio()) for part in parts)
        lines = (rows[chunk], features[chunk])
        extent = outer[chunk, 0]
        family = LineModel.on(own, question.model, intervals.X, lines, extent, effort.backend)
        return solve_shared(
            SharedProblem(
                family,
                goals,
                *(end[chunk] for end in ends),
                tol=np.repeat(effort.tol, 2),
                anchors=rows[chunk],
                anchor=np.zeros(1),
                budget=_left(effort.budget, deadline),
            )
        )

    chunks = list(_chunks(len(rows), question.model))
    # threads: the work is in products and long arrays, which let go of the interpreter
    run: Any = joblib.Parallel(n_jobs=effort.n_jobs, prefer="threads")
    found = run(joblib.delayed(solved)(chunk) for chunk in chunks)
    return (
        np.concatenate([result.lower for result in found]),
        np.concatenate([result.upper for result in found]),
        [result.reason for result in found],
        sum(result.boxes for result in found),
    )


def _chunks(count: int, model: Model) -> Iterator[slice]:
    largest = max(len(member.points) for member in model.members)
    size = max(2, NUMBERS_AT_ONCE // largest)
    return (slice(k, min(k + size, count)) for k in range(0, count, size))


def _by_regions(
    question: RangeQuestion, model: Model, intervals: Intervals, effort: Effort
) -> Found:
    deadline = _deadline(effort.budget)

    def ask(ball: Ball) -> Any:
        return prediction_ranges(
            model,
            ball,
            tol=float(effort.tol.min()),
            quantity=question.quantity,
            budget=_left(effort.budget, deadline),
            backend=effort.backend,
            random_state=effort.random_state,
            method=effort.method,
        )

    balls = list(_balls(intervals))
    run: Any = joblib.Parallel(n_jobs=effort.n_jobs, prefer="threads")
    found = run(joblib.delayed(ask)(ball) for ball in balls)
    lower = [[(r.minimum.lower, -r.maximum.upper) for r in ranges] for ranges in found]
    upper = [[(r.minimum.upper, -r.maximum.lower) for r in ranges] for ranges in found]
    reasons = [ranges[0].reason for ranges in found]
    return np.array(lower), np.array(upper), reasons, sum(ranges[0].boxes for ranges in found)


def _balls(intervals: Intervals) -> Iterator[Ball]:
    d = intervals.X.shape[1]
    low, high = intervals.domain or (np.full(d, -np.inf), np.full(d, np.inf))
    for x in intervals.X:
        for feature, radius in zip(intervals.features, intervals.radius, strict=True):
            for side in (1, -1):
                ends = (low.copy(), high.copy())
                ends[0 if side > 0 else 1][feature] = x[feature]
                yield Ball(x, float(radius), features=[int(feature)], domain=ends)


def _deadline(budget: Budget) -> float | None:
    return None if budget.seconds is None else time.perf_counter() + budget.seconds


def _left(budget: Budget, deadline: float | None) -> Budget:
    if deadline is None:
        return budget
    return replace(budget, seconds=max(SHORTEST_TIME, deadline - time.perf_counter()))
