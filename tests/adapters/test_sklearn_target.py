"""`TransformedTargetRegressor`: affine transforms of the targets are folded, functions that
increase are links, others refused."""

from functools import partial
from typing import ClassVar

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVR

import gpcert
from gpcert.adapters import agreement, as_posterior, sklearn_wrappers
from gpcert.errors import InputError, UnsupportedModelError
from gpcert.functions import Curve, Expm1, Log1p
from gpcert.models import GPRegressor
from gpcert.testing.adapter_contract import AdapterContract

rng = np.random.default_rng(0)
X = rng.normal(size=(25, 2))
y = 40.0 + 7.0 * np.sin(X.sum(1))
GPR = GaussianProcessRegressor(RBF(1.0) + WhiteKernel(0.1), alpha=1e-6, optimizer=None)

SCALERS = [
    StandardScaler(),
    StandardScaler(with_mean=False),
    StandardScaler(with_std=False),
    MinMaxScaler((-2.0, 3.0)),
    MaxAbsScaler(),
    RobustScaler(),
    None,
]


@pytest.mark.parametrize("targets", [y, np.stack([y, -3.0 * y + X[:, 0]], axis=1)])
@pytest.mark.parametrize("scaler", SCALERS)
def test_mean_and_variance_are_those_of_the_library(scaler, targets):
    model = TransformedTargetRegressor(clone(GPR), transformer=scaler).fit(X, targets)
    mean, variance = as_posterior(model).predict(X[:5] + 0.1)
    np.testing.assert_allclose(np.squeeze(mean), model.predict(X[:5] + 0.1), rtol=1e-10)
    _, deviation = model.regressor_.predict(X[:5] + 0.1, return_std=True)
    unit = (
        np.ones(1)
        if scaler is None
        else model.transformer_.inverse_transform(np.ones((1, mean.shape[1])))
        - model.transformer_.inverse_transform(np.zeros((1, mean.shape[1])))
    )
    expected = (np.reshape(deviation, variance.shape) * unit) ** 2
    np.testing.assert_allclose(variance, expected, rtol=1e-8)
    assert agreement(model).mean < 1e-9


def test_behind_scalers_of_the_inputs_and_around_our_own_regressor():
    inner = make_pipeline(StandardScaler(), clone(GPR))
    model = TransformedTargetRegressor(inner, transformer=StandardScaler()).fit(X, y)
    own = TransformedTargetRegressor(GPRegressor(max_epochs=0), transformer=MinMaxScaler())
    last = make_pipeline(StandardScaler(), clone(own)).fit(X, y)
    for fitted in (model, own.fit(X, y), last):
        found = gpcert.prediction_range(fitted, gpcert.Ball(X[0], 0.1), tol=0.5)
        assert found.minimum.lower <= fitted.predict(X[:1])[0] <= found.maximum.upper


CURVED = {
    "powers": {"transformer": PowerTransformer()},
    "box-cox": {"transformer": PowerTransformer("box-cox")},
    "quantiles": {"transformer": QuantileTransformer(n_quantiles=5)},
    "normal quantiles": {
        "transformer": QuantileTransformer(n_quantiles=20, output_distribution="normal")
    },
    "logarithms": {"func": np.log, "inverse_func": np.exp},
    "cubes": {"func": lambda target: target**3, "inverse_func": np.cbrt},
    "own": {"func": Curve((Log1p(),)), "inverse_func": Curve((Expm1(),))},
}


def curved(name, regressor=GPR):
    return TransformedTargetRegressor(clone(regressor), **CURVED[name]).fit(X, y)


class TestCurvedTargets(AdapterContract):
    adapter = sklearn_wrappers
    models: ClassVar = {
        **{name: partial(curved, name) for name in CURVED},
        "machine": partial(curved, "logarithms", SVR()),
        "several targets": lambda: TransformedTargetRegressor(
            clone(GPR), func=np.log, inverse_func=np.exp
        ).fit(X, np.stack([y, 2.0 + X[:, 0] ** 2], axis=1)),
    }
    refused: ClassVar = {
        "not everywhere": (
            lambda: TransformedTargetRegressor(
                clone(GPR), func=np.sqrt, inverse_func=np.square
            ).fit(X, y),
            "defined for all numbers.*regressor_ inside",
        ),
        "code": (
            lambda: TransformedTargetRegressor(
                clone(GPR), func=np.log, inverse_func=lambda target: np.exp(1.0 * target)
            ).fit(X, y),
            "FunctionTransformer is not supported with.*np.exp",
        ),
    }


def test_unfitted_and_classifiers_are_refused():
    with pytest.raises(InputError, match="TransformedTargetRegressor: expected a fitted model"):
        as_posterior(TransformedTargetRegressor(clone(GPR)))
    model = TransformedTargetRegressor(clone(GPR)).fit(X, y)
    model.regressor_ = GaussianProcessClassifier(optimizer=None).fit(X, y > 40)
    with pytest.raises(UnsupportedModelError, match="expected a regressor inside"):
        as_posterior(model)
