"""k(x, y) = s^2 F_0(r),  r^2 = sum_j ((x_j - y_j) / l_j)^2: what all radial kernels share."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from functools import cached_property, lru_cache
from typing import Annotated, Any, ClassVar

import numpy as np
from scipy.spatial.distance import cdist

from gpcert.kernels.base import GradientProduct, Kernel
from gpcert.kernels.nodes.radial import LocalRadial
from gpcert.kernels.nodes.radial_profiles import SMALL_CHANGE, RadialProfile
from gpcert.kernels.parameters import LENGTHS, POSITIVE, Parameter
from gpcert.numerics.arrays import Inputs, Points
from gpcert.numerics.pairs import PAIR_ERROR, Pair, two_product
from gpcert.numerics.rounding import TINY, U, gamma, given, two_sum, up, up_float
from gpcert.regions.frame import Frame

ORDINARY = (1e-100, 1e100)
"""Lengths between which unscaled squares that leave float64 belong to kernel values of 0 or 1."""

SMALL = 1e-8
"""Lengths from here to its inverse change no square of a difference into zero or infinity that
matters: those that all features share are divided by last."""

FARTHEST = 1e100
"""Scaled distances are cut here in Gram matrices, so that their squares stay in float64."""

SMALLEST_EXTENT = 2.0**-200
"""Of all points together, in lengths: values at smaller ones are those at one point."""

PAIRS_AT_ONCE = 2**14
"""Kernel values as pairs, whose sixty arrays or so stay in a cache."""

FAR_BELOW = 2.0**-40
"""Relative errors of pairs that are worth a look."""

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
        """Where their error is smaller than that of `sharp_values`, which stand elsewhere.

        An error E of r^2 moves log F_0 by at most `F_1(0) E / 2`, or by the steepness times E / r
        (Statement 16.14).
        """
        rows = max(1, PAIRS_AT_ONCE // max(1, len(Z)))
        blocks = [self._pair_block(X[i : i + rows], Z) for i in range(0, len(X), rows)]
        high, low, error = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
        return Pair(high, low), error

    @np.errstate(divide="ignore", invalid="ignore")
    def _pair_block(self, X: np.ndarray, Z: np.ndarray) -> tuple[np.ndarray, ...]:
        """High and low parts and errors."""
        value, error = self.sharp_values(X, Z)
        squares = self._pair_squares(X, Z)
        shape = None if squares is None else self.profile.pair_at_squares(squares[0])
        if squares is None or shape is None:
            return value, np.zeros_like(value), error
        r2, (constant, rate) = squares
        change = constant + rate * r2.high
        slope = self.profile.at_zero[1]
        if math.isfinite(slope):
            change *= 0.5 * slope
        else:
            r = np.sqrt(r2.high)
            change *= self.profile.steepness(0, r, r) / r
        pair, relative = shape[0] * Pair.of(self.variance), 1.1 * change + shape[1] + PAIR_ERROR
        smaller = up(relative * pair.high, 12) + TINY * max(1.0, self.variance)
        better = (relative < FAR_BELOW) & (smaller < error)
        high, low = np.where(better, pair.high, value), np.where(better, pair.low, 0.0)
        return given(high), given(low), np.where(better, smaller, error)

    def _pair_squares(
        self, X: np.ndarray, Z: np.ndarray
    ) -> tuple[Pair, tuple[float, float]] | None:
        """Scaled squared distances, and a and b of their errors `a + b r^2`; None where numbers
        are too large or small.

        Scaled coordinates are a whole multiple of g, of at most 25 digits, and a rest, so that the
        squares of differences of the former have an exact sum (Statement 16.14).
        """
        lengths, d = np.broadcast_to(self.length_scale, (X.shape[1],)), X.shape[1]
        points = np.concatenate([X, Z])
        largest = np.abs(points).max(axis=0, initial=0.0)
        if not np.all((lengths > ORDINARY[0]) & (lengths < ORDINARY[1]) & (largest < FARTHEST)):
            return None
        size = 2.1 * math.sqrt(float(np.sum(np.square(largest / lengths))))
        if not size < FARTHEST:
            return None
        g = 2.0 ** (math.frexp(max(size, SMALLEST_EXTENT))[1] - 26)
        whole = np.rint(points / lengths / g) * g
        product = two_product(whole, lengths)
        rest = ((points - product.high) - product.low) / lengths
        high, low = np.zeros((len(X), len(Z))), np.zeros((len(X), len(Z)))
        for j in range(d):
            (a, b), (c, e) = (
                (part[: len(X), j, None], part[len(X) :, j]) for part in (whole, rest)
            )
            far, near = a - b, c - e
            high += far * far
            low += (2.0 * far + near) * near
        root_d = math.sqrt(d)
        rate = 1.1 * U * g * (12 + d) * root_d
        return Pair(*two_sum(high, low)), (rate + 5.0 * U * g * g * (12 + d) * d, rate)

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
