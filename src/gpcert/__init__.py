"""gpcert: proved bounds on Gaussian-process predictions over regions of inputs.

>>> import gpcert
>>> from gpcert.kernels import SquaredExponential
>>> model = gpcert.Posterior(SquaredExponential(0.5), points=[[0.0, 0.0]], weights=[1.0])
>>> gpcert.certify(model, [0.0, 0.0], radius=0.2, threshold=0.5).status
<Status.ROBUST: 'proved for every point of the region'>
"""

from importlib import import_module
from types import ModuleType

from gpcert.adapters import as_posterior
from gpcert.api import (
    certified_radius,
    certify,
    certify_many,
    prediction_range,
    prediction_ranges,
)
from gpcert.certificates import (
    Certificate,
    CertificateTable,
    Interval,
    PredictionRange,
    Radius,
    RadiusTable,
    RangeTable,
    Status,
    load,
)
from gpcert.certificates.io import package_version
from gpcert.posterior import Posterior
from gpcert.regions import Ball, Box, Region
from gpcert.search import Budget, StopReason

__version__ = package_version()

__all__ = [
    "certify",
    "certify_many",
    "certified_radius",
    "prediction_range",
    "prediction_ranges",
    "as_posterior",
    "load",
    "Posterior",
    "Box",
    "Ball",
    "Region",
    "Budget",
    "Status",
    "StopReason",
    "Certificate",
    "CertificateTable",
    "PredictionRange",
    "Interval",
    "Radius",
    "RangeTable",
    "RadiusTable",
    "__version__",
]

_MODULES = (
    "adapters",
    "attacks",
    "certificates",
    "committee",
    "datasets",
    "errors",
    "kernels",
    "likelihoods",
    "models",
    "plots",
    "posterior",
    "regions",
    "search",
)
"""Modules that `import gpcert` makes available; those it does not need are loaded when used."""


def __getattr__(name: str) -> ModuleType:
    if name in _MODULES:
        return import_module(f"gpcert.{name}")
    raise AttributeError(f"module 'gpcert' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
