"""Expected improvement over a value that was reached, and the probability of any: what Bayesian
optimisers maximise, and their logarithms.

With the improvement's mean `u = mu - best_f` (maximisation; minimisation: `u = best_f - mu`), the
variance v and z = u / sqrt(v)

    EI = E max(f - best_f, 0) = u Phi(z) + sqrt(v) phi(z)   and   PI = P(f > best_f) = Phi(z),

in BoTorch's words `ExpectedImprovement`, `LogExpectedImprovement`, `ProbabilityOfImprovement` and
`LogProbabilityOfImprovement`. At v = 0 EI is max(u, 0), and PI 0 or 1 by the sign of u (1/2 at 0).

EI increases in u and in v. On a line `u = a + b v` it is least at an end but for a part on which
tangent planes bound it, and at most the largest value of three points; PI is a monotone function of
the score z, whose least value on a line has a closed form.

Proofs: docs/mathematics.md, statements 7.7, 8.3, 8.11 and 8.12.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from gpcert.errors import InputError
from gpcert.integrals.normal_tails import (
    excess_bounds,
    log_bounds,
    log_excess_bounds,
    log_normal_cdf,
    log_normal_cdf_bounds,
    mills_ratios,
)
from gpcert.integrals.special import normal_cdf, normal_cdf_bounds, normal_pdf
from gpcert.likelihoods.base import mean_lower
from gpcert.likelihoods.probit import least_score
from gpcert.numerics.arrays import Array, Reals, namespace
from gpcert.numerics.rounding import down, nonnegative, up
from gpcert.quantities.output import OutputQuantity, usable_segment

_LARGEST_PLACE = 30.0
"""Tangent planes are taken at scores up to here; any place is valid."""

NEWTON_STEPS = 3
"""For one of these places."""

Bounds = Callable[[Array, Array], tuple[Array, Array]]
"""From u and v to certified bounds of a function of them."""


@dataclass(frozen=True)
class Improvement(OutputQuantity):
    """`side F(u, v)`, u the improvement's mean: `side` is 1 where F is minimised, else -1.

    As everywhere `sign` is that of q = sign mu, in which the quantity does not decrease: that is
    `side` for maximisers, and `-side` for minimisers, whose u falls with mu.
    """

    output: int
    sign: int
    best_f: float
    maximize: bool = True

    logarithmic: ClassVar[bool] = False
    """Whether F is the logarithm."""

    def __post_init__(self) -> None:
        if not math.isfinite(self.best_f):
            raise InputError(f"best_f: expected a finite number, got {self.best_f!r}")

    @property
    def side(self) -> int:
        """See the class."""
        return self.sign if self.maximize else -self.sign

    @property
    def _shift(self) -> float:
        """u = side q - shift."""
        return self.best_f if self.maximize else -self.best_f

    @property
    @abstractmethod
    def range(self) -> tuple[float, float]:
        """Bounds of F whatever the model."""

    @property
    def known(self) -> tuple[float, float]:
        low, high = self.range
        return (low, high) if self.side > 0 else (0.0 - high, 0.0 - low)

    # proved

    @abstractmethod
    def _least(self, a: Array, b: Array, v_low: Array, v_high: Array) -> Array:
        """Certified lower bound of F on the lines `u = a + b v`."""

    @abstractmethod
    def _greatest(self, a: Array, b: Array, v_low: Array, v_high: Array) -> Array:
        """Certified upper bound of F on them."""

    @np.errstate(over="ignore", invalid="ignore")  # quotients by tiny deviations
    def lowest(self, alpha: Reals, beta: Reals, v_low: Reals, v_high: Reals) -> Reals:
        """F does not decrease in u: at least its minimum on the line, of -F minus its maximum."""
        xp = namespace(alpha)
        (a, b, v_low, v_high), usable = usable_segment(alpha, beta, v_low, v_high)
        if self.side > 0:
            value = self._least(down(a - self._shift, 1), b, v_low, v_high)
        else:
            value = -self._greatest(up(-a - self._shift, 1), -b, v_low, v_high)
        least = xp.full_like(value, self.known[0])
        return xp.where(usable, xp.maximum(value, least), least)

    def highest(self, q: Reals, v_low: Reals, v_high: Reals) -> Reals:
        """Minus the lowest of the negative."""
        return -replace(self, sign=-self.sign).lowest(-q, namespace(q).zeros_like(q), v_low, v_high)

    # in plain floating point

    @abstractmethod
    def _plain(self, u: Reals, s: Reals, z: Reals) -> tuple[Reals, Reals, Reals]:
        """F and its derivatives in u and in v, for s = sqrt(v) > 0."""

    @abstractmethod
    def _steepness(self, s: Reals, z: Reals) -> Reals:
        """Slope d u / d v of F's level curve."""

    def _place(self, q: Reals, v: Reals) -> tuple[Reals, Reals, Reals]:
        """u, s and z; a tiny s in the place of 0."""
        xp = namespace(q, v)
        u, v = xp.broadcast_arrays(self.side * q - self._shift, v)
        s = xp.sqrt(xp.clip(v, 1e-300, None))
        return u, s, u / s

    def value(self, q: Reals, v: Reals) -> Reals:
        return self.side * self._plain(*self._place(q, v))[0]

    def slopes(self, q: Reals, v: Reals) -> tuple[Reals, Reals]:
        """Those of F at u, the second with its side."""
        _, by_u, by_v = self._plain(*self._place(q, v))
        return by_u, self.side * by_v

    def level_slope(self, q: Reals, v: Reals) -> Reals:
        """That of F, mirrored for -F."""
        _, s, z = self._place(q, v)
        return self.side * self._steepness(s, z)

    def corners(self, v_low: Reals, v_high: Reals) -> tuple[Reals, Reals]:
        """Where std is greatest, and half-way there: the slope at 0 would be useless."""
        xp = namespace(v_low)
        return v_high, (0.5 * (xp.sqrt(v_low) + xp.sqrt(v_high))) ** 2


@dataclass(frozen=True)
class ExpectedImprovement(Improvement):
    """`side E max(f - best_f, 0)`; see the module."""

    @property
    def range(self) -> tuple[float, float]:
        return (-math.inf if self.logarithmic else 0.0), math.inf

    def _bounds(self, u: Array, v: Array) -> tuple[Array, Array]:
        return log_excess_bounds(u, v) if self.logarithmic else excess_bounds(u, v)

    def _least(self, a: Array, b: Array, v_low: Array, v_high: Array) -> Array:
        return least_excess(self._bounds, self.logarithmic, (a, b, v_low, v_high))

    def _greatest(self, a: Array, b: Array, v_low: Array, v_high: Array) -> Array:
        return greatest_excess(self._bounds, (a, b, v_low, v_high))

    def _plain(self, u: Reals, s: Reals, z: Reals) -> tuple[Reals, Reals, Reals]:
        """`s psi`, `Phi` and `phi / (2 s)`, or the logarithm's."""
        xp = namespace(u)
        by_density, by_excess = mills_ratios(z)
        if self.logarithmic:
            value = xp.log(s) + log_normal_cdf(z) - xp.log(by_excess)
            return value, by_excess / s, by_density * by_excess / (2.0 * s * s)
        mass = normal_cdf(z)
        return s * (mass / by_excess), mass, normal_pdf(z) / (2.0 * s)

    def _steepness(self, s: Reals, z: Reals) -> Reals:
        """`-phi / (2 s Phi)`."""
        return -mills_ratios(z)[0] / (2.0 * s)


@dataclass(frozen=True)
class LogExpectedImprovement(ExpectedImprovement):
    """`side log E max(f - best_f, 0)`."""

    logarithmic: ClassVar[bool] = True


@dataclass(frozen=True)
class ProbabilityOfImprovement(Improvement):
    """`side P(f > best_f)`; see the module."""

    @property
    def range(self) -> tuple[float, float]:
        return (-math.inf, 0.0) if self.logarithmic else (0.0, 1.0)

    def _bounds(self, z: Array) -> tuple[Array, Array]:
        return log_normal_cdf_bounds(z) if self.logarithmic else normal_cdf_bounds(z)

    def _least(self, a: Array, b: Array, v_low: Array, v_high: Array) -> Array:
        return self._bounds(least_score(a, a, b, v_low, v_high))[0]

    def _greatest(self, a: Array, b: Array, v_low: Array, v_high: Array) -> Array:
        return self._bounds(-least_score(-a, -a, -b, v_low, v_high))[1]

    def _plain(self, u: Reals, s: Reals, z: Reals) -> tuple[Reals, Reals, Reals]:
        """`Phi`, `phi / s` and `-z phi / (2 v)`, or the logarithm's."""
        if self.logarithmic:
            value, slope = log_normal_cdf(z), mills_ratios(z)[0]
        else:
            value, slope = normal_cdf(z), normal_pdf(z)
        return value, slope / s, -z * slope / (2.0 * s * s)

    def _steepness(self, s: Reals, z: Reals) -> Reals:
        """`z / (2 s)`: the score's."""
        return z / (2.0 * s)


@dataclass(frozen=True)
class LogProbabilityOfImprovement(ProbabilityOfImprovement):
    """`side log P(f > best_f)`."""

    logarithmic: ClassVar[bool] = True


Line = tuple[Reals, Reals, Reals, Reals]
"""a, b and the ends of v: the part of `u = a + b v` between them."""


def least_excess(bounds: Bounds, logarithmic: bool, line: Line) -> Reals:
    """Certified lower bound of EI, or of its logarithm, on a line.

    Statement 7.7: for b >= 0 it is least at v_low. For b < 0 it is least at an end of
    `v >= a / (2 |b|)`; and for every c it is at least `u Phi(c) + s phi(c)`, on the line a concave
    function of s, and so least at an end, too.
    """
    a, b, v_low, v_high = line
    xp, falling = namespace(a), b < 0.0
    slope = xp.where(falling, -b, xp.ones_like(b))
    split = xp.minimum(xp.maximum(up(0.5 * a / slope, 2), v_low), v_high)
    means = [mean_lower(a, b, v) for v in (v_low, split, v_high)]
    # EI increases in both: the last one bounds what lies between the first two
    places = [*means, means[1]], [v_low, split, v_high, v_low]
    at_low, at_split, at_high, best = bounds(*map(xp.stack, places))[0]
    roots = [nonnegative(down(xp.sqrt(v), 1)) for v in (v_low, split)]
    planes = _tangent_plane(xp.stack(_places(means[:2], roots)), means[:2], roots)
    plane = xp.max(planes, axis=0)
    best = xp.maximum(best, log_bounds(plane, plane)[0] if logarithmic else plane)
    best = xp.where(split > v_low, best, at_low)
    return xp.where(falling, xp.minimum(best, xp.minimum(at_split, at_high)), at_low)


def _places(means: list[Array], roots: list[Array]) -> list[Array]:
    """Numbers c whose planes are good: the scores at two points and between them, and where the
    plane is equal at both, `phi(c) / Phi(c) = (u_1 - u_2) / (s_2 - s_1)`, by Newton's method."""
    xp = namespace(means[0])
    middle = 0.5 * (means[0] + means[1]), 0.5 * (roots[0] + roots[1])
    pairs = [(means[0], roots[0]), (means[1], roots[1]), middle]
    places = [u / xp.clip(s, 1e-300, None) for u, s in pairs]
    slope = (means[0] - means[1]) / xp.clip(roots[1] - roots[0], 1e-300, None)
    slope = xp.clip(slope, 1e-100, 1e100)
    c = xp.where(slope < 0.3, xp.sqrt(nonnegative(-2.0 * xp.log(2.5 * slope))), -slope)
    for _ in range(NEWTON_STEPS):
        ratio = mills_ratios(c)[0]
        c = xp.clip(c + xp.log(ratio / slope) / (ratio + c), -_LARGEST_PLACE, _LARGEST_PLACE)
    places = [xp.clip(each, -_LARGEST_PLACE, _LARGEST_PLACE) for each in (*places, c)]
    return [xp.where(xp.isnan(each), xp.zeros_like(each), each) for each in places]


def _tangent_plane(c: Array, means: list[Array], roots: list[Array]) -> Array:
    """The smaller of the lower bounds of `u Phi(c) + s phi(c)` at two points."""
    xp = namespace(c)
    mass, density = normal_cdf_bounds(c), down(normal_pdf(c), 1024)
    ends = []
    for at, root in zip(means, roots, strict=True):
        term = at * xp.where(at > 0.0, mass[0], mass[1])
        other = root * nonnegative(density)
        ends.append(down(down(term, 1) + down(other, 1), 1))
    return xp.minimum(*ends)


def greatest_excess(bounds: Bounds, line: Line) -> Reals:
    """Certified upper bound of EI, or of its logarithm, on a line.

    Statement 7.7: for b >= 0 it is greatest at v_high. For b < 0 the line is a concave curve over
    s, which lies in the triangle of its chord and its tangents at the ends; a convex function is
    greatest at a corner, of which the third is `u = a + b s_1 s_2`, `s = (s_1 + s_2) / 2`.
    """
    a, b, v_low, v_high = line
    xp = namespace(a)
    product = xp.sqrt(v_low) * xp.sqrt(v_high)
    least, most = nonnegative(down(product, 3)), up(product, 3)
    variance = up(0.25 * (v_low + v_high) + 0.5 * most, 4)
    means = [-mean_lower(-a, -b, v) for v in (v_low, v_high, least)]
    at_low, at_high, corner = bounds(xp.stack(means), xp.stack([v_low, v_high, variance]))[1]
    corner = xp.where(v_low < v_high, corner, at_low)
    inner = xp.maximum(xp.maximum(at_low, at_high), corner)
    return xp.where(b < 0.0, inner, at_high)
