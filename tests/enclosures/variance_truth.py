"""The variance of an exact Gaussian process in ball arithmetic (python-flint, 200 bits and more).

    v(x) = k(x, x) - k(x, Z) (K + diag(noise))^-1 k(Z, x)

for a kernel, points and noise as they are stored, in float64. Nothing is shared with kernels,
enclosures or their factors: a kernel's values are those of `gpcert.testing.kernel_references`.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import numpy as np

from gpcert.kernels import Kernel
from gpcert.testing.arb_reference import kernel_reference
from gpcert.testing.kernel_references import dot, exact, flint, reference_of, total

LARGEST_RADIUS = 1e-15
"""Of a truth's ball, relative to its value: one that is wider would prove nothing."""


class ExactVariance:
    """`v` of one kernel, points (N, d) and noise, a variance or one for each point; infinite where
    a point says nothing.

    The last kernel matrices are kept: models that differ in their noise share one.

    >>> from gpcert.kernels import SquaredExponential
    >>> truth = ExactVariance(SquaredExponential(1.0, 3.0), [[0.0]], 1.0)
    >>> float(truth.variance([0.0])), float(truth.std([0.0])) == 0.75**0.5
    (0.75, True)
    """

    def __init__(self, kernel: Kernel, points: Any, noise: Any) -> None:
        self.kernel = kernel
        places = np.atleast_2d(np.asarray(points, dtype=np.float64))
        sigma = np.broadcast_to(np.asarray(noise, dtype=np.float64), len(places))
        places, sigma = places[np.isfinite(sigma)], sigma[np.isfinite(sigma)]
        self.points, self.noise = [exact(z) for z in places], exact(sigma)
        config = json.dumps(kernel.config(), sort_keys=True)
        gram = _gram(kernel.name, config, places.tobytes(), places.shape)
        self.matrix = flint().arb_mat(gram)  # a copy
        for i, own in enumerate(self.noise):
            self.matrix[i, i] += own

    def variances(self, X: Any) -> list[Any]:
        """`v` at the rows of X, as balls whose radius is at most 1e-15 of it."""
        X = np.atleast_2d(np.asarray(X, dtype=np.float64))
        rows = [self.cross(x) for x in X]
        weights = self._solve(flint().arb_mat(rows).transpose())
        found = []
        for k, (x, row) in enumerate(zip(X, rows, strict=True)):
            w = [weights[i, k].mid() for i in range(len(row))]
            found.append(_checked(self._least(self.prior(x), row, w)))
        return found

    def cross(self, x: Any) -> list[Any]:
        """`k(x, z_i)` for all i."""
        at = exact(x)
        return [kernel_reference(self.kernel, at, z) for z in self.points]

    def prior(self, x: Any) -> Any:
        """`k(x, x)`."""
        return kernel_reference(self.kernel, exact(x), exact(x))

    def _solve(self, columns: Any) -> Any:
        """About `(K + Sigma)^-1` times them, to nearly all bits; nothing is proved of it."""
        return self.matrix.solve(columns, algorithm="approx")

    def _least(self, prior: Any, row: list[Any], w: list[Any]) -> Any:
        """v from any weights w: with `r = (K + Sigma) w - k` it is
        `k(x, x) - w.k + w.r - r^T (K + Sigma)^-1 r`, the last at most `r^T Sigma^-1 r`."""
        product = self.matrix * flint().arb_mat([[value] for value in w])
        r = [product[i, 0] - value for i, value in enumerate(row)]
        most = total(value * value / own for value, own in zip(r, self.noise, strict=True))
        return prior - dot(w, row) + dot(w, r) - _between_zero_and(most)

    def variance(self, x: Any) -> Any:
        """`v` at one point."""
        return self.variances([x])[0]

    def std(self, x: Any) -> Any:
        """`sqrt(v)` at one point."""
        return self.variance(x).sqrt()


@lru_cache(maxsize=4)
def _gram(name: str, config: str, places: bytes, shape: tuple[int, int]) -> Any:
    """K of a kernel at points, as an `arb_mat`."""
    k = reference_of(name, json.loads(config))
    points = [exact(z) for z in np.frombuffer(places).reshape(shape)]
    rows: list[list[Any]] = [[None] * len(points) for _ in points]
    for i, x in enumerate(points):
        for j in range(i + 1):
            rows[i][j] = rows[j][i] = k(x, points[j])
    return flint().arb_mat(rows)


def _between_zero_and(most: Any) -> Any:
    """A ball that contains [0, most]."""
    half = most.upper() / 2
    return flint().arb(half, half)


def _checked(value: Any) -> Any:
    assert value.is_finite(), "the truth is not finite"
    assert value.rad() <= LARGEST_RADIUS * abs(value.mid()), f"the truth {value} is too wide"
    return value


def contains(lower: float, upper: float, ball: Any) -> bool:
    """Whether the real number in `ball` is not proved to lie outside `[lower, upper]`.

    >>> contains(1.0, 2.0, flint().arb(2).sqrt()), contains(1.0, float("nan"), flint().arb(2))
    (True, False)
    """
    arb = flint().arb
    inside = not arb(float(lower)) > ball and not arb(float(upper)) < ball
    return bool(lower <= upper) and inside


def assert_contains(lower: float, upper: float, ball: Any) -> None:
    """Fail where it is not `contains`; no tolerance."""
    assert contains(lower, upper, ball), f"[{lower!r}, {upper!r}] misses {ball.str(25)}"
