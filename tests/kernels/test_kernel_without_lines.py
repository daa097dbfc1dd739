"""A kernel of a user's own, with nothing of the paper's method written for it: all verbs work with
`method="taylor"`. It has one feature, `phi(x) = 1 + sum_j w_j (x_j - o_j)^2`."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import gpcert
from gpcert.errors import InputError
from gpcert.kernels import KERNELS, Constant, Kernel, Matern, Sum
from gpcert.kernels.linear import CENTER, WEIGHTS
from gpcert.kernels.nodes.base import DerivativeBounds, Jet, KnownBatch, LocalNode
from gpcert.kernels.sizes import euclidean, frobenius
from gpcert.models import GPClassifier, GPRegressor
from gpcert.numerics.arrays import Array, namespace
from gpcert.numerics.rounding import TINY, gamma, up
from gpcert.plots.kernels import kernel_lines
from gpcert.regions.scaled import ScaledCells
from gpcert.testing.kernel_references import REFERENCES, exact, total
from gpcert.testing.node_contract import TESTED, NodeContract


@dataclass(frozen=True, eq=False)
class Bowl(Kernel):
    weights: Any
    center: Any = 0.0

    name: ClassVar[str] = "bowl"
    parameters: ClassVar[dict] = {"weights": WEIGHTS, "center": CENTER}

    def feature(self, X):
        return 1.0 + np.square(X - self.center) @ np.broadcast_to(self.weights, X.shape[1:])

    def value(self, X, Y):
        return np.outer(self.feature(X), self.feature(Y))

    def diagonal(self, X):
        return self.feature(X) ** 2

    def gradient(self, X, Y):
        return (2.0 * self.weights * (X - self.center))[:, None, :] * self.feature(Y)[:, None]

    def typical_lengths(self, d):
        weights = np.broadcast_to(self.weights, d)
        return 1.0 / np.sqrt(np.where(weights > 0, weights, 1.0))

    def rescaled(self, scale, shift):
        return Bowl(self.weights / np.square(scale), self.center * np.asarray(scale) + shift)

    def node(self, points, frame):
        d, place = points.shape[1], frame.backend.asarray
        weights, center = (np.broadcast_to(p, d) for p in (self.weights, self.center))
        held = weights[frame.fixed] @ np.square(frame.fixed_values - center[frame.fixed])
        free = (weights[frame.free], center[frame.free])
        return BowlNode(*map(place, free), float(held), place(self.feature(points)), d + 16)


@dataclass(frozen=True, eq=False)
class BowlNode(LocalNode):
    weights: Array
    center: Array
    held: float
    features: Array
    roundings: int

    def jet(self, geometry: ScaledCells) -> Jet:
        """phi at the centres; every entry carries at most `roundings` relative roundings."""
        xp = namespace(geometry.half)
        offset = geometry.exact_center - self.center
        value = 1.0 + self.held + xp.sum(self.weights * offset**2, axis=1)
        gradient = 2.0 * self.weights * offset * geometry.unit
        identity = xp.eye(len(self.weights), dtype=offset.dtype, device=offset.device)
        bend = identity * (2.0 * self.weights * geometry.unit * geometry.unit)
        return Jet(value, gradient, bend + 0.0 * value[:, None, None])

    def sups(self, geometry: ScaledCells) -> tuple[Array, ...]:
        """Upper bounds (B,) of `|D_d^n phi|` over the cell, n = 0, ..., 3."""
        xp, n = namespace(geometry.half), self.roundings
        far = abs(geometry.exact_center - self.center) + geometry.half * geometry.unit
        step = geometry.half * geometry.unit
        sizes = (far**2, 2.0 * far * step, 2.0 * step**2)
        zeroth, first, second = (up(xp.sum(self.weights * s, axis=1), n) for s in sizes)
        none, moves = xp.zeros_like(zeroth), xp.any(geometry.half > 0, axis=1)
        first, second = (xp.where(moves, s + TINY, none) for s in (first, second))
        return up(1.0 + self.held + zeroth, n), first, second, none

    def derivative_bounds(self, geometry: ScaledCells) -> DerivativeBounds:
        b = self.sups(geometry)
        gram = tuple(tuple(up(p * q, 1) * (p * q > 0) for q in b) for p in b)
        return DerivativeBounds(gram, (b[1], 0.5 * b[2], b[3]), stationary=False)

    def at(self, geometry: ScaledCells) -> KnownBatch:
        jet, z = self.jet(geometry), self.features
        lengths = (jet.value, euclidean(jet.gradient), frobenius(jet.hessian))
        sizes = tuple(up(s[:, None] * z[None, :], self.roundings) for s in lengths)
        errors = tuple(gamma(4 * self.roundings) * s + TINY for s in sizes)
        value = jet.value[:, None] * z[None, :]
        return BowlBatch(value, sizes, errors, jet, self, geometry)


@dataclass(frozen=True, eq=False)
class BowlBatch(KnownBatch):
    jet: Jet
    node: BowlNode
    geometry: ScaledCells

    def times(self, factor):
        jet = self.jet
        bend = factor[:, None, None] * jet.hessian
        return Jet(factor * jet.value, factor[:, None] * jet.gradient, bend)

    def contract(self, coefficients):
        return self.times(coefficients @ self.node.features)

    def gradients(self):
        return self.jet.gradient[:, :, None] * self.node.features[None, None, :]

    def variations(self):
        z = up(self.node.features, 2 * self.node.roundings)
        each = [s[:, None] * z[None, :] for s in self.node.sups(self.geometry)]
        return tuple(up(s, 2) * (s > 0) for s in each)

    def diagonal_jet(self):
        found = self.times(self.jet.value)
        return found, tuple(gamma(8 * self.node.roundings) * s + TINY for s in found.sizes)

    def mixed(self):
        slope = self.jet.gradient
        matrix = slope[:, :, None] * slope[:, None, :]
        return matrix, up(gamma(8 * self.node.roundings) * frobenius(matrix) + TINY, 2)


def formula(config, x, z):
    def feature(at):
        pairs = zip(at, exact(config["weights"]), exact(config["center"]), strict=True)
        return 1 + total(w * (a - o) ** 2 for a, w, o in pairs)

    return feature(x) * feature(z)


KERNEL = Bowl([0.3, 0.7], [0.2, -0.1])


@pytest.fixture(autouse=True, scope="module")
def registered():
    """Known to the registries while these tests run, and not to others."""
    gpcert.kernels.register(Bowl)
    REFERENCES["bowl"] = formula
    yield
    del KERNELS["bowl"], REFERENCES["bowl"], TESTED["bowl"]


class TestBowl(NodeContract):
    kernel = KERNEL
    dim = 2
    formula = formula


REFERENCES.pop("bowl")  # the fixture's


def waves(n=30):
    X = np.random.default_rng(2).uniform(-1.0, 1.0, (n, 2))
    return X, X[:, 0] ** 2 + 0.4 * X[:, 1] ** 2 - 0.3


@pytest.fixture(scope="module", params=["alone", "in a sum"])
def regressor(request):
    kernel = KERNEL if request.param == "alone" else Sum((KERNEL, Matern([1.0, 2.0], 0.5, 0.3)))
    return GPRegressor(kernel, noise=0.05, max_epochs=0).fit(*waves())


BOX = gpcert.Box([-0.4, 0.1], [0.3, 0.5])


def inside(n=400):
    return np.random.default_rng(0).uniform(BOX.lower, BOX.upper, (n, 2))


@pytest.mark.parametrize("quantity", ["mean", "variance", "std"])
def test_ranges_enclose_samples_and_close(regressor, quantity):
    bounds = gpcert.prediction_range(regressor, region=BOX, quantity=quantity, tol=0.02)
    mean, variance = regressor.posterior_.predict(inside())
    sampled = {"mean": mean, "variance": variance, "std": np.sqrt(variance)}[quantity]
    assert bounds.converged
    assert bounds.minimum.lower <= sampled.min()
    assert sampled.max() <= bounds.maximum.upper
    table = gpcert.bound_boxes(regressor, [BOX.lower], [BOX.upper], quantity=quantity)
    low, high = table.ranges[quantity][0, 0]
    assert low <= sampled.min()
    assert sampled.max() <= high


def test_decisions_and_radii():
    X, y = waves(40)
    model = GPClassifier(Sum((KERNEL, Constant(4.0))), max_epochs=0).fit(X, (y > 0).astype(int))
    point = X[np.argmax(y)]
    small, large = (gpcert.certify(model, point, radius) for radius in (0.05, 3.0))
    assert small.status == "ROBUST"
    assert large.status == "NOT_ROBUST"
    radius = gpcert.certified_radius(model, point, rtol=0.1)
    assert 0.05 <= radius.lower <= radius.upper
    many = gpcert.certify_many(model, X[:4], 0.05)
    alone = [gpcert.certify(model, x, 0.05).status for x in X[:4]]
    assert [certificate.status for certificate in many] == alone
    assert all(attacked.success for attacked in gpcert.attack(model, point[None], 3.0))


@pytest.mark.parametrize("method", ["paper", "both"])
def test_the_papers_method_says_why_it_is_not_available(regressor, method):
    with pytest.raises(InputError, match=r"not available for .* BowlBatch .* method='taylor'"):
        gpcert.prediction_range(regressor, region=BOX, method=method)


def test_a_picture_has_its_taylor_band_alone():
    curves = kernel_lines(KERNEL, (-0.5, 0.5), [0.3, 0.2], count=9)
    assert np.all(np.isneginf(curves.under) & np.isposinf(curves.over))
    assert np.all((curves.taylor_under <= curves.value) & (curves.value <= curves.taylor_over))
