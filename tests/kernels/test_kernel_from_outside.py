"""The recipe of docs/kernels.md for a radial kernel from outside the package, step by step."""

import re
import textwrap
from pathlib import Path

import numpy as np
import pytest

import gpcert
from gpcert.kernels import KERNELS, Kernel, Matern
from gpcert.models import GPClassifier, GPRegressor
from gpcert.models.training import LogParameters
from gpcert.testing.effort import crossed
from gpcert.testing.kernel_references import REFERENCES

RECIPE = (Path(__file__).parents[2] / "docs" / "kernels.md").read_text(encoding="utf-8")
RECIPE = RECIPE[RECIPE.index("## A kernel of your own") :]
for code in re.findall(r"```python\n(.*?)```", RECIPE, re.DOTALL):
    exec(textwrap.dedent(code), globals())  # the kernel, then its contract, which pytest collects

Hyperbolic: type[Kernel] = KERNELS.pop("hyperbolic")
FORMULA = REFERENCES.pop("hyperbolic")


@pytest.fixture(autouse=True, scope="module")
def registered():
    """Known to the registries while these tests run, and not to others."""
    gpcert.kernels.register(Hyperbolic)
    REFERENCES["hyperbolic"] = FORMULA
    yield
    del KERNELS["hyperbolic"], REFERENCES["hyperbolic"]


def waves(n=40):
    rng = np.random.default_rng(2)
    X = rng.uniform(-2.0, 2.0, (n, 2))
    return X, np.sin(2.0 * X[:, 0]) + 0.4 * X[:, 1]


def grid(region, n=41):
    axes = [np.linspace(a, b, n) for a, b in zip(region.lower, region.upper, strict=True)]
    return np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, 2)


@crossed({"quantity": ["variance", "mean"], "rest": [None, Matern([1.0, 2.0], 0.5, 0.3)]})
def test_ranges_enclose_dense_samples_and_are_attained(rest, quantity):
    kernel = Hyperbolic([0.6, 1.1], 1.4) if rest is None else Hyperbolic([0.6, 1.1], 1.4) + rest
    X, y = waves()
    model = GPRegressor(kernel, noise=0.05, max_epochs=0).fit(X, y)
    region = gpcert.Box([-0.5, 0.1], [0.4, 0.7])
    found = gpcert.prediction_range(model, region=region, quantity=quantity, tol=0.02)
    mean, variance = model.posterior_.predict(grid(region))
    sampled = mean if quantity == "mean" else variance
    assert found.minimum.lower <= sampled.min()
    assert sampled.max() <= found.maximum.upper
    assert found.minimum.upper - found.minimum.lower <= 0.02 * 1.01
    assert sampled.min() <= found.minimum.upper + 0.02


def test_a_classifier_is_certified_where_no_sample_flips():
    X, y = waves(60)
    labels = (y > 0).astype(int)
    model = GPClassifier(Hyperbolic([0.8, 1.5], 4.0), max_epochs=0).fit(X, labels)
    point = X[np.argmax(y)]
    small, large = (gpcert.certify(model, point, radius) for radius in (0.05, 3.0))
    assert small.status == "ROBUST"
    near = point + np.random.default_rng(0).uniform(-0.05, 0.05, (500, 2))
    assert np.all(model.predict(near) == model.predict(point[None])[0])
    assert large.status == "NOT_ROBUST"


def test_the_papers_method_has_its_lines():
    X, y = waves(15)
    model = GPRegressor(Hyperbolic([0.6, 1.1], 1.4), noise=0.05, max_epochs=0).fit(X, y)
    region = gpcert.Box([0.0, 0.1], [0.1, 0.2])
    plain, paper = (
        gpcert.prediction_range(model, region=region, tol=0.01, method=method, variance_bound=bound)
        for method, bound in (("taylor", None), ("paper", "analytic"))
    )
    assert paper.minimum.lower <= plain.minimum.upper
    assert plain.minimum.lower <= paper.minimum.upper


def test_its_parameters_are_trained():
    X, y = waves()
    start = Hyperbolic([1.0, 1.0], 1.0)
    assert LogParameters.of(start).names == ("variance", "length_scale[0]", "length_scale[1]")
    fitted = GPRegressor(start, max_epochs=20).fit(X, y)
    assert fitted.evidence_ > GPRegressor(start, max_epochs=0).fit(X, y).evidence_ + 1.0
    W = np.random.default_rng(0).normal(size=(len(X), len(X)))
    parameters = LogParameters.of(start)
    gradient = parameters.gradient(X, X, W)
    for i in range(3):
        step = np.eye(3)[i] * 1e-5
        ends = [
            np.vdot(W, parameters.rebuild(parameters.values + s).value(X, X)) for s in (step, -step)
        ]
        assert gradient[i] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-6, abs=1e-6)


def test_one_class_says_everything():
    """What the recipe's class defines itself: three functions of the distance, and its fields."""
    own = {name for name, value in vars(Hyperbolic).items() if callable(value)}
    assert {name for name in own if not name.startswith("__")} == {"shape", "ratio", "roundings"}
