"""The contract of adapters, for the Gaussian processes that are taken."""

from typing import ClassVar

import numpy as np
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    RBF,
    DotProduct,
    ExpSineSquared,
    GenericKernelMixin,
    Kernel,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)

from gpcert.adapters import sklearn
from gpcert.adapters.libraries import GPCERT
from gpcert.kernels import SquaredExponential
from gpcert.models import GPClassifier, GPRegressor
from gpcert.testing.adapter_contract import AdapterContract

RNG = np.random.default_rng(3)
X = RNG.normal(size=(24, 2))
y = np.sin(X.sum(1))
THREE = np.digitize(X[:, 0], [-0.5, 0.5])


def regressor(kernel, targets=y, alpha=1e-2):
    return lambda: GaussianProcessRegressor(kernel, optimizer=None, alpha=alpha).fit(X, targets)


def classifier(labels, **options):
    return lambda: GaussianProcessClassifier(4.0 * RBF(1.0), optimizer=None, **options).fit(
        X, labels
    )


class Letters(GenericKernelMixin, Kernel):
    """A kernel on strings."""

    def __init__(self):
        pass

    def __call__(self, X, Y=None, eval_gradient=False):
        return np.array([[1.0 + (a == b) for b in (X if Y is None else Y)] for a in X])

    def diag(self, X):
        return np.full(len(X), 2.0)

    def is_stationary(self):
        return False


class Renamed(RBF):
    """The same function."""


class TestSklearn(AdapterContract):
    adapter = sklearn
    models: ClassVar = {
        "rbf and noise": regressor(2.0 * RBF([1.0, 2.0]) + WhiteKernel(0.1)),
        "matern": regressor(Matern(1.0, nu=1.5) + DotProduct()),
        "targets": regressor(RBF(1.0), np.stack([y, X[:, 0]], axis=1)),
        "kernel of a user": regressor(2.0 * Renamed(0.7)),
        "large alpha": regressor(RationalQuadratic(1.0, alpha=4e8) + WhiteKernel(0.01), alpha=1e-6),
        "two classes": classifier(y > 0),
        "one-vs-rest": classifier(THREE),
        "one-vs-one": classifier(THREE, multi_class="one_vs_one"),
    }
    refused: ClassVar = {
        "periodic": (
            regressor(ExpSineSquared(), alpha=30.0),
            "ExpSineSquared on 2 features.*Fit the model",
        ),
        "strings": (
            lambda: GaussianProcessRegressor(Letters(), optimizer=None, alpha=1.0).fit(
                np.array(["a", "b", "c"]), [1.0, 2.0, 3.0]
            ),
            "X_train_: expected numbers.*strings.*describe them by numbers",
        ),
        "nu": (regressor(Matern(nu=0.7)), r"Matern with nu=0\.7.*supported: 0\.5"),
    }
    not_ready: ClassVar = {"unfitted": (GaussianProcessRegressor, r"call fit\(X, y\)")}


class TestOwn(AdapterContract):
    adapter = GPCERT
    models: ClassVar = {
        "regressor": lambda: GPRegressor(SquaredExponential(1.0), max_epochs=2).fit(X, y),
        "classifier": lambda: GPClassifier(SquaredExponential(1.0), max_epochs=2).fit(X, y > 0),
    }
    not_ready: ClassVar = {
        "unfitted": (lambda: GPRegressor(SquaredExponential(1.0)), r"call fit\(X, y\)")
    }
