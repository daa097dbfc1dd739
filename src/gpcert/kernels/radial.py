"""k(x, y) = s^2 F_0(r),  r^2 = sum_j ((x_j - y_j) / l_j)^2: what all radial kernels share, the
squared exponential and the rational quadratic.

Proofs: docs/mathematics.md, statements 2.6, 2.8 and 16.7.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy.spatial.distance import cdist

from gpcert.kernels.base import GradientProduct, Kernel
from gpcert.kernels.expansions.base import SectionKernel
from gpcert.kernels.expansions.squared_exponential import LocalSquaredExponential
from gpcert.kernels.expansions.squared_exponential_sections import Sections
from gpcert.kernels.nodes.radial import LocalRadial
from gpcert.kernels.nodes.radial_profiles import (
    SMALL_CHANGE,
    PositiveSeries,
    RadialProfile,
    all_at,
    power,
)
from gpcert.kernels.pair_values import radial_pairs
from gpcert.kernels.parameters import LENGTHS, POSITIVE, Parameter, number
from gpcert.numerics.arrays import Backend, Inputs, PerCell, Points, Reals, namespace
from gpcert.numerics.pairs import EXP_ERROR, Pair, exp_minus, log1p
from gpcert.numerics.rounding import (
    EXP_ULPS,
    TINY,
    U,
    gamma,
    given,
    up,
    up_float,
)
from gpcert.regions import Region
from gpcert.regions.cells import Frame

ORDINARY = (1e-100, 1e100)
"""Lengths between which unscaled squares that leave float64 belong to kernel values of 0 or 1."""

SMALL = 1e-8
"""Lengths from here to its inverse change no square of a difference into zero or infinity that
matters: those that all features share are divided by last."""

FARTHEST = 1e100
"""Scaled distances are cut here in Gram matrices, so that their squares stay in float64."""

VANISHED = 2.0**-500
"""More than a kernel of variance one falls over distances whose squares underflow."""


class RadialKernel(Kernel, RadialProfile):
    """A kernel of the scaled distance, with a length-scale per feature (ARD) and a variance s^2.

    Subclasses are frozen records with `length_scale` (a number or one per feature), `variance` and
    the parameters of their shape, and give the functions of `RadialProfile`. All else is here.
    """

    has_variance: ClassVar[bool] = True
    stationary: ClassVar[bool] = True
    radial: ClassVar[bool] = True
    parameters: ClassVar[dict[str, Parameter]] = {"length_scale": LENGTHS, "variance": POSITIVE}

    length_scale: Any
    variance: float

    @cached_property
    def profile(self) -> RadialProfile:
        """The same shape with length-scale and variance 1: one record for all kernels of it."""
        parameters = {field.name: getattr(self, field.name) for field in fields(self)}  # pyright: ignore
        return _shape(
            type(self), tuple((parameters | {"length_scale": 1.0, "variance": 1.0}).items())
        )

    def reordered(self, index: Annotated[np.ndarray, "d"]) -> Kernel:
        lengths = np.empty(len(index))
        lengths[index] = self.length_scale
        return replace(self, length_scale=lengths)  # pyright: ignore[reportArgumentType]

    @property
    def rough(self) -> bool:
        """Whether F_1(0) is infinite."""
        return not math.isfinite(self.profile.at_zero[1])

    def _distances(self, X: np.ndarray, Y: np.ndarray, squared: bool = False) -> np.ndarray:
        """(n, p) scaled distances, or their squares."""
        metric, lengths = "sqeuclidean" if squared else "euclidean", self.length_scale
        if lengths.ndim == 1 or not ORDINARY[0] < lengths < ORDINARY[1]:
            return cdist(X / lengths, Y / lengths, metric)
        # one length for all features: the points need not be scaled
        distances = cdist(X, Y, metric) / lengths
        return distances / lengths if squared else distances

    def value(self, X: Inputs, Y: np.ndarray) -> np.ndarray:
        return self.variance * self.profile.terms(self._distances(X, Y), (0, 0))[0]

    def slopes(self, X: Inputs, Y: np.ndarray) -> np.ndarray:
        """`s^2 F_1(r)` (n, p); 0 at r = 0, where the gradient is 0 or does not exist."""
        r = self._distances(X, Y)
        return self.variance * np.where(r > 0, self.profile.terms(r, (1, 0))[0], 0.0)

    def gradient(self, X: Inputs, Y: np.ndarray) -> np.ndarray:
        """`d k / d x = -s^2 F_1(r) (x - y) / l^2`."""
        difference = X[:, None, :] - Y[None, :, :]
        return -self.slopes(X, Y)[:, :, None] * difference / self.length_scale / self.length_scale

    def gradient_product(self, X: Inputs, Y: Points, C: np.ndarray) -> Inputs:
        """`sum_j C_ij s^2 F_1 (y_j - x_i) / l^2`."""
        return self.with_gradient(X, Y)[1](C)

    def with_gradient(
        self, X: Inputs, Y: Points
    ) -> tuple[Annotated[np.ndarray, "n N"], GradientProduct]:
        """Distances are taken once, and the exponentials of F_0 and F_1."""
        r = self._distances(X, Y)
        value, slope = self.profile.weighted(r, np.asarray(self.variance), 1)
        slopes = np.where(r > 0, slope, 0.0)
        return value, lambda C: self._gradient_product(X, Y, C * slopes)

    def _gradient_product(self, X: np.ndarray, Y: np.ndarray, W: np.ndarray) -> np.ndarray:
        """`sum_j W_ij (y_j - x_i) / l^2` by one matrix product."""
        return (W @ Y - W.sum(1)[:, None] * X) / self.length_scale / self.length_scale

    def node(self, points: Points, frame: Frame) -> LocalRadial:
        lengths = np.broadcast_to(self.length_scale, points.shape[1:])
        return LocalRadial.build(points, lengths, self.variance, self.profile, frame)

    def gram_with_error(
        self, points: Points, rows: slice = slice(None), columns: slice = slice(None)
    ) -> tuple[np.ndarray, np.ndarray]:
        """Gram matrix; subtracting first, the relative error of r stays below gamma(d + 8).

        Where the profile knows a relative error that grows with r, that of the largest r serves all
        entries: one number instead of a dozen passes over the matrix.
        """
        total = self._squared_distances(points[rows], points[columns])
        rate = gamma(points.shape[1] + 8)
        farthest = float(total.max(initial=0.0))
        if farthest <= FARTHEST**2:
            last = np.full(1, math.sqrt(farthest))
            uniform = self.profile.uniform_error(last, rate, np.zeros(1))
            if uniform is not None and uniform[0] <= SMALL_CHANGE:
                value = self.profile.at_squares(total, self.variance)
                errors = up_float(float(uniform[0]), 16) * value
                errors += TINY * max(1.0, self.variance)
                return value, errors
        return self._entry_errors(total, points.shape[1] + 7)

    def sharp_values(self, X: Inputs, Z: Points) -> tuple[np.ndarray, np.ndarray]:
        """Every entry with its own relative error: that of near points is the smallest."""
        return self._entry_errors(self._squared_distances(X, Z), X.shape[1] + 7)

    def pair_values(self, X: Inputs, Z: Points) -> tuple[Pair, np.ndarray]:
        return radial_pairs(self, X, Z)

    def _entry_errors(self, total: np.ndarray, roundings: int) -> tuple[np.ndarray, np.ndarray]:
        """Values at squared distances, which carry so many relative roundings, and their errors."""
        np.minimum(total, FARTHEST**2, out=total)
        value = given(self.profile.at_squares(total, self.variance))
        relative = self.profile.errors_at_squares(total, roundings)
        r = np.sqrt(total, out=total)
        good = np.isfinite(relative) & (r < FARTHEST)
        known = np.where(good, np.where(good, relative, 0.0) * value, self.variance)
        errors = np.asarray(up(known, 12)) + TINY * max(1.0, self.variance)
        # F_0(0) is 1, so where points are the same a value of s^2 is exact; squares of differences
        # below 2^-530 lengths vanish, too
        same = (r == 0.0) & (value == self.variance)
        return value, np.where(same, VANISHED * self.variance, errors)

    def _squared_distances(self, X: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Scaled ones, (n, p), with d + 7 relative roundings: differences come first."""
        lengths = np.broadcast_to(self.length_scale, (X.shape[1],))
        ordinary = np.all((lengths > ORDINARY[0]) & (lengths < ORDINARY[1]))
        # a product is faster than a division
        scale, by = (np.multiply, 1.0 / lengths) if ordinary else (np.divide, lengths)
        one = bool(SMALL < lengths[0] < 1.0 / SMALL and np.all(lengths == lengths[0]))
        features = np.ascontiguousarray(Z.T)
        total, part = np.empty((len(X), len(Z))), np.empty((len(X), len(Z)))
        with np.errstate(over="ignore"):
            for j in range(len(lengths)):
                square = part if j else total
                np.subtract(X[:, j, None], features[j], out=square)
                if not one:
                    scale(square, by[j], out=square)
                square *= square
                if j:
                    total += part
            if one:  # all are scaled together
                total *= float(by[0]) * float(by[0])
        return total


@lru_cache(maxsize=128)
def _shape(kind: type[RadialKernel], parameters: tuple[tuple[str, Any], ...]) -> RadialKernel:
    return kind(**dict(parameters))


@lru_cache(maxsize=1)
def remainder_series() -> tuple[PositiveSeries, ...]:
    """R_n^2 as functions of x = rho2 / 2."""
    rows = (([2], [2]), ([2, 2], [2, 4]), ([2, 0, 3], [2, 2, 4]))
    return tuple(PositiveSeries(tuple(map(Fraction, g)), tuple(map(Fraction, h))) for g, h in rows)


@dataclass(frozen=True, eq=False)
class SquaredExponential(RadialKernel, SectionKernel):
    """k(x, y) = s^2 exp(-r^2 / 2): the squared exponential (RBF), with a length-scale per feature
    (ARD) and a variance s^2.

    With rho = |d|_L and e = exp(-rho^2/2):

        R0^2 = 2 s^2 (1 - e),   R1^2 = s^2 (2 - 2e - 2 rho^2 e + rho^2),
        b2 = s sqrt(3) rho^2,   b3 = s sqrt(15) rho^3.

    Reason: by Bochner, phi(x) = s exp(i w.x) with w Gaussian, so u = w.d ~ N(0, rho^2) and
    R1^2 = s^2 E|e^{iu} - 1 - iu|^2, b_n^2 = s^2 E u^{2n} (Statement 2.6). All F_n are F_0, and
    w_n = r^2.

    >>> k = SquaredExponential([1.0, 2.0], variance=4.0)
    >>> float(k.value(np.zeros((1, 2)), np.array([[1.0, 2.0]]))[0, 0])  # 4 exp(-1)
    1.4715177646857693
    """

    length_scale: Any
    variance: float = 1.0

    name: ClassVar[str] = "squared_exponential"
    self_similar: ClassVar[bool] = True
    negligible: ClassVar[float] = 46.0
    zero_slack: ClassVar[float] = 0.0

    @cached_property
    def at_zero(self) -> tuple[float, float, float, float]:
        return 1.0, 1.0, 1.0, 1.0

    def terms(self, r: Reals, *pairs: tuple[int, int]) -> list[Reals]:
        xp = namespace(r)
        most = xp.minimum(r, xp.full_like(r, 60.0))  # r^k exp(-r^2/2) is 0 from 40 on
        value = xp.exp(-0.5 * most * most)
        return [value * power(most, k) if k else value for _, k in pairs]

    def at_squares(self, r2: Reals, a: float) -> Reals:
        values = np.minimum(r2, 3600.0)  # r <= 60, as in `terms`
        values *= -0.5
        np.exp(values, out=values)
        values *= a
        return values

    def errors_at_squares(self, r2: Reals, roundings: int) -> Reals:
        """The exponent is a half of the square, exp and the product with `a` are the rest
        (Statement 16.6)."""
        exponent = 0.5 * np.minimum(r2, 3600.0)
        return (1.01 * gamma(roundings)) * exponent + gamma(EXP_ULPS + 2)

    def pair_at_squares(self, r2: Pair) -> tuple[Pair, float] | None:
        return exp_minus(Pair(0.5 * r2.high, 0.5 * r2.low)), EXP_ERROR

    def growth(self, n: int, r: Reals) -> Reals:
        return r * r

    def steepness(self, n: int, low: Reals, high: Reals) -> Reals:
        return high

    def roundings(self, r: Reals) -> Reals:
        """The exponent is at most `negligible^2 / 2` and carries two roundings; exp, powers."""
        xp = namespace(r)
        most = xp.minimum(r, xp.full_like(r, self.negligible))
        return 2.0 * most * most + (EXP_ULPS + 10)

    def uniform_error(self, r: Reals, rate: float, shift: Reals) -> Reals | None:
        """`(r + e) e` for the error e of r, and `roundings`; r beyond `negligible` is cut."""
        xp = namespace(r)
        most = xp.minimum(r, xp.full_like(r, self.negligible))
        return most * ((1.2 * rate + 2.2 * U) * most + 1.2 * shift) + (EXP_ULPS + 14) * U

    def squared_remainders(self, rho2: PerCell) -> tuple[PerCell, ...]:
        """With x = rho2 / 2: `2 - 2e^-x`, `2 + 2x - e^-x (2 + 4x)`, `2 + 3x^2 - e^-x (...)`."""
        return tuple(all_at(remainder_series(), 0.5 * rho2))

    def value(self, X: Inputs, Y: np.ndarray) -> np.ndarray:
        """Matrix `k(x_i, y_j)` in plain floating point; no root is needed here."""
        return self.variance * np.exp(-0.5 * self._distances(X, Y, squared=True))

    def with_gradient(
        self, X: Inputs, Y: Points
    ) -> tuple[Annotated[np.ndarray, "n N"], GradientProduct]:
        """From the values: the derivative is `k (y - x) / l^2`."""
        values = self.value(X, Y)
        return values, lambda C: self._gradient_product(X, Y, C * values)

    def localize(self, points: Points, region: Region, backend: Backend) -> LocalSquaredExponential:
        """A weighted, orthogonal expansion of its own."""
        lengths = self.typical_lengths(points.shape[1])
        return LocalSquaredExponential.build(points, lengths, self.variance, region, backend)

    def sections(
        self,
        points: Points,
        X: Inputs,
        sections: tuple[np.ndarray, np.ndarray],
        extent: np.ndarray,
    ) -> Sections:
        seen = (self.typical_lengths(points.shape[1]), self.variance)
        return Sections.build(seen, points, X, sections, extent)


SMALLEST_ALPHA, LARGEST_ALPHA = 1e-9, 1e15
"""Beyond, r^2 / (2 alpha) and alpha log1p of it leave what float64 can hold."""


@dataclass(frozen=True, eq=False)
class RationalQuadratic(RadialKernel):
    """k(x, y) = s^2 (1 + r^2 / (2 alpha))^-alpha: the rational quadratic, a mixture of squared
    exponentials of many length-scales.

    With rho = |d|_L, by the spectral moments `E u^(2n)` of the mixture (Statement 2.8):

        b2 = s sqrt(3 (1 + 1/alpha)) rho^2,   b3 = s sqrt(15 (1 + 1/alpha)(1 + 2/alpha)) rho^3.

    With q = r^2 / (2 alpha): `F_n = (1 + 1/alpha) ... (1 + (n-1)/alpha) (1 + q)^(-alpha - n)` and
    `w_n = 2 (alpha + n) q / (1 + q)`, increasing.

    >>> import numpy as np
    >>> k = RationalQuadratic(1.0, alpha=0.5, variance=2.0)
    >>> float(k.value(np.zeros((1, 1)), np.full((1, 1), np.sqrt(3.0)))[0, 0])  # 2 (1 + 3)^-1/2
    1.0
    """

    length_scale: Any
    alpha: float
    variance: float = 1.0

    name: ClassVar[str] = "rational_quadratic"
    parameters: ClassVar[dict[str, Parameter]] = {
        **RadialKernel.parameters,
        "alpha": number(
            f"a number between {SMALLEST_ALPHA} and {LARGEST_ALPHA}",
            lambda alpha: SMALLEST_ALPHA <= alpha <= LARGEST_ALPHA,
        ),
    }
    zero_slack: ClassVar[float] = 0.0

    @cached_property
    def at_zero(self) -> tuple[float, float, float, float]:
        """The products of `1 + i / alpha`."""
        factors = [1.0 + i / self.alpha for i in range(3)]
        one, two, three = (float(up(math.prod(factors[:n]), 2 * n)) for n in (1, 2, 3))
        return 1.0, one, two, three

    def _q(self, r: Reals) -> Reals:
        return r * r / (2.0 * self.alpha)

    def shape(self, r: Reals) -> Reals:
        """By log1p and exp: for large alpha a power of 1 + q would lose its digits."""
        xp = namespace(r)
        return xp.exp(-self.alpha * xp.log1p(self._q(r)))

    def pair_at_squares(self, r2: Pair) -> tuple[Pair, float] | None:
        """The error of the logarithm meets alpha."""
        logarithm = log1p(r2 * Pair.of(1 / (2 * Fraction(self.alpha))))
        return exp_minus(logarithm * Pair.of(self.alpha)), 3.0 * (1.0 + self.alpha) * EXP_ERROR

    def ratio(self, n: int, r: Reals) -> Reals:
        return (1.0 + n / self.alpha) / (1.0 + self._q(r))

    def roundings(self, r: Reals) -> Reals:
        """The exponent `alpha log1p(q)` carries EXP_ULPS + 6 roundings; then exp, and seven of each
        ratio, five at most, and of powers."""
        xp = namespace(r)
        exponent = self.alpha * xp.log1p(self._q(r))
        exponent = xp.minimum(exponent, xp.full_like(exponent, 750.0))  # below: underflow
        return (EXP_ULPS + 8) * exponent + (EXP_ULPS + 56)

    def uniform_error(self, r: Reals, rate: float, shift: Reals) -> Reals | None:
        """Steepness at most `(1 + 2/alpha) m`, exponent `alpha log1p(q) <= r m`, where
        `m = min(r, sqrt(alpha / 2))`: for log1p(q) is below q and below sqrt(q).
        """
        xp = namespace(r)
        least = xp.minimum(r, xp.full_like(r, 1.01 * math.sqrt(0.5 * self.alpha)))
        slope = 1.2 * (1.0 + 2.0 / self.alpha)
        change = (slope * rate + (EXP_ULPS + 10) * U) * r + slope * shift
        return change * least + (EXP_ULPS + 44) * U
