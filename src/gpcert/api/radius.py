"""`certified_radius`: how far one may go from x before the decision changes.

The radii around many points are searched at once: one box each in lockstep, where they share
coordinates in one batch; then, point by point, what one box cannot answer.

Proofs: docs/mathematics.md, statement 14.5.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Unpack

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.api.batched import by_guess, decided_boxes, in_time, proved_at_x
from gpcert.api.certify import certify_region, certify_rule
from gpcert.api.options import RadiusOptions, read_proof, read_x, verb
from gpcert.api.radius_question import Bracket, RadiusQuestion, distance_of, radius_of
from gpcert.api.rules import Rule, common_candidates, decision_candidates, margin_of
from gpcert.api.running import Line, progress_line
from gpcert.attacks import attack
from gpcert.certificates import Certificate, Interval, Radius, Status
from gpcert.certificates.proof_questions import radius_proof
from gpcert.model.committee import Model
from gpcert.quantities import ClassSums
from gpcert.regions import Ball, Region
from gpcert.search import Budget, StopReason, stop_if_interrupted
from gpcert.utils.processes import OutOfTime, checkpoint, remaining, until

ATTACK_STEPS, ATTACK_PART = 40, 2.0**-9
"""Most bisections of the attack's radius, and the part of it that the bracket shrinks to: without a
domain the first counter-example may be thousands of times too far."""

ATTACK_SHARE = 0.5
"""Part of the time that attacks may take before anything is proved."""

GROWTH = 4.0
"""Factor by which the radius grows while no counter-example is known."""

MAX_HALVINGS = 41
"""Searches for the radius; halving a bracket more often than this is below its rounding."""

FIRST_TRY = 0.97
"""Part of a counter-example's distance that one box is tried on first: often that is proved."""

MAX_TRIES = 60
"""One box each around a point; brackets shrink to half in most rounds."""

MAX_FEATURES = 12
"""Of shared rounds: beyond, a box by itself has better bounds than one of a large batch (from the
Gram matrix of the points); on whole images brackets from batches were wider, and took longer."""

SMALL = 1e-4
"""Margins that are less, beside those of other radii, are proved to be positive and no more: they
are not on a line with the others (classes whose lead alone is known)."""

ONE_BOX = Budget(seconds=None, boxes=1)


class Trial(NamedTuple):
    """What one box says of the ball around a point: the ends of its least margin, a point of the
    ball with the upper one where that is negative, and the boxes it took."""

    margin: Interval
    counterexample: np.ndarray | None
    boxes: int = 1


Trials = Callable[[np.ndarray, np.ndarray], Sequence[Trial] | None]
"""One box around each of some points (n,), for radii (n,); None where they cannot share a batch."""


class RadiusSearch:
    """Brackets around n points whose decision is the same, in lockstep: one point is the case
    n = 1.

    `lower` (n,) are proved radii, `upper` distances of counter-examples `points` (n, d), infinite
    where none is known. Between `dark_low` and `dark_high` lie radii that one box did not decide.
    """

    def __init__(
        self, question: RadiusQuestion, rules: Sequence[Rule], largest: Sequence[float], line: Line
    ) -> None:
        self.question, self.rules, self.line = question, rules, line
        self.start = time.perf_counter()
        self.shape, self.settings = question.shape, question.settings
        self.largest = np.asarray(largest, dtype=float)
        n = len(rules)
        self.lower, self.upper = np.zeros(n), np.full(n, np.inf)
        self.dark_low, self.dark_high = np.full(n, np.inf), np.zeros(n)
        self.points = np.stack([rule.x for rule in rules])
        self.boxes, self.tries = np.zeros(n, dtype=int), np.zeros(n, dtype=int)
        self.attacked = np.zeros(n, dtype=bool)
        """Where local search has brought the upper end near: boxes look for the lower one only."""
        function = rules[0].goal.function(rules[0].model)
        with np.errstate(all="ignore"):  # steers the radii only
            at_x = function(self.points)[0] - rules[0].target
        self.inner = np.stack([np.zeros(n), at_x], axis=1)
        """(n, 2) the last proved radius and its margin's lower end."""
        self.outer = np.full((n, 2), np.nan)
        """(n, 2) the same of the last radius that was not proved."""
        self.streak = np.zeros(n, dtype=int)
        """(n,) how often the same end moved in a row: proved radii above 0, others below."""

    @property
    def top(self) -> np.ndarray:
        """(n,) the least radius that is known to be too large, or is not asked about."""
        return np.minimum(self.upper, self.largest)

    @property
    def done(self) -> np.ndarray:
        """(n,) whether a bracket is as narrow as asked for, or all of it is proved."""
        narrow = (self.lower >= (1.0 - self.question.rtol) * self.top) & (self.lower > 0)
        return narrow & (np.isfinite(self.upper) | (self.lower == self.largest))

    def bracket(self, k: int) -> Bracket:
        """What is known of one point."""
        upper = float(self.upper[k])
        point = self.points[k].copy() if np.isfinite(upper) else None
        return Bracket(float(self.lower[k]), upper, point, int(self.boxes[k]))

    def begin(self, k: int, known: Bracket) -> None:
        """With what is known of one point already."""
        self.lower[k], self.upper[k], self.boxes[k] = known.lower, known.upper, known.boxes
        if known.counterexample is not None:
            self.points[k] = known.counterexample

    def try_boxes(self, trials: Trials, rounds: int = MAX_TRIES) -> None:
        """Rounds of one box each, until no bracket can be improved by that."""
        for _ in range(rounds):
            radius = self._next()
            left = np.flatnonzero(np.isfinite(radius))
            if len(left) == 0:
                return
            checkpoint()
            results = trials(left, radius[left])
            if results is None:
                return
            for k, r, trial in zip(left.tolist(), radius[left].tolist(), results, strict=True):
                self._put(k, r, trial)

    def _put(self, k: int, radius: float, trial: Trial) -> None:
        """What one box said of a radius."""
        proved = trial.margin.lower > 0
        self.boxes[k] += trial.boxes
        self.tries[k] += 1
        self.streak[k] = max(self.streak[k], 0) + 1 if proved else min(self.streak[k], 0) - 1
        ends = self.inner if proved else self.outer
        ends[k] = radius, trial.margin.lower
        if proved:
            self.lower[k] = max(self.lower[k], radius)
        elif trial.margin.upper < 0 and trial.counterexample is not None:
            self._take(k, trial.counterexample)
        else:
            self.dark_low[k] = min(self.dark_low[k], radius)
            self.dark_high[k] = max(self.dark_high[k], radius)

    def _take(self, k: int, point: np.ndarray) -> None:
        """Keep a counter-example if it is nearer."""
        distance = distance_of(self.shape, self.rules[k].x, point)
        if distance < self.upper[k]:
            # both at once: an interrupt never finds a distance without its point
            self.points[k] = point
            self.upper[k] = distance

    def _next(self) -> np.ndarray:
        """(n,) the radius to be tried; NaN where nothing is left to try.

        All of it first, if no counter-example is known. Then a radius below those that one box did
        not decide, or the middle of what lies above them; the wider part first.
        """
        top, dark = self.top, self.dark_low <= self.dark_high
        high = np.where(dark, np.minimum(self.dark_low, top), top)
        start = np.where(dark, np.maximum(self.dark_high, self.lower), top)
        above = np.where(self.attacked, 0.0, top - start)
        below = high - self.lower
        chosen = np.where(above > below, start + 0.5 * above, self._below(high))
        near = self.question.rtol * np.where(self.attacked, 0.5 * high, 0.25 * top)
        idle = np.maximum(below, above) <= near
        first = (self.tries == 0) & np.isinf(self.upper)
        chosen = np.where(first, self.largest, chosen)
        return np.where((self.done | idle) & ~first, np.nan, chosen)

    def _below(self, high: np.ndarray) -> np.ndarray:
        """(n,) a radius between the proved one and `high` (n,), which one box did not prove.

        Margins fall nearly linearly with the radius: just beyond where the line through the last
        two ends, so that both ends close in. Where the same end moves again and again margins are
        no lines, and the bracket is halved. Of several classes a lead is often proved close to
        where it ends, and its margin is no line.
        """
        low, (a, inner), (b, outer) = self.lower, self.inner.T, self.outer.T
        radius = 0.5 * (low + high)
        close = self.attacked & (self.tries == 0)
        with np.errstate(all="ignore"):
            line = (np.abs(self.streak) < 2) & (-np.inf < outer) & (outer < 0.0)
            line &= (-SMALL * outer < inner) & (inner < np.inf)
            end = a + (b - a) * inner / (inner - outer)
            beyond = np.maximum(end * (1.0 + 0.2 * self.question.rtol), low + 0.1 * (high - low))
        if isinstance(self.rules[0].quantity, ClassSums):
            # down from an end that is near, by gaps twice as large each time
            down = np.maximum(radius, high - 2.0 * (self.top - high))
            radius = np.where(self.attacked & (low == 0.0), down, radius)
            line &= self.attacked & (low > 0.0)
        radius = np.where(line, np.minimum(beyond, radius), radius)
        return np.where(close, FIRST_TRY * high, radius)

    def share_boxes(self, rows: np.ndarray, radius: np.ndarray) -> list[Trial] | None:
        """One box each, in one batch; None where the balls share no coordinates."""
        rule = self.rules[rows[0]]
        pairs = zip(rows.tolist(), radius.tolist(), strict=True)
        balls = [self.shape.ball(self.rules[k].x, r) for k, r in pairs]
        box = decided_boxes(rule, balls, self.settings)
        if box is None:
            return None
        ends = zip(box.lower[:, 0].tolist(), box.upper[:, 0].tolist(), strict=True)
        margins = [margin_of(low, high, rule.level) for low, high in ends]
        return [Trial(m, point) for m, point in zip(margins, box.points[:, 0], strict=True)]

    def one_box(self, rows: np.ndarray, radius: np.ndarray) -> list[Trial]:
        """One box each, as a search of its own bounds it."""
        pairs = zip(rows.tolist(), radius.tolist(), strict=True)
        return [self._tried(k, r, ONE_BOX)[0] for k, r in pairs]

    def _tried(self, k: int, radius: float, budget: Budget) -> tuple[Trial, Certificate]:
        """The rule over the ball of this radius."""
        self._show(k)
        certificate = self._certified(k, self.shape.ball(self.rules[k].x, radius), budget)
        return Trial(certificate.margin, certificate.counterexample, certificate.boxes), certificate

    def _certified(self, k: int, region: Region, budget: Budget) -> Certificate:
        """The rule made at x, over a region that need not contain x."""
        settings = replace(self.settings, budget=budget)
        certificate = certify_rule(region, self.rules[k], settings)
        stop_if_interrupted(certificate.reason)
        return certificate

    def _show(self, k: int) -> None:
        cost = f"{self.boxes[k]} boxes, {time.perf_counter() - self.start:.1f} s"
        ends = f"radius between {self.lower[k]:.5g} and {self.upper[k]:.5g}"
        self.line.show(f"{ends}, {cost}")

    def attack(self, k: int) -> None:
        """Shrink the radius at which plain local search still finds another decision.

        It may take half of the time that is left; the rest is for proofs. Values are plain until
        the end: the nearest point found whose decision is proved to differ counts.
        """
        suspects: list[np.ndarray] = []
        try:
            with until(time.perf_counter() + ATTACK_SHARE * remaining()):
                self._close_in(k, suspects)
        except OutOfTime:
            checkpoint()  # the half, or all of it?
        for point in reversed(suspects):
            near = distance_of(self.shape, self.rules[k].x, point) >= self.upper[k]
            if near or self._confirmed(k, point):
                break
        self.attacked[k] = True

    def _close_in(self, k: int, suspects: list[np.ndarray]) -> None:
        """Add points with another decision, about, each nearer to x than the last."""
        x, largest = self.rules[k].x, float(self.largest[k])
        places = self.question.places
        scale = float(np.abs(places - x).max(initial=0.0)) or 1.0
        # a huge ball can hide a near counter-example from local search: look closer in
        for radius in (largest, *(scale * GROWTH ** -np.arange(6.0))):
            point = self._attacked(k, min(radius, largest))
            if point is not None:
                break
        else:
            return
        self._confirmed(k, point)  # whatever ends the attack, an upper end is known
        low = 0.0
        for _ in range(ATTACK_STEPS):
            suspects.append(point)
            distance = distance_of(self.shape, x, point)
            if low >= (1.0 - ATTACK_PART) * distance:
                break
            middle = 0.5 * (low + distance)
            closer = self._attacked(k, middle)
            low, point = (middle, point) if closer is None else (low, closer)

    def _attacked(self, k: int, radius: float) -> np.ndarray | None:
        """A point of the ball with another decision, if local search finds one; not proved."""
        self._show(k)
        rule, seed = self.rules[k], self.settings.random_state
        function, ball = rule.goal.function(rule.model), self.shape.ball(rule.x, radius)
        point = attack(function, ball, starts=2, random_state=seed, enough=rule.target)
        return point if function(point[None])[0][0] < rule.target else None

    def _confirmed(self, k: int, point: np.ndarray) -> bool:
        """Whether the decision at the point is proved to be another; it is then put away."""
        certificate = self._certified(k, Ball(point, 0.0), ONE_BOX)
        self.boxes[k] += certificate.boxes
        if certificate.margin.upper < 0:
            self._take(k, point)
        return certificate.margin.upper < 0

    def prove(self, k: int) -> StopReason:
        """Bisect on proved radii by searches with what time is left; why that ended."""
        budget = self.settings.budget
        for _ in range(MAX_HALVINGS):
            top = float(self.top[k])
            if self.lower[k] >= (1.0 - self.question.rtol) * top:
                if np.isinf(self.upper[k]) and self.lower[k] < self.largest[k]:
                    checkpoint()  # the largest radius itself
                    trial, _ = self._tried(k, top, replace(budget, seconds=None))
                    self._put(k, top, trial)
                return StopReason.CONVERGED
            # nearer to the proved end first: such steps are the likely ones
            radius = float(self.lower[k]) + (top - float(self.lower[k])) * 0.5
            checkpoint()
            share = None if budget.seconds is None else max(remaining() * 0.5, 1e-3)
            trial, certificate = self._tried(k, radius, replace(budget, seconds=share))
            self._put(k, radius, trial)
            if certificate.status is Status.UNKNOWN:
                return certificate.reason
        return StopReason.RESOLUTION


def radius_at(
    posterior: Model,
    x: np.ndarray,
    question: RadiusQuestion,
    known: Bracket | None = None,
    start: float | None = None,
    progress: bool | None = False,
) -> Radius:
    """The bracket at x; what is `known` of it already is not searched for again.

    An attack gives an upper end; it is proved from below with one box, then with many. Everything
    runs under one deadline; whatever ends it early leaves a bracket that holds.
    """
    begun = time.perf_counter() if start is None else start
    end = question.settings.budget.ends(begun)
    rule = decision_candidates(posterior, x, question.options).proved_until(end)
    if not rule.decided:
        reason, bracket = rule.undecided or StopReason.UNDECIDED_AT_X, Bracket(0.0, np.inf, None)
        return radius_of(rule, question, bracket, reason, time.perf_counter() - begun)
    with progress_line(progress) as line:
        search = RadiusSearch(question, [rule], [question.largest(posterior, x)], line)
        search.start = begun
        try:
            with until(end):
                if known is None:
                    search.attack(0)
                    search.try_boxes(search.one_box)
                else:  # one box at a time has said what it can
                    search.begin(0, known)
                reason = search.prove(0)
        except OutOfTime:
            reason = StopReason.TIME
        except KeyboardInterrupt:
            reason = StopReason.INTERRUPTED
    seconds = time.perf_counter() - begun
    return radius_of(rule, question, search.bracket(0), reason, seconds)


def radii_batched(posterior: Model, work: Sequence[tuple[Any, ...]]) -> dict[int, Radius | Bracket]:
    """The radii, by number, of the points at which single boxes bracket it well enough; at others
    the brackets that a search of their own begins with.

    `work` are points and the `RadiusQuestion`, the same for all.
    """
    start = time.perf_counter()
    question: RadiusQuestion = work[0][1]
    settings, limit = question.settings, question.settings.budget.boxes
    X = np.stack([x for x, _ in work])
    each = common_candidates(posterior, X, question.options)
    if each is None or settings.method.name != "taylor" or X.shape[1] > MAX_FEATURES:
        return {}
    searches: list[tuple[list[int], RadiusSearch]] = []
    with in_time(start, settings, len(work)):
        for rows in by_guess(each):
            sure = proved_at_x([each[k] for k in rows], settings)
            decided = [k for k, proved in zip(rows, sure, strict=True) if proved]
            if decided:
                largest = [question.largest(posterior, X[k]) for k in decided]
                rules = [each[k].guess for k in decided]
                search = RadiusSearch(question, rules, largest, Line(None))
                searches.append((decided, search))
                rounds = MAX_TRIES if limit is None else min(MAX_TRIES, limit)
                search.try_boxes(search.share_boxes, rounds)
    seconds = (time.perf_counter() - start) / len(work)
    answers: dict[int, Radius | Bracket] = {}
    for rows, search in searches:
        for k, (row, done) in enumerate(zip(rows, search.done.tolist(), strict=True)):
            bracket = search.bracket(k)
            if done:
                about = search.rules[k], question, bracket, StopReason.CONVERGED, seconds
                answers[row] = radius_of(*about)
            elif bracket.counterexample is not None and bracket.lower > 0:
                answers[row] = bracket
    return dict(sorted(answers.items()))


@verb
def certified_radius(
    model: Any,
    x: Any,
    *,
    max_radius: float | None = None,
    rtol: float = 0.01,
    proof: bool = False,
    **options: Unpack[RadiusOptions],
) -> Radius:
    """Bracket the largest radius at which the decision at x is robust.

    `lower`: proved robust up to here. `upper`: a counter-example lies at this distance. The search
    ends when `lower >= (1 - rtol) upper` (relative: a radius has no scale of its own, so it is not
    called `tol`) or with the budget, 60 seconds by default. `max_radius` (by
    default the farthest corner of `domain`, else 16 times the spread of the points) is where it
    gives up looking for a counter-example; if all of it is proved, `lower` is that radius and
    `upper` is infinite. If the decision at x itself cannot be proved, `lower` is 0 and the reason
    `UNDECIDED_AT_X`. `proof=True` searches the ball of `lower` once more, and `save("name.cert")`
    writes what `gpcert-check` checks. Other parameters as in `certify`. `progress` shows the
    bracket so far. Ctrl-C returns it, with `StopReason.INTERRUPTED`; a second one is raised.

    Example
    -------
    >>> import gpcert
    >>> from gpcert.kernels import SquaredExponential
    >>> p = gpcert.Posterior(SquaredExponential(1.0), points=[[0.0], [3.0]], weights=[1.0, -1.0])
    >>> rad = gpcert.certified_radius(p, [0.0], threshold=0.0)
    >>> 1.48 < rad.lower <= 1.5 <= rad.upper < 1.51
    True
    """
    start = time.perf_counter()
    posterior = as_posterior(model)
    point = read_x(posterior, x, "use certified_radius_many")
    question = RadiusQuestion.read(options, posterior, max_radius, rtol)
    radius = radius_at(posterior, point, question, None, start, options.get("progress"))
    return with_proof(posterior, point, question, radius) if read_proof(proof) else radius


def with_proof(
    posterior: Model, point: np.ndarray, question: RadiusQuestion, radius: Radius
) -> Radius:
    """The radius with its proof, if anything is proved: its last search was one of many, of which
    most found out what is not true."""
    if not radius.lower > 0:
        return radius
    ball = question.shape.ball(point, radius.lower)
    settings = replace(question.settings, proof=True)
    held = certify_region(posterior, point, ball, question.options, settings)
    return replace(radius, proof=radius_proof(radius, held, question.shape))
