"""gpcert: proved bounds on Gaussian-process predictions over regions of inputs.

>>> import gpcert
>>> from gpcert.kernels import SquaredExponential
>>> model = gpcert.Posterior(SquaredExponential(0.5), points=[[0.0, 0.0]], weights=[1.0])
>>> gpcert.certify(model, [0.0, 0.0], radius=0.2, threshold=0.5).status
<Status.ROBUST: 'proved for every point of the region'>

Names are loaded when they are first used: what `gpcert.certify` needs takes a second to import.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gpcert.errors import (
    GPCertError,
    InputError,
    MissingExtraError,
    SoundnessError,
    UnknownArgumentError,
    UnsupportedModelError,
)

if TYPE_CHECKING:
    from gpcert import adapters as adapters
    from gpcert import attacks as attacks
    from gpcert import certificates as certificates
    from gpcert import committee as committee
    from gpcert import datasets as datasets
    from gpcert import errors as errors
    from gpcert import explain as explain
    from gpcert import kernels as kernels
    from gpcert import likelihoods as likelihoods
    from gpcert import models as models
    from gpcert import plots as plots
    from gpcert import posterior as posterior
    from gpcert import regions as regions
    from gpcert import search as search
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
        bound_boxes,
        certified_radius,
        certified_radius_many,
        certify,
        certify_many,
        prediction_range,
        prediction_range_many,
        prediction_ranges,
    )
    from gpcert.certificates import (
        BoxBounds,
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
    from gpcert.committee import Committee, load_model
    from gpcert.posterior import Posterior
    from gpcert.regions import Ball, Box, Region
    from gpcert.search import Budget, StopReason
    from gpcert.several import SeparateOutputs

    __version__: str

__all__ = [
    "certify",
    "certify_many",
    "certified_radius",
    "certified_radius_many",
    "prediction_range",
    "prediction_range_many",
    "prediction_ranges",
    "bound_boxes",
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
    "BoxBounds",
    "GPCertError",
    "InputError",
    "UnknownArgumentError",
    "UnsupportedModelError",
    "MissingExtraError",
    "SoundnessError",
    "__version__",
]

_HOMES = {
    "gpcert.adapters": "as_posterior",
    "gpcert.analyses": (
        "Attack AttackTable CertifiedAccuracy RobustnessTable SafetyCurve WorstCaseTable attack "
        "certified_accuracy predict_gradient robustness safety_curve worst_case"
    ),
    "gpcert.api": (
        "bound_boxes certified_radius certified_radius_many certify certify_many prediction_range "
        "prediction_range_many prediction_ranges"
    ),
    "gpcert.certificates": (
        "BoxBounds Certificate CertificateTable Interval PredictionRange Radius RadiusTable "
        "RangeTable Status load"
    ),
    "gpcert.committee": "Committee load_model",
    "gpcert.posterior": "Posterior",
    "gpcert.regions": "Ball Box Region",
    "gpcert.search": "Budget StopReason",
    "gpcert.several": "SeparateOutputs",
}
"""Where the public names above come from (the imports above are for type checkers)."""

_ROOMS = (
    "adapters attacks certificates committee datasets errors explain kernels likelihoods models "
    "plots posterior regions search"
)
_MODULES = tuple(_ROOMS.split())
"""Modules that `import gpcert` makes available."""

_WHERE = {name: home for home, names in _HOMES.items() for name in names.split()}


if not TYPE_CHECKING:  # type checkers know the names, and should know no others

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return import_module(f"gpcert.{name}")
        if name == "__version__":
            found = import_module("gpcert.certificates.io").package_version()
        elif name in _WHERE:
            found = getattr(import_module(_WHERE[name]), name)
        else:
            raise AttributeError(f"module 'gpcert' has no attribute {name!r}")
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
