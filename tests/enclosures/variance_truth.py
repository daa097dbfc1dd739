"""The variance of an exact Gaussian process in ball arithmetic (python-flint, 200 bits and more).

    v(x) = k(x, x) - k(x, Z) (K + diag(noise))^-1 k(Z, x)

for a kernel, points and noise as they are stored, in float64. Nothing is shared with kernels,
enclosures or their factors: a kernel's values are those of `gpcert.testing.kernel_references`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpcert.kernels import Kernel
from gpcert.testing.arb_reference import kernel_reference
from gpcert.testing.balls import dot, exact, flint

LARGEST_RADIUS = 1e-15
"""Of a truth's ball, relative to its value: one that is wider would prove nothing."""


class ExactVariance:
    """`v` of one kernel, points (N, d) and noise, a variance or one for each point.

    The kernel matrix is kept and shared by models that differ in their noise (`with_noise`).

    >>> from gpcert.kernels import SquaredExponential
    >>> truth = ExactVariance(SquaredExponential(1.0, 3.0), [[0.0]], 1.0)
    >>> float(truth.variance([0.0])), float(truth.std([0.0])) == 0.75**0.5
    (0.75, True)
    """

    def __init__(self, kernel: Kernel, points: Any, noise: Any, gram: Any = None) -> None:
        self.kernel = kernel
        self.places = np.atleast_2d(np.asarray(points, dtype=np.float64))
        self.noise = np.broadcast_to(np.asarray(noise, dtype=np.float64), len(self.places))
        self.points = [exact(z) for z in self.places]
        self.gram = self._gram() if gram is None else gram
        N = len(self.points)
        diagonal = exact(self.noise)
        zero = flint().arb(0)
        rows = [[diagonal[i] if i == j else zero for j in range(N)] for i in range(N)]
        self.matrix = self.gram + flint().arb_mat(rows)

    def _gram(self) -> Any:
        N = len(self.points)
        rows = [[None] * N for _ in range(N)]
        for i, x in enumerate(self.points):
            for j in range(i + 1):
                rows[i][j] = rows[j][i] = kernel_reference(self.kernel, x, self.points[j])
        return flint().arb_mat(rows)

    def with_noise(self, noise: Any) -> ExactVariance:
        """The same kernel and points with another noise."""
        return ExactVariance(self.kernel, self.places, noise, self.gram)

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
        `k(x, x) - w.k + w.r - r^T (K + Sigma)^-1 r`, and the last lies in `[0, |r|^2 / noise]`."""
        arb, arb_mat = flint().arb, flint().arb_mat
        product = self.matrix * arb_mat([[value] for value in w])
        r = [product[i, 0] - value for i, value in enumerate(row)]
        most = dot(r, r) / arb(float(self.noise.min()))
        return prior - dot(w, row) + dot(w, r) - _between_zero_and(most)

    def variance(self, x: Any) -> Any:
        """`v` at one point."""
        return self.variances([x])[0]

    def std(self, x: Any) -> Any:
        """`sqrt(v)` at one point."""
        return self.variance(x).sqrt()


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
