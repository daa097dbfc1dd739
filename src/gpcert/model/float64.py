"""How far a mean or a variance that is evaluated in float64 can lie from the real one over a box.

Proofs: docs/mathematics.md, statements 23.1 to 23.4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from gpcert.errors import InputError
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import PerFeature
from gpcert.numerics.rounding import TINY, gamma, up, up_float

PerPoint = Annotated[np.ndarray, "N"]
Evaluated = tuple[float, PerPoint]
"""A bound of |k(x, z_i)|, and (N,) of how far a computed one can be from it."""

COVERED = "squared exponential, rational quadratic, Matérn from 3/2, constant, sums, products"


SLACK = 1.1
"""Of an error that is a sum of positive numbers: more than their roundings, and more than bounds of
eigenvalues by powers exceed them (gpcert-check has others than the model)."""


@dataclass(frozen=True)
class Spread:
    """Of a mean mu and a variance V over a box: how far each can be off in float64, and bounds of
    |mu| and V."""

    mean: float
    size: float
    variance: float = 0.0
    most: float = 0.0


def evaluation_error(posterior: Posterior, output: int, low: PerFeature, high: PerFeature) -> float:
    """At most how far `offset + scale (k(x, Z) t + slope.x)`, in float64 and summed in any order,
    lies from the real number, for every float x of the box [low, high] (Statement 23.3)."""
    return _spread(posterior, output, low, high, False).mean


def band_error(
    posterior: Posterior,
    output: int,
    low: PerFeature,
    high: PerFeature,
    beta: float = 1.0,
    by_mean: bool = False,
) -> float:
    """The same of `beta sqrt(V)`, which `by_mean` is added to a mean (Statement 23.4)."""
    spread = _spread(posterior, output, low, high, True)
    noise, change = float(posterior.noise[output]), math.sqrt(spread.variance)
    if noise > 0:
        change = min(change, spread.variance / math.sqrt(noise))
    top, beta = math.sqrt(spread.most), abs(beta)
    change += gamma(4) * (top + change)
    total = change * beta
    if by_mean:
        total += spread.mean + gamma(4) * (spread.size + spread.mean + beta * (top + change))
    return _finite(SLACK * total)


def variance_error(posterior: Posterior, output: int, low: PerFeature, high: PerFeature) -> float:
    """The same of V (Statement 23.4)."""
    return _spread(posterior, output, low, high, True).variance


def _finite(total: float) -> float:
    if not math.isfinite(total):
        raise InputError("proof='B': the model's numbers leave float64; use proof=True")
    return total


def _spread(
    posterior: Posterior, output: int, low: PerFeature, high: PerFeature, variance: bool
) -> Spread:
    if posterior.mean_function is not None:
        raise InputError("proof='B': does not cover a mean_function; use proof=True")
    arrays = posterior.arrays()
    Z, weights = arrays["points"], np.abs(arrays["weights"][output])
    N, q = Z.shape
    reach = np.maximum(np.abs(low), np.abs(high))
    if "matrix" in arrays:
        reach = np.abs(arrays["matrix"]) @ reach + np.abs(arrays["shift"])
    described = [posterior.kernel.name, posterior.kernel.config()]
    # of k(x, x), too: a last point that is as large as x may be
    points = np.concatenate([np.abs(Z), reach[None]])
    size, each = _kernel(described, reach, points, 2 * (len(low) + 8))
    errors, own = each[:-1], float(each[-1])
    sums = float(weights @ (errors + gamma(N + 2) * (size + errors)))
    whole = float(weights @ (size + errors))
    if "slope" in arrays:
        along = float(np.abs(arrays["slope"][output]) @ reach)
        sums, whole = sums + gamma(len(low) + q + 11) * along, whole + 2.0 * along
    offset, scale = (abs(float(arrays[name][output])) for name in ("offset", "scale"))
    total = scale * sums + gamma(4) * (scale * whole + offset) + TINY * (1.0 + scale) * (N + 1.0)
    mean = up_float(_finite(total), N + 4 * len(low) + 4 * q + 99)
    spread = Spread(mean, scale * whole + offset)
    if not variance:
        return spread
    least, most = _precision(posterior, output, size, errors, own)
    noise, square = float(posterior.noise[output]), scale * scale
    error = square * least + gamma(6) * (square * (most + least) + noise)
    error += TINY * (1.0 + square) * (N + 1.0)
    top = square * most + noise
    return replace(spread, variance=_finite(SLACK * error), most=_finite(SLACK * top))


def _precision(
    posterior: Posterior, output: int, size: float, errors: PerPoint, own: float
) -> tuple[float, float]:
    """How far `k(x, x) - |A k|^2 + |C k|^2` can be off, from (K + Sigma)^-1 too where the noise is
    known; and a bound of it."""
    total, parts, most = own, size + own, size
    A, C = (np.asarray(factor) for factor in posterior.factors_of(output))
    for factor, largest in ((A, 1.0 + posterior.excess), (C, posterior.gain)):
        if not factor.size:
            continue
        R, N = factor.shape
        rows = np.abs(factor) @ (errors + gamma(N + 2) * (size + errors))
        lost, longest = float(np.linalg.norm(rows)), SLACK * largest * size
        whole = (math.sqrt(longest) + lost) ** 2
        total += 2.0 * math.sqrt(longest) * lost + lost * lost + gamma(R + 4) * whole
        parts += whole
        most += whole if factor is C else 0.0
        if factor is A and posterior.training_noise is not None:
            total += longest * _distance(posterior, output, A, C, size, float(np.max(errors)))
    return total + gamma(4) * parts, most


def _distance(
    posterior: Posterior, output: int, A: np.ndarray, C: np.ndarray, size: float, error: float
) -> float:
    """How far `|A k|^2` can be from `k^T (K + Sigma)^-1 k`, as a part of it (Statement 23.4)."""
    noises, Z = np.asarray(posterior.training_noise), np.asarray(posterior.points)
    noise, N = noises[output if len(noises) > 1 else 0], len(Z)
    if not np.all(np.isfinite(noise)) or C.size or len(A) != N:
        raise InputError(
            "proof='B': a variance is covered where its factor is that of all training points, "
            "and their noise is finite; use proof=True"
        )
    gram = posterior.kernel.value(Z, Z) + np.diag(noise)
    # between points F_i^2 is at most (4/3)^2 times that of the point farthest from 0
    wrong = 2.0 * error + gamma(2 * N + 8) * (np.abs(gram) + size)
    hidden = np.abs(A) @ wrong @ np.abs(A).T
    gap = SLACK * float(np.linalg.norm(np.abs(A @ gram @ A.T - np.eye(N)) + hidden))
    if not gap < 1.0:
        raise InputError(
            "proof='B': the stored factor is too far from that of the training points' covariance; "
            "use proof=True"
        )
    return gap / (1.0 - gap)


def _kernel(described: Any, reach: PerFeature, Z: np.ndarray, mapped: int) -> Evaluated:
    """Of a kernel as files describe it, on features of absolute values `reach` (q,) at most, and of
    data points of absolute values Z (N, q); the features took `mapped` roundings, twice."""
    name, config = described
    if name in ("sum", "product"):
        parts = [_kernel(part, reach, Z, mapped) for part in config["kernels"]]
        return _combined(parts, name == "product")
    if name == "scale":
        factor = float(config["factor"]), np.zeros(len(Z))
        return _combined([factor, _kernel(config["kernel"], reach, Z, mapped)], True)
    if name == "active_dimensions":
        dims = list(config["dimensions"])
        return _kernel(config["kernel"], reach[dims], Z[:, dims], mapped)
    if name in ("constant", "white"):  # as a function of the inputs white noise is 0
        return float(config["variance"]) if name == "constant" else 0.0, np.zeros(len(Z))
    bend, count = _radial(name, config)
    lengths, variance = np.asarray(config["length_scale"], dtype=float), float(config["variance"])
    # |x| + |z|, and twice the largest: a library may subtract a point from both first
    at_x, at_z = np.linalg.norm(reach / lengths), np.linalg.norm(Z / lengths, axis=1)
    far = at_x + at_z + 2.0 * max(at_x, at_z.max())
    roundings = mapped + Z.shape[1] + 24
    return variance, up(variance * (bend * gamma(roundings) * far**2 + gamma(count)) + TINY, 8)


def _radial(name: str, config: Any) -> tuple[float, float]:
    """Of a kernel kappa(rho) of variance 1 at most |d kappa / d rho^2|, and how many roundings its
    value takes from a computed rho^2 on (Statement 23.2)."""
    if name == "squared_exponential":
        return 0.5, 40
    if name == "rational_quadratic":
        return 0.5, 40 + 2.0 * float(config["alpha"])
    order = float(config["nu"]) - 0.5 if name == "matern" else 0.0
    if order >= 1:
        return up_float((2.0 * order + 1.0) / (4.0 * order - 2.0), 3), 40 + 4 * order
    raise InputError(
        f"proof='B': claims about float64 cover the kernels {COVERED} on chosen features, got "
        f"{name}{' of order 1/2' if name == 'matern' else ''}; use proof=True"
    )


def _combined(parts: list[Evaluated], product: bool) -> Evaluated:
    """Of a sum or a product (Statement 23.2)."""
    size, most = (1.0, np.ones(1)) if product else (0.0, np.zeros(1))
    for part, errors in parts:
        size = size * part if product else size + part
        most = most * (part + errors) if product else most + (part + errors)
    if product:
        # prod (M + e) - prod M, without cancellation
        gap, before = np.zeros(1), 1.0
        for part, errors in parts:
            gap, before = gap * (part + errors) + before * errors, before * part
    else:
        gap = np.sum([errors for _, errors in parts], axis=0)
    return up_float(size, len(parts)), up(gap + gamma(len(parts)) * most, 4 * len(parts))
