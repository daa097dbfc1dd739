"""Models with a known answer, or of unusual size."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

import gpcert
from gpcert import kernels, likelihoods
from gpcert.model.committee import Committee
from tests.hunt.hunt_models import Rng, draw_binary_likelihood, draw_posterior, one_of


def draw_extreme(rng: Rng, d: int) -> tuple[str, Any, float]:
    """An ordinary model in other units, up to 1e+-300: kind, model, and the unit of its inputs.

    "shift": all points far from the origin. "weights": weights times c, scale over c. "variance":
    the kernel times c, factor, weights and scale over the root of c. "lengths": points and lengths
    times c. "offset": a large offset.
    """
    kind = one_of(rng, ("regression", "regression", "binary", "targets"))
    model = draw_posterior(rng, d, kind)
    how = one_of(rng, ("weights", "variance", "lengths", "offset", "shift", "shift"))
    if how == "shift":
        far = 10.0 ** float(rng.uniform(3, 12))
        kernel = kernels.Matern(one_of(rng, (1.0, 0.3)), one_of(rng, (0.5, 1.5, 2.5, 3.5)))
        kernel = one_of(rng, (kernel, kernels.SquaredExponential(0.7), kernels.Periodic(2.0, 1.0)))
        return kind, _changed(model, kernel=kernel, points=model.points + far), 1.0
    e = float(one_of(rng, (rng.uniform(-300, 300), rng.uniform(-170, -140), rng.uniform(130, 170))))
    c, root = 10.0**e, 10.0 ** (e / 2)
    if how == "weights":
        made = _changed(
            model, weights=model.weights * c, slope=model.slope * c, scale=model.scale / c
        )
        return kind, made, 1.0
    if how == "variance":
        made = _changed(
            model,
            kernel=kernels.Scale(model.kernel, c),
            weights=model.weights / root,
            slope=model.slope * root,
            scale=model.scale / root,
            factor=model.factor / root,
            negative_factor=model.negative_factor / root,
        )
        return kind, made, 1.0
    if how == "lengths":
        length = 10.0 ** (e / one_of(rng, (1, 2, 4)))
        made = _changed(
            model,
            kernel=kernels.SquaredExponential(length, one_of(rng, (1.0, 1e-3, 30.0))),
            points=model.points * length,
            slope=model.slope / length,
        )
        return kind, made, length
    size = 10.0 ** float(rng.integers(1, 14))
    return kind, _changed(model, offset=model.offset + size), 1.0


def draw_fitted(rng: Rng, d: int) -> tuple[str, Any]:
    """A fitted model of scikit-learn, now and then behind a scaler: its kind, and the model."""
    from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
    from sklearn.gaussian_process import kernels as theirs
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, StandardScaler

    length = float(np.exp(rng.uniform(-1, 1)))
    kernel = one_of(
        rng,
        (
            theirs.RBF(length),
            2.0 * theirs.RBF([length] * d) + theirs.ConstantKernel(0.3),
            theirs.Matern(length, nu=one_of(rng, (0.5, 1.5, 2.5, np.inf))),
            theirs.RationalQuadratic(length, 1.5) * theirs.DotProduct(1.0),
            theirs.RBF(length) + theirs.WhiteKernel(0.1),
            theirs.RBF(length) ** 2,
        ),
    )
    X = rng.normal(size=(int(rng.integers(8, 16)), d)).round(3)
    kind = one_of(rng, ("regression", "regression", "targets", "binary", "committee"))
    if kind in {"regression", "targets"}:
        y = rng.normal(size=len(X) if kind == "regression" else (len(X), 2))
        alpha = one_of(rng, (1e-10, 1e-10, 1e-3, 0.1))
        normalise = bool(rng.random() < 0.3)
        own = GaussianProcessRegressor(kernel, alpha=alpha, optimizer=None, normalize_y=normalise)
    else:
        names = np.array(["no", "yes"] if kind == "binary" else ["a", "b", "c"])
        y = names[np.arange(len(X)) % len(names)]
        scheme = one_of(rng, ("one_vs_rest", "one_vs_one"))
        own = GaussianProcessClassifier(kernel, optimizer=None, multi_class=scheme)
    if rng.random() < 0.4:
        own = make_pipeline(one_of(rng, (StandardScaler, MinMaxScaler))(), own)
    return kind, own.fit(X, y)


def _changed(model: Any, **changes: Any) -> Any:
    return replace(model, **changes)


def _narrow(rng: Rng, width: float) -> Any:
    kind = rng.random()
    if kind < 0.5:
        return kernels.SquaredExponential(width)
    if kind < 0.65:
        return kernels.Matern(width, one_of(rng, (0.5, 1.5, 2.5, 5.5)))
    if kind < 0.8:
        return kernels.Sum(
            [kernels.SquaredExponential(1.0, 0.05), kernels.SquaredExponential(width)]
        )
    if kind < 0.9:
        return kernels.Product(
            [kernels.SquaredExponential(width), kernels.RationalQuadratic(1.0, 1.0)]
        )
    return kernels.RationalQuadratic(width, 3.0)


def draw_bump(rng: Rng, d: int, extreme: bool) -> tuple[str, Any, np.ndarray]:
    """A model whose decision flips in a small ball about a known point: kind, model, point."""
    width = float(rng.uniform(0.01, 0.15))
    kernel = _narrow(rng, width)
    Z = rng.normal(size=(int(rng.integers(1, 6)), d)).round(3)
    bump = Z[0]
    lead, depth = float(rng.uniform(0.3, 1.5)), float(rng.uniform(0.3, 2.0))
    weights = rng.uniform(0.0, 0.2, len(Z))
    weights[0] = -(lead + depth)
    kind = one_of(rng, ("regression", "binary", "binary", "classes", "committee"))
    scale = 10.0 ** float(rng.uniform(100, 250)) if extreme else 1.0
    if extreme:
        kind = one_of(rng, ("regression", "binary"))
    sign = one_of(rng, (-1.0, 1.0))
    if kind in {"regression", "binary"}:
        likelihood = likelihoods.Gaussian() if kind == "regression" else draw_binary_likelihood(rng)
        numbers = {"weights": sign * weights / scale, "scale": scale}
        if extreme and (kind == "binary" or rng.random() < 0.5):
            size = 1.0 / scale if rng.random() < 0.5 else scale  # the latent variance stays 1
            kernel = kernels.Scale(kernel, size)
            root = float(np.sqrt(size))
            numbers = {"weights": sign * weights / root, "scale": 1.0 / root}
        made = gpcert.Posterior(kernel, Z, offset=sign * lead, likelihood=likelihood, **numbers)
        return kind, made, bump
    m = int(rng.integers(2, 6))
    rows = np.zeros((m, len(Z)))
    rows[1] = -weights  # class 0 leads, but for class 1 at the bump
    offsets = np.zeros(m)
    offsets[0] = lead
    if kind == "classes":
        likelihood = one_of(rng, (likelihoods.Softmax(), likelihoods.MultinomialProbit()))
        return kind, gpcert.Posterior(kernel, Z, rows, offset=offsets, likelihood=likelihood), bump
    members = tuple(
        gpcert.Posterior(kernel, Z, t, offset=o, likelihood=likelihoods.SklearnLogistic())
        for t, o in zip(rows, offsets, strict=True)
    )
    return kind, Committee(members, tuple("abcdef"[:m]), "one_vs_rest"), bump


def draw_tie(rng: Rng, d: int) -> tuple[str, Any, Any]:
    """A model that decides alike everywhere, by little: kind, model, and the decision.

    Two classes and regression: an offset `tie` above the level, and no negative weight with a
    positive kernel. Several classes: outputs with the same function and the same variance, but for
    the offset of the winner: by exchangeability its probability is the largest.
    """
    tie = float(10.0 ** rng.uniform(-12, -2))
    length = float(rng.uniform(0.3, 2.0))
    kernel = one_of(rng, (kernels.SquaredExponential(length), kernels.Matern(length, 2.5)))
    N = int(rng.integers(1, 6))
    Z = rng.normal(size=(N, d)).round(3)
    kind = one_of(rng, ("regression", "binary", "classes", "classes"))
    weights = rng.uniform(0.0, one_of(rng, (0.0, 0.1, 1.0)), N)
    if kind == "regression":
        level = float(one_of(rng, (0.0, 1.0, 1e3)))
        made = gpcert.Posterior(kernel, Z, weights, offset=level + tie)
        return kind, made, (1, level)
    if kind == "binary":
        likelihood = one_of(rng, (likelihoods.Probit(), likelihoods.Logistic(), _own_logistic(rng)))
        made = gpcert.Posterior(kernel, Z, weights, offset=tie, likelihood=likelihood)
        return kind, made, (1, None)
    m, winner = int(rng.integers(2, 7)), 0
    winner = int(rng.integers(m))
    offsets = np.zeros(m)
    offsets[winner] = tie
    likelihood = one_of(rng, (likelihoods.Softmax(), likelihoods.MultinomialProbit()))
    factor = 0.5 * np.eye(N) / N if rng.random() < 0.5 else None
    made = gpcert.Posterior(
        kernel, Z, np.tile(weights, (m, 1)), factor, offset=offsets, likelihood=likelihood
    )
    return kind, made, (winner, None)


def _own_logistic(rng: Rng) -> Any:
    from tests.hunt.hunt_links import logistic_link

    return likelihoods.Discretised(logistic_link, pieces=one_of(rng, (16, 200)))
