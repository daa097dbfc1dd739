"""How each elementary kernel changes with its parameters, contracted with a matrix of weights.

For a kernel k with parameters theta and weights W (n, p) a rule gives

    sum_ij W_ij d k(x_i, y_j) / d theta_a      for every a at once,

without an array of shape (n, p, parameters): sums over pairs of points of `(x_i - y_j)^2` and of
the other elementary differences are row sums, column sums and one matrix product. Parameters that
must be positive are differentiated in their logarithm, the others (frequencies, tilts) as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from gpcert import kernels as k
from gpcert.errors import InputError

Contracted = dict[str, Any]
"""Contracted derivatives by field; each has the shape of the field."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """The covariances that weights belong to: between points X (n, d) and Y (p, d), or, without Y,
    of each point of X with itself; `observed`: of observations at X = Y, white noise included.

    `known`: a kernel whose values there have been computed.
    """

    X: np.ndarray
    Y: Any = None
    known: tuple[Any, np.ndarray] | None = None
    observed: bool = False

    def values(self, kernel: Any) -> np.ndarray:
        """`k(x_i, y_j)`, (n, p)."""
        if self.known is not None and self.known[0] is kernel:
            return self.known[1]
        return kernel.value(self.X, self.Y)

    def covariances(self, kernel: Any) -> np.ndarray:
        """What the weights are multiplied with, (n, p), or (n,) without Y."""
        if self.observed:
            return kernel.training_covariance(self.X)
        return kernel.diagonal(self.X) if self.Y is None else self.values(kernel)

    def columns(self, dimensions: Any) -> Pairs:
        """The same points in some of their features."""
        Y = None if self.Y is None else self.Y[:, dimensions]
        return Pairs(self.X[:, dimensions], Y, observed=self.observed)


@dataclass(frozen=True)
class LeafRule:
    """Which fields of a kernel are trained, and its contracted derivatives.

    `logarithmic`: positive fields, trained by their logarithm. `linear`: real fields, trained as
    they are. `pairs(kernel, pairs, W)`: `sum_ij W_ij dk(x_i, y_j)`; `diagonal(kernel, X, w)`:
    `sum_i w_i dk(x_i, x_i)`, None for a stationary kernel with a variance; `training(kernel, X,
    W)`: of `kernel.training_covariance(X)`, where that is not `value(X, X)`.
    """

    logarithmic: tuple[str, ...]
    pairs: Callable[[Any, Pairs, np.ndarray], Contracted]
    diagonal: Callable[[Any, np.ndarray, np.ndarray], Contracted] | None = None
    linear: tuple[str, ...] = ()
    training: Callable[[Any, np.ndarray, np.ndarray], Contracted] | None = None

    @property
    def fields(self) -> tuple[str, ...]:
        """All fields that are trained, in the order of the parameter vector."""
        return self.logarithmic + self.linear

    def derivatives(self, kernel: Any, pairs: Pairs, W: np.ndarray) -> Contracted:
        """Of the contraction of `pairs.covariances(kernel)` with W."""
        if pairs.observed and self.training is not None:
            return self.training(kernel, pairs.X, W)
        if pairs.Y is not None:
            return self.pairs(kernel, pairs, W)
        if self.diagonal is not None:
            return self.diagonal(kernel, pairs.X, W)
        still = {name: np.zeros_like(getattr(kernel, name)) for name in self.fields}
        return still | {"variance": W @ kernel.diagonal(pairs.X)}


def _squared_differences(X: np.ndarray, Y: np.ndarray, V: np.ndarray) -> np.ndarray:
    """(d,) `sum_ij V_ij (x_i - y_j)^2`, feature by feature, about the middle of the points."""
    middle = X.mean(axis=0)
    X, Y = X - middle, Y - middle
    squares = V.sum(axis=1) @ np.square(X) + V.sum(axis=0) @ np.square(Y)
    return squares - 2.0 * ((V @ Y) * X).sum(axis=0)


def _shaped(per_feature: np.ndarray, like: Any) -> Any:
    """One number a feature, or their sum where one parameter serves all features."""
    return per_feature if np.ndim(like) else per_feature.sum()


def _scaled_squares(kernel: Any, pairs: Pairs, V: np.ndarray) -> Any:
    lengths = kernel.length_scale
    return _shaped(_squared_differences(pairs.X, pairs.Y, V) / np.square(lengths), lengths)


def _squared_exponential(kernel: Any, pairs: Pairs, W: np.ndarray) -> Contracted:
    """`dk / d log l_j = k (x_j - y_j)^2 / l_j^2`."""
    V = W * pairs.values(kernel)
    return {"length_scale": _scaled_squares(kernel, pairs, V), "variance": V.sum()}


def _squared_distance(kernel: Any, pairs: Pairs) -> np.ndarray:
    return cdist(pairs.X / kernel.length_scale, pairs.Y / kernel.length_scale, "sqeuclidean")


def _rational_quadratic(kernel: Any, pairs: Pairs, W: np.ndarray) -> Contracted:
    """With `b = 1 + r^2 / (2 alpha)`: `dk / d log l_j = k u_j^2 / b`, u = (x - y) / l, and

    `dk / d log alpha = k (r^2 / (2 b) - alpha log b)`.
    """
    V = W * pairs.values(kernel)
    r2 = _squared_distance(kernel, pairs)
    excess = r2 / (2.0 * kernel.alpha)
    by_alpha = 0.5 * r2 / (1.0 + excess) - kernel.alpha * np.log1p(excess)
    return {
        "length_scale": _scaled_squares(kernel, pairs, V / (1.0 + excess)),
        "variance": V.sum(),
        "alpha": np.vdot(V, by_alpha),
    }


def _radial(kernel: Any, pairs: Pairs, W: np.ndarray) -> Contracted:
    """`dk / d log l_j = s^2 F_1 u_j^2`, u = (x - y) / l, zero where the points coincide."""
    X, Y = pairs.X, pairs.Y
    V, variance = W * kernel.slopes(X, Y), np.vdot(W, pairs.values(kernel))
    if np.isfinite(kernel.profile.at_zero[1]):
        return {"length_scale": _scaled_squares(kernel, pairs, V), "variance": variance}
    # F_1 is large between near points: their differences are formed before they are squared
    lengths = np.broadcast_to(kernel.length_scale, (X.shape[1],))
    parts = [
        np.vdot(V, np.square((X[:, j, None] - Y[None, :, j]) / lengths[j]))
        for j in range(X.shape[1])
    ]
    return {
        "length_scale": _shaped(np.asarray(parts), kernel.length_scale),
        "variance": variance,
    }


def _periodic(kernel: Any, pairs: Pairs, W: np.ndarray) -> Contracted:
    """With `a = pi x / p`, `b = pi y / p`: `dk / d log l = 4 k sin^2(a - b) / l^2` and

    `dk / d log p = 2 k (a - b) sin(2 (a - b)) / l^2`, by the addition theorems.
    """
    X, Y = pairs.X, pairs.Y
    V = W * pairs.values(kernel)
    d = X.shape[1]
    a, b = np.pi * X / kernel.period, np.pi * Y / kernel.period
    middle = a.mean(axis=0)
    a, b = a - middle, b - middle
    ca, sa, cb, sb = np.cos(2.0 * a), np.sin(2.0 * a), np.cos(2.0 * b), np.sin(2.0 * b)
    products = V @ np.concatenate([cb, sb, b * cb, b * sb], axis=1)
    Vc, Vs, Vbc, Vbs = (products[:, i * d : (i + 1) * d] for i in range(4))
    squares = 0.5 * (V.sum() - (ca * Vc + sa * Vs).sum(axis=0))
    slopes = (a * (sa * Vc - ca * Vs) - (sa * Vbc - ca * Vbs)).sum(axis=0)
    l2 = np.square(kernel.length_scale)
    return {
        "period": _shaped(2.0 * slopes / l2, kernel.period),
        "length_scale": _shaped(4.0 * squares / l2, kernel.length_scale),
        "variance": V.sum(),
    }


def _phase(frequency: np.ndarray, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    middle = X.mean(axis=0)
    return ((X - middle) @ frequency)[:, None] - ((Y - middle) @ frequency)[None, :]


def _differences(X: np.ndarray, Y: np.ndarray, V: np.ndarray) -> np.ndarray:
    """(d,) `sum_ij V_ij (x_i - y_j)`."""
    middle = X.mean(axis=0)
    return V.sum(axis=1) @ (X - middle) - V.sum(axis=0) @ (Y - middle)


def _cosine(kernel: Any, pairs: Pairs, W: np.ndarray) -> Contracted:
    """`dk / dw = -v sin(w.(x - y)) (x - y)`."""
    X, Y = pairs.X, pairs.Y
    phase = _phase(kernel.frequency, X, Y)
    return {
        "variance": kernel.variance * np.vdot(W, np.cos(phase)),
        "frequency": _differences(X, Y, -kernel.variance * W * np.sin(phase)),
    }


def _factors(
    factors: Any, pairs: Pairs, W: np.ndarray
) -> tuple[Contracted, Contracted, np.ndarray]:
    """Of a product of two leaves: what belongs to either, and the products of both with W."""
    first, second = factors
    one, two = pairs.covariances(first), pairs.covariances(second)
    by_first = rule_of(first).derivatives(first, pairs, W * two)
    return by_first, rule_of(second).derivatives(second, pairs, W * one), W * one * two


def _spectral_mixture(kernel: Any, pairs: Pairs, W: np.ndarray) -> Contracted:
    """Each component is a squared exponential times a cosine."""
    parts = []
    for product in kernel.expression.kernels:
        by_radial, by_wave, _ = _factors(product.kernels, pairs, W)
        parts.append((by_radial["variance"], by_radial["length_scale"], by_wave["frequency"]))
    return _by_part(parts, ("variances", "length_scales", "frequencies"))


def _generalised_spectral(kernel: Any, pairs: Pairs, W: np.ndarray) -> Contracted:
    """Each component is a factor times a tilt times a pair of waves."""
    parts = []
    for scaled in kernel.expression.kernels:
        by_tilt, by_pair, whole = _factors(scaled.kernel.kernels, pairs, scaled.factor * W)
        parts.append((whole.sum(), by_tilt["theta"], by_pair["first"], by_pair["second"]))
    return _by_part(parts, ("variances", "thetas", "first", "second"))


def _by_part(parts: list[tuple], names: tuple[str, ...]) -> Contracted:
    columns = zip(*parts, strict=True)
    return {name: np.asarray(column) for name, column in zip(names, columns, strict=True)}


def _tilt(kernel: Any, pairs: Pairs, W: np.ndarray) -> Contracted:
    """`dk / d theta = k (x + y)`."""
    X, Y = pairs.X, pairs.Y
    V = W * pairs.values(kernel)
    return {"theta": V.sum(axis=1) @ X + V.sum(axis=0) @ Y}


def _tilt_diagonal(kernel: Any, X: np.ndarray, w: np.ndarray) -> Contracted:
    return {"theta": 2.0 * (w * kernel.diagonal(X)) @ X}


def _cosine_pair(kernel: Any, pairs: Pairs, W: np.ndarray) -> Contracted:
    """`k = sum_ab cos(w_a.x + p_a - w_b.y - p_b)`, a and b one of two; by the addition theorems it
    is C(x) C(y) + S(x) S(y), C and S the sums of two waves."""
    X, Y = pairs.X, pairs.Y
    frequencies = np.stack([kernel.first, kernel.second])
    cos_x, sin_x = _cos_sin(X @ frequencies.T + kernel.phases)
    cos_y, sin_y = _cos_sin(Y @ frequencies.T + kernel.phases)
    Cx, Sx, Cy, Sy = (wave.sum(axis=1) for wave in (cos_x, sin_x, cos_y, sin_y))
    by_x = cos_x * (W @ Sy)[:, None] - sin_x * (W @ Cy)[:, None]
    by_y = cos_y * (Sx @ W)[:, None] - sin_y * (Cx @ W)[:, None]
    slopes = by_x.T @ X + by_y.T @ Y
    return {"first": slopes[0], "second": slopes[1]}


def _cos_sin(phases: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.cos(phases), np.sin(phases)


def _cosine_pair_diagonal(kernel: Any, X: np.ndarray, w: np.ndarray) -> Contracted:
    """`k(x, x) = 2 + 2 cos((w_1 - w_2).x + p_1 - p_2)`."""
    angle = X @ (kernel.first - kernel.second) + kernel.phases[0] - kernel.phases[1]
    slope = (-2.0 * w * np.sin(angle)) @ X
    return {"first": slope, "second": -slope}


def _linear(kernel: Any, pairs: Pairs, W: np.ndarray) -> Contracted:
    """`dk / d log w_j = w_j (x_j - o_j)(y_j - o_j)`."""
    X, Y = pairs.X, pairs.Y
    products = ((X - kernel.center) * (W @ (Y - kernel.center))).sum(axis=0)
    return {"weights": _shaped(kernel.weights * products, kernel.weights)}


def _linear_diagonal(kernel: Any, X: np.ndarray, w: np.ndarray) -> Contracted:
    squares = w @ np.square(X - kernel.center)
    return {"weights": _shaped(kernel.weights * squares, kernel.weights)}


def _polynomial(kernel: Any, pairs: Pairs, W: np.ndarray) -> Contracted:
    """k = s^p with s linear in weights and offset: the linear rule with weights `W p s^(p - 1)`."""
    X, Y = pairs.X, pairs.Y
    inner = ((X - kernel.center) * kernel.weights) @ (Y - kernel.center).T + kernel.offset
    V = W * kernel.degree * inner ** (kernel.degree - 1)
    return _linear(kernel, pairs, V) | {"offset": kernel.offset * V.sum()}


def _polynomial_diagonal(kernel: Any, X: np.ndarray, w: np.ndarray) -> Contracted:
    inner = (kernel.weights * np.square(X - kernel.center)).sum(axis=1) + kernel.offset
    v = w * kernel.degree * inner ** (kernel.degree - 1)
    return _linear_diagonal(kernel, X, v) | {"offset": kernel.offset * v.sum()}


def _constant(kernel: Any, pairs: Pairs, W: np.ndarray) -> Contracted:
    return {"variance": kernel.variance * W.sum()}


def _no_variance(*_: Any) -> Contracted:
    return {"variance": 0.0}


def _white_training(kernel: Any, X: np.ndarray, W: np.ndarray) -> Contracted:
    return {"variance": kernel.variance * np.trace(W)}


_RADIAL = ("variance", "length_scale")

LEAF_RULES: dict[type[k.Kernel], LeafRule] = {
    k.SquaredExponential: LeafRule(_RADIAL, _squared_exponential),
    k.RationalQuadratic: LeafRule((*_RADIAL, "alpha"), _rational_quadratic),
    k.Periodic: LeafRule((*_RADIAL, "period"), _periodic),
    k.Cosine: LeafRule(("variance",), _cosine, linear=("frequency",)),
    k.ExponentialTilt: LeafRule((), _tilt, _tilt_diagonal, linear=("theta",)),
    k.CosinePair: LeafRule((), _cosine_pair, _cosine_pair_diagonal, linear=("first", "second")),
    k.GeneralisedSpectral: LeafRule(
        ("variances",),
        _generalised_spectral,
        lambda kernel, X, w: _generalised_spectral(kernel, Pairs(X), w),
        linear=("thetas", "first", "second"),
    ),
    k.SpectralMixture: LeafRule(
        ("variances", "length_scales"),
        _spectral_mixture,
        lambda kernel, X, w: _spectral_mixture(kernel, Pairs(X), w),
        linear=("frequencies",),
    ),
    k.Linear: LeafRule(("weights",), _linear, _linear_diagonal),
    k.Polynomial: LeafRule(("weights", "offset"), _polynomial, _polynomial_diagonal),
    k.Constant: LeafRule(("variance",), _constant),
    k.White: LeafRule(("variance",), _no_variance, _no_variance, training=_white_training),
}
"""One for every elementary kernel but the radial ones that are not here."""

ANY_RADIAL = LeafRule(_RADIAL, _radial)
"""Of all other radial kernels: it trains no parameters of the shape."""


def rule_of(kernel: k.Kernel) -> LeafRule:
    """The rule of the kernel's own class (one made from it may have other values), or of radial
    kernels, which asks the kernel itself."""
    rule = LEAF_RULES.get(type(kernel), ANY_RADIAL if kernel.radial else None)
    if rule is None:
        raise InputError(
            f"kernel: expected one with a rule of gpcert.models.leaf_gradients, got {kernel!r}; "
            "add its rule there, or fit with max_epochs=0"
        )
    return rule
