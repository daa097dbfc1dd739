"""Certificates: what a search proved, as records and tables of them that save and load."""

from gpcert.certificates.boxes import BoxBounds
from gpcert.certificates.error_bounds import ErrorBound
from gpcert.certificates.fairness import Fairness, FairnessTable
from gpcert.certificates.invariant_sets import InvariantSet
from gpcert.certificates.io import Record, load
from gpcert.certificates.level_sets import LevelSet
from gpcert.certificates.optimum import Optimum, RegretBound
from gpcert.certificates.probability import Expectation, FailureProbability, Quantile, SobolIndices
from gpcert.certificates.record import (
    Certificate,
    CertificateTable,
    PredictionRange,
    Radius,
    RadiusTable,
    RangeTable,
)
from gpcert.certificates.slopes import (
    LipschitzBound,
    LipschitzTable,
    Monotonicity,
    MonotonicityTable,
    SlopeTable,
)
from gpcert.certificates.text import Interval, Status, Unit

__all__ = [
    "BoxBounds",
    "Certificate",
    "CertificateTable",
    "ErrorBound",
    "Expectation",
    "FailureProbability",
    "Fairness",
    "FairnessTable",
    "Interval",
    "InvariantSet",
    "LevelSet",
    "LipschitzBound",
    "LipschitzTable",
    "Monotonicity",
    "MonotonicityTable",
    "Optimum",
    "PredictionRange",
    "Quantile",
    "Radius",
    "RadiusTable",
    "RangeTable",
    "Record",
    "RegretBound",
    "SlopeTable",
    "SobolIndices",
    "Status",
    "Unit",
    "load",
]
