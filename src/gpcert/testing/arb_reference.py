"""Posteriors and likelihoods in ball arithmetic (python-flint, 200 bits): the reference of all
enclosures; and small regressions to try them on.

Written from the formulas of `gpcert.model.posterior` and of the likelihoods alone; nothing is
shared with kernels or enclosures. Every number is an `arb`, a ball
that contains the real value for the stored float64 arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.linalg
from flint import acb, arb, arb_series, ctx

from gpcert.errors import InputError
from gpcert.kernels import Kernel
from gpcert.model.posterior import Posterior
from gpcert.testing.kernel_references import (
    BITS,
    dot,
    exact,
    flint,
    reference_of,
    series_length,
    total,
)

LARGEST_RADIUS = 1e-18
"""A reference wider than this (relative, or absolute below 1) would prove nothing."""

TAYLOR_ORDER = 16
"""Terms of the Taylor models of `largest_on`."""

_LAMBDAS = (0.41, 0.4, 0.37, 0.44, 0.39)
_COEFS = (-1854.8214151, 3516.89893646, 221.29346712, 128.12323805, -2010.49422654)
_TOLERANCE = 1e-22


def kernel_reference(kernel: Kernel, x: Sequence[Any], z: Sequence[Any]) -> Any:
    """`k(x, z)` for points whose coordinates are balls (see `exact`).

    >>> from gpcert.kernels import SquaredExponential
    >>> k = kernel_reference(SquaredExponential(1.0, 2.0), exact([0.0]), exact([1.0]))
    >>> bool(abs(float(k) - 2 * np.exp(-0.5)) < 1e-15)
    True
    """
    return reference_of(kernel.name, kernel.config())(x, z)


class ArbPosterior:
    """Latent mean, variance and prediction of a `Posterior` at float points, as balls.

    >>> from gpcert.kernels import SquaredExponential
    >>> model = Posterior(SquaredExponential(1.0), [[0.0]], weights=[2.0], factor=[[0.5]])
    >>> reference = ArbPosterior(model)
    >>> float(reference.mean([0.0])), float(reference.variance([0.0]))
    (2.0, 0.75)
    """

    def __init__(self, posterior: Posterior) -> None:
        self.posterior = posterior
        self.points = [exact(z) for z in posterior.points]
        self.weights = [exact(t) for t in posterior.weights]
        both = [posterior.factors_of(c) for c in range(posterior.precision_count)]
        self.factors = [[exact(row) for row in A] for A, _ in both]
        self.negative = [[exact(row) for row in C] for _, C in both]
        self._rows: dict[bytes, list[Any]] = {}
        self._exact: dict[int, Any] = {}

    def row(self, x: Any) -> list[Any]:
        """`k(x, z_i)` for all i; kept, as mean and variance both ask for it."""
        key = np.asarray(x, dtype=np.float64).tobytes()
        if key not in self._rows:
            at = self.seen(x)
            self._rows[key] = [kernel_reference(self.posterior.kernel, at, z) for z in self.points]
        return self._rows[key]

    def seen(self, x: Any) -> list[Any]:
        """What the kernel sees of x: itself, or `W x + b`."""
        features = self.posterior.features
        if features is None:
            return exact(x)
        rows = zip(features.matrix, exact(features.shift), strict=True)
        x = exact(features.indicated(np.asarray(x, dtype=np.float64)[None])[0])
        return [dot(exact(row), x) + shift for row, shift in rows]

    def canonical_mean(self, x: Any, output: int = 0) -> Any:
        """`g_c(x) = sum_i t_i k(x, z_i) + slope_c.z`, z what the kernel sees of x."""
        trend = dot(exact(self.posterior.slope[output]), self.seen(x))
        return dot(self.weights[output], self.row(x)) + trend

    def canonical_variance(self, x: Any, output: int = 0) -> Any:
        """`v_c(x) = k(x, x) - |A_c k(Z, x)|^2 + |C_c k(Z, x)|^2`, which may be negative; where the
        training noise is known `k(x, x) - k(x, Z) (K + Sigma)^-1 k(Z, x)`."""
        row, at = self.row(x), self.seen(x)
        value = kernel_reference(self.posterior.kernel, at, at)
        index = output if len(self.factors) > 1 else 0
        if self.posterior.training_noise is not None:
            return value - self._explained(index, row)
        taken, added = (
            total(dot(part, row) ** 2 for part in parts[index])
            for parts in (self.factors, self.negative)
        )
        return value - taken + added

    def _explained(self, index: int, row: list[Any]) -> Any:
        """`k (K + Sigma)^-1 k`, of the points with an observation, solved with as many bits as the
        balls need to be small."""
        noise = self.posterior.training_noise[index]
        seen = [i for i in range(len(row)) if np.isfinite(noise[i])]
        if index not in self._exact:
            N, kernel = len(seen), self.posterior.kernel
            matrix = flint().arb_mat(N, N)
            for i in range(N):
                for j in range(i + 1):
                    value = kernel_reference(kernel, self.points[seen[i]], self.points[seen[j]])
                    matrix[i, j] = matrix[j, i] = value
                matrix[i, i] += exact([noise[seen[i]]])[0]
            self._exact[index] = matrix
        k = [row[i] for i in seen]
        solved = self._exact[index].solve(flint().arb_mat([[each] for each in k]))
        return dot(k, [solved[i, 0] for i in range(len(k))])

    def mean(self, x: Any, output: int = 0) -> Any:
        """`offset + scale g`."""
        offset, scale, _ = self._affine(output)
        return offset + scale * self.canonical_mean(x, output)

    def variance(self, x: Any, output: int = 0) -> Any:
        """`scale^2 max(v, 0) + noise`."""
        _, scale, noise = self._affine(output)
        return scale**2 * self.canonical_variance(x, output).max(flint().arb(0)) + noise

    def probability(self, x: Any, output: int = 0) -> Any:
        """`F(mu, v)` of a binary likelihood."""
        mu, v = self.mean(x, output), self.variance(x, output)
        name = self.posterior.likelihood.name
        if name == "probit":
            return normal_cdf(mu / (1 + v).sqrt())
        if name == "sklearn-logistic":
            return sklearn_probability(mu, v)
        if name == "logistic":
            with ctx.workprec(BITS):
                return logistic_normal(mu, v)
        raise InputError(f"likelihood: expected a binary one, got {name!r}")

    def gram(self) -> Any:
        """K_ZZ as an `arb_mat`."""
        kernel = self.posterior.kernel
        return flint().arb_mat(
            [[kernel_reference(kernel, x, z) for z in self.points] for x in self.points]
        )

    def squared_norm(self, output: int = 0) -> Any:
        """`t^T K_ZZ t`, the squared RKHS norm of g_c."""
        matrix, t = self.gram().tolist(), self.weights[output]
        return dot(t, [dot(row, t) for row in matrix])

    def _affine(self, output: int) -> tuple[Any, ...]:
        p = self.posterior
        return tuple(exact([p.offset[output], p.scale[output], p.noise[output]]))


def assert_encloses(lower: float, upper: float, ball: Any) -> None:
    """Fail if the real number in `ball` is proved to lie outside `[lower, upper]`; no tolerance.

    A NaN fails, and so does a ball too wide to prove anything.

    >>> assert_encloses(1.0, 2.0, flint().arb(2).sqrt())
    """
    assert lower <= upper, f"crossed or undefined bounds [{lower!r}, {upper!r}]"
    size = max(1.0, abs(float(ball.mid())))
    assert ball.is_finite(), "the reference is not finite"
    assert float(ball.rad()) <= LARGEST_RADIUS * size, f"the reference {ball} is too wide"
    assert not arb(lower) > ball, f"lower bound {lower!r} is above {ball.str(25)}"
    assert not arb(upper) < ball, f"upper bound {upper!r} is below {ball.str(25)}"


def normal_cdf(z: arb) -> arb:
    """`Phi(z)`."""
    return (-z / arb(2).sqrt()).erfc() / 2


def sigmoid(x: Any) -> Any:
    """`1 / (1 + exp(-x))` of a real or complex ball."""
    return 1 / (1 + (-x).exp())


def logistic_normal(mu: arb, v: arb) -> arb:
    """`E sigma(mu + sqrt(v) t)` by certified quadrature.

    If v < 4, over t in [-12, 12], which leaves out a probability below 4e-33. Else over logistic
    noise X in [-60, 60], from `F = P(mu + sqrt(v) t + X > 0)`, which leaves out less than 2e-26.
    """
    if v == 0:
        return sigmoid(mu)
    scale = v.sqrt()

    def over_latent(t: acb, _analytic: bool) -> acb:
        return (-t * t / 2).exp() / (2 * acb.pi()).sqrt() * sigmoid(mu + scale * t)

    def over_noise(x: acb, _analytic: bool) -> acb:
        density = 1 / ((x / 2).cosh() * 2) ** 2
        return density * (-(mu + x) / (scale * acb(2).sqrt())).erfc() / 2

    integrand, end, tail = (over_latent, 12, 1e-30) if v < 4 else (over_noise, 60, 1e-25)
    integral = acb.integral(integrand, -end, end, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE)
    return integral.real + arb(0, tail)


def sklearn_probability(mu: arb, v: arb) -> arb:
    """`sum_i C_i Phi(mu / sqrt(1 / (2 L_i^2) + v))` with scikit-learn's constants."""
    return total(
        arb(weight) * normal_cdf(mu / (1 / (2 * arb(scale) ** 2) + v).sqrt())
        for scale, weight in zip(_LAMBDAS, _COEFS, strict=True)
    )


def largest_on(function: Callable[[arb_series], arb_series], start: arb, end: arb) -> arb:
    """Proved upper bound of `|f|` on [start, end], f given by its action on power series.

    Taylor's theorem: the polynomial at the middle, and Lagrange's remainder from the coefficient
    of order `TAYLOR_ORDER` enclosed over a ball that contains the interval.
    """
    middle, radius = (start + end) / 2, (end - start) / 2
    cell = middle + arb(0, 1) * radius
    with series_length(TAYLOR_ORDER + 8):  # a function may differentiate up to 7 times
        polynomial = function(arb_series([middle, 1])).coeffs()[:TAYLOR_ORDER]
        rest = function(arb_series([cell, 1])).coeffs()[TAYLOR_ORDER]
    known = total(abs(c) * radius**k for k, c in enumerate(polynomial))
    return known + abs(rest) * radius**TAYLOR_ORDER


def regression_posterior(
    kernel: Kernel, points: np.ndarray, targets: np.ndarray, ridge: float, **options: Any
) -> Posterior:
    """`t = (K + n I)^-1 y`, `A = L^-1` with `L L^T = K + n I`, n = ridge times k(x, x)."""
    K = kernel.value(points, points)
    amount = ridge * float(K[0, 0])
    # duplicated points and a tiny ridge: raise it until a factor exists
    for _ in range(20):
        try:
            L = np.linalg.cholesky(K + amount * np.eye(len(K)))
            break
        except np.linalg.LinAlgError:
            amount *= 10.0
    else:
        raise ValueError("no Cholesky factor; is the kernel positive definite?")
    factor = scipy.linalg.solve_triangular(L, np.eye(len(K)), lower=True)
    return Posterior(kernel, points, (targets @ factor.T) @ factor, factor, **options)
