"""How far a mean that a library evaluates in float64 can lie from the real one over a box.

Proofs: docs/mathematics.md, statements 23.1 to 23.3.
"""

from __future__ import annotations

import math
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


def evaluation_error(posterior: Posterior, output: int, low: PerFeature, high: PerFeature) -> float:
    """At most how far `offset + scale (k(x, Z) t + slope.x)`, in float64 and summed in any order,
    lies from the real number, for every float x of the box [low, high] (Statement 23.3)."""
    if posterior.mean_function is not None:
        raise InputError("proof='B': does not cover a mean_function; use proof=True")
    arrays = posterior.arrays()
    Z, weights = arrays["points"], np.abs(arrays["weights"][output])
    N, q = Z.shape
    reach = np.maximum(np.abs(low), np.abs(high))
    if "matrix" in arrays:
        reach = np.abs(arrays["matrix"]) @ reach + np.abs(arrays["shift"])
    described = [posterior.kernel.name, posterior.kernel.config()]
    size, errors = _kernel(described, reach, np.abs(Z), 2 * (len(low) + 8))
    sums = float(weights @ (errors + gamma(N + 2) * (size + errors)))
    whole = float(weights @ (size + errors))
    if "slope" in arrays:
        along = float(np.abs(arrays["slope"][output]) @ reach)
        sums, whole = sums + gamma(len(low) + q + 11) * along, whole + 2.0 * along
    offset, scale = (abs(float(arrays[name][output])) for name in ("offset", "scale"))
    total = scale * sums + gamma(4) * (scale * whole + offset) + TINY * (1.0 + scale) * (N + 1.0)
    if not math.isfinite(total):
        raise InputError("proof='B': the model's numbers leave float64; use proof=True")
    return up_float(total, N + 4 * len(low) + 4 * q + 99)


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
