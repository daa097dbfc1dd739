"""Transforms of single features that do not decrease: regions stay in the user's units."""

from typing import ClassVar

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Matern, WhiteKernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    PowerTransformer,
    QuantileTransformer,
    StandardScaler,
)
from sklearn.svm import SVC, SVR

import gpcert
from gpcert.adapters import as_posterior, sklearn_wrappers
from gpcert.errors import InputError
from gpcert.functions import Bilog, Curve
from gpcert.testing.adapter_contract import AdapterContract

RNG = np.random.default_rng(0)
X = 0.5 + np.exp(0.5 * RNG.normal(size=(30, 3)))
X[:8, 2] = X[:, 2].min()  # many equal values: quantiles that jump
y = np.sin(np.log(X[:, 0])) + 0.1 * X[:, 1]


def regressor(kernel=RBF(1.0)):  # noqa: B008
    return GaussianProcessRegressor(kernel + WhiteKernel(0.01), optimizer=None)


def of(*steps, model=None, target=y):
    return make_pipeline(*steps, regressor() if model is None else model).fit(X, target)


def quantiles(distribution):
    return QuantileTransformer(n_quantiles=20, output_distribution=distribution)


class TestCurves(AdapterContract):
    adapter = sklearn_wrappers
    models: ClassVar = {
        "yeo-johnson": lambda: of(PowerTransformer(), model=regressor(Matern(1.0, nu=2.5))),
        "box-cox": lambda: of(PowerTransformer("box-cox", standardize=False)),
        "quantiles": lambda: of(quantiles("uniform"), model=SVR()),
        "normal quantiles": lambda: of(quantiles("normal")),
        "logarithms": lambda: of(FunctionTransformer(np.log), StandardScaler()),
        "scaled roots": lambda: of(MinMaxScaler((1, 2)), FunctionTransformer(np.sqrt), PCA(2)),
        "own curve": lambda: of(FunctionTransformer(Curve((Bilog(),)))),
        "clipped": lambda: of(MinMaxScaler(clip=True)),
        "classifier": lambda: of(
            PowerTransformer(),
            model=GaussianProcessClassifier(RBF(1.0), optimizer=None),
            target=y > 0.3,
        ),
        "votes": lambda: of(PowerTransformer(), model=SVC(), target=np.digitize(y, [0, 0.5])),
        "columns": lambda: of(
            ColumnTransformer(
                [
                    ("log", FunctionTransformer(np.log1p), [0]),
                    ("scaled", make_pipeline(StandardScaler(), PowerTransformer()), [1, 2]),
                ]
            )
        ),
    }
    refused: ClassVar = {
        "own function": (
            lambda: of(FunctionTransformer(lambda x: x**2)),
            "FunctionTransformer is not supported with.*np.log.*Curve",
        ),
        "mixed before": (
            lambda: of(PCA(2), PowerTransformer()),
            "put the step with functions of single features before",
        ),
        "two functions of one input": (
            lambda: of(
                ColumnTransformer(
                    [("a", FunctionTransformer(np.log), [0]), ("b", "passthrough", [0, 1])]
                )
            ),
            "feature 0: expected one function of it, got two",
        ),
    }


def test_where_a_logarithm_is_not_defined() -> None:
    model = of(FunctionTransformer(np.log))
    with pytest.raises(InputError, match=r"feature 0: expected values above 0.*domain="):
        gpcert.prediction_range(model, X[0], 2.0 * X[0].max())
    assert gpcert.prediction_range(model, X[0], 0.5 * X[0].min()).maximum.upper < 10.0


def test_the_training_data_keep_their_places() -> None:
    model = of(PowerTransformer(), StandardScaler())
    np.testing.assert_allclose(as_posterior(model).places, X, rtol=1e-9)
