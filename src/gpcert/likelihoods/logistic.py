"""Logistic links as sums of error functions, whose smoothing by a Gaussian has a closed form, and
their certified minima along a line from bounds of curvature.

Proofs: docs/mathematics.md, statements 8.1, 8.4 and 8.5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar

from gpcert.integrals.softmax_moments import LOGISTIC_ERROR, LOGISTIC_TERMS
from gpcert.integrals.special import ERF_ULPS, erf
from gpcert.likelihoods.base import (
    BinaryLikelihood,
    check_latent,
    check_segment,
    mean_lower,
    monotone_minimum,
)
from gpcert.numerics.arrays import Array, PerCell, Reals, namespace
from gpcert.numerics.rounding import TINY, U, down, nonnegative, up

PIECES = 8
"""Pieces a segment is cut into; the slack of a bend falls with its square."""

NEGLIGIBLE_BEND = 1e-6
"""Bends below which a segment is not cut: its bound loses at most a quarter of this probability."""

SMOOTHING_BOUNDS = (0.39895, 0.24198, 0.39895, 0.5506)
"""`e_n >= sup |phi^(n-1)|`, n = 1..4 (Statement 8.1)."""


_LARGEST_EXPONENT = 600.0
"""exp(-600) is a normal number: slopes are cut there and keep their ratio instead of vanishing."""


class SmoothedLink(BinaryLikelihood):
    """`F(mu, v) = E link(mu + sqrt(v) t)` for a smooth link that rises from 0 to `total` <= 1;
    `F = (total + sum_i c_i erf(mu / sqrt(d_i + 2 v))) / 2`, up to `link_error`.

    The mixture link is `(total + sum_i c_i erf(x / sqrt d_i)) / 2`; where the true link differs
    from it by at most `link_error`, so does F: an average does not enlarge a uniform error
    (Statement 8.5; Rasmussen & Williams 2006, eq. 3.82). The link's derivative must be symmetric
    and unimodal (see `monotone_minimum`).
    """

    link_bounds: ClassVar[tuple[float, float, float, float]]
    """`c_n >= sup |link^(n)|`, n = 1..4."""

    terms: ClassVar[tuple[tuple[float, float], ...]]
    """The pairs `(d_i, c_i)`; d_i may carry one rounding. The largest d_i has a positive c_i."""

    link_error: ClassVar[float]
    """`>= sup |link - mixture link|` in real arithmetic."""

    def derivative_bound(self, order: int, v: Reals) -> Reals:
        """Upper bound of `|d^n F / dmu^n|` at variances >= v, for n = `order` in 1..4:
        `min(c_n, e_n v^(-n/2))` (Statement 8.1)."""
        xp = namespace(v)
        # e_n > c_n at v = 1, so cutting v at 1 changes nothing and avoids the overflow of v^-2
        shrink = 1.0 / xp.clip(v, 1.0, None)
        power = xp.sqrt(shrink) if order % 2 else xp.ones_like(shrink)
        for _ in range(order // 2):
            power = power * shrink
        bound = up(SMOOTHING_BOUNDS[order - 1] * power, 6)
        return xp.clip(bound, None, self.link_bounds[order - 1])

    def line_minimum(self, alpha: Reals, beta: Reals, v_low: Reals, v_high: Reals) -> Reals:
        """The better of the curvature bound, on `PIECES` pieces where the segment bends visibly,
        and the monotone bound.

        Statement: let `G(v) = F(alpha + beta v, v)`. If `G'' <= K` on a piece of length h, with
        values A <= B at its ends in some order, then there `G >= A - max(P - (B - A), 0)^2 / (4 P)`
        with `P = K h^2 / 2`.
        Reason: G minus its chord is >= `-P t (1 - t)`, t in [0, 1] (Statement 8.4).
        """
        segments = check_segment(alpha, beta, v_low, v_high)
        xp = namespace(segments[0])
        shape = segments[0].shape
        alpha, beta, v_low, v_high = (xp.reshape(part, (-1,)) for part in segments)
        least, bends = self._chord_minimum(alpha, beta, xp.stack([v_low, v_high], axis=-1))
        bent = bends > NEGLIGIBLE_BEND
        if bool(xp.any(bent)):
            some = tuple(part[bent] for part in (alpha, beta, v_low, v_high))
            least[bent], _ = self._chord_minimum(some[0], some[1], split_segment(*some[2:]))
        least = xp.maximum(least, monotone_minimum(self, alpha, beta, v_low, v_high))
        return nonnegative(xp.reshape(least, shape))

    def _chord_minimum(self, alpha: Array, beta: Array, v: Array) -> tuple[Array, Array]:
        """(n,) the bound of `line_minimum` from pieces between the points v (n, k), and the largest
        of their bends P."""
        xp = namespace(v)
        mean = mean_lower(alpha[:, None], beta[:, None], v)
        ends, _ = self.enclose(mean, v)
        half_bend = self.half_bend(beta[:, None], v, mean)
        pieces = least_on_chords(ends, half_bend)
        return xp.min(pieces, axis=-1), xp.max(half_bend, axis=-1)

    def half_bend(
        self,
        beta: Annotated[Array, "B 1"],
        v: Annotated[Array, "B k"],
        mean: Annotated[Array, "B k"],
    ) -> Annotated[Array, "B pieces"]:
        """Upper bound of `P = K h^2 / 2` on every piece between neighbours along the last axis."""
        xp = namespace(v)
        start = xp.minimum(v[..., :-1], v[..., 1:])
        length = abs(v[..., 1:] - v[..., :-1])
        # F_2 <= 0 where mu >= 0 (see `monotone_minimum`): that term then only helps
        positive = (mean[..., :-1] >= 0.0) & (mean[..., 1:] >= 0.0)
        second = self.derivative_bound(2, start)
        second = xp.where(positive, xp.zeros_like(second), second)
        size = abs(beta)
        curvature = size * size * second + size * self.derivative_bound(3, start)
        curvature = curvature + 0.25 * self.derivative_bound(4, start)
        return up(0.5 * curvature * length * length, 12)

    @property
    def error(self) -> float:
        """`>= |fl(value) - F|`: rounding, the error of `total`, and `link_error`.

        The argument `y = mu / sqrt(d + 2 v)` carries 3 U (d and the sum are halved by the root, the
        root, the quotient), which moves erf by as many units: `y erf'(y) <= erf(y)`, erf being
        concave. Then ERF_ULPS for erf, 1 for the product, n for the sum; the last sum and the
        caller's subtraction act on numbers of size at most 1. 1.01 covers products of roundings.
        """
        weight = math.fsum(abs(c) for _, c in self.terms)
        units = weight * (ERF_ULPS + len(self.terms) + 4) + 8
        return (0.5 * 1.01 * U) * units + self.total_error + 1.01 * self.link_error

    def value(self, mu: Reals, v: Reals) -> Reals:
        """The formula of the class in plain floating point."""
        xp = namespace(mu, v)
        double = 2.0 * v
        total = xp.zeros_like(mu + v)
        for d, c in self.terms:
            total = total + c * erf(mu / xp.sqrt(d + double))
        return 0.5 * (self.total + total)

    def enclose(self, mu: Reals, v: Reals) -> tuple[Reals, Reals]:
        """The value less and plus `error`, within `[0, total]`."""
        mu, v = check_latent(mu, v)
        xp = namespace(mu)
        value = self.value(mu, v)
        top = self.total + self.total_error
        return xp.clip(value - self.error, 0.0, top), xp.clip(value + self.error, 0.0, top)

    def slopes(self, mu: Reals, v: Reals) -> tuple[Reals, Reals]:
        """`sum c_i e_i / sqrt(pi q_i)` and `-mu sum c_i e_i / sqrt(pi q_i^3)`.

        Here `q_i = d_i + 2 v` and `e_i = exp(-mu^2 / q_i)`, taken relative to the slowest of them.
        """
        xp = namespace(mu, v)
        double = 2.0 * v
        widest = max(d for d, _ in self.terms)
        slowest = mu * (mu / (widest + double))
        by_mu = xp.zeros_like(slowest)
        by_variance = xp.zeros_like(slowest)
        for d, c in self.terms:
            q = d + double
            term = c * xp.exp(slowest - mu * (mu / q)) / xp.sqrt(math.pi * q)
            by_mu = by_mu + term
            by_variance = by_variance - term * (mu / q)
        scale = xp.exp(-xp.clip(slowest, None, _LARGEST_EXPONENT))
        return by_mu * scale, by_variance * scale


def least_on_chords(
    ends: Annotated[Array, "B ends"], half_bend: Annotated[Array, "B pieces"]
) -> Annotated[Array, "B pieces"]:
    """The bound of Statement 8.4 on pieces between neighbours, from lower bounds of G at their ends
    and upper bounds of P; see `SmoothedLink.line_minimum`."""
    xp, first, second = namespace(ends), ends[..., :-1], ends[..., 1:]
    gap = nonnegative(half_bend - down(abs(second - first)))
    # gap <= half_bend (1 + U), so the quotient cannot overflow; roundings: 2 in the gap, twice,
    # and 3 here. TINY keeps 0 / 0 away where the piece is a point.
    loss = up(gap * (gap / (4.0 * half_bend + TINY)), 8)
    pieces = down(xp.minimum(first, second) - up(loss))
    return pieces


def split_segment(v_low: PerCell, v_high: PerCell) -> Annotated[Array, "B pieces"]:
    """Points from v_low to v_high along a new last axis, `PIECES + 1`, geometric in `1 + v`.

    The curvature falls with v, so longer pieces at larger v balance the losses. Any points between
    exact ends are sound: the pieces between neighbours cover the segment whatever their order.

    >>> import numpy as np
    >>> split_segment(np.array([0.0]), np.array([255.0])).round(6).tolist()
    [[0.0, 1.0, 3.0, 7.0, 15.0, 31.0, 63.0, 127.0, 255.0]]
    """
    xp = namespace(v_low, v_high)
    length = v_high - v_low
    # below 1e-9 the points are equally spaced to within rounding, and 0 / 0 is kept away
    ratio = xp.clip(xp.log1p(length / (1.0 + v_low)), 1e-9, None)
    inner = [
        xp.clip(v_low + length * (xp.expm1(ratio * (k / PIECES)) / xp.expm1(ratio)), v_low, v_high)
        for k in range(1, PIECES)
    ]
    return xp.stack([v_low, *inner, v_high], axis=-1)


@dataclass(frozen=True)
class Logistic(SmoothedLink):
    """`F(mu, v) = E sigma(f)`, `sigma(f) = 1 / (1 + exp(-f))`, for `f ~ N(mu, v)`.

    The closed form of `SmoothedLink` on the terms of `gpcert.integrals.softmax_moments` gives F to
    6e-14 for all mu and all v >= 0, with no quadrature; `link_bounds` are those of Statement 8.5.

    >>> import numpy as np
    >>> lower, upper = Logistic().enclose(np.array([1.0]), np.array([2.0]))
    >>> round(float(lower[0]), 10), bool(upper[0] - lower[0] < 1e-12)
    (0.6750567023, True)
    """

    name: ClassVar[str] = "logistic"
    link_bounds: ClassVar[tuple[float, float, float, float]] = (0.25, 0.096226, 0.125, 0.127684)
    link_error: ClassVar[float] = LOGISTIC_ERROR
    terms: ClassVar[tuple[tuple[float, float], ...]] = LOGISTIC_TERMS

    def slopes(self, mu: Reals, v: Reals) -> tuple[Reals, Reals]:
        """Those of the mixture; `|F_v| <= F_mu / 2` is enforced, since `|sigma''| <= sigma'`.

        Far in the tail, where F_mu is below `link_error`, the mixture's ratio means nothing.
        """
        by_mu, by_variance = super().slopes(mu, v)
        return by_mu, namespace(by_mu).clip(by_variance, -0.5 * by_mu, 0.5 * by_mu)


LAMBDAS = (0.41, 0.4, 0.37, 0.44, 0.39)
COEFS = (-1854.8214151, 3516.89893646, 221.29346712, 128.12323805, -2010.49422654)


@dataclass(frozen=True)
class SklearnLogistic(SmoothedLink):
    """What `GaussianProcessClassifier.predict_proba` returns for the positive class.

    `F(mu, v) = sum_i C_i Phi(mu / sqrt(1 / (2 L_i^2) + v))`, in real arithmetic on the constants
    LAMBDAS and COEFS of `sklearn/gaussian_process/_gpc.py` (Williams & Barber 1998, appendix A).
    The sum of the coefficients is `total` = 0.99999999000022, not 1: `F(0, v) = total / 2` is below
    1/2, and `predict`, which uses the sign of the latent mean, may differ from `F > 1/2`.

    Statement: the link `sum_i C_i Phi(sqrt(2) L_i x)` increases and its derivative is symmetric and
    unimodal, so that `monotone_minimum` applies. Reason: `sqrt(pi) link'' / (-2 x)` is a sum of
    exponentials of x^2 that the tests prove positive, as they do the bounds on link^(n).

    The coefficients cancel to one in 7700, so values are certain to about 1e-11 only.

    >>> import numpy as np
    >>> lower, upper = SklearnLogistic().enclose(np.array([0.0, 1.0]), np.array([2.0, 2.0]))
    >>> lower.round(6).tolist(), bool(np.all(upper - lower < 2e-11))
    ([0.5, 0.67506], True)
    """

    name: ClassVar[str] = "sklearn-logistic"
    total: ClassVar[float] = math.fsum(COEFS)
    total_error: ClassVar[float] = 2.0**-53  # fsum rounds once, to a number in [1/2, 1)
    link_bounds: ClassVar[tuple[float, float, float, float]] = (0.25, 0.0975, 0.1221, 0.1254)
    link_error: ClassVar[float] = 0.0  # the mixture is the model
    terms: ClassVar[tuple[tuple[float, float], ...]] = tuple(
        (float(1 / Fraction(scale) ** 2), weight)  # rounded once
        for scale, weight in zip(LAMBDAS, COEFS, strict=True)
    )
