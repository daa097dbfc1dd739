"""Means that are no linear functions: polynomials, and functions of a user with their bounds."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpcert
from gpcert.errors import InputError
from gpcert.functions import MeanFunction, PolynomialMean, register_mean
from gpcert.kernels import Matern, SquaredExponential
from gpcert.likelihoods import Probit
from gpcert.regions import LinearMap
from gpcert.testing.kernel_contract import drawn

flint = pytest.importorskip("flint")

POWERS = [[0, 0], [1, 0], [2, 1], [0, 4], [3, 0]]
POLYNOMIAL = PolynomialMean(POWERS, [0.3, -1.0, 0.7, 0.2, -0.1])


@register_mean
@dataclass(frozen=True, eq=False)
class Ramp(MeanFunction):
    """`height z^2 / (1 + z^2)` of the first feature: its slope lies between those at the ends."""

    height: float
    name: ClassVar[str] = "ramp of the tests"
    outputs: ClassVar[int] = 1

    def value(self, Z):
        square = Z[:, :1] ** 2
        return self.height * square / (1.0 + square)

    def gradient(self, Z):
        slope = np.zeros((len(Z), 1, Z.shape[1]))
        slope[:, 0, 0] = self.height * 2.0 * Z[:, 0] / (1.0 + Z[:, 0] ** 2) ** 2
        return slope

    def value_range(self, Z):
        value = self.value(Z)
        lost = 1e-14 * np.abs(self.height)
        return value - lost, value + lost

    def gradient_range(self, lower, upper):
        middle = self.gradient(0.5 * lower + 0.5 * upper)
        # |second derivative| <= 2 height
        apart = np.zeros_like(middle)
        apart[:, 0, 0] = np.abs(self.height) * (2.0 * (upper - lower)[:, 0] + 1e-13)
        return middle - apart, middle + apart


def posterior(mean, kernel=None, **fields):
    random = np.random.default_rng(0)
    Z = random.uniform(-2.0, 2.0, (15, 2))
    k = kernel or SquaredExponential([0.9, 1.3], 0.5)
    y = np.sin(2.0 * Z[:, 0]) - 0.3 * Z[:, 1]
    weights = np.linalg.solve(k.value(Z, Z) + 0.01 * np.eye(15), y)
    return gpcert.Posterior(k, Z, weights, training_noise=0.01, mean_function=mean, **fields)


MODELS = {
    "polynomial": lambda: posterior(POLYNOMIAL),
    "of a user": lambda: posterior(Ramp(3.0), Matern([0.9, 1.3], 2.5), scale=2.0, offset=1.0),
    "behind features": lambda: posterior(
        POLYNOMIAL, features=LinearMap([[0.8, -0.6, 0.1], [0.6, 0.8, -0.3]], [0.1, 0.2])
    ),
    "with a slope": lambda: posterior(POLYNOMIAL, slope=[0.5, -0.2]),
    "of two classes": lambda: posterior(POLYNOMIAL, likelihood=Probit(), classes=("a", "b")),
}


def test_one_box_of_a_parabola():
    """Beside a mean of 0 the bound is that of the parabola alone: it must reach its corner."""
    model = gpcert.Posterior(
        SquaredExponential(1.0), [[0.0]], [0.0], mean_function=PolynomialMean([[2]], [-1.0])
    )
    least = gpcert.prediction_range(
        model,
        gpcert.Box([0.5], [1.5]),
        quantity="mean",
        sides="minimum",
        tol=1e-9,
        budget=gpcert.Budget(boxes=1),
    ).minimum
    assert -3.25 - 1e-9 <= least.lower <= -2.25


@drawn(300, quick=60)
@given(seed=st.integers(0, 2**32 - 1))
def test_ranges_of_polynomials(seed):
    """Against ball arithmetic: values at points, gradients at points of boxes of all sizes."""
    random = np.random.default_rng(seed)
    powers = random.integers(0, 5, (4, 2))
    mean = PolynomialMean(powers, random.normal(size=(2, 4)) * 10.0 ** random.uniform(-3, 3))
    center = random.normal(size=2) * 10.0 ** random.uniform(-3, 3, 2)
    half = 10.0 ** random.uniform(-8, 1, 2) * random.integers(0, 2, 2)
    lower, upper = center - half, center + half
    x = np.clip(lower + (upper - lower) * random.choice([0.0, 0.37, 1.0], 2), lower, upper)
    if np.all(lower <= 0.0) and np.all(upper >= 0.0) and random.random() < 0.5:
        x = np.zeros(2)
    arb = flint.arb
    exact = [arb(float(v)) for v in x]
    value, slope = mean.value_range(x[None]), mean.gradient_range(lower[None], upper[None])
    for c, row in enumerate(mean.coefficients):
        terms = list(zip(row, mean.powers.tolist(), strict=True))
        real = sum((arb(w) * exact[0] ** p[0] * exact[1] ** p[1] for w, p in terms), arb(0))
        assert not real < arb(float(value[0][0, c]))
        assert not real > arb(float(value[1][0, c]))
        for j in range(2):
            lowered = [
                (arb(w) * p[j], [p[i] - (i == j) for i in range(2)]) for w, p in terms if p[j] > 0
            ]
            real = sum((w * exact[0] ** p[0] * exact[1] ** p[1] for w, p in lowered), arb(0))
            assert not real < arb(float(slope[0][0, c, j]))
            assert not real > arb(float(slope[1][0, c, j]))


@pytest.mark.parametrize("name", MODELS)
def test_ranges_contain_predictions(name, tmp_path):
    model = MODELS[name]()
    random, d = np.random.default_rng(1), model.dim
    center = random.uniform(-1.0, 1.0, d)
    X = center + random.uniform(-0.4, 0.4, (3000, d))
    values = model.mean(X)[:, 0]
    answer = gpcert.prediction_range(model, center, 0.4, quantity="mean")
    assert answer.minimum.lower <= values.min()
    assert values.max() <= answer.maximum.upper
    spread = values.max() - values.min()
    assert answer.maximum.upper - answer.minimum.lower < 1.25 * spread
    for point, end in ((answer.argmin, answer.minimum), (answer.argmax, answer.maximum)):
        assert end.lower - 1e-9 <= model.mean(point[None])[0, 0] <= end.upper + 1e-9
    one_box = gpcert.bound_boxes(model, (center - 0.4)[None], (center + 0.4)[None])
    low, high = one_box["mean"][0].ravel()[:2]
    assert low <= values.min() <= values.max() <= high
    gradient = gpcert.predict_gradient(model, X[:3])[1]
    for j in range(0 if model.likelihood.classifies else d):
        step = 1e-6 * np.eye(d)[j]
        difference = (model.mean(X[:3] + step) - model.mean(X[:3] - step)) / 2e-6
        np.testing.assert_allclose(gradient[:, :, j], difference, rtol=1e-4, atol=1e-7)
    model.save(tmp_path / "model.npz")
    again = gpcert.load(tmp_path / "model.npz")
    assert again.fingerprint == model.fingerprint
    np.testing.assert_array_equal(again.mean(X), model.mean(X))
    if not model.likelihood.classifies:
        reach = np.abs(values - model.mean(center[None])[0, 0]).max()
        assert gpcert.certify(model, center, 0.4, delta=1.3 * reach).robust
        assert gpcert.certify(model, center, 0.4, delta=0.8 * reach).counterexample is not None


def test_what_is_refused():
    model = posterior(POLYNOMIAL)
    with pytest.raises(InputError, match="without a mean_function"):
        gpcert.slope_ranges(model, gpcert.Box([0.0, 0.0], [0.5, 0.5]))
    with pytest.raises(InputError, match="not available with a mean_function"):
        gpcert.prediction_range(model, [0.0, 0.0], 0.1, method="paper")
    with pytest.raises(InputError, match="MeanFunction of 1 outputs"):
        replace(model, mean_function=PolynomialMean(POWERS, np.ones((2, 5))))
    with pytest.raises(InputError, match="whole numbers"):
        PolynomialMean([[0.5]], [1.0])
    # leaves float64: nothing is known, and nothing is claimed
    steep, far = posterior(PolynomialMean([[40, 0]], [1.0])), gpcert.Box([1e8, 0.0], [2e8, 1.0])
    answer = gpcert.prediction_range(steep, far, budget=gpcert.Budget(boxes=3))
    assert answer.maximum.upper == np.inf
    assert answer.minimum.lower == -np.inf
