"""Kernels as sums of products of Gaussians, a factor for each feature, within a proved error.

Integrals over independent inputs of such a sum are products of integrals of one number.

Proofs: docs/mathematics.md, statement 22.12.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from scipy import special

from gpcert.kernels.active_dimensions import ActiveDimensions
from gpcert.kernels.base import Kernel
from gpcert.kernels.composite import Expressed, Product, Scale, Sum
from gpcert.kernels.constant import Constant
from gpcert.kernels.matern import Matern
from gpcert.kernels.radial import RadialKernel, RationalQuadratic, SquaredExponential
from gpcert.numerics.rounding import EXP_ULPS, TINY, U, up_float

LGAMMA_ULPS = 16
"""Assumed: |fl(lgamma x) - lgamma x| <= LGAMMA_ULPS U (1 + |lgamma x|); libraries keep within 4."""

MOST_TERMS = 512
"""Of a kernel that is a mixture; beyond, it is none that these sums are good for."""

RATES = (1e-150, 1e150)
"""Rates 1 / length^2 between which all that is computed from them is a float."""

FINER = 1e-3
"""Uniform errors of Matern kernels in parts of the weight of the terms left out as too narrow."""

STRIPS = np.linspace(0.02, 1.55, 64)
"""Half-widths of the strip in which an integrand is analytic: any below pi / 2 are valid."""


@dataclass(frozen=True, eq=False)
class GaussianSum:
    """`|k(x, y) - sum_m weights_m exp(-sum_j rates_mj (x_j - y_j)^2 / 2)|` is at most `error` plus,
    for each of the `narrow` pairs (c, r), `c exp(-sum_j r_j (x_j - y_j)^2 / 2)`, for all x, y; the
    weights are positive."""

    weights: Annotated[np.ndarray, "M"]
    rates: Annotated[np.ndarray, "M d"]
    error: float
    narrow: tuple[tuple[float, np.ndarray], ...] = ()

    @property
    def size(self) -> float:
        """At least the sum, and at least k."""
        return up_float(math.fsum(self.weights) + self.error + self._narrow, 2)

    @property
    def _narrow(self) -> float:
        return math.fsum(weight for weight, _ in self.narrow)

    def of_features(self, d: int, dimensions: Sequence[int]) -> GaussianSum:
        """The same of some features out of d."""
        rates = np.zeros((len(self.weights), d))
        rates[:, list(dimensions)] = self.rates
        narrow = []
        for weight, rate in self.narrow:
            wide = np.zeros(d)
            wide[list(dimensions)] = rate
            narrow.append((weight, wide))
        return GaussianSum(self.weights, rates, self.error, tuple(narrow))

    def plus(self, other: GaussianSum) -> GaussianSum:
        """The sum of both."""
        weights = np.concatenate([self.weights, other.weights])
        rates = np.concatenate([self.rates, other.rates])
        error = up_float(self.error + other.error, 1)
        return GaussianSum(weights, rates, error, self.narrow + other.narrow)

    def times(self, other: GaussianSum) -> GaussianSum:
        """The product, by all products of terms."""
        weights = np.outer(self.weights, other.weights).reshape(-1)
        rates = (self.rates[:, None] + other.rates[None]).reshape(-1, self.rates.shape[1])
        lost = self.error * other.size + other.error * self.size
        pairs = ((self.narrow, other.size), (other.narrow, self.size))
        narrow = tuple((up_float(c * size, 1), r) for each, size in pairs for c, r in each)
        # one rounding of each weight, and of each rate, which moves exp(-q) by q exp(-q) < 1/2
        error = up_float(lost + 2.0 * U * self.size * other.size, 8)
        return GaussianSum(weights, rates, error, narrow)

    def scaled(self, factor: float) -> GaussianSum:
        """The sum times a positive number."""
        lost = factor * self.error + U * factor * self.size
        narrow = tuple((up_float(factor * c, 1), r) for c, r in self.narrow)
        return GaussianSum(factor * self.weights, self.rates, up_float(lost, 4), narrow)


def gaussian_sum(kernel: Kernel, d: int, tolerance: float) -> GaussianSum | None:
    """A kernel of d inputs as such a sum, the error of each mixture about `tolerance` of its
    variance; None where there is none: of kernels that are no mixtures of Gaussians."""
    if isinstance(kernel, Expressed):
        return gaussian_sum(kernel.expression, d, tolerance)
    if isinstance(kernel, ActiveDimensions):
        part = gaussian_sum(kernel.kernel, len(kernel.dimensions), tolerance)
        return None if part is None else part.of_features(d, kernel.dimensions)
    if not isinstance(kernel, Sum | Product | Scale):
        return _leaf(kernel, d, tolerance)
    parts = [gaussian_sum(part, d, tolerance) for part in kernel.parts]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    total, *others = known
    for part in others:
        total = total.plus(part) if isinstance(kernel, Sum) else total.times(part)
    return total.scaled(kernel.factor) if isinstance(kernel, Scale) else total


def _leaf(kernel: Kernel, d: int, tolerance: float) -> GaussianSum | None:
    """A kernel that has no parts."""
    if isinstance(kernel, Constant):
        return GaussianSum(np.array([kernel.variance]), np.zeros((1, d)), 0.0)
    if kernel.white:
        return GaussianSum(np.zeros(0), np.zeros((0, d)), 0.0)
    return _radial(kernel, d, tolerance) if isinstance(kernel, RadialKernel) else None


def _radial(kernel: RadialKernel, d: int, tolerance: float) -> GaussianSum | None:
    """Mixtures over length-scales."""
    inverse = np.broadcast_to(1.0 / np.asarray(kernel.length_scale, dtype=float), (d,))
    narrow, beyond = 0.0, 0.0
    if isinstance(kernel, SquaredExponential):
        weights, factors, lost = np.ones(1), np.ones(1), 0.0
    elif isinstance(kernel, Matern | RationalQuadratic):
        rough = isinstance(kernel, Matern)
        shape = kernel.nu if isinstance(kernel, Matern) else kernel.alpha
        mixed = _mixture(shape, tolerance, FINER * tolerance if rough else tolerance)
        if mixed is None:
            return None
        weights, places, lost, left = mixed
        factors = shape * np.exp(-places) if rough else np.exp(places) / shape
        if rough:  # the terms left out on the left are narrower than all others
            narrow, beyond = left, float(factors.max()) * (1.0 - 64.0 * U)
        else:
            lost += left
    else:
        return None
    rates = factors[:, None] * inverse * inverse
    if not np.all((rates > RATES[0]) & (rates < RATES[1])):
        return None
    # the relative error of a rate moves exp(-q) by less than half of it: it has three roundings, of
    # mixtures those of the factor besides, whose weights are rounded once more
    lost += 1.6 * U if len(weights) == 1 else 0.5 * (EXP_ULPS + 8) * U * float(weights.sum()) + U
    size = kernel.variance
    dropped = ((up_float(size * narrow, 2), beyond * inverse * inverse * (1.0 - 8.0 * U)),)
    error = up_float(size * lost, 16)
    return GaussianSum(size * weights, rates, error, dropped if narrow > 0 else ())


def _mixture(
    shape: float, tolerance: float, finer: float
) -> tuple[np.ndarray, np.ndarray, float, float] | None:
    """Weights c_n and places t_n of a trapezoidal rule for

        integral of exp(shape t - e^t) G(t) dt / Gamma(shape),  G = exp(-e^t q) or exp(-e^-t q),

    q >= 0; a bound of its error for every q, about `finer`, without the terms left out on the left;
    and the sum of these, about `tolerance` (Statement 22.12)."""
    # with half-width a the sum of all terms is within 2 cos(a)^-shape / (e^(2 pi a / h) - 1)
    sizes = -shape * np.log(np.cos(STRIPS))
    steps = 2.0 * math.pi * STRIPS / np.logaddexp(0.0, sizes + math.log(8.0 / finer))
    best = int(np.argmax(steps))
    a, h = float(STRIPS[best]), float(steps[best])
    rule = 2.0 * math.exp(float(sizes[best])) / math.expm1(2.0 * math.pi * a / h) * 1.001
    reach = 40.0 - math.log(min(1.0, shape))
    first = math.floor((math.log(shape) - reach / min(1.0, shape)) / h)
    last = math.ceil((math.log(shape) + reach) / h)
    if last - first > 100 * MOST_TERMS:
        return None
    places = h * np.arange(first, last + 1)
    log = float(special.gammaln(shape))
    c = np.exp(math.log(h) - log + shape * places - np.exp(places))
    terms = abs(math.log(h)) + abs(log) + shape * np.abs(places) + np.exp(places)
    relative = (4.0 * U * (LGAMMA_ULPS + EXP_ULPS + 4)) * (2.0 + terms)
    ends = np.cumsum(c), np.cumsum(c[::-1])[::-1]
    used = (ends[0] > 0.25 * tolerance) & (ends[1] > 0.25 * finer)
    if not 0 < used.sum() <= MOST_TERMS:
        return None
    begin, end = int(np.argmax(used)), len(used) - int(np.argmax(used[::-1]))
    # left of all places each term is less than the next one by more than this factor
    growth = math.exp(shape * h - math.exp(float(places[0])) * math.expm1(h)) * (1.0 - 1e-9)
    if not growth > 1.0:
        return None
    above = c * (1.0 + relative)
    left = math.fsum(above[:begin]) + float(above[0]) / (growth - 1.0)
    right = math.fsum(above[end:]) + TINY  # beyond the last place exp(-e^t) is nothing
    off = up_float(float(np.sum((c * relative)[begin:end])), len(c) + 8)
    error = up_float(rule + right + off, 8)
    return c[begin:end], places[begin:end], error, up_float(left, 8)
