"""`certified_radius`: how far one may go from x before the decision changes.

Proofs: docs/mathematics.md, statement 14.5.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Unpack

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.api.certify import certify_rule
from gpcert.api.compared import read_decision
from gpcert.api.options import RadiusOptions, SearchSettings, read_tolerance, read_x, verb
from gpcert.api.regions import RegionSpecification, Shape
from gpcert.api.rules import Rule, decision_candidates
from gpcert.api.running import Line, progress_line
from gpcert.attacks import Decision, attack
from gpcert.certificates import Certificate, Radius, Status
from gpcert.errors import InputError
from gpcert.model.committee import Model
from gpcert.numerics.arrays import finite_array
from gpcert.numerics.deadline import OutOfTime, checkpoint, remaining, until
from gpcert.numerics.rounding import norm_upper
from gpcert.quantities import ClassSums
from gpcert.regions import Ball
from gpcert.search import Budget, StopReason, stop_if_interrupted

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

SMALL = 1e-4
"""Margins that are less, beside those of other radii, are proved to be positive and no more: they
are not on a line with the others (classes whose lead alone is known)."""

ONE_BOX = Budget(seconds=None, boxes=1)


class Bracket(NamedTuple):
    """Proved up to `lower`; a counter-example at distance `upper`, infinite if none is known."""

    lower: float
    upper: float
    counterexample: np.ndarray | None
    boxes: int = 0
    """What it cost."""


@verb
def certified_radius(
    model: Any,
    x: Any,
    *,
    max_radius: float | None = None,
    rtol: float = 0.01,
    **words: Unpack[RadiusOptions],
) -> Radius:
    """Bracket the largest radius at which the decision at x is robust.

    `lower`: proved robust up to here. `upper`: a counter-example lies at this distance. The search
    ends when `lower >= (1 - rtol) upper` (relative: a radius has no scale of its own, so it is not
    called `tol`) or with the budget, 60 seconds by default. `max_radius` (by
    default the farthest corner of `domain`, else 16 times the spread of the points) is where it
    gives up looking for a counter-example; if all of it is proved, `lower` is that radius and
    `upper` is infinite. If the decision at x itself cannot be proved, `lower` is 0 and the reason
    `UNDECIDED_AT_X`. Other parameters as in `certify`. `progress` shows the bracket so far. Ctrl-C
    returns it, with `StopReason.INTERRUPTED`; a second one is raised.

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
    question = RadiusQuestion.read(words, posterior, max_radius, rtol)
    return radius_at(posterior, point, question, None, start, words.get("progress"))


def radius_at(
    posterior: Model,
    x: np.ndarray,
    question: RadiusQuestion,
    known: Bracket | None = None,
    start: float | None = None,
    progress: bool | None = False,
) -> Radius:
    """The bracket at x; what is `known` of it already is not searched for again."""
    begun = time.perf_counter() if start is None else start
    with progress_line(progress) as line:
        return _RadiusSearch(posterior, x, question, begun, line).run(known)


@dataclass(frozen=True, eq=False)
class RadiusQuestion:
    """What is asked of every point: `max_radius`, if one was given, and the other words, read."""

    shape: Shape
    options: Decision
    max_radius: float | None
    rtol: float
    means: SearchSettings

    @staticmethod
    def read(
        words: Mapping[str, Any], posterior: Model, max_radius: Any, rtol: Any
    ) -> RadiusQuestion:
        """From the words of a verb."""
        shape, options = (
            RegionSpecification.read(words).shape(posterior),
            read_decision(words, posterior),
        )
        tol = read_tolerance(rtol, below=1.0, name="rtol")
        most = None if max_radius is None else float(finite_array("max_radius", max_radius, ndim=0))
        if most is not None and most <= 0:
            raise InputError(f"max_radius: expected a positive number, got {max_radius!r}")
        return RadiusQuestion(shape, options, most, tol, SearchSettings.read(words))

    def largest(self, posterior: Model, x: np.ndarray) -> float:
        """The radius at which the search for a counter-example ends, in units of the scale."""
        if self.max_radius is not None:
            return self.max_radius
        unit = np.ones_like(x) if self.shape.unit is None else self.shape.unit
        moves = unit > 0
        if self.shape.domain is not None:
            low, high = self.shape.domain
            reach = np.maximum(np.abs(x - low), np.abs(high - x))[moves] / unit[moves]
            if np.all(np.isfinite(reach)):
                return float(reach.sum())  # the l_1 distance is the largest of all norms
        spread = np.abs(posterior.places - x).max(axis=0)[moves] / unit[moves]
        return 16.0 * max(float(spread.sum()), 1.0)


def radius_of(
    rule: Rule, question: RadiusQuestion, bracket: Bracket, reason: StopReason, seconds: float
) -> Radius:
    """The record of what was found around the rule's point."""
    shape = question.shape
    return Radius(
        lower=bracket.lower,
        upper=bracket.upper,
        counterexample=bracket.counterexample,
        decision=rule.decision,
        norm=shape.norm,
        rule=rule.text,
        region=shape.ball(rule.x, bracket.lower).describe(),
        unit=rule.unit.value,
        scale=shape.unit,
        radius_unit=shape.unit_name,
        reason=reason,
        boxes=bracket.boxes,
        seconds=seconds,
        method=question.means.method.name,
        model=rule.fingerprint,
    )


def distance_of(shape: Shape, x: np.ndarray, point: np.ndarray) -> float:
    """How far the point is from x at most, in units of the scale.

    The difference rounds once per coordinate, and so does a quotient, which a step up keeps from
    underflowing; the norm is rounded up. Features whose unit is 0 have not moved.
    """
    moved = np.abs(point - x)
    if shape.unit is None:
        return float(norm_upper(moved, shape.norm, roundings=2))
    unit, free = shape.unit, (shape.unit > 0) & (moved > 0)
    with np.errstate(over="ignore", under="ignore"):
        parts = np.divide(moved, unit, out=np.zeros_like(moved), where=free)
    parts[free] = np.nextafter(parts[free], np.inf)
    return float(norm_upper(parts, shape.norm, roundings=6))


class _RadiusSearch:
    """State of one search for the radius."""

    def __init__(
        self, posterior: Model, x: np.ndarray, question: RadiusQuestion, start: float, line: Line
    ) -> None:
        self.posterior, self.x, self.question, self.line = posterior, x, question, line
        self.shape, self.means, self.start = question.shape, question.means, start
        self.largest = question.largest(posterior, x)
        self.known = Bracket(0.0, np.inf, None)
        self.reason = StopReason.CONVERGED

    def run(self, known: Bracket | None) -> Radius:
        """Attack for an upper end, then prove from below with one box, then with many.

        Everything runs under one deadline; whoever ends early leaves a bracket that holds.
        """
        end = self.means.budget.ends(self.start)
        candidates = decision_candidates(self.posterior, self.x, self.question.options)
        self.rule = candidates.proved_until(end)
        try:
            if self.rule.decided:
                with until(end):
                    if known is None:
                        self._attack()
                        self._try_all(ONE_BOX)
                        self._bisect()
                    else:  # one box at a time has said what it can
                        self.known = known
                    self._prove()
            else:
                self.reason = self.rule.undecided or StopReason.UNDECIDED_AT_X
        except OutOfTime:
            self.reason = StopReason.TIME
        except KeyboardInterrupt:
            self.reason = StopReason.INTERRUPTED
        seconds = time.perf_counter() - self.start
        return radius_of(self.rule, self.question, self.known, self.reason, seconds)

    def _attack(self) -> None:
        """Shrink the radius at which plain local search still finds another decision.

        It may take half of the time that is left; the rest is for proofs. Values are plain until
        the end: the nearest point found whose decision is proved to differ counts.
        """
        suspects: list[np.ndarray] = []
        try:
            with until(time.perf_counter() + ATTACK_SHARE * remaining()):
                self._close_in(suspects)
        except OutOfTime:
            checkpoint()  # the half, or all of it?
        for point in reversed(suspects):
            if distance_of(self.shape, self.x, point) >= self.known.upper or self._confirmed(point):
                return

    def _close_in(self, suspects: list[np.ndarray]) -> None:
        """Add points with another decision, about, each nearer to x than the last."""
        function = self.rule.goal.function(self.rule.model)
        scale = float(np.abs(self.posterior.places - self.x).max(initial=0.0)) or 1.0
        # a huge ball can hide a near counter-example from local search: look closer in
        for radius in (self.largest, *(scale * GROWTH ** -np.arange(6.0))):
            found = self._attacked(function, min(radius, self.largest))
            if found is not None:
                break
        else:
            return
        self._confirmed(found)  # whatever ends the attack, an upper end is known
        low = 0.0
        for _ in range(ATTACK_STEPS):
            suspects.append(found)
            distance = distance_of(self.shape, self.x, found)
            if low >= (1.0 - ATTACK_PART) * distance:
                break
            middle = 0.5 * (low + distance)
            closer = self._attacked(function, middle)
            low, found = (middle, found) if closer is None else (low, closer)

    def _attacked(self, function: Any, radius: float) -> np.ndarray | None:
        """A point of the ball with another decision, if local search finds one; not proved."""
        self._show()
        ball, seed = self.shape.ball(self.x, radius), self.means.random_state
        point = attack(function, ball, starts=2, random_state=seed, enough=self.rule.target)
        return point if function(point[None])[0][0] < self.rule.target else None

    def _confirmed(self, point: np.ndarray) -> bool:
        """Whether the decision at the point is proved to be another; it is then put away."""
        other = self._certify(Ball(point, 0.0), ONE_BOX).margin.upper < 0
        if other:
            self._take(point)
        return other

    def _take(self, point: np.ndarray) -> None:
        distance = distance_of(self.shape, self.x, point)
        if distance < self.known.upper:
            self.known = self.known._replace(upper=distance, counterexample=point)

    def _certify(self, region: Ball, budget: Budget) -> Certificate:
        """The rule made at x, over a region that need not contain x."""
        certificate = certify_rule(region, self.rule, replace(self.means, budget=budget))
        self.known = self.known._replace(boxes=self.known.boxes + certificate.boxes)
        stop_if_interrupted(certificate.reason)
        return certificate

    def _tried(self, radius: float, budget: Budget) -> Certificate:
        """The rule over the ball of this radius; what it proves or refutes is put away."""
        self._show()
        certificate = self._certify(self.shape.ball(self.x, radius), budget)
        if certificate.status is Status.ROBUST:
            self.known = self.known._replace(lower=max(self.known.lower, radius))
        elif certificate.counterexample is not None:
            self._take(certificate.counterexample)
        return certificate

    def _show(self) -> None:
        cost = f"{self.known.boxes} boxes, {time.perf_counter() - self.start:.1f} s"
        self.line.show(f"radius between {self.known.lower:.5g} and {self.known.upper:.5g}, {cost}")

    def _prove(self) -> None:
        """Bisect on proved radii by searches with what time is left."""
        for _ in range(MAX_HALVINGS):
            top = min(self.known.upper, self.largest)
            if self.known.lower >= (1.0 - self.question.rtol) * top:
                self._try_all(replace(self.means.budget, seconds=None))
                return
            # nearer to the proved end first: such steps are the likely ones
            radius = self.known.lower + (top - self.known.lower) * 0.5
            checkpoint()
            share = None if self.means.budget.seconds is None else max(remaining() * 0.5, 1e-3)
            certificate = self._tried(radius, replace(self.means.budget, seconds=share))
            if certificate.status is Status.UNKNOWN:
                self.reason = certificate.reason
                return
        self.reason = StopReason.RESOLUTION

    def _try_all(self, budget: Budget) -> None:
        """Prove the largest radius itself, where no counter-example is known."""
        if np.isinf(self.known.upper) and self.known.lower < self.largest:
            checkpoint()
            self._tried(self.largest, budget)

    def _bisect(self) -> None:
        """Prove from below with one box, whose margin falls nearly linearly with the radius.

        Tries lie just beyond where the line through the last two margins ends: both ends close in.
        Where the same end moves again and again margins are no lines, and the bracket is halved.
        Of several classes a lead is often proved close to where it ends, and its margin is no line.
        """
        by_lead, tol = isinstance(self.rule.quantity, ClassSums), self.question.rtol
        ceiling = min(self.known.upper, self.largest)
        low, high = self.known.lower, ceiling
        function = self.rule.goal.function(self.rule.model)
        inner = (0.0, float(function(self.x[None])[0][0]) - self.rule.target)
        outer: tuple[float, float] | None = None
        radius, streak = FIRST_TRY * high, 0
        for _ in range(60):
            if low >= (1.0 - 0.5 * tol) * high:
                break
            checkpoint()
            certificate = self._tried(radius, ONE_BOX)
            tried = (radius, certificate.margin.lower)
            if certificate.status is Status.ROBUST:
                low, inner, streak = radius, tried, max(streak, 0) + 1
            else:
                high, outer, streak = radius, tried, min(streak, 0) - 1
            radius = 0.5 * (low + high)
            if by_lead and low == 0.0:  # down from the ceiling, by gaps twice as large each time
                radius = max(radius, high - 2.0 * (ceiling - high))
            elif (
                abs(streak) < 2
                and outer is not None
                and -np.inf < outer[1] < 0.0
                and -SMALL * outer[1] < inner[1] < np.inf
            ):
                end = inner[0] + (outer[0] - inner[0]) * inner[1] / (inner[1] - outer[1])
                radius = min(max(end * (1.0 + 0.2 * tol), low + 0.1 * (high - low)), radius)
