"""From what the libraries store to the canonical form: a prior mean that is linear in the inputs, a
normal distribution at inducing points, and several independent outputs as one model.

With u = f(Z), L L^T = K_ZZ + jitter I and whitened values w = L^-1 (u - m_Z) ~ N(c, Q):

    mean      m(x) + k(x, Z) L^-T c,
    variance  k(x, x) - k(x, Z) L^-T (I - Q) L^-1 k(Z, x).

I - Q = U diag(e) U^T is often indefinite. Rows `sqrt|e_j| u_j^T L^-1` with e_j > 0 are the factor
A, those with e_j < 0 the subtracted factor C: as A K A^T and C K C^T are diagonal (jitter aside),
neither takes back what the other gives. Reference: Hensman et al. 2015, Matthews 2017.

A `Posterior` has one kernel; outputs with kernels of their own are `SeparateOutputs`. Outputs whose
kernels are the same up to a factor fit into it: the factor of output c becomes `scale_c`^2. Points
of all outputs are listed once each; the weights and factors of an output are zero at the points of
others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg

from gpcert.errors import UnsupportedModelError
from gpcert.functions import PolynomialMean
from gpcert.kernels import Kernel
from gpcert.model.multi_output import Outputs, SeparateOutputs
from gpcert.model.posterior import Posterior
from gpcert.model.posterior_parts import known_noise
from gpcert.numerics.arrays import finite_array
from gpcert.numerics.spectral import symmetric_eigh
from gpcert.numerics.triangular import Inverse, triangular_inverse

SAME = 1e-12
"""Entries of two covariances that differ by less, relative to the largest, are the same number,
computed in two ways."""


@dataclass(frozen=True, eq=False)
class PriorMean:
    """`constant_c + slope_c.x`: constant (m,), slope (m, d), and perhaps a polynomial.

    >>> both = PriorMean.of(1, 2, constant=3.0) + PriorMean.of(1, 2, slope=[[1.0, 0.5]])
    >>> both.at(np.array([[2.0, 4.0]])).tolist()
    [[7.0]]
    """

    constant: np.ndarray
    slope: np.ndarray
    function: PolynomialMean | None = None
    """Of m outputs, what is added to that."""

    @staticmethod
    def of(m: int, d: int, constant: object = 0.0, slope: object = 0.0) -> PriorMean:
        """Of m outputs and d inputs; a constant (or m) and slopes (m or 1, d), 0 for none."""
        parts = finite_array("mean", constant), finite_array("mean", slope)
        try:
            return PriorMean(np.broadcast_to(parts[0], (m,)), np.broadcast_to(parts[1], (m, d)))
        except ValueError as error:
            raise UnsupportedModelError(
                f"mean: expected a mean of {m} outputs and {d} inputs, got constants of shape "
                f"{parts[0].shape} and slopes of shape {parts[1].shape}"
            ) from error

    def __add__(self, other: PriorMean) -> PriorMean:
        functions = [each for each in (self.function, other.function) if each is not None]
        if len(functions) > 1:
            raise UnsupportedModelError(
                "mean: sums of two polynomials are not supported; write them as one"
            )
        function = functions[0] if functions else None
        return PriorMean(self.constant + other.constant, self.slope + other.slope, function)

    def plus_function(self, function: PolynomialMean) -> PriorMean:
        """With a polynomial added."""
        return replace(self, function=function)

    def function_of(self, output: int) -> PolynomialMean | None:
        """The polynomial of one output."""
        if self.function is None:
            return None
        return PolynomialMean(self.function.powers, self.function.coefficients[output])

    def without(self, column: int, value: float) -> PriorMean:
        """The mean of the other inputs, where one of them has this value."""
        constant = self.constant + self.slope[:, column] * value
        return PriorMean(constant, np.delete(self.slope, column, axis=1))

    def at(self, X: np.ndarray) -> np.ndarray:
        """(n, m) at inputs (n, d)."""
        linear = X @ self.slope.T + self.constant
        return linear if self.function is None else linear + self.function.value(X)


@dataclass(frozen=True, eq=False)
class Canonical:
    """Weights (N,) and the factors A (r, N) and C (r', N) of a posterior; and the noise (N,) of the
    observations, where A^T A is about (K + noise)^-1."""

    weights: np.ndarray
    factor: np.ndarray | Inverse
    negative_factor: np.ndarray | None
    training_noise: np.ndarray | None = None

    def posterior(
        self, kernel: Kernel, points: np.ndarray, mean: PriorMean, output: int = 0, **more: Any
    ) -> Posterior:
        """Of a prior with this kernel and this output of the mean."""
        factors = {
            "factor": self.factor,
            "negative_factor": self.negative_factor,
            "training_noise": self.training_noise,
        }
        trend: dict[str, Any] = {"offset": mean.constant[output], "slope": mean.slope[output]}
        trend["mean_function"] = mean.function_of(output)
        return Posterior(kernel, points, self.weights, **factors, **trend, **more)


def lower_factor(K: np.ndarray, what: str) -> np.ndarray:
    """The Cholesky factor L of K in float64, or an `UnsupportedModelError`."""
    try:
        return scipy.linalg.cholesky(K, lower=True)
    except (np.linalg.LinAlgError, ValueError):
        raise UnsupportedModelError(
            f"{what}: expected a positive definite matrix, but in float64 it has no Cholesky "
            "factor; the library adds jitter of its own choice in such a case. Fit the model with "
            "more noise, or without duplicate points"
        ) from None


def exact_regression(K: np.ndarray, targets: np.ndarray, noise: Any) -> Canonical:
    """From the covariance K of the observations, noise included, their centred values (N,), and the
    noise, a number or one for each.

    `t = K^-1 y`, `A = L^-1`: Rasmussen & Williams 2006, Algorithm 2.1.
    """
    L = lower_factor(K, "covariance of the training points, noise included")
    weights = scipy.linalg.cho_solve((L, True), targets)
    return Canonical(weights, Inverse.of(L, owned=True), None, known_noise(len(L), noise))


def noise_between(covariance: np.ndarray, K: np.ndarray) -> np.ndarray | None:
    """(N,): by how much the diagonal of the covariance of observations is larger than that of K;
    None where they differ elsewhere, too, or it is not.

    >>> noise_between(np.eye(2) + 1.0, np.ones((2, 2))).tolist()
    [1.0, 1.0]
    """
    apart = covariance - K
    noise = np.diag(apart).copy()
    np.fill_diagonal(apart, 0.0)
    same = np.all(np.abs(apart) <= SAME * np.abs(K).max())
    return known_noise(len(K), noise) if same else None


def whitened(L: np.ndarray, center: np.ndarray, spread: np.ndarray | None) -> Canonical:
    """From c (N,) and Q (N, N), None for no spread at all; see the module."""
    weights = scipy.linalg.solve_triangular(L, center, lower=True, trans=1)
    inverse = triangular_inverse(L)
    if spread is None:
        return Canonical(weights, inverse, np.zeros((0, len(L))))
    left = np.eye(len(L)) - (spread / 2 + spread.T / 2)
    eigenvalues, U = symmetric_eigh(left, "I - Q")
    rows = (np.sqrt(np.abs(eigenvalues)) * U).T @ inverse
    return Canonical(weights, rows[eigenvalues > 0], rows[eigenvalues < 0])


def unwhitened(L: np.ndarray, center: np.ndarray, spread: np.ndarray | None) -> Canonical:
    """From the mean (N,), less the prior's, and the covariance (N, N) of u itself."""

    def solve(B: np.ndarray) -> np.ndarray:
        return scipy.linalg.solve_triangular(L, B, lower=True)

    return whitened(L, solve(center), None if spread is None else solve(solve(spread).T))


def in_units(posterior: Posterior, shift: Any, scale: Any) -> Posterior:
    """The posterior of `y = shift + scale y'`, output by output, from that of y'."""
    return replace(
        posterior,
        offset=shift + scale * posterior.offset,
        scale=scale * posterior.scale,
        noise=scale**2 * posterior.noise,
    )


def join_outputs(outputs: Sequence[Posterior], **options: Any) -> Outputs:
    """All outputs as one model; `options` replace fields of it, such as its `likelihood`."""
    if len(outputs) == 1:
        return replace(outputs[0], **options) if options else outputs[0]
    alike = all(
        output.features is outputs[0].features and output.mean_function is None
        for output in outputs
    )
    common = _common_kernel([output.kernel for output in outputs]) if alike else None
    if common is None:  # latent functions under one likelihood
        likelihood = options.pop("likelihood", outputs[0].likelihood)
        classes = options.pop("classes", None)
        members = tuple(replace(output, **options) for output in outputs)
        return SeparateOutputs(members, likelihood, classes)
    kernel, factors = common
    points = [output.points for output in outputs]
    shared = all(np.array_equal(points[0], other) for other in points[1:])
    starts = np.cumsum([0, *(0 if shared else len(Z) for Z in points[:-1])])
    Z = points[0] if shared else np.concatenate(points)
    roots = np.sqrt(factors)

    def placed(name: str) -> np.ndarray:
        """(m, r, N): factors, or weights as one row, in units of the common kernel, `A_c k_c =
        (A_c r_c) (r_c k)`."""
        each = [np.atleast_2d(getattr(output, name)[0]) for output in outputs]
        blocks = np.zeros((len(each), max(len(A) for A in each), len(Z)))
        for c, A in enumerate(each):
            blocks[c, : len(A), starts[c] : starts[c] + A.shape[1]] = A * roots[c]
        return blocks

    noises = [output.training_noise for output in outputs]
    known = all(noise is not None for noise in noises)
    each = np.full((len(outputs), len(Z)), np.inf)
    if known:  # in units of the common kernel; an output has no observation at others' points
        for row, noise, start, factor in zip(each, noises, starts, factors, strict=True):
            row[start : start + noise.shape[1]] = noise[0] / factor
    fields: dict[str, Any] = {
        "kernel": kernel,
        "points": Z,
        "weights": placed("weights")[:, 0],
        "factor": placed("factor"),
        "negative_factor": None if known else placed("negative_factor"),
        "training_noise": each if known else None,
        "offset": np.concatenate([output.offset for output in outputs]),
        "scale": np.concatenate([output.scale for output in outputs]) * roots,
        "noise": np.concatenate([output.noise for output in outputs]),
        "slope": np.concatenate([output.slope for output in outputs]) / roots[:, None],
        "likelihood": outputs[0].likelihood,
        "feature_names": outputs[0].feature_names,
        "spread": outputs[0].spread if shared else None,  # else the outputs' data differ
    }
    return Posterior(**{**fields, **options})


def _common_kernel(kernels: Sequence[Kernel]) -> tuple[Kernel, np.ndarray] | None:
    """The kernel, and the factor of each output's own; None where they differ otherwise."""
    parts = [kernel.parted() for kernel in kernels]
    first = parts[0][1]
    if any((each.name, each.config()) != (first.name, first.config()) for _, each in parts):
        return None
    if len({factor for factor, _ in parts}) == 1:
        return kernels[0], np.ones(len(kernels))
    return first, np.asarray([factor for factor, _ in parts])
