"""Trieste's acquisition functions, maximised with a proof."""

import numpy as np
import pytest

from gpcert.errors import InputError

pytest.importorskip("trieste")

import gpflow
import tensorflow as tf
from trieste.acquisition.function import (
    ExpectedImprovement,
    LogExpectedImprovement,
    MonteCarloExpectedImprovement,
    NegativeLowerConfidenceBound,
    NegativePredictiveMean,
)
from trieste.acquisition.optimizer import generate_continuous_optimizer
from trieste.acquisition.rule import EfficientGlobalOptimization
from trieste.data import Dataset
from trieste.models.gpflow import GaussianProcessRegression
from trieste.space import Box, DiscreteSearchSpace

from gpcert.trieste import certified_optimizer, optimize_certified

SPACE = Box([0.0, 0.0], [1.0, 1.0])


def problem(seed=0, n=12):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    Y = np.sin(6.0 * X[:, :1]) + (X[:, 1:] - 0.4) ** 2
    kernel = gpflow.kernels.Matern52(lengthscales=[0.4, 0.6])
    model = gpflow.models.GPR((X, Y), kernel, noise_variance=1e-3)
    return GaussianProcessRegression(model), Dataset(tf.constant(X), tf.constant(Y))


@pytest.mark.parametrize(
    "builder",
    [
        ExpectedImprovement(),
        LogExpectedImprovement(),
        NegativeLowerConfidenceBound(1.5),
        NegativePredictiveMean(),
    ],
    ids=repr,
)
def test_no_local_search_is_better_than_the_bound(builder):
    model, data = problem()
    function = builder.prepare_acquisition_function(model, dataset=data)
    best = optimize_certified(SPACE, function, tol=1e-4)
    found = certified_optimizer(SPACE, function, tol=1e-4)
    assert found.shape == (1, 2)
    theirs = generate_continuous_optimizer(100, 2)(SPACE, function)
    value = float(np.ravel(function(theirs[:, None, :]))[0])
    bound = best.bound if best.side == "maximum" else -best.bound
    assert value <= bound + 1e-5
    assert float(np.ravel(function(found[:, None, :]))[0]) >= value - 1e-3


def test_it_is_an_optimizer_of_the_rule():
    model, data = problem(1)
    rule = EfficientGlobalOptimization(optimizer=certified_optimizer)
    point = rule.acquire_single(SPACE, model, dataset=data)
    assert point.shape == (1, 2)


def test_what_is_not_taken_is_refused_by_name():
    model, data = problem(2)
    function = ExpectedImprovement().prepare_acquisition_function(model, dataset=data)
    with pytest.raises(InputError, match="DiscreteSearchSpace"):
        certified_optimizer(DiscreteSearchSpace(tf.zeros((3, 2), tf.float64)), function)
    with pytest.raises(InputError, match="lower confidence bound"):
        certified_optimizer(SPACE, MonteCarloExpectedImprovement)
