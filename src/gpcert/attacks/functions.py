"""Values and gradients of quantities and predictions in plain floating point, for local search.

Nothing is proved here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from gpcert.attacks.class_means import class_means
from gpcert.attacks.slopes import slope_function
from gpcert.errors import InputError
from gpcert.likelihoods import ClassLikelihood, ResponseLikelihood, ScalarLikelihood
from gpcert.model.class_layout import ClassLayout, class_layout
from gpcert.model.committee import Committee, Model, pair_weights
from gpcert.model.differences import LazyDifferences
from gpcert.model.multi_output import ModelCollection
from gpcert.model.posterior import Posterior
from gpcert.quantities import (
    ClassSums,
    Compound,
    OutputQuantity,
    PredictionSlope,
    PredictionSteepness,
    Probability,
    Quantity,
    Response,
    Share,
)
from gpcert.quantities.committee import member_probabilities

ValuesAndGradients = tuple[np.ndarray, np.ndarray]
"""Values and gradients."""

PlainFunction = Callable[[np.ndarray], ValuesAndGradients]
"""Points (n, d) to values (n,) and gradients (n, d)."""

ValuesAndLazyGradients = tuple[np.ndarray, Callable[[], np.ndarray]]
"""Values, and a function that computes the gradients."""

LazyFunction = Callable[[np.ndarray], ValuesAndLazyGradients]

BLOCK = 32
"""Rows in one block of kernel values k(x, x)."""

ROWS = 1024
"""Points in one block of kernel values with the model's points."""


class Latent:
    """Latent means and variances of a model's outputs at points, and gradients of sums of them.

    `mean` (n, k) are those of the outputs `means`, `variance` (n, l) those of `variances`.
    """

    def __init__(
        self,
        model: Model | ModelCollection,
        X: np.ndarray,
        means: Sequence[int],
        variances: Sequence[int] = (),
    ) -> None:
        self.count, self.shape = (len(means), len(variances)), X.shape
        owners: dict[int, tuple[Posterior, list[list[int]], list[list[int]]]] = {}
        for kind, outputs in enumerate((means, variances)):
            for place, output in enumerate(outputs):
                posterior, c = model.output(output)
                _, indices, places = owners.setdefault(
                    id(posterior), (posterior, [[], []], [[], []])
                )
                indices[kind].append(c)
                places[kind].append(place)
        self.mean, self.variance = (np.zeros((len(X), k)) for k in self.count)
        self.parts = []
        for posterior, indices, places in owners.values():
            part = _PosteriorLatent(posterior, X, indices[0], indices[1])
            self.mean[:, places[0]], self.variance[:, places[1]] = part.mean, part.variance
            self.parts.append((part, places))

    def gradient(self, by_mean: np.ndarray, by_variance: np.ndarray) -> np.ndarray:
        """(n, d) of the sum of all means and variances, with factors (n, k) and (n, l)."""
        gradients = [
            part.gradient(by_mean[:, places[0]], by_variance[:, places[1]])
            for part, places in self.parts
        ]
        return sum(gradients[1:], gradients[0]) if gradients else np.zeros(self.shape)


class _PosteriorLatent:
    """`Latent` of one posterior: the weights of its points are summed before the gradient."""

    def __init__(
        self, posterior: Posterior, X: np.ndarray, means: list[int], variances: list[int]
    ) -> None:
        self.posterior, self.X, self.means, self.variances = posterior, X, means, variances
        self.K, self.product = posterior.cross_with_gradient(X)
        t, slope = posterior.weights[means], posterior.slope[means]
        trend, self.bent = posterior.seen(X) @ slope.T if posterior.has_trend else 0.0, None
        if posterior.mean_function is not None:
            seen = posterior.seen(X)
            trend = trend + posterior.mean_function.value(seen)[:, means]
            self.bent = posterior.mean_function.gradient(seen)[:, means]
        self.mean = posterior.offset[means] + posterior.scale[means] * (self.K @ t.T + trend)
        v = np.zeros((len(X), 0))
        if variances:
            if isinstance(posterior, LazyDifferences):
                self.explained = _PairVariance(posterior, self.K, variances)
            else:
                self.explained = _ExplainedVariance(posterior, self.K, variances)
            v = np.maximum(posterior.prior(X)[:, None] - self.explained.values, 0.0)
        scale = posterior.scale[variances]  # its square may leave float64 where the products do not
        with np.errstate(over="ignore"):
            self.variance = scale * (scale * v) + posterior.noise[variances]

    def gradient(self, by_mean: np.ndarray, by_variance: np.ndarray) -> np.ndarray:
        posterior = self.posterior
        factors = posterior.scale[self.means] * by_mean
        weights = factors @ posterior.weights[self.means]
        slopes = factors @ posterior.slope[self.means]
        if self.bent is not None:
            slopes = slopes + np.einsum("nk,nkd->nd", factors, self.bent)
        if not self.variances:
            return through_features(posterior, self.X, self.product(weights) + slopes)
        scale = posterior.scale[self.variances]
        with np.errstate(over="ignore", invalid="ignore"):
            factor = 2.0 * (scale * (scale * by_variance))
            weights = weights - self.explained.weights(factor)
            through_kernel = through_features(posterior, self.X, self.product(weights) + slopes)
            # k(x, x): both arguments change, equally by symmetry
            return (
                through_kernel + diagonal_gradient(posterior, self.X) * factor.sum(axis=1)[:, None]
            )


class _ExplainedVariance:
    """`k.S_c k` (n, l) of some outputs, and sums of their S_c k."""

    def __init__(self, posterior: Posterior, K: np.ndarray, outputs: Sequence[int]) -> None:
        self.posterior = posterior
        self.places = outputs if posterior.precision_count > 1 else [0] * len(outputs)
        self.known: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        for c in dict.fromkeys(self.places):
            A, C = posterior.factors_of(c)
            self.known[c] = K @ A.T, K @ C.T
        squares = {c: np.square(q).sum(1) - np.square(w).sum(1) for c, (q, w) in self.known.items()}
        self.values = np.stack([squares[c] for c in self.places], axis=1)

    def weights(self, factor: np.ndarray) -> np.ndarray:
        """(n, N): `sum_c factor_c S_c k`, factor (n, l)."""
        total = np.zeros((len(factor), len(self.posterior.points)))
        for c, (q, added) in self.known.items():
            A, C = self.posterior.factors_of(c)
            columns = [k for k, place in enumerate(self.places) if place == c]
            total += factor[:, columns].sum(axis=1, keepdims=True) * (q @ A - added @ C)
        return total


class _PairVariance:
    """The same for pairs of coupled classes, from half of the factors of each class:
    `S = E_k + E_l - D^T D`, `D = C_l - C_k`, `E = A^T A`; a sum over pairs is one over classes."""

    def __init__(self, posterior: LazyDifferences, K: np.ndarray, outputs: Sequence[int]) -> None:
        class_outputs = posterior.outputs_of
        self.A, self.C = class_outputs.factor, class_outputs.negative_factor
        first, second = np.triu_indices(len(self.A), 1)
        self.first, self.second = first[list(outputs)], second[list(outputs)]
        self.q = [0.5 * (K @ A.T) for A in self.A]
        self.w = np.stack([0.5 * (K @ C.T) for C in self.C])  # (m, n, r)
        squares = np.stack([np.square(q).sum(1) for q in self.q], axis=1)
        step = self.w[self.second] - self.w[self.first]
        self.values = squares[:, self.first] + squares[:, self.second]
        self.values -= np.square(step).sum(2).T

    def weights(self, factor: np.ndarray) -> np.ndarray:
        """See `_ExplainedVariance.weights`."""
        m, n = len(self.A), len(factor)
        laplacian = np.zeros((n, m, m))
        for j, (k, c) in enumerate(zip(self.first, self.second, strict=True)):
            laplacian[:, [k, c], [k, c]] += factor[:, j : j + 1]
            laplacian[:, [k, c], [c, k]] -= factor[:, j : j + 1]
        shared = np.einsum("ncd,dnr->cnr", laplacian, self.w)
        total = np.zeros((n, self.A.shape[2]))
        for c in range(m):
            diagonal = laplacian[:, c, c][:, None] * self.q[c]
            total += diagonal @ self.A[c] - shared[c] @ self.C[c]
        return 0.5 * total


def plain_function(model: Model | ModelCollection, quantity: Quantity) -> PlainFunction:
    """The quantity, and its (sub)gradient by the chain rule."""
    function = lazy_function(model, quantity)

    def both(X: np.ndarray) -> ValuesAndGradients:
        value, gradient = function(X)
        return value, gradient()

    return both


def lazy_function(model: Model | ModelCollection, quantity: Quantity) -> LazyFunction:
    """As `plain_function`, with gradients computed on demand."""
    if isinstance(quantity, ClassSums):
        sums, predicted = quantity, class_predictions(model, quantity.layout, quantity.likelihood)

        def of_classes(X: np.ndarray) -> ValuesAndLazyGradients:  # the least sum, and its gradient
            probabilities, gradient_of = predicted(X)
            slopes = sums.slopes(probabilities)
            return sums.value(probabilities), lambda: gradient_of(slopes)

        return of_classes
    if isinstance(quantity, PredictionSlope | PredictionSteepness):
        return slope_function(ModelCollection(model.members), quantity)
    assert isinstance(quantity, OutputQuantity | Compound), "a quantity is one of four kinds"
    parts, compound = quantity.parts, quantity if isinstance(quantity, Compound) else None
    means = list(dict.fromkeys(part.output for part in parts if part.by_mean))
    variances = list(dict.fromkeys(part.output for part in parts if part.by_variance))
    zero = np.zeros(1)

    @np.errstate(over="ignore", invalid="ignore")
    def function(X: np.ndarray) -> ValuesAndLazyGradients:
        latent = Latent(model, X, means, variances)
        values, places = [], []
        for part in parts:
            k = means.index(part.output) if part.by_mean else None
            j = variances.index(part.output) if part.by_variance else None
            q = zero if k is None else part.sign * latent.mean[:, k]
            v = zero if j is None else latent.variance[:, j]
            values.append(part.value(q, v))
            places.append((part, k, j, q, v))
        y = np.stack(values, axis=1) if compound else values[0][:, None]

        @np.errstate(over="ignore", invalid="ignore")
        def gradient() -> np.ndarray:
            outer = compound.slopes(y) if compound else np.ones((len(X), 1))
            by_mean, by_variance = np.zeros_like(latent.mean), np.zeros_like(latent.variance)
            for p, (part, k, j, q, v) in enumerate(places):
                by_q, by_v = part.slopes(q, v)
                if k is not None:
                    by_mean[:, k] += outer[:, p] * (part.sign * by_q)
                if j is not None:
                    by_variance[:, j] += outer[:, p] * by_v
            return latent.gradient(by_mean, by_variance)

        return compound.value(y) if compound else values[0], gradient

    return function


def least_sum_of_means(model: Model, weights: np.ndarray) -> LazyFunction:
    """`min_j weights_j.mu(x)` of the latent means of all outputs; weights (k, outputs)."""

    def function(X: np.ndarray) -> ValuesAndLazyGradients:
        latent = Latent(model, X, range(weights.shape[1]))
        sums = latent.mean @ weights.T
        least = np.argmin(sums, axis=1)
        value = sums[np.arange(len(X)), least]
        return value, lambda: latent.gradient(weights[least], latent.variance)

    return function


def class_predictions(
    model: Model | ModelCollection, layout: ClassLayout, likelihood: ClassLikelihood
) -> Callable[[np.ndarray], tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]]:
    """From points X (n, d) to class probabilities (n, m), and from weights (n, m) to the gradients
    (n, d) of the weighted sums.

    With p and Q / 2 a sum's derivatives in the differences' mean a and covariance V, the gradient
    is that of a kernel expansion, `sum_k p_k d a_k + <Q, dV> / 2`. The links are averaged over a
    fixed set of nodes of the latent differences. No certified integral is used here, so that a
    bound and an attack cannot share an error.
    """
    outputs, mixing = range(layout.outputs), np.zeros((layout.n, layout.outputs))
    for k in range(layout.n):
        for output, factor in layout.pair(0, k + 1):
            mixing[k, output] = factor

    @np.errstate(all="ignore")
    def predicted(X: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
        latent = Latent(model, X, outputs, outputs)
        V = np.einsum("bj,jkl->bkl", latent.variance, layout.matrices)
        means = class_means(likelihood, latent.mean @ mixing.T, V)

        @np.errstate(all="ignore")
        def gradient_of(weights: np.ndarray) -> np.ndarray:
            p, Q_half = means.slopes(weights)
            by_variance = np.einsum("bkl,jkl->bj", Q_half, layout.matrices)
            return latent.gradient(p @ mixing, by_variance)

        return means.probabilities, gradient_of

    return predicted


def means_and_gradients(model: Model, X: np.ndarray, count: int) -> ValuesAndGradients:
    """Latent means (n, count) of the first outputs and their gradients (n, count, d)."""
    latent = Latent(model, X, range(count))
    return latent.mean, _each(lambda row: latent.gradient(row, latent.variance), len(X), count)


def _each(gradient_of: Callable[[np.ndarray], np.ndarray], n: int, count: int) -> np.ndarray:
    """(n, count, d) gradients of single outputs, from those (n, d) of weighted sums of them."""
    return np.stack([gradient_of(np.tile(row, (n, 1))) for row in np.eye(count)], axis=1)


def diagonal_gradient(posterior: Posterior, X: np.ndarray) -> np.ndarray:
    """(n, d) half the gradient of k(x, x), in small blocks, as pairs of rows are not needed."""
    inputs = posterior.seen(X)
    blocks = [inputs[i : i + BLOCK] for i in range(0, len(X), BLOCK)]
    parts = [
        posterior.kernel.gradient_product(block, block, np.eye(len(block))) for block in blocks
    ]
    gradient = np.concatenate(parts) if parts else np.zeros_like(inputs)
    return through_features(posterior, X, gradient)


def through_features(posterior: Posterior, X: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """Gradients (n, d) in the inputs X, from those in the kernel's inputs (n, q), by the chain
    rule."""
    return gradient if posterior.features is None else posterior.features.gradient(X, gradient)


def prediction_and_gradient(
    model: Model, X: np.ndarray, quantity: Literal["probability", "mean"] | None = None
) -> ValuesAndGradients:
    """Values (n, m) and gradients (n, m, d) at X (n, d); see `gpcert.predict_gradient`."""
    parts = [_block(model, X[i : i + ROWS], quantity) for i in range(0, len(X), ROWS)]
    if not parts:
        parts = [tuple(part[:0] for part in _block(model, model.places[:1], quantity))]
    values, gradients = zip(*parts, strict=True)
    return np.concatenate(values), np.concatenate(gradients)


@np.errstate(all="ignore")
def _block(model: Model, X: np.ndarray, quantity: str | None) -> ValuesAndGradients:
    if quantity not in {None, "probability", "mean"}:
        raise InputError(f"quantity: expected 'probability' or 'mean', got {quantity!r}")
    if isinstance(model, Committee):
        return _committee(model, X, quantity)
    if quantity == "probability":
        model.check_has_variance("quantity 'probability'")
    if quantity == "mean" or not (model.likelihood.classifies and model.likelihood.has_variance):
        if quantity == "probability":
            advice = model.likelihood.advice
            raise InputError(f"quantity: a regression model has no probability; use 'mean'{advice}")
        likelihood = model.likelihood
        if quantity is None and isinstance(likelihood, ResponseLikelihood):
            parts = [Response(likelihood, c, 1) for c in range(model.outputs)]
            predictions = zip(*(plain_function(model, part)(X) for part in parts), strict=True)
            values, gradients = (np.stack(each, axis=1) for each in predictions)
            return values, gradients
        return means_and_gradients(model, X, model.outputs)
    if isinstance(model.likelihood, ClassLikelihood):
        layout, searched = class_layout(model)
        predictions, gradient_of = class_predictions(searched, layout, model.likelihood)(X)
        return predictions, _each(gradient_of, len(X), layout.classes)
    assert isinstance(model.likelihood, ScalarLikelihood), "separate outputs are of several classes"
    value, gradient = plain_function(model, Probability(model.likelihood, 0, 1))(X)
    return value[:, None], gradient[:, None]


def _committee(committee: Committee, X: np.ndarray, quantity: str | None) -> ValuesAndGradients:
    votes = committee.scheme != "one_vs_rest"
    if votes and quantity == "probability":
        committee.check_has_probabilities()
    if committee.shared:
        return _block(committee.members[0], X, "mean")  # a value for every pair of classes
    if quantity == "mean":
        return means_and_gradients(committee, X, len(committee.members))
    parts, m = member_probabilities(committee), len(committee.classes)
    members = zip(*(plain_function(committee, part)(X) for part in parts), strict=True)
    F, slopes = (np.stack(each, axis=1) for each in members)  # (n, members) and (n, members, d)
    if votes:  # gradients of the sums of confidences
        weights = np.stack([pair_weights(m, c) for c in range(m)])
        steep = 1.0 / (3.0 * (np.abs(F @ weights.T) + 1.0) ** 2)
        return committee.scores(X), np.einsum("kc,cp,kpd->kcd", steep, weights, slopes)
    shares = [Share(parts, c, 1) for c in range(m)]
    by_F = np.stack([share.slopes(F) for share in shares], axis=1)
    values = np.stack([share.value(F) for share in shares], axis=1)
    return values, np.einsum("kcp,kpd->kcd", by_F, slopes)
