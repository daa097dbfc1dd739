"""One rule for every kernel that is not made of others: `sum_ij W_ij dk(x_i, y_j) / dtheta`.

A rule gives the sums for all parameters of the kernel at once, by row sums, column sums and matrix
products: no array has the shape (n, p, parameters). `log_parameters` applies the rules to trees.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from gpcert import kernels as k
from gpcert.errors import InputError

Contracted = dict[str, Any]
"""Contracted derivatives by field; each has the shape of the field."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """The covariances that weights belong to: between points X (n, d) and Y (p, d), or, `single`,
    of each point of X = Y with itself; `observed`: of observations at X = Y, white noise included.

    `known`: a kernel whose values there have been computed. Weights, like values, are (n, p), and
    (n,) of single points: a rule that uses the methods serves both.
    """

    X: np.ndarray
    Y: np.ndarray
    known: tuple[Any, np.ndarray | None] = (None, None)
    observed: bool = False
    single: bool = False

    def values(self, kernel: Any) -> np.ndarray:
        """`k(x_i, y_j)`."""
        known, values = self.known
        if values is not None and known is kernel:
            return values
        return kernel.diagonal(self.X) if self.single else kernel.value(self.X, self.Y)

    def covariances(self, kernel: Any) -> np.ndarray:
        """What the weights are multiplied with."""
        return kernel.training_covariance(self.X) if self.observed else self.values(kernel)

    def columns(self, dimensions: Any) -> Pairs:
        """The same points in some of their features."""
        return replace(self, X=self.X[:, dimensions], Y=self.Y[:, dimensions], known=(None, None))

    def times(self, W: np.ndarray, b: np.ndarray) -> np.ndarray:
        """`sum_j W_ij b_j`, b (p,) or (p, q); with W^T and b of the points X the other sum."""
        return (W * b.T).T if self.single else W @ b

    def products(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        """`a_i . b_j` of rows."""
        return (A * B).sum(axis=1) if self.single else A @ B.T


@dataclass(frozen=True)
class LeafRule:
    """Which fields of a kernel are trained, and its contracted derivatives.

    `logarithmic`: positive fields, trained by their logarithm. `linear`: real fields, trained as
    they are. `contracted(kernel, pairs, W)`: `sum_ij W_ij dk(x_i, y_j)`; a kernel with a field
    `variance` is stationary, and its rule never asked about single points.
    """

    logarithmic: tuple[str, ...]
    contracted: Callable[[Any, Pairs, np.ndarray], Contracted]
    linear: tuple[str, ...] = ()

    @property
    def fields(self) -> tuple[str, ...]:
        """All fields that are trained, in the order of the parameter vector."""
        return self.logarithmic + self.linear

    def derivatives(self, kernel: Any, pairs: Pairs, W: np.ndarray) -> Contracted:
        """Of the contraction of `pairs.covariances(kernel)` with W."""
        if not pairs.single or "variance" not in self.fields:
            return self.contracted(kernel, pairs, W)
        still = {name: np.zeros_like(getattr(kernel, name)) for name in self.fields}
        return still | {"variance": W @ kernel.diagonal(pairs.X)}


def _squared_differences(X: np.ndarray, Y: np.ndarray, V: np.ndarray) -> np.ndarray:
    """(d,) `sum_ij V_ij (x_i - y_j)^2`, feature by feature, about the middle of the points."""
    middle = X.mean(axis=0)
    X, Y = X - middle, Y - middle
    squares = V.sum(axis=1) @ np.square(X) + V.sum(axis=0) @ np.square(Y)
    return squares - 2.0 * ((V @ Y) * X).sum(axis=0)


def _shaped(per_feature: np.ndarray, like: Any) -> Any:
    """One number per feature, or their sum where one parameter serves all features."""
    return per_feature if np.ndim(like) else per_feature.sum()


def _scaled_squares(kernel: Any, pairs: Pairs, V: np.ndarray) -> Any:
    lengths = kernel.length_scale
    return _shaped(_squared_differences(pairs.X, pairs.Y, V) / np.square(lengths), lengths)


def _squared_exponential(kernel: Any, pairs: Pairs, W: np.ndarray) -> Contracted:
    """`dk / d log l_j = k (x_j - y_j)^2 / l_j^2`."""
    V = W * pairs.values(kernel)
    return {"length_scale": _scaled_squares(kernel, pairs, V), "variance": V.sum()}


def _rational_quadratic(kernel: Any, pairs: Pairs, W: np.ndarray) -> Contracted:
    """With `b = 1 + r^2 / (2 alpha)`: `dk / d log l_j = k u_j^2 / b`, u = (x - y) / l, and

    `dk / d log alpha = k (r^2 / (2 b) - alpha log b)`.
    """
    V = W * pairs.values(kernel)
    r2 = cdist(pairs.X / kernel.length_scale, pairs.Y / kernel.length_scale, "sqeuclidean")
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
    differences = ((X[:, j, None] - Y[None, :, j]) / lengths[j] for j in range(X.shape[1]))
    parts = np.asarray([np.vdot(V, np.square(each)) for each in differences])
    return {"length_scale": _shaped(parts, kernel.length_scale), "variance": variance}


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


def _cosine(kernel: Any, pairs: Pairs, W: np.ndarray) -> Contracted:
    """`dk / dw = -v sin(w.(x - y)) (x - y)`."""
    middle = pairs.X.mean(axis=0)
    X, Y = pairs.X - middle, pairs.Y - middle
    phase = (X @ kernel.frequency)[:, None] - (Y @ kernel.frequency)[None, :]
    V = -kernel.variance * W * np.sin(phase)
    return {
        "variance": kernel.variance * np.vdot(W, np.cos(phase)),
        "frequency": V.sum(axis=1) @ X - V.sum(axis=0) @ Y,
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
    by_x, by_y = pairs.times(V, np.ones(len(Y))), pairs.times(V.T, np.ones(len(X)))
    return {"theta": by_x @ X + by_y @ Y}


def _cosine_pair(kernel: Any, pairs: Pairs, W: np.ndarray) -> Contracted:
    """`k = sum_ab cos(w_a.x + p_a - w_b.y - p_b)`, a and b one of two; by the addition theorems it
    is C(x) C(y) + S(x) S(y), C and S the sums of two waves."""
    X, Y = pairs.X, pairs.Y
    frequencies = np.stack([kernel.first, kernel.second])
    slopes = np.zeros_like(frequencies)
    for V, at, others in ((W, X, Y), (W.T, Y, X)):
        angles, waves = (points @ frequencies.T + kernel.phases for points in (at, others))
        C, S = np.cos(waves).sum(axis=1), np.sin(waves).sum(axis=1)
        by_sine, by_cosine = pairs.times(V, S)[:, None], pairs.times(V, C)[:, None]
        slopes += (np.cos(angles) * by_sine - np.sin(angles) * by_cosine).T @ at
    return {"first": slopes[0], "second": slopes[1]}


def _linear(kernel: Any, pairs: Pairs, W: np.ndarray) -> Contracted:
    """`dk / d log w_j = w_j (x_j - o_j)(y_j - o_j)`."""
    X, Y = pairs.X, pairs.Y
    products = ((X - kernel.center) * pairs.times(W, Y - kernel.center)).sum(axis=0)
    return {"weights": _shaped(kernel.weights * products, kernel.weights)}


def _polynomial(kernel: Any, pairs: Pairs, W: np.ndarray) -> Contracted:
    """k = s^p with s linear in weights and offset: the linear rule with weights `W p s^(p - 1)`."""
    X, Y = pairs.X, pairs.Y
    inner = pairs.products((X - kernel.center) * kernel.weights, Y - kernel.center) + kernel.offset
    V = W * kernel.degree * inner ** (kernel.degree - 1)
    return _linear(kernel, pairs, V) | {"offset": kernel.offset * V.sum()}


def _constant(kernel: Any, pairs: Pairs, W: np.ndarray) -> Contracted:
    return {"variance": kernel.variance * W.sum()}


def _white(kernel: Any, pairs: Pairs, W: np.ndarray) -> Contracted:
    return {"variance": kernel.variance * np.trace(W) if pairs.observed else 0.0}


_RADIAL = ("variance", "length_scale")

LEAF_RULES: dict[type[k.Kernel], LeafRule] = {
    k.SquaredExponential: LeafRule(_RADIAL, _squared_exponential),
    k.RationalQuadratic: LeafRule((*_RADIAL, "alpha"), _rational_quadratic),
    k.Periodic: LeafRule((*_RADIAL, "period"), _periodic),
    k.Cosine: LeafRule(("variance",), _cosine, linear=("frequency",)),
    k.ExponentialTilt: LeafRule((), _tilt, linear=("theta",)),
    k.CosinePair: LeafRule((), _cosine_pair, linear=("first", "second")),
    k.GeneralisedSpectral: LeafRule(
        ("variances",), _generalised_spectral, linear=("thetas", "first", "second")
    ),
    k.SpectralMixture: LeafRule(
        ("variances", "length_scales"), _spectral_mixture, linear=("frequencies",)
    ),
    k.Linear: LeafRule(("weights",), _linear),
    k.Polynomial: LeafRule(("weights", "offset"), _polynomial),
    k.Constant: LeafRule(("variance",), _constant),
    k.White: LeafRule(("variance",), _white),
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
            f"kernel: expected one with a rule of gpcert.models.kernel_gradients, got {kernel!r}; "
            "add its rule there, or fit with max_epochs=0"
        )
    return rule
