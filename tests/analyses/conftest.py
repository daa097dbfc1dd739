"""Small models of several kinds, and test points."""

import numpy as np
import pytest

from gpcert.likelihoods import Probit, Softmax
from gpcert.model.committee import Committee
from tests.analyses.analysed_models import random_posterior


@pytest.fixture
def binary():
    return random_posterior(0, likelihood=Probit(), classes=("a", "b"))


@pytest.fixture
def regression():
    return random_posterior(1)


@pytest.fixture
def softmax():
    return random_posterior(2, outputs=3, likelihood=Softmax(), classes=("a", "b", "c"))


@pytest.fixture
def committee():
    members = tuple(random_posterior(seed, likelihood=Probit()) for seed in range(3, 6))
    return Committee(members, ("a", "b", "c"), "one_vs_rest")


@pytest.fixture
def X():
    return np.random.default_rng(7).uniform(-1.5, 1.5, size=(5, 2))
