"""Which library a model comes from, and the adapter that converts it.

One record a library. An adapter module has one function `convert(model) -> Conversion`; it is
imported only when the user's model comes from its library. A new library is a new file and a new
record here.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from gpcert.adapters.conversion import Conversion
from gpcert.adapters.kept import Kept
from gpcert.adapters.measure import Agreement, check_agreement
from gpcert.committee import Committee, Model
from gpcert.errors import UnsupportedModelError
from gpcert.posterior import Posterior

__all__ = ["Adapter", "ADAPTERS", "as_posterior", "agreement"]


@dataclass(frozen=True)
class Adapter:
    """A library by the name of its package, our module that converts its models, and which."""

    package: str
    module: str
    supports: str


ADAPTERS: tuple[Adapter, ...] = (
    # first: our estimators derive from scikit-learn's base classes
    Adapter(
        package="gpcert",
        module="gpcert.adapters.own",
        supports="a fitted gpcert.models.GPRegressor or GPClassifier",
    ),
    Adapter(
        package="sklearn",
        module="gpcert.adapters.sklearn",
        supports=(
            "a fitted sklearn GaussianProcessRegressor or GaussianProcessClassifier, alone, "
            "behind scalers in a Pipeline, with scaled targets in a TransformedTargetRegressor, or "
            "found by a search such as GridSearchCV"
        ),
    ),
)


KEPT = Kept()
"""The conversions of this process."""


def as_posterior(model: Any) -> Model:
    """Convert a fitted model to the `Posterior` whose predictions are certified.

    scikit-learn's classifier of more than two classes becomes a `Committee` of posteriors. A
    `Posterior` or `Committee` passes through. The result predicts in the units of the user
    (scalers of a pipeline are folded in), and is compared with the library's own predictions at
    sample points: a model that the formulas of `Posterior` do not reproduce is refused, never
    approximated. The comparison proves nothing; it catches conversions of models that are not what
    they seem.

    The conversion is kept while the model lives and has not changed in any part; see
    `gpcert.adapters.kept`. Names of the features that the model was fitted with
    (`feature_names_in_`) become `Posterior.feature_names`.

    Raises `UnsupportedModelError` (the message names the part) or `InputError` (not fitted, NaN).

    >>> import numpy as np
    >>> from sklearn.gaussian_process import GaussianProcessRegressor
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> X = np.linspace(0.0, 1.0, 5)[:, None]
    >>> model = GaussianProcessRegressor(RBF(0.5), optimizer=None).fit(X, np.sin(X[:, 0]))
    >>> posterior = as_posterior(model)
    >>> mean, variance = posterior.predict([[0.3]])
    >>> bool(abs(mean[0, 0] - model.predict([[0.3]])[0]) < 1e-9)
    True
    """
    if isinstance(model, Posterior | Committee):
        return model
    return KEPT.posterior(model, _compared)


def _compared(model: Any) -> Model:
    """The converted model, once its predictions were compared with the library's."""
    conversion = _convert(model)
    check_agreement(conversion.posterior, conversion.predict)
    return conversion.posterior


def agreement(model: Any) -> Agreement:
    """How far the library's own predictions are from the certified posterior, at sample points.

    The certificate speaks of the posterior; the library evaluates the same formulas in another
    order, so its numbers differ by rounding: this is the measured difference, for reports.

    >>> from sklearn.gaussian_process import GaussianProcessRegressor
    >>> model = GaussianProcessRegressor(alpha=0.1, optimizer=None).fit([[0.0], [1.0]], [0.0, 1.0])
    >>> measured = agreement(model)
    >>> measured.points, measured.mean < 1e-12, measured.variance < 1e-12
    (200, True, True)
    """
    if isinstance(model, Posterior | Committee):
        return Agreement(points=0, mean=0.0, variance=0.0)
    conversion = _convert(model)
    return check_agreement(conversion.posterior, conversion.predict)


def _convert(model: Any) -> Conversion:
    # Base classes too: a user's subclass of a library model lives in the user's own module.
    packages = {base.__module__.partition(".")[0] for base in type(model).__mro__}
    for adapter in ADAPTERS:
        if adapter.package in packages:
            return import_module(adapter.module).convert(model)
    kind = f"{type(model).__module__}.{type(model).__qualname__}"
    supported = "; ".join(adapter.supports for adapter in ADAPTERS)
    raise UnsupportedModelError(
        f"model: expected a gpcert Posterior, or {supported}; got {kind}. "
        "Write the model's numbers as Posterior(kernel, points, weights, factor, ...) instead"
    )
