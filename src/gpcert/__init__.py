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
from gpcert.analyses import (
    Attack,
    AttackTable,
    CertifiedAccuracy,
    RobustnessTable,
    SafetyCurve,
    WorstCaseTable,
    attack,
    certified_accuracy,
    predict_gradient,
    robustness,
    safety_curve,
    worst_case,
)
from gpcert.api import (
    certified_radius,
    certified_radius_many,
    certify,
    certify_many,
    prediction_range,
    prediction_range_many,
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
from gpcert.committee import Committee, load_model
from gpcert.errors import (
    GPCertError,
    InputError,
    MissingExtraError,
    SoundnessError,
    UnknownArgumentError,
    UnsupportedModelError,
)
from gpcert.posterior import Posterior
from gpcert.regions import Ball, Box, Region
from gpcert.search import Budget, StopReason
from gpcert.several import SeparateOutputs

__version__ = package_version()

__all__ = [
    "certify",
    "certify_many",
    "certified_radius",
    "certified_radius_many",
    "prediction_range",
    "prediction_range_many",
    "prediction_ranges",
    "attack",
    "predict_gradient",
    "safety_curve",
    "robustness",
    "certified_accuracy",
    "worst_case",
    "as_posterior",
    "load",
    "load_model",
    "Posterior",
    "Committee",
    "SeparateOutputs",
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
    "Attack",
    "AttackTable",
    "SafetyCurve",
    "RobustnessTable",
    "CertifiedAccuracy",
    "WorstCaseTable",
    "RangeTable",
    "RadiusTable",
    "GPCertError",
    "InputError",
    "UnknownArgumentError",
    "UnsupportedModelError",
    "MissingExtraError",
    "SoundnessError",
    "__version__",
]

_MODULES = (
    "adapters",
    "attacks",
    "certificates",
    "committee",
    "datasets",
    "errors",
    "explain",
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
