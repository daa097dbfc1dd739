"""gpcert: proved bounds on Gaussian-process predictions over regions of inputs.

>>> import gpcert
>>> from gpcert.kernels import SquaredExponential
>>> model = gpcert.Posterior(SquaredExponential(0.5), points=[[0.0, 0.0]], weights=[1.0])
>>> gpcert.certify(model, [0.0, 0.0], radius=0.2, threshold=0.5).status
<Status.ROBUST: 'proved for every point of the region'>

Names are loaded when they are first used: what `gpcert.certify` needs takes a second to import.
"""

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

from gpcert.utils.optional_imports import check_numpy

check_numpy()

if TYPE_CHECKING:
    from gpcert import adapters as adapters
    from gpcert import attacks as attacks
    from gpcert import certificates as certificates
    from gpcert import errors as errors
    from gpcert import explain as explain
    from gpcert import kernels as kernels
    from gpcert import likelihoods as likelihoods
    from gpcert import model as model
    from gpcert import models as models
    from gpcert import plots as plots
    from gpcert import regions as regions
    from gpcert import search as search
    from gpcert import study as study
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
    from gpcert.api import certify_fair as certify_fair
    from gpcert.api import certify_many as certify_many
    from gpcert.api import certify_monotone as certify_monotone
    from gpcert.api import difference_range as difference_range
    from gpcert.api import expectation as expectation
    from gpcert.api import failure_probability as failure_probability
    from gpcert.api import invariant_set as invariant_set
    from gpcert.api import level_set as level_set
    from gpcert.api import lipschitz as lipschitz
    from gpcert.api import maximize as maximize
    from gpcert.api import minimize as minimize
    from gpcert.api import prediction_range as prediction_range
    from gpcert.api import prediction_range_many as prediction_range_many
    from gpcert.api import prediction_ranges as prediction_ranges
    from gpcert.api import quantile as quantile
    from gpcert.api import recommend as recommend
    from gpcert.api import regret_bound as regret_bound
    from gpcert.api import resume as resume
    from gpcert.api import slope_ranges as slope_ranges
    from gpcert.api import sobol_indices as sobol_indices
    from gpcert.api import uniform_beta as uniform_beta
    from gpcert.certificates import BoxBounds as BoxBounds
    from gpcert.certificates import Certificate as Certificate
    from gpcert.certificates import CertificateTable as CertificateTable
    from gpcert.certificates import ErrorBound as ErrorBound
    from gpcert.certificates import Expectation as Expectation
    from gpcert.certificates import FailureProbability as FailureProbability
    from gpcert.certificates import Fairness as Fairness
    from gpcert.certificates import Interval as Interval
    from gpcert.certificates import InvariantSet as InvariantSet
    from gpcert.certificates import LevelSet as LevelSet
    from gpcert.certificates import LipschitzBound as LipschitzBound
    from gpcert.certificates import Monotonicity as Monotonicity
    from gpcert.certificates import MonotonicityTable as MonotonicityTable
    from gpcert.certificates import Optimum as Optimum
    from gpcert.certificates import PredictionRange as PredictionRange
    from gpcert.certificates import Quantile as Quantile
    from gpcert.certificates import Radius as Radius
    from gpcert.certificates import RadiusTable as RadiusTable
    from gpcert.certificates import RangeTable as RangeTable
    from gpcert.certificates import RegretBound as RegretBound
    from gpcert.certificates import SlopeTable as SlopeTable
    from gpcert.certificates import SobolIndices as SobolIndices
    from gpcert.certificates import Status as Status
    from gpcert.certificates import load as load
    from gpcert.errors import GPCertError as GPCertError
    from gpcert.errors import InputError as InputError
    from gpcert.errors import MissingExtraError as MissingExtraError
    from gpcert.errors import SoundnessError as SoundnessError
    from gpcert.errors import UnknownArgumentError as UnknownArgumentError
    from gpcert.errors import UnsupportedModelError as UnsupportedModelError
    from gpcert.model.committee import Committee as Committee
    from gpcert.model.committee import load_model as load_model
    from gpcert.model.mixture import Mixture as Mixture
    from gpcert.model.multi_output import SeparateOutputs as SeparateOutputs
    from gpcert.model.posterior import Posterior as Posterior
    from gpcert.regions import Ball as Ball
    from gpcert.regions import Box as Box
    from gpcert.regions import Discrete as Discrete
    from gpcert.regions import OneHot as OneHot
    from gpcert.regions import Polytope as Polytope
    from gpcert.regions import Region as Region
    from gpcert.regions import Union as Union
    from gpcert.search import Budget as Budget
    from gpcert.search import Checkpoint as Checkpoint
    from gpcert.search import StopReason as StopReason

    __version__: str

_PUBLIC = {
    "gpcert.api": (
        "certify certify_many certified_radius certified_radius_many prediction_range "
        "prediction_range_many prediction_ranges bound_boxes "
        "maximize minimize regret_bound recommend slope_ranges certify_monotone lipschitz "
        "difference_range resume level_set invariant_set uniform_beta failure_probability "
        "expectation quantile sobol_indices certify_fair"
    ),
    "gpcert.analyses": (
        "attack predict_gradient safety_curve robustness certified_accuracy worst_case "
        "Attack AttackTable SafetyCurve RobustnessTable CertifiedAccuracy WorstCaseTable"
    ),
    "gpcert.adapters": "as_posterior",
    "gpcert.model.posterior": "Posterior",
    "gpcert.model.committee": "Committee load_model",
    "gpcert.model.mixture": "Mixture",
    "gpcert.model.multi_output": "SeparateOutputs",
    "gpcert.regions": "Box Ball Polytope Discrete OneHot Union Region",
    "gpcert.search": "Budget Checkpoint StopReason",
    "gpcert.certificates": (
        "load Status Certificate CertificateTable PredictionRange Interval Radius RangeTable "
        "RadiusTable BoxBounds Optimum RegretBound SlopeTable Monotonicity MonotonicityTable "
        "LipschitzBound LevelSet InvariantSet ErrorBound FailureProbability Expectation Quantile "
        "SobolIndices Fairness"
    ),
    "gpcert.errors": (
        "GPCertError InputError UnknownArgumentError UnsupportedModelError MissingExtraError "
        "SoundnessError"
    ),
}
"""The public names, and where they come from (the imports above are for type checkers)."""

_MODULES = (
    "adapters",
    "attacks",
    "certificates",
    "errors",
    "explain",
    "kernels",
    "likelihoods",
    "model",
    "models",
    "plots",
    "regions",
    "search",
    "study",
)
"""Modules that `import gpcert` makes available."""

_MOVED = {
    "committee": "gpcert.model.committee",
    "datasets": "gpcert.study.datasets",
    "experiments": "gpcert.study.experiments",
    "posterior": "gpcert.model.posterior",
    "report": "gpcert.study.report",
    "several": "gpcert.model.multi_output",
}
"""Modules of version 0.1 that have another name now; the old ones go with version 0.3."""

_SOURCES = {name: module for module, names in _PUBLIC.items() for name in names.split()}


if not TYPE_CHECKING:  # type checkers know the names, and should know no others
    __all__ = ["__version__"]
    __all__ += list(_SOURCES)

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return import_module(f"gpcert.{name}")
        if name in _MOVED:
            message = f"gpcert.{name} is now {_MOVED[name]}; the old name goes with version 0.3"
            warnings.warn(message, DeprecationWarning, stacklevel=2)
            return import_module(_MOVED[name])
        if name == "__version__":
            value = import_module("gpcert.utils.optional_imports").package_version()
        elif name in _SOURCES:
            value = getattr(import_module(_SOURCES[name]), name)
        else:
            raise AttributeError(f"module 'gpcert' has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*_SOURCES, "__version__", *_MODULES})
