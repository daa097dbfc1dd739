"""`uniform_beta`: published bounds of how far the truth is from the mean, in standard deviations.

Proofs: docs/mathematics.md, statement 21.5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.api.options import one_of, verb
from gpcert.certificates.error_bounds import ErrorBound
from gpcert.errors import InputError
from gpcert.model.committee import Committee
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import finite_array
from gpcert.numerics.rounding import ASIN_LOG_ULPS, U, down, gamma, up

RULES = {
    "fiedler": "Abbasi-Yadkori (2013), for the data at hand as in Fiedler et al. (2021, 2024)",
    "chowdhury_gopalan": "Chowdhury and Gopalan (2017), Theorem 2",
}

BOUNDED = "bounded noise, for certain (as Lahr et al. 2025, Lemma 1)"


@verb
def uniform_beta(
    model: Any,
    *,
    norm_bound: Any,
    noise_bound: Any,
    delta: float | None = None,
    y: Any = None,
    rule: str = "fiedler",
) -> ErrorBound:
    """beta such that the true function lies within `mean +- beta std` everywhere at once.

    With it a band, a level set of `quantity="band"` or an invariant set is a statement about the
    true function, and no longer about the model.

    Parameters
    ----------
    model : an exact regression, or a list of them (a state each). The kernel and its parameters,
        and the noise variance, must not have been chosen in view of the same observations.
    norm_bound : B with `|f - offset| <= B` in the norm of the kernel's space, the kernel being the
        model's prior covariance in the units of the output: a number, or one for each output.
    noise_bound : with `delta`, R such that the noise of every observation is R-sub-Gaussian given
        all before it (normal noise: its standard deviation; noise in [-R, R] with mean 0: R).
        Without, the largest size of any noise. In the units of the output.
    delta : the probability with which the bound may fail, for all outputs together. None: it holds
        for certain.
    y : the observations that the model was fitted to, (N,) or (N, outputs): what rounding left of
        the equations for the weights is counted. Without them it is assumed to be 0.
    rule : with `delta`, "fiedler" or "chowdhury_gopalan", which is larger.

    Example
    -------
    >>> import gpcert
    >>> from gpcert.kernels import SquaredExponential
    >>> fitted = gpcert.Posterior(SquaredExponential(1.0), [[0.0]], [0.5], training_noise=0.01)
    >>> bound = gpcert.uniform_beta(fitted, norm_bound=2.0, noise_bound=0.1, delta=0.05)
    >>> round(bound.beta, 3)  # 2 + sqrt(log(101) + 2 log(20))
    5.257
    >>> round(float(gpcert.uniform_beta(fitted, norm_bound=2.0, noise_bound=0.1)), 3)
    2.179
    """
    given = [as_posterior(m) for m in (model if isinstance(model, list | tuple) else [model])]
    each = [m for m in given if not (isinstance(m, Committee) or m.classifies)]
    if not each or len(each) < len(given):
        raise InputError("model: expected a regression or a list of them")
    outputs = [one.output(c) for one in each for c in range(one.outputs)]
    m = len(outputs)
    norms = _numbers("norm_bound", norm_bound, m)
    noises = _numbers("noise_bound", noise_bound, m)
    risk = None if delta is None else float(finite_array("delta", delta, ndim=0))
    if risk is not None and not 0 < risk < 1:
        raise InputError(f"delta: expected a probability between 0 and 1, got {delta!r}")
    one_of("rule", rule, tuple(RULES))
    if risk is None and rule != "fiedler":
        raise InputError(f"rule: {rule!r} is a choice with delta=; got none")
    seen = _observations(y, [len(part.points) for part, _ in outputs])
    betas, information = [], []
    for (part, c), B, R, values in zip(outputs, norms, noises, seen, strict=True):
        system = _System(part, c)
        rest = system.residual(values)
        information.append(system.log_det())
        if risk is None:
            betas.append(system.certain(B, R, rest))
        else:
            betas.append(system.likely(B, R, rest, information[-1], risk / m, rule))
    if not all(map(math.isfinite, betas)):
        raise InputError(
            "model: expected kernel values and noise variances whose quotients are floats; the "
            f"factors are {betas}"
        )
    return ErrorBound(
        beta=max(betas),
        betas=tuple(betas),
        rule=BOUNDED if risk is None else RULES[rule],
        delta=risk or 0.0,
        norm_bound=tuple(norms),
        noise_bound=tuple(noises),
        information=tuple(information),
        assumptions=_assumptions(risk, y is not None, m),
        models=tuple(one.fingerprint for one in each),
    )


class _System:
    """K, its errors, and the noise of one output, in the units of the kernel."""

    def __init__(self, part: Posterior, c: int) -> None:
        if part.training_noise is None or part.coupled:
            raise InputError(
                "model: expected an exact regression, of which the noise of the observations is "
                "known (`Posterior(..., training_noise=...)`, or a fitted one of any library), "
                f"got a posterior of {'coupled outputs' if part.coupled else 'a factor alone'}"
            )
        if np.any(part.slope[c]) or part.mean_function is not None:
            raise InputError(
                "model: expected one without a trend, whose coefficients the bounds do not "
                "cover; fit without it, and subtract what is known from y"
            )
        N = len(part.points)
        noise = np.asarray(part.training_noise, dtype=float)
        noise = np.broadcast_to(noise[c if len(noise) > 1 else 0] if noise.ndim == 2 else noise, N)
        used = np.isfinite(noise)
        self.noise, self.weights = noise[used], part.weights[c][used]
        if np.any(part.weights[c][~used]):
            raise InputError("model: expected weights of 0 where there is no observation")
        self.used, self.scale, self.offset = used, float(part.scale[c]), float(part.offset[c])
        with np.errstate(over="ignore", invalid="ignore"):
            K, errors = part.kernel.gram_with_error(part.points[used])
        if not np.all(np.isfinite(K) & np.isfinite(errors)):
            raise InputError("model: expected kernel values that are floats")
        self.K, self.errors = np.asarray(K), np.asarray(errors)

    def log_det(self) -> float:
        """An upper bound of `log det(I + S K S)`, S = noise^(-1/2).

        Statement 21.5: at most the sum of the logarithms of the diagonal (Hadamard); and that of
        `L L^T` plus `sqrt(N) e / (1 - e)` where the matrix is within e of it in the Frobenius norm.
        """
        N = len(self.noise)
        if N == 0:
            return 0.0
        root = np.sqrt(self.noise)
        outer = root[:, None] * root[None, :]
        with np.errstate(over="ignore", invalid="ignore"):
            A = self.K / outer + np.eye(N)
            off = up(self.errors / outer + gamma(8) * (np.abs(self.K) / outer + np.eye(N)), 8)
            diagonal = up(np.diag(A) + np.diag(off), 2)
        rounding = (2.0 * ASIN_LOG_ULPS + 4.0 * N) * U
        known = _sum_of_logs(diagonal, rounding)
        try:
            L = np.linalg.cholesky(A)
        except np.linalg.LinAlgError:
            return known
        size = np.abs(L) @ np.abs(L).T
        left = np.abs(A - L @ L.T) + gamma(N + 4) * (size + np.abs(A)) + off
        e = float(up(np.sqrt(np.sum(left**2)), 4 * N))
        if not e < 0.5:
            return known
        sharp = 2.0 * _sum_of_logs(np.diag(L), rounding)
        rest = math.sqrt(N) * e / (1.0 - e)
        return max(0.0, min(known, float(up(sharp + up(rest, 8), 2))))

    def residual(self, values: np.ndarray | None) -> np.ndarray:
        """(N,) upper bounds of what the stored weights leave of `(K + noise) t = y`, in the units
        of the kernel; 0 where y is not given."""
        if values is None:
            return np.zeros(len(self.noise))
        y, t, N = values[self.used], self.weights, len(self.noise)
        target = (y - self.offset) / self.scale
        left = np.abs(self.K @ t + self.noise * t - target)
        size = np.abs(self.K) @ np.abs(t) + self.noise * np.abs(t)
        size = size + (np.abs(y) + abs(self.offset)) / self.scale
        return up(left + gamma(N + 8) * size + self.errors @ np.abs(t), N + 12)

    def certain(self, B: float, R: float, rest: np.ndarray) -> float:
        """`sqrt(B^2 + sum noise_i^2 / noise - y^T (K + noise)^-1 y)`."""
        N, t = len(self.noise), self.weights
        far = up(R / self.scale + rest, 2)
        most = float(up(B * B + up(np.sum(far**2 / self.noise), N + 4), 3))
        fit = float(t @ self.K @ t + np.sum(self.noise * t * t))
        size = float(np.abs(t) @ (np.abs(self.K) @ np.abs(t)) + np.sum(self.noise * t * t))
        lost = gamma(2 * N + 8) * size + float(np.abs(t) @ (self.errors @ np.abs(t)))
        least = max(0.0, float(down(fit - up(lost, 2 * N + 8), 2)))
        if least > most:
            raise InputError(
                "norm_bound, noise_bound: no function within both bounds explains the data: "
                f"norm^2 + noise must be {least:.6g} at least, and is {most:.6g} at most; expected "
                "larger bounds"
            )
        return float(up(math.sqrt(max(up(most - least, 2), 0.0)), 4))

    def likely(
        self, B: float, R: float, rest: np.ndarray, information: float, delta: float, rule: str
    ) -> float:
        """`B + R / sqrt(noise) sqrt(log det + 2 log(1 / delta))`, and what rounding left."""
        N = len(self.noise)
        if N == 0:
            return B
        ratio = float(up(np.max(R / (self.scale * np.sqrt(self.noise))), 4))
        inner = information + up(-2.0 * math.log(delta), 4 * ASIN_LOG_ULPS)
        if rule == "chowdhury_gopalan":
            inner, ratio = inner + 2.0, ratio * math.sqrt(1.0 + 2.0 / N)
        off = float(up(np.sqrt(np.sum(rest**2 / self.noise)), N + 6))
        return float(up(B + ratio * math.sqrt(up(inner, 4)) + off, 12))


def _sum_of_logs(values: np.ndarray, rounding: float) -> float:
    """An upper bound of the sum of logarithms of positive numbers."""
    logs = np.log(values)
    return float(up(logs.sum() + rounding * (np.abs(logs).sum() + 1.0), 4))


def _numbers(name: str, given: Any, m: int) -> list[float]:
    """A number >= 0 for each output."""
    values = finite_array(name, given)
    if values.shape not in {(), (m,)} or np.any(values < 0):
        wanted = "a number >= 0" + (f", or {m} of them, one for each output" if m > 1 else "")
        raise InputError(f"{name}: expected {wanted}, got {given!r}")
    return np.broadcast_to(values, (m,)).tolist()


def _observations(y: Any, sizes: Sequence[int]) -> list[np.ndarray | None]:
    """The observations of each output."""
    if y is None:
        return [None] * len(sizes)
    values = finite_array("y", y)
    columns = values[:, None] if values.ndim == 1 else values
    if columns.ndim != 2 or columns.shape != (sizes[0], len(sizes)) or len(set(sizes)) > 1:
        wanted = f"({sizes[0]}, {len(sizes)})" if len(sizes) > 1 else f"({sizes[0]},)"
        raise InputError(f"y: expected the observations, of shape {wanted}, got {values.shape}")
    return list(columns.T)


def _assumptions(delta: float | None, checked: bool, m: int) -> tuple[str, ...]:
    """In words, what the bound rests on."""
    each = "each output's " if m > 1 else "the "
    lines = [f"{each}function less its offset has at most norm_bound as norm in the kernel's space"]
    if delta is None:
        lines.append("no observation is farther than noise_bound from the function")
    else:
        lines.append(
            "the noise of each observation is sub-Gaussian with noise_bound, given all before it"
        )
    lines.append("kernel, offset and noise variance were chosen before the observations were seen")
    if not checked:
        lines.append("the stored weights solve the model's equations exactly; y= checks that")
    return tuple(lines)
