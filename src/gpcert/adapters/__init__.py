"""From a fitted model of another library to the canonical `Posterior`; one file a library."""

from gpcert.adapters.conversion import Conversion, LibraryPrediction
from gpcert.adapters.measure import Agreement, check_agreement
from gpcert.adapters.registry import agreement, as_posterior

__all__ = [
    "as_posterior",
    "agreement",
    "Agreement",
    "check_agreement",
    "Conversion",
    "LibraryPrediction",
]
