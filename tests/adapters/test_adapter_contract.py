"""The contract of adapters, for the Gaussian processes that are taken."""

from typing import ClassVar

import numpy as np
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, DotProduct, ExpSineSquared, Matern, WhiteKernel

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


class TestSklearn(AdapterContract):
    adapter = sklearn
    models: ClassVar = {
        "rbf and noise": regressor(2.0 * RBF([1.0, 2.0]) + WhiteKernel(0.1)),
        "matern": regressor(Matern(1.0, nu=1.5) + DotProduct()),
        "targets": regressor(RBF(1.0), np.stack([y, X[:, 0]], axis=1)),
        "two classes": classifier(y > 0),
        "one-vs-rest": classifier(THREE),
        "one-vs-one": classifier(THREE, multi_class="one_vs_one"),
    }
    refused: ClassVar = {
        "periodic": (
            regressor(ExpSineSquared(), alpha=30.0),
            "ExpSineSquared on 2 features.*Fit the model",
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
