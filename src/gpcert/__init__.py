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

from gpcert.versions import check_numpy

check_numpy()

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
    from gpcert.adapters import as_posterior as as_posterior
    from gpcert.analyses import Attack as Attack
    from gpcert.analyses import AttackTable as AttackTable
    from gpcert.analyses import CertifiedAccuracy as CertifiedAccuracy
    from gpcert.analyses import RobustnessTable as RobustnessTable
    from gpcert.analyses import SafetyCurve as SafetyCurve
    from gpcert.analyses import WorstCaseTable as WorstCaseTable
    from gpcert.analyses import attack as attack
    from gpcert.analyses import certified_accuracy as certified_accuracy
    from gpcert.analyses import predict_gradient as predict_gradient
    from gpcert.analyses import robustness as robustness
    from gpcert.analyses import safety_curve as safety_curve
    from gpcert.analyses import worst_case as worst_case
    from gpcert.api import bound_boxes as bound_boxes
    from gpcert.api import certified_radius as certified_radius
    from gpcert.api import certified_radius_many as certified_radius_many
    from gpcert.api import certify as certify
    from gpcert.api import certify_many as certify_many
    from gpcert.api import prediction_range as prediction_range
    from gpcert.api import prediction_range_many as prediction_range_many
    from gpcert.api import prediction_ranges as prediction_ranges
    from gpcert.certificates import BoxBounds as BoxBounds
    from gpcert.certificates import Certificate as Certificate
    from gpcert.certificates import CertificateTable as CertificateTable
    from gpcert.certificates import Interval as Interval
    from gpcert.certificates import PredictionRange as PredictionRange
    from gpcert.certificates import Radius as Radius
    from gpcert.certificates import RadiusTable as RadiusTable
    from gpcert.certificates import RangeTable as RangeTable
    from gpcert.certificates import Status as Status
    from gpcert.certificates import load as load
    from gpcert.committee import Committee as Committee
    from gpcert.committee import load_model as load_model
    from gpcert.errors import GPCertError as GPCertError
    from gpcert.errors import InputError as InputError
    from gpcert.errors import MissingExtraError as MissingExtraError
    from gpcert.errors import SoundnessError as SoundnessError
    from gpcert.errors import UnknownArgumentError as UnknownArgumentError
    from gpcert.errors import UnsupportedModelError as UnsupportedModelError
    from gpcert.posterior import Posterior as Posterior
    from gpcert.regions import Ball as Ball
    from gpcert.regions import Box as Box
    from gpcert.regions import Region as Region
    from gpcert.search import Budget as Budget
    from gpcert.search import StopReason as StopReason
    from gpcert.several import SeparateOutputs as SeparateOutputs

    __version__: str

_HOMES = {
    "gpcert.api": (
        "certify certify_many certified_radius certified_radius_many prediction_range "
        "prediction_range_many prediction_ranges bound_boxes"
    ),
    "gpcert.analyses": (
        "attack predict_gradient safety_curve robustness certified_accuracy worst_case "
        "Attack AttackTable SafetyCurve RobustnessTable CertifiedAccuracy WorstCaseTable"
    ),
    "gpcert.adapters": "as_posterior",
    "gpcert.posterior": "Posterior",
    "gpcert.committee": "Committee load_model",
    "gpcert.several": "SeparateOutputs",
    "gpcert.regions": "Box Ball Region",
    "gpcert.search": "Budget StopReason",
    "gpcert.certificates": (
        "load Status Certificate CertificateTable PredictionRange Interval Radius RangeTable "
        "RadiusTable BoxBounds"
    ),
    "gpcert.errors": (
        "GPCertError InputError UnknownArgumentError UnsupportedModelError MissingExtraError "
        "SoundnessError"
    ),
}
"""The public names, and where they come from (the imports above are for type checkers)."""

_ROOMS = (
    "adapters attacks certificates committee datasets errors explain kernels likelihoods models "
    "plots posterior regions search"
)
_MODULES = tuple(_ROOMS.split())
"""Modules that `import gpcert` makes available."""

_WHERE = {name: home for home, names in _HOMES.items() for name in names.split()}


if not TYPE_CHECKING:  # type checkers know the names, and should know no others
    __all__ = ["__version__"]
    __all__ += list(_WHERE)

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return import_module(f"gpcert.{name}")
        if name == "__version__":
            found = import_module("gpcert.versions").package_version()
        elif name in _WHERE:
            found = getattr(import_module(_WHERE[name]), name)
        else:
            raise AttributeError(f"module 'gpcert' has no attribute {name!r}")
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*_WHERE, "__version__", *_MODULES})
