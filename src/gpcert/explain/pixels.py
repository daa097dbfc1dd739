"""`pixel_budget`: how few of the most important pixels can change the decision."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.api.rules import RuleOptions, decision_rule
from gpcert.arrays import Backend, backend_from_name
from gpcert.committee import Committee, Model
from gpcert.enclosures.goals import ProbabilityGoal
from gpcert.errors import InputError
from gpcert.explain.arguments import one_point
from gpcert.explain.pixels_record import PixelBudget
from gpcert.explain.rankings import ranked_features
from gpcert.explain.slices import region_around, with_free
from gpcert.likelihoods import ScalarLikelihood
from gpcert.regions import Region
from gpcert.rounding import down, up
from gpcert.search import Budget, GoalResult, Problem, StopReason, solve

__all__ = ["pixel_budget"]


def pixel_budget(
    model: Any,
    x: Any,
    betas: Sequence[int] | None = None,
    *,
    ranking: Any = "effects",
    radius: Any = None,
    region: Region | None = None,
    domain: Any = None,
    tol: float = 0.01,
    budget: Budget | None = None,
    backend: str | Backend = "numpy",
    random_state: int | None = 0,
) -> PixelBudget:
    """The gap pi_gap when the beta most important pixels take their worst values, for each beta.

    pi_gap is the least lead of the class decided at x over the other classes (the paper's
    adversarial gap): below 0 the decision has changed. For every beta the smallest gap over the
    region with those pixels free is enclosed, and the point of its attained side is kept.

    Parameters
    ----------
    betas : numbers of pixels; by default 1, 2, 4, ... up to all that can move.
    ranking : "effects" (the paper's metric, proved), "lime", "gradient", "sufficient" (those of a
        sufficient reason first), or the features in order, the most important first.
    radius, domain, region : where pixels may go, as in `certify`.
    tol, budget : of each beta. `least_beta` is bisected between the betas that were asked for.

    Example
    -------
    >>> import numpy as np, gpcert
    >>> from gpcert import explain
    >>> from gpcert.kernels import SquaredExponential
    >>> from gpcert.likelihoods import Probit
    >>> p = gpcert.Posterior(SquaredExponential([1.0, 9.0]), [[0.0, 0.0], [2.0, 0.0]],
    ...                      [3.0, -3.0], likelihood=Probit())
    >>> found = explain.pixel_budget(p, [0.5, 0.5], [1, 2], ranking="gradient", radius=1.5)
    >>> found.least_beta, found.ranking[0]
    (1, 0)
    """
    posterior = as_posterior(model)
    point = one_point(posterior, x)
    whole = region_around(point, radius, region, {"domain": domain})
    gap = _gap(posterior, point)
    order = ranked_features(posterior, point, whole, ranking, gap.label, random_state)
    wanted = _betas(betas, len(order))
    started = time.perf_counter()
    search = _Search(
        gap, point, whole, order, tol, budget or Budget(), backend_from_name(backend), random_state
    )
    for beta in wanted:
        search.at(beta)
    least = _least_beta(search, len(order))
    rows = {beta: search.at(beta) for beta in wanted}
    flipped = None if least is None else search.at(least).point
    name = ranking if isinstance(ranking, str) else "given order"
    return PixelBudget(
        x=point,
        decision=gap.label,
        method=name,
        ranking=tuple(int(j) for j in order),
        betas=tuple(wanted),
        lower=np.array([gap.lower(row) for row in rows.values()]),
        upper=np.array([gap.upper(row) for row in rows.values()]),
        points=np.array([row.point for row in rows.values()]),
        least_beta=least,
        safe_beta=max([b for b, row in search.known.items() if gap.lower(row) > 0], default=-1),
        adversarial=flipped,
        region=whole.describe(),
        seconds=time.perf_counter() - started,
    )


@dataclass(frozen=True, eq=False)
class _Gap:
    """The gap as `factor * goal + shift`: of two classes it is `2 pi - 1` of the one decided."""

    model: Model
    goal: Any
    label: Any
    factor: float = 1.0
    shift: float = 0.0

    def lower(self, row: GoalResult) -> float:
        return float(down(self.factor * row.lower + self.shift, 2))

    def upper(self, row: GoalResult) -> float:
        return float(up(self.factor * row.upper + self.shift, 2))


def _gap(model: Model, x: np.ndarray) -> _Gap:
    if isinstance(model, Committee):
        rule = decision_rule(model, x, RuleOptions())
        return _Gap(rule.model, rule.goal, rule.decision)
    if not model.likelihood.classifies:
        raise InputError("model: expected a classifier; a regression has no decision to flip")
    if not isinstance(model.likelihood, ScalarLikelihood):
        rule = decision_rule(model, x, RuleOptions())
        return _Gap(rule.model, rule.goal, rule.decision)
    second = bool(model.prediction(x[None])[0, 0] > 0.5)
    goal = ProbabilityGoal(model.likelihood, 0, 1 if second else -1)
    # of the second class 2 pi - 1, of the first 1 - 2 pi
    return _Gap(model, goal, model.labels[second], 2.0, -1.0 if second else 1.0)


@dataclass(eq=False)
class _Search:
    gap: _Gap
    x: np.ndarray
    region: Region
    order: np.ndarray
    tol: float
    budget: Budget
    backend: Backend
    random_state: int | None
    known: dict[int, GoalResult] = field(default_factory=dict)

    def at(self, beta: int) -> GoalResult:
        """The least gap with the first beta features free."""
        if beta not in self.known:
            part = with_free(self.region, self.x, [int(j) for j in self.order[:beta]])
            problem = Problem(
                self.gap.model,
                part,
                [self.gap.goal],
                tol=self.tol / self.gap.factor,
                budget=self.budget,
                backend=self.backend,
                random_state=self.random_state,
            )
            found = solve(problem)
            if found.reason is StopReason.INTERRUPTED:
                raise KeyboardInterrupt
            self.known[beta] = found.goals[0]
        return self.known[beta]

    def flips(self, beta: int) -> bool:
        """Whether a point of another decision is known."""
        return self.gap.upper(self.at(beta)) < 0


def _betas(betas: Sequence[int] | None, most: int) -> list[int]:
    if betas is None:
        powers = [2**k for k in range(most.bit_length()) if 2**k < most]
        return [*powers, most] if most else [0]
    given = np.asarray(betas)
    if given.ndim != 1 or given.dtype.kind not in "iu" or np.any(given < 0) or given.size == 0:
        raise InputError(f"betas: expected whole numbers >= 0, got {betas!r}")
    if given.max() > most:
        raise InputError(f"betas: expected at most {most} pixels, as many as may move")
    return sorted({int(beta) for beta in given})


def _least_beta(search: _Search, most: int) -> int | None:
    """The fewest pixels with a known adversarial image: regions are nested, so it is bisected."""
    flipping = [beta for beta in search.known if search.flips(beta)]
    if not flipping:
        return None
    high = min(flipping)
    low = max([beta for beta in search.known if beta < high], default=-1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if search.flips(middle) else (middle, high)
    return high
