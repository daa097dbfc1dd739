"""Laplace's approximation: a Gaussian at the mode, for two classes (GPML Alg. 3.1, 3.2 and 5.1, any
log-concave link) and for several (Alg. 3.3 and 3.4, softmax, O(m N^3) per step).

With `f = K a` the objective is `log p(y | f) - a^T f / 2`, and at the mode `a = grad log p(y | f)`.
Newton's steps are taken in a, as corrections `(I + W K)^-1 (grad log p - a)`: their rounding error
is relative to the gap, so that the iteration corrects it; the book's form for the next a itself
does not.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special
from sklearn.exceptions import ConvergenceWarning

from gpcert.errors import InputError
from gpcert.model.posterior_parts import noise_of_sites
from gpcert.models.inference import fit as fitting
from gpcert.models.inference.fit import EvidenceGradient, Fit
from gpcert.models.links import Derivatives, Link, softmax_log_likelihood
from gpcert.numerics.rounding import U
from gpcert.numerics.triangular import square, triangular_inverse

MODE_TOLERANCE = 1e-10
"""On `|a - grad log p(y | K a)|`, relative to `Problem.size`. Newton is quadratic: the gap is
mostly far smaller when it passes the test."""

_HALVINGS = 40

_FAST_STEPS = 25

MAX_JOINT = 4
"""Classes up to which one factor has all covariances, (m - 1) N rows; beyond, each class has its
own of N rows, and N rows more say what couples them: linear in the classes, not quadratic."""


@dataclass(frozen=True, eq=False)
class Problem:
    """Covariances and targets of one or several classes; latent values f and a are arrays alike.

    `variances`: prior variances of the latent values; `times(a)` is K a; `at(f)` what the others
    are told of the likelihood at f; `gradient(local)` is `grad log p`; `step(local, gap, steps)` is
    `(I + W K)^-1 gap`, after so many steps; `rounding(local, a)` the size of the terms of K a,
    times the slope of the gradient in f; `size(local)` the unit of the tolerance.
    """

    label: str
    variances: np.ndarray
    times: Callable[[np.ndarray], np.ndarray]
    log_likelihood: Callable[[np.ndarray], np.ndarray]
    at: Callable[[np.ndarray], Any]
    gradient: Callable[[Any], np.ndarray]
    step: Callable[[Any, np.ndarray, int], np.ndarray]
    rounding: Callable[[Any, np.ndarray], float]
    size: Callable[[Any], float] = lambda local: 1.0


def find_mode(problem: Problem, start: Any, max_iterations: int) -> tuple[Any, dict[str, Any]]:
    """Climb from the start, or from 0 where that is higher; steps are halved until the objective
    does not decrease. What is told of the likelihood at the mode, and fields of the `Fit`; its
    evidence is the objective, which lacks the determinant."""

    def objective(a: np.ndarray, f: np.ndarray) -> float:
        return float(problem.log_likelihood(f).sum() - 0.5 * np.vdot(a, f))

    a = f = np.zeros_like(problem.variances)
    if start is not None and np.shape(start) == a.shape:
        first = np.array(start, dtype=np.float64)
        moved = problem.times(first)
        a, f = (first, moved) if objective(first, moved) > objective(a, f) else (a, f)
    largest_variance, steps = float(problem.variances.max()), 0
    while True:
        height, local = objective(a, f), problem.at(f)
        residual = problem.gradient(local) - a
        gap = float(np.abs(residual).max())
        floor = MODE_TOLERANCE * problem.size(local) + 4.0 * U * problem.rounding(local, a)
        if gap <= floor or steps == max_iterations:
            break
        step = problem.step(local, residual, steps)
        # rounding of a^T K a: a decrease below it means nothing
        size = float(np.abs(a).sum() + np.abs(step).sum())
        least = height - 4.0 * U * (abs(height) + largest_variance * size**2)
        moved, length = problem.times(step), 1.0
        for _ in range(_HALVINGS):
            if objective(a + length * step, f + length * moved) >= least:
                a = a + length * step
                break
            length *= 0.5
        f = problem.times(a)
        steps += 1
    if gap > floor:
        warnings.warn(
            f"{problem.label}: Newton stopped after {steps} steps with |a - grad log p| = "
            f"{gap:.3g} (tolerance {floor:.3g})",
            ConvergenceWarning,
            stacklevel=5,
        )
    return local, {"evidence": height, "converged": gap <= floor, "iterations": steps}


def laplace(K: Any, y: Any, link: Link, start: Any = None, *, max_iterations: int = 100) -> Fit:
    """Gaussian at the mode of `log p(y | f) - f^T K^-1 f / 2`, y in {-1, +1}.

    With `W = -d^2 log p / df^2` at the mode and `B = I + W^1/2 K W^1/2 = L L^T` (eigenvalues at
    least 1, whatever K is):

        t = grad log p(y | f),   A = L^-1 W^1/2,   E = log p(y | f) - t^T K t / 2 - log|B| / 2.

    `start`: weights of a fit to a similar K; only the number of steps depends on it.
    """
    y = np.asarray(y, dtype=np.float64)
    K = fitting.checked_covariance(K, (len(y), len(y)))

    def fit(covariance: np.ndarray, jitter: float) -> Fit:
        local, outcome = find_mode(_problem(covariance, y, link), start, max_iterations)
        factor, W, half_log_determinant = _at_mode(covariance, local)
        outcome["evidence"] -= half_log_determinant
        t, gradient = local.first, EvidenceGradient(square=W)
        noise = noise_of_sites(local.curvature)
        return Fit(t, factor, gradient=gradient, jitter=jitter, noise=noise, start=t, **outcome)

    return fitting.with_jitter(K, fit)


def _problem(K: np.ndarray, y: np.ndarray, link: Link) -> Problem:
    variances = np.diag(K)

    def step(local: Derivatives, gap: np.ndarray, steps: int) -> np.ndarray:
        """`gap - W^1/2 B^-1 W^1/2 K gap` (GPML Alg. 3.1, lines 5-7)."""
        root = np.sqrt(local.curvature)
        return gap - root * fitting.solve(fitting.scaled_factor(K, root), root * (K @ gap))

    return Problem(
        "Laplace",
        variances,
        times=lambda a: K @ a,
        log_likelihood=lambda f: link.log_likelihood(y, f),
        at=lambda f: link.derivatives(y, f),
        gradient=lambda local: local.first,
        step=step,
        rounding=lambda local, a: float((local.curvature * variances).max() * np.abs(a).sum()),
        size=lambda local: 1.0 + float(np.abs(local.first).max()),
    )


def _at_mode(K: np.ndarray, local: Derivatives) -> tuple[np.ndarray, np.ndarray, float]:
    """A, the gradient's W and `log|B| / 2`, `R = W^1/2 B^-1 W^1/2 = A^T A` (GPML 5.20-5.24).

    The mode moves with K: `df = (I - K R) dK t`, and `dE/df_i = Sigma_ii d^3_i / 2` with
    `W_ii Sigma_ii = 1 - (B^-1)_ii`, so this part adds `u t^T`, `u = (I - R K) dE/df`, symmetrised.
    """
    curvature, t = local.curvature, local.first
    root = np.sqrt(curvature)
    L = fitting.scaled_factor(K, root)
    inverse = triangular_inverse(L)
    explained = 1.0 - np.einsum("ij,ij->j", inverse, inverse)
    slope = np.zeros_like(curvature)
    np.divide(local.third, curvature, out=slope, where=curvature > 0)
    slope *= 0.5 * explained

    inverse *= root
    R = square(inverse)
    u = slope - R @ (K @ slope)
    moved = np.outer(u + 0.5 * t, t)
    return inverse, 0.5 * (moved + moved.T - R), float(np.log(np.diag(L)).sum())


@dataclass(frozen=True, eq=False)
class _Factors:
    """For probabilities p (m, N): `F_c = L_c^-1 p_c^1/2`, `L_c L_c^T = I + p_c^1/2 K_c p_c^1/2`.

    `E_c = F_c^T F_c = (K_c + diag(1 / p_c))^-1`, M = sum_c E_c with lower factor `total`; the
    inverse of `K + W^-1`, `W = diag(p) - p p^T`, is `S_cc' = [c = c'] E_c - E_c M^-1 E_c'`.
    """

    F: np.ndarray
    E: np.ndarray
    total: np.ndarray
    half_log_determinant: float

    def precision_times(self, b: np.ndarray) -> np.ndarray:
        """S b for b (m, N)."""
        c = _each(self.E, b)
        return c - _each(self.E, np.broadcast_to(fitting.solve(self.total, c.sum(0)), c.shape))


def softmax_laplace(
    Ks: Any, y: Any, start: Any = None, *, max_iterations: int = 100, factored: bool = True
) -> Fit:
    """Gaussian at the mode, for classes y (N,) in 0..m-1 and covariances (m, N, N) or (1, N, N).

    With (1, N, N) all classes share one covariance, m is `max(y) + 1`, and so is the gradient's
    shape; otherwise it is (m, N, N). Weights are (m, N), `t_c = [y = c] - p_c`; the factor is
    (m, r, N) with `r = (m - 1) N` and `S_cc' = A_c^T A_c'` exactly the full cross-covariances'
    precision; beyond `MAX_JOINT` classes factor and coupling are (m, N, N) with
    `S_cc' = [c = c'] A_c^T A_c - C_c^T C_c'`. Both are None with `factored=False` (training needs
    only the evidence).
    """
    y = np.asarray(y)
    Ks = np.asarray(Ks, dtype=np.float64)
    m = int(y.max()) + 1 if len(Ks) == 1 else len(Ks)
    if m < 2 or y.min() < 0 or y.max() >= m:
        raise InputError(f"y: expected classes 0..m-1, m >= 2, got {y.min()}..{y.max()}")
    Ks = fitting.checked_covariance(Ks, (len(Ks), len(y), len(y)))
    one_hot = np.zeros((m, len(y)))
    one_hot[y, np.arange(len(y))] = 1.0

    def fit(covariances: np.ndarray, jitter: float) -> Fit:
        K = np.broadcast_to(covariances, (m, *covariances.shape[1:]))
        p, outcome = find_mode(_softmax_problem(K, y, one_hot), start, max_iterations)
        t, factors = one_hot - p, _factors(K, p)
        outcome["evidence"] -= factors.half_log_determinant
        W = _softmax_gradient(K, t, p, factors, shared=len(Ks) == 1)
        stored, gradient = _stored(factors.F) if factored else (None,), EvidenceGradient(square=W)
        return Fit(t, *stored, gradient=gradient, jitter=jitter, start=t, **outcome)

    return fitting.with_jitter(Ks, fit)


def _each(matrices: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """`matrices[c] @ vectors[c]` for every class."""
    return np.stack([matrix @ vector for matrix, vector in zip(matrices, vectors, strict=True)])


def _softmax_problem(K: np.ndarray, y: np.ndarray, one_hot: np.ndarray) -> Problem:
    """See GPML Alg. 3.3, lines 9-11, for the step; p are the probabilities."""
    variances = np.diagonal(K, axis1=1, axis2=2)

    def rounding(p: np.ndarray, a: np.ndarray) -> float:
        return float(((p * (1.0 - p) * variances).max(1) * np.abs(a).sum(1)).max())

    return Problem(
        "softmax Laplace",
        variances,
        times=lambda a: _each(K, a),
        log_likelihood=lambda f: softmax_log_likelihood(y, f),
        at=lambda f: special.softmax(f, axis=0),
        gradient=lambda p: one_hot - p,
        step=lambda p, gap, n: gap - _precision_times(_factors(K, p), _each(K, gap), n),
        rounding=rounding,
    )


def _factors(K: np.ndarray, p: np.ndarray) -> _Factors:
    m, N = p.shape
    F, E = np.empty((m, N, N)), np.empty((m, N, N))
    half_log_determinant = 0.0
    for c, root in enumerate(np.sqrt(p)):
        L = fitting.scaled_factor(K[c], root)
        half_log_determinant += float(np.log(np.diag(L)).sum())
        F[c] = triangular_inverse(L) * root
        E[c] = square(F[c])
    total = fitting.lower_factor(E.sum(0))
    half_log_determinant += float(np.log(np.diag(total)).sum())
    return _Factors(F, E, total, half_log_determinant)


def _precision_times(factors: _Factors, b: np.ndarray, steps: int) -> np.ndarray:
    """S b by M's Cholesky factor, or, where that has not led to the mode, by the coupled factor.

    M loses the digits of a nearly singular, very large K; the orthogonal form, O(m^2 N^3), not.
    """
    if steps < _FAST_STEPS:
        return factors.precision_times(b)
    A = _coupled_factor(factors.F)
    return _each(A.transpose(0, 2, 1), np.broadcast_to(_each(A, b).sum(0), (len(A), A.shape[1])))


def _softmax_gradient(
    K: np.ndarray, t: np.ndarray, p: np.ndarray, factors: _Factors, *, shared: bool
) -> np.ndarray:
    """W_c of `dE = sum_c sum_ij W_c,ij dK_c,ij`; their sum where the classes share one covariance.

    `W_c = (t_c t_c^T - S_cc) / 2 + (u_c t_c^T + t_c u_c^T) / 2`: the second part is the mode's
    change, `df = (I - K S) dK t`, so `u = (I - S K) dE/df`.
    """
    # dE/df = -trace(Sigma dW/df) / 2 with W = diag(p) - p p^T at each point
    covariance = _point_covariances(K, factors)
    joint = p * np.einsum("cjn,jn->cn", covariance, p)
    sensitivity = np.einsum("ccn->cn", covariance) * p - 2.0 * joint
    slope = -0.5 * (sensitivity - p * sensitivity.sum(0))
    u = slope - factors.precision_times(_each(K, slope))
    W = np.zeros((1 if shared else len(K), *K.shape[1:]))
    for c, E in enumerate(factors.E):
        V = fitting.lower_solve(factors.total, E)
        moved = np.outer(u[c] + 0.5 * t[c], t[c])
        class_weights = W[0 if shared else c]
        class_weights += 0.5 * (moved + moved.T - E + V.T @ V)
    return W


def _point_covariances(K: np.ndarray, factors: _Factors) -> np.ndarray:
    """(m, m, N): the posterior covariance of the m latent values at each training point."""
    m, N, _ = K.shape
    V = np.empty((m, N, N))
    covariance = np.empty((m, m, N))
    for c in range(m):
        whitened = factors.F[c] @ K[c]
        V[c] = fitting.lower_solve(factors.total, factors.F[c].T @ whitened)
        point_variances = np.diag(K[c]) - np.einsum("ij,ij->j", whitened, whitened)
        for j in range(c + 1):
            covariance[c, j] = covariance[j, c] = np.einsum("ij,ij->j", V[c], V[j])
        covariance[c, c] += point_variances
    return covariance


def _stored(F: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Factor and coupling of a fit.

    With `[F_1; ...; F_m] = Q R`, Q orthonormal: `M = R^T R`, `E_c = F_c^T F_c` and
    `E_c M^-1 E_c' = F_c^T Q_c Q_c'^T F_c'`, so that `C_c = Q_c^T F_c`; no M is inverted.
    """
    m, N, _ = F.shape
    if m <= MAX_JOINT:
        return _coupled_factor(F), None
    Q, _ = np.linalg.qr(F.reshape(m * N, N))
    return F, Q.reshape(m, N, N).transpose(0, 2, 1) @ F


def _coupled_factor(F: np.ndarray) -> np.ndarray:
    """A (m, (m - 1) N, N) with `A_c^T A_c' = [c = c'] E_c - E_c M^-1 E_c'`.

    Stack G = [F_1; ...; F_m], (m N, N): `G^T G = M`, so `G M^-1 G^T` is the orthogonal projection
    on the range of G, and A is an orthonormal basis of its complement times diag(F_1, ..., F_m).
    The basis is built class by class: with `[F_1; ...; F_c] = Q C`, a QR factorisation of
    `[C; F_(c+1)]` (2 N, N) gives the next Q and N new vectors. Only orthogonal matrices are
    multiplied: no inverse of M, which is nearly singular for large variances, is formed.
    """
    m, N, _ = F.shape
    A = np.zeros((m, (m - 1) * N, N))
    basis = [np.eye(N)]  # blocks of Q, one per class
    C = F[0]
    for c in range(1, m):
        rows = slice((c - 1) * N, c * N)
        Q, upper = np.linalg.qr(np.vstack([C, F[c]]), mode="complete")
        for j in range(c):
            A[j, rows] = (basis[j] @ Q[:N, N:]).T @ F[j]
        A[c, rows] = Q[N:, N:].T @ F[c]
        basis = [block @ Q[:N, :N] for block in basis] + [Q[N:, :N]]
        C = upper[:N]
    return A
