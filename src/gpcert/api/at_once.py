"""What one box answers of many points, in shared batches; the others have a search of their own.

Most points of a test set are answered by their first box. Bounded together these cost a fraction of
as many calls, and the answers are the same: the same rule, region, proof of the decision at x, and
the same kinds of bounds.

Proofs: docs/mathematics.md, statements 14.1, 14.3 and 14.4.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from gpcert.api.certify import certificate_of
from gpcert.api.decisions import Candidates, Method, Rule, margin_of
from gpcert.api.questions import range_question
from gpcert.api.ranges import RangeGoals
from gpcert.api.rules import RuleOptions, common_candidates, deviation_rule
from gpcert.api.words import Means
from gpcert.certificates import Certificate, PredictionRange
from gpcert.committee import Committee, Model
from gpcert.deadline import OutOfTime, until
from gpcert.enclosures.goals import Goal, QuantityGoal, deviations_at
from gpcert.errors import InputError
from gpcert.quantities.compound import Deviation, deviations, means_of
from gpcert.regions import Box, Region
from gpcert.rounding import difference_down
from gpcert.search import GoalResult, SearchResult, StopReason
from gpcert.search.box_family import BoxFamily, OneBox, balls_of, hull_of, one_box_each
from gpcert.search.branch_and_bound import FIRST_BOX_SECONDS

POINTS_AT_ONCE = 256
"""Points of one piece of work: what Ctrl-C may lose, and one process's share."""

SHARE = 0.25
"""Part of all points' seconds that a shared batch may take: what it leaves has its own again."""


class Hint(NamedTuple):
    """No answer, but something that the search for it begins with."""

    value: Any


def certified_at_once(posterior: Model, work: Sequence[tuple[Any, ...]]) -> dict[int, Certificate]:
    """The certificates, by number, of the points that one box decides.

    `work` are the further arguments of `certify_region`, with the same options and means.
    """
    start = time.perf_counter()
    _, _, options, means = work[0]
    X, regions = np.stack([x for x, *_ in work]), [region for _, region, *_ in work]
    each = common_candidates(posterior, X, options)
    if options.method.name != "taylor":
        return {}
    found: dict[int, Certificate] = {}
    try:
        with until(end_of(start, means, len(work))):
            for rows in by_guess(each or ()):
                found |= _decided(rows, each or (), regions, means)
            if each is None:
                found = _undeviating(posterior, X, regions, options, means)
    except OutOfTime:
        pass  # what is not answered has a search of its own
    seconds = (time.perf_counter() - start) / len(work)
    return {k: replace(found[k], seconds=seconds) for k in sorted(found)}


def ranged_at_once(
    posterior: Model, work: Sequence[tuple[Any, ...]]
) -> dict[int, tuple[PredictionRange, ...]]:
    """The ranges, by number, of the regions that one box bounds to within the tolerance.

    `work` are a region and the words of `prediction_range` (with `output` and `sides`) or
    of `prediction_ranges`; the words are the same.
    """
    start = time.perf_counter()
    _, words = work[0]
    regions = [region for region, _ in work]
    question = range_question(posterior, words["quantity"], words["beta"])
    asked = (
        RangeGoals.of_one(question, words["output"], words["sides"])
        if "sides" in words
        else RangeGoals.of_all(question)
    )
    means, method, tol = Means.read(words), Method.read(words), words["tol"]
    goals = method.goals(asked.quantities, means.random_state, question.model)
    family = family_of(question.model, goals, regions, means)
    if family is None or method.name != "taylor":
        return {}

    def converged(_: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        return np.all(upper - lower <= tol, axis=1)

    try:
        with until(end_of(start, means, len(work))):
            box = one_box_each(family, regions, None, converged)
    except OutOfTime:
        return {}
    done = np.flatnonzero(converged(np.empty(0), box.lower, box.upper))
    nominal = asked.nominal(regions)
    seconds = (time.perf_counter() - start) / len(work)
    found = _results(box)
    return {
        int(k): asked.records(
            SearchResult(found[k], StopReason.CONVERGED, 1, seconds),
            regions[k],
            method,
            [values[k] for values in nominal],
        )
        for k in done
    }


def end_of(start: float, means: Means, points: int) -> float:
    """A part of the points' budgets, or the time that a first box has anyway."""
    seconds = means.budget.ends(0.0)
    return start + max(SHARE * points * seconds, FIRST_BOX_SECONDS)


def family_of(
    model: Model, goals: Sequence[Goal], regions: Sequence[Region], means: Means
) -> BoxFamily | None:
    """The regions' common coordinates, where the goals are bounded as a search would.

    None where they share none, or where the box around them is refused: a growing kernel may leave
    float64 between regions in which it does not.
    """
    hull, (balls, alike) = hull_of(regions), balls_of(regions)
    if not all(map(_plain, goals)) or hull is None or not alike:
        return None
    family = BoxFamily(model, tuple(goals), hull, means.backend, balls=balls)
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


def decided_boxes(rule: Rule, places: Sequence[Region], means: Means) -> OneBox | None:
    """One box each, tried until the rule's goal is on one side of its level; None where the places
    share no coordinates."""
    goals = rule.method.goals([rule.quantity], means.random_state, rule.model)
    family = family_of(rule.model, goals, places, means)

    def answered(_: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        return (lower[:, 0] > rule.target) | (upper[:, 0] < rule.target)

    return None if family is None else one_box_each(family, places, rule.target, answered)


def _plain(goal: Goal) -> bool:
    """Whether a goal is bounded by Taylor enclosures alone."""
    return isinstance(goal, QuantityGoal) and goal.paper is None


def _decided(
    rows: Sequence[int], each: Sequence[Candidates], regions: Sequence[Region], means: Means
) -> dict[int, Certificate]:
    """Of the points `rows`, whose likeliest decision is the same, those that one box decides."""
    places, rule = [regions[k] for k in rows], each[rows[0]].guess
    box = decided_boxes(rule, places, means)
    if box is None:
        return {}
    goal = [result[0] for result in _results(box)]
    margins = [margin_of(one.lower, one.upper, rule.level) for one in goal]
    refuted = [k for k, margin in enumerate(margins) if margin.upper < 0]
    sure = proved_at_x([each[rows[k]] for k in refuted], means)
    chosen = [k for k, margin in enumerate(margins) if margin.lower > 0]
    chosen += [k for k, proved in zip(refuted, sure, strict=True) if proved]
    X = np.stack([each[k].guess.x for k in rows])
    plain = rule.goal.plain_values(rule.model, X)
    return {
        rows[k]: certificate_of(
            places[k], each[rows[k]].guess, goal[k], StopReason.DECIDED, (1, 0.0), plain[k]
        )
        for k in chosen
    }


def _undeviating(
    model: Model, X: np.ndarray, regions: Sequence[Region], options: RuleOptions, means: Means
) -> dict[int, Certificate]:
    """Of the points X, those of which one box says how far the means are from those at x.

    Reason: the deviation's bounds from ranges of the means (Statement 7.5); at a point where one
    mean is small or large it is at least that mean's own.
    """
    assert not isinstance(model, Committee), "committees decide between classes"
    goals = options.method.goals(means_of(model.outputs), means.random_state, model)
    family = family_of(model, goals, regions, means)
    if family is None:
        return {}
    asked: list[Deviation] = []
    for start in range(0, len(X), family.cells_at_once):
        x = X[start : start + family.cells_at_once, family.whole.free]
        evaluation = family.evaluation(np.empty(0), x, x, optional=False)
        asked += deviations_at(evaluation, model, options.output_norm)
    rules = [deviation_rule(model, x, own, options) for x, own in zip(X, asked, strict=True)]

    def answered(rows: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
        low, high, _ = deviations([asked[k] for k in rows], lower, upper)
        return (low > rules[0].target) | (high < rules[0].target)

    box = one_box_each(family, regions, None, answered)
    low, high, which = deviations(asked, box.lower, box.upper)
    found = {}
    for k, rule in enumerate(rules):
        result = GoalResult(float(low[k]), float(high[k]), box.points[k, which[k]])
        margin = margin_of(result.lower, result.upper, rule.level)
        if margin.lower > 0 or margin.upper < 0:
            plain = rule.goal.plain_values(model, X[k : k + 1])[0]
            reason = StopReason.DECIDED
            found[k] = certificate_of(regions[k], rule, result, reason, (1, 0.0), plain)
    return found


def proved_at_x(candidates: Sequence[Candidates], means: Means) -> np.ndarray:
    """(n,) whether the guess, the same at all x, is what is decided there: its margin is proved to
    be positive on cells of width 0."""
    if not candidates:
        return np.zeros(0, dtype=bool)
    rule = candidates[0].guess
    X = np.stack([each.guess.x for each in candidates])
    whole = Box(X.min(axis=0), X.max(axis=0))
    family = family_of(rule.model, [rule.goal], [whole], means)
    if family is None:
        return np.zeros(len(X), dtype=bool)
    values = family.floors(X[:, whole.free], rule.target)
    return np.array([difference_down(float(value), rule.level) > 0 for value in values])


def _results(box: OneBox) -> list[tuple[GoalResult, ...]]:
    """Of all goals, region by region."""
    rows = zip(box.lower.tolist(), box.upper.tolist(), box.points, strict=True)
    return [
        tuple(GoalResult(*each) for each in zip(low, high, list(points), strict=True))
        for low, high, points in rows
    ]
