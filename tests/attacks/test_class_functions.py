"""Plain class probabilities and their gradients, for local search."""

from dataclasses import replace

import numpy as np
import pytest

from gpcert.attacks.functions import plain_function
from gpcert.kernels import Matern, SquaredExponential
from gpcert.likelihoods import MultinomialProbit, Softmax
from gpcert.model.class_layout import class_layout
from gpcert.model.posterior import Posterior
from gpcert.quantities import ClassSums
from gpcert.testing.effort import crossed, examples
from tests.enclosures.classes.class_cases import coupled_by_one

LIKELIHOODS = [Softmax(), MultinomialProbit(0.5)]


def classifier(coupled, m, likelihood, seed=0):
    rng = np.random.default_rng(seed)
    N, d = 4, 2
    kernel = [SquaredExponential([1.0, 0.7], 2.0), Matern(1.0, 2.5, 2.0)][seed % 2]
    Z = rng.normal(size=(N, d))
    factor = 0.08 * rng.normal(size=(m, 3, N)) if coupled else 0.3 * np.eye(N)
    return Posterior(
        kernel,
        Z,
        rng.normal(size=(m, N)),
        factor,
        offset=0.3 * rng.normal(size=m),
        noise=0.1,
        likelihood=likelihood,
        coupled=coupled,
    )


def function_of(posterior, weights):
    layout, searched = class_layout(posterior)
    rows = tuple(map(tuple, np.atleast_2d(weights).tolist()))
    return plain_function(searched, ClassSums(layout, posterior.likelihood, rows))


def slopes_by_differences(function, X, step=1e-5):
    columns = []
    for j in range(X.shape[1]):
        move = step * np.eye(X.shape[1])[j]
        columns.append((function(X + move)[0] - function(X - move)[0]) / (2 * step))
    return np.stack(columns, axis=1)


ROUGH = 2e-3
"""Of quasi-random means for four classes."""

ROUGHER = 5e-3
"""The same for six. Local search is never trusted: what counts is that the gradient is that of the
value, which is tested without this room."""


@crossed(
    {
        "likelihood": LIKELIHOODS,
        "coupled, m": [
            (True, 2),
            (True, 3),
            (True, 4),
            (True, 6),
            (False, 2),
            (False, 3),
            (False, 6),
        ],
        "seed": [0, 1],
    }
)
def test_values_and_gradients(likelihood, coupled, m, seed):
    posterior = classifier(coupled, m, likelihood, seed)
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(examples(7, quick=3), 2))
    for weights in (np.eye(m)[0], -np.eye(m)[1], rng.normal(size=m)):
        function = function_of(posterior, weights)
        value, gradient = function(X)
        room = 2e-6 if m < 4 else ROUGHER * np.abs(weights).sum()
        np.testing.assert_allclose(value, posterior.prediction(X) @ weights, atol=room)
        np.testing.assert_allclose(gradient, slopes_by_differences(function, X), atol=2e-5)


@pytest.mark.parametrize("m", [3, 6])
def test_classes_with_factors_of_their_own(m):
    base = classifier(True, m, Softmax())
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.ones(m), size=len(base.points)).T
    F, C = coupled_by_one(base.kernel.value(base.points, base.points), p)
    posterior = replace(base, factor=F, negative_factor=C)
    X, weights = rng.normal(size=(7, 2)), rng.normal(size=m)
    function = function_of(posterior, weights)
    value, gradient = function(X)
    room = 2e-6 if m < 4 else ROUGHER * np.abs(weights).sum()
    np.testing.assert_allclose(value, posterior.prediction(X) @ weights, atol=room)
    np.testing.assert_allclose(gradient, slopes_by_differences(function, X), atol=2e-5)


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
@pytest.mark.parametrize("coupled", [True, False])
def test_four_classes(likelihood, coupled):
    posterior = classifier(coupled, 4, likelihood)
    X = np.random.default_rng(1).normal(size=(5, 2))
    function = function_of(posterior, np.eye(4)[2])
    value, gradient = function(X)
    np.testing.assert_allclose(value, posterior.prediction(X)[:, 2], atol=ROUGH)
    np.testing.assert_allclose(gradient, slopes_by_differences(function, X), atol=2e-5)


@pytest.mark.parametrize("coupled", [True, False])
def test_the_least_of_several_sums(coupled):
    posterior = classifier(coupled, 3, Softmax())
    X = np.random.default_rng(2).normal(size=(9, 2))
    rows = np.array([[1.0, -1.0, 0.0], [1.0, 0.0, -1.0]])
    value, gradient = function_of(posterior, rows)(X)
    sums = posterior.prediction(X) @ rows.T
    np.testing.assert_allclose(value, sums.min(1), atol=2e-6)
    for i, row in enumerate(rows):
        mine = sums.argmin(1) == i
        assert mine.any()
        np.testing.assert_allclose(gradient[mine], function_of(posterior, row)(X)[1][mine])


def test_a_vanishing_variance_stays_finite():
    kernel = SquaredExponential(1.0, 1.0)
    factor = np.zeros((3, 3, 1))
    factor[[0, 1, 2], [0, 1, 2], 0] = 1.0
    posterior = Posterior(
        kernel, [[0.0]], [[1.0], [2.0], [0.0]], factor, likelihood=Softmax(), coupled=True
    )
    value, gradient = function_of(posterior, np.eye(3)[1])(np.zeros((1, 1)))
    links = np.exp([1.0, 2.0, 0.0])
    assert value[0] == pytest.approx(links[1] / links.sum(), abs=1e-3)
    assert np.isfinite(gradient).all()
