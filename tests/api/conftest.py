"""Small models, fitted once."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler


@pytest.fixture(scope="session")
def classifier():
    """Two crescents of labels "no" and "yes" in two features."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.5, 1.5, (30, 2))
    y = np.where(X[:, 0] + np.sin(2 * X[:, 1]) > 0, "yes", "no")
    return GaussianProcessClassifier(9.0 * RBF([0.8, 1.1]), optimizer=None).fit(X, y)


@pytest.fixture(scope="session")
def scaled_classifier():
    """A pipeline in the user's units: features of size 100 and 0.01."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-1.5, 1.5, (30, 2))
    y = (X[:, 0] - X[:, 1] > 0).astype(int)
    gp = GaussianProcessClassifier(4.0 * RBF(1.0), optimizer=None)
    return make_pipeline(MinMaxScaler(), StandardScaler(), gp).fit(X * [100.0, 0.01] + 5.0, y)


@pytest.fixture(scope="session")
def regressor():
    """One output of two features, targets scaled."""
    rng = np.random.default_rng(2)
    X = rng.uniform(-1, 1, (20, 2))
    y = 3.0 + np.sin(3 * X[:, 0]) * X[:, 1]
    kernel = RBF([0.7, 0.9]) + WhiteKernel(1e-2)
    return GaussianProcessRegressor(kernel, optimizer=None, normalize_y=True).fit(X, y)


@pytest.fixture(scope="session")
def many_outputs():
    """Three outputs of two features."""
    rng = np.random.default_rng(3)
    X = rng.uniform(-1, 1, (15, 2))
    Y = np.stack([X[:, 0], X[:, 1] ** 2, X.prod(1)], axis=1)
    return GaussianProcessRegressor(RBF(0.8), alpha=1e-3, optimizer=None, normalize_y=True).fit(
        X, Y
    )
