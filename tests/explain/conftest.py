"""Small models, fitted once."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF

import gpcert
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Probit
from gpcert.models import GPClassifier


@pytest.fixture(scope="session")
def binary():
    """Labels "no" and "yes" in four features, of which the first two matter most."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.5, 1.5, (30, 4))
    y = np.where(X[:, 0] + np.sin(2 * X[:, 1]) + 0.2 * X[:, 2] > 0, "yes", "no")
    kernel = 9.0 * RBF([0.8, 1.1, 3.0, 20.0])
    return gpcert.as_posterior(GaussianProcessClassifier(kernel, optimizer=None).fit(X, y))


@pytest.fixture(scope="session")
def classes():
    """Three classes under a softmax, two features."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-1.5, 1.5, (24, 2))
    y = np.digitize(X[:, 0] + 0.5 * X[:, 1], [-0.5, 0.5])
    model = GPClassifier(SquaredExponential([1.0, 1.2]), likelihood="softmax", max_epochs=1)
    return gpcert.as_posterior(model.fit(X, np.array(["a", "b", "c"])[y]))


@pytest.fixture(scope="session")
def committee():
    """scikit-learn's one-vs-rest of three classes."""
    rng = np.random.default_rng(2)
    X = rng.uniform(-1.5, 1.5, (24, 2))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    return gpcert.as_posterior(GaussianProcessClassifier(RBF(1.0), optimizer=None).fit(X, y))


@pytest.fixture(scope="session")
def image_model():
    """Images of 3 x 3 pixels, "dark" and "light" by their middle row."""
    rng = np.random.default_rng(3)
    X = rng.uniform(0, 1, (40, 9))
    f = X[:, 3:6].sum(1) - 1.5 + 0.1 * (X[:, 0] - 0.5)
    K = SquaredExponential(2.0, 4.0).value(X, X) + 0.1 * np.eye(40)
    factor = np.linalg.inv(np.linalg.cholesky(K))
    return gpcert.Posterior(
        SquaredExponential(2.0, 4.0),
        X,
        factor.T @ (factor @ (3.0 * np.sign(f))),
        factor,
        likelihood=Probit(),
        classes=("dark", "light"),
    )
