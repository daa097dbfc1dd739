"""What one box answers of many points, in shared batches; the others have a search of their own.

Most points of a test set are answered by their first box. Bounded together these cost a fraction of
as many calls, and the answers are the same: the same rule, region, proof of the decision at x, and
the same kinds of bounds. Radii try one box around each point in every round (`radius_search`).

Proofs: docs/mathematics.md, statements 14.1, 14.3 and 14.4.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpcert.api.certify import certificate_of, with_proof
from gpcert.api.options import SearchSettings
from gpcert.api.ranges import RangeGoals
from gpcert.api.rules import Candidates, Rule, common_candidates, deviation_rule, margin_of
from gpcert.attacks import Decision
from gpcert.certificates import Certificate, PredictionRange
from gpcert.enclosures.goals import QuantityGoal, deviations_at
from gpcert.errors import InputError
from gpcert.model.committee import Committee, Model
from gpcert.numerics.arrays import Reals, to_numpy
from gpcert.numerics.rounding import difference_down
from gpcert.quantities import Quantity
from gpcert.quantities.compound import Deviation, deviations, means_of
from gpcert.regions import Box, Region
from gpcert.search import GoalResult, SearchResult, StopReason
from gpcert.search.box_family import BoxFamily, OneBox, balls_of, hull_of, one_box_each
from gpcert.search.branch_and_bound import FIRST_BOX_SECONDS
from gpcert.search.questions import DecidedLevel, WithinTolerance
from gpcert.utils.processes import OutOfTime, until

POINTS_PER_BATCH = 256
"""Points of one piece of work: what Ctrl-C may lose, and one process's share."""

SHARE = 0.25
"""Part of all points' seconds that a shared batch may take: what it leaves has its own again."""


def certify_batched(posterior: Model, work: Sequence[tuple[Any, ...]]) -> dict[int, Certificate]:
    """The certificates, by number, of the points that one box decides.

    `work` are the further arguments of `certify_region`, with the same options and settings.
    """
    start = time.perf_counter()
    _, _, options, settings = work[0]
    X, regions = np.stack([x for x, *_ in work]), [region for _, region, *_ in work]
    candidates = common_candidates(posterior, X, options)
    if settings.method.name != "taylor":
        return {}
    certificates: dict[int, Certificate] = {}
    with in_time(start, settings, len(work)):
        for rows in by_guess(candidates or ()):
            certificates |= _decided(rows, candidates or (), regions, settings)
        if candidates is None:
            certificates = _undeviating(posterior, X, regions, options, settings)
    seconds = (time.perf_counter() - start) / len(work)
    return {k: replace(certificates[k], seconds=seconds) for k in sorted(certificates)}


def ranges_batched(
    posterior: Model, work: Sequence[tuple[Any, ...]]
) -> dict[int, tuple[PredictionRange, ...]]:
    """The ranges, by number, of the regions that one box bounds to within the tolerance.

    `work` are the further arguments of `ranges_over`: regions, and what they have in common.
    """
    start = time.perf_counter()
    _, asked, tolerance, settings = work[0]
    regions, ranges = [region for region, *_ in work], RangeGoals.of(posterior, *asked)
    family = family_of(ranges.question.model, ranges.quantities, regions, settings)
    if family is None or settings.method.name != "taylor":
        return {}

    box = None
    with in_time(start, settings, len(work)):
        box = one_box_each(family, regions, WithinTolerance(tolerance))
    if box is None:
        return {}
    done = np.flatnonzero(np.all(box.lower >= tolerance.needed(box.upper), axis=1))
    nominal = ranges.nominal(regions)
    seconds, records = (time.perf_counter() - start) / len(work), {}
    for k in map(int, done):
        goals = map(GoalResult, box.lower[k].tolist(), box.upper[k].tolist(), box.points[k])
        whole = SearchResult(tuple(goals), StopReason.CONVERGED, 1, seconds)
        centers = [values[k] for values in nominal]
        records[k] = ranges.records(whole, regions[k], settings, centers, tolerance)
    return records


@contextmanager
def in_time(start: float, settings: SearchSettings, points: int) -> Iterator[None]:
    """A part of the points' budgets, or the time that a first box has anyway, for what is inside;
    what that leaves unanswered has a search of its own."""
    seconds = max(SHARE * points * settings.budget.ends(0.0), FIRST_BOX_SECONDS)
    with suppress(OutOfTime), until(start + seconds):
        yield


def family_of(
    model: Model,
    quantities: Sequence[Quantity],
    regions: Sequence[Region],
    settings: SearchSettings,
) -> BoxFamily | None:
    """The regions' common coordinates, where the goals are bounded as a search would.

    None where they share none, or where the box around them is refused: a growing kernel may leave
    float64 between regions in which it does not.
    """
    if not all(region.is_box_or_ball for region in regions):
        return None
    hull, (balls, alike) = hull_of(regions), balls_of(regions)
    goals = settings.method.goals(quantities, settings.random_state, model)
    plain = all(isinstance(goal, QuantityGoal) and goal.paper is None for goal in goals)
    if not plain or hull is None or not alike:
        return None
    family = BoxFamily(model, tuple(goals), hull, settings.backend, balls=balls)
    try:
        _ = family.local
    except InputError:
        return None
    return family


def by_guess(each: Sequence[Candidates]) -> list[list[int]]:
    """Rows whose likeliest decision is the same."""
    sides: dict[int, list[int]] = defaultdict(list)
    for k, candidates in enumerate(each):
        sides[candidates.order[0]].append(k)
    return list(sides.values())


def decided_boxes(rule: Rule, places: Sequence[Region], settings: SearchSettings) -> OneBox | None:
    """One box each, tried until the rule's goal is on one side of its level; None where the places
    share no coordinates."""
    family = family_of(rule.model, [rule.quantity], places, settings)
    return None if family is None else one_box_each(family, places, DecidedLevel(rule.target))


def _decided(
    rows: Sequence[int],
    candidates: Sequence[Candidates],
    regions: Sequence[Region],
    settings: SearchSettings,
) -> dict[int, Certificate]:
    """Of the points `rows`, whose likeliest decision is the same, those that one box decides."""
    places, rule = [regions[k] for k in rows], candidates[rows[0]].guess
    box = decided_boxes(rule, places, settings)
    if box is None:
        return {}
    ends = zip(box.lower[:, 0].tolist(), box.upper[:, 0].tolist(), strict=True)
    margins = [margin_of(low, high, rule.level) for low, high in ends]
    refuted = [k for k, margin in enumerate(margins) if margin.upper < 0]
    sure = proved_at_x([candidates[rows[k]] for k in refuted], settings)
    chosen = [k for k, margin in enumerate(margins) if margin.lower > 0]
    chosen += [k for k, proved in zip(refuted, sure, strict=True) if proved]
    plain = rule.goal.plain_values(rule.model, np.stack([candidates[k].guess.x for k in rows]))
    certificates = {}
    for k in chosen:
        guess = candidates[rows[k]].guess
        about = (places[k], guess, settings, margins[k], StopReason.DECIDED, (1, 0.0))
        certificate = certificate_of(*about, box.points[k, 0], plain[k])
        if settings.proof:
            certificate = with_proof(certificate, places[k], guess)
        certificates[rows[k]] = certificate
    return certificates


def _undeviating(
    model: Model,
    X: np.ndarray,
    regions: Sequence[Region],
    options: Decision,
    settings: SearchSettings,
) -> dict[int, Certificate]:
    """Of the points X, those of which one box says how far the means are from those at x.

    Reason: the deviation's bounds from ranges of the means (Statement 7.5); at a point where one
    mean is small or large it is at least that mean's own.
    """
    assert not isinstance(model, Committee), "committees decide between classes"
    family = family_of(model, means_of(model.outputs), regions, settings)
    if family is None:
        return {}
    asked: list[Deviation] = []
    for evaluation in family.at_points(X, optional=False):
        asked += deviations_at(evaluation, model, options.output_norm)
    rules = [deviation_rule(model, x, at_x, options) for x, at_x in zip(X, asked, strict=True)]
    box = one_box_each(family, regions, DecidedDeviations(asked, rules[0].target))
    low, high, which = deviations(asked, box.lower, box.upper)
    certificates = {}
    for k, rule in enumerate(rules):
        margin = margin_of(float(low[k]), float(high[k]), rule.level)
        if margin.lower > 0 or margin.upper < 0:
            about = (regions[k], rule, settings, margin, StopReason.DECIDED, (1, 0.0))
            certificates[k] = certificate_of(*about, box.points[k, which[k]])
    return certificates


@dataclass(frozen=True, eq=False)
class DecidedDeviations:
    """A stopping rule: the deviations from the means at x are on one side of a level. The goals are
    the means and their negatives."""

    at_x: Sequence[Deviation]
    level: float
    target = None
    reason = StopReason.DECIDED

    def needed(self, lower: Reals, upper: Reals) -> Reals:
        """All or nothing: whether a deviation is decided depends on the ranges of all means."""
        low, high, _ = deviations(self.at_x, lower, upper)
        decided = (low > self.level) | (high < self.level)
        return np.where(decided[:, None], -np.inf, np.full(lower.shape, np.inf))


def proved_at_x(candidates: Sequence[Candidates], settings: SearchSettings) -> np.ndarray:
    """(n,) whether the guess, the same at all x, is what is decided there: its margin is proved to
    be positive on cells of width 0."""
    if not candidates:
        return np.zeros(0, dtype=bool)
    rule = candidates[0].guess
    X = np.stack([each.guess.x for each in candidates])
    whole = Box(X.min(axis=0), X.max(axis=0))
    family = family_of(rule.model, [rule.quantity], [whole], settings)
    if family is None:
        return np.zeros(len(X), dtype=bool)
    values: list[float] = []
    for evaluation in family.at_points(X):
        values += to_numpy(rule.goal.bound(evaluation, rule.target).lower).tolist()
    return np.array([difference_down(value, rule.level) > 0 for value in values])
