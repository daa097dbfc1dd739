"""From a fitted model of another library to the canonical `Posterior`; one file a library.

`gpcert.adapters.adapter` says what an adapter is, `register` adds one, `supported` lists all.
"""

from gpcert.adapters.adapter import Adapter, Conversion, LibraryPrediction, Supported
from gpcert.adapters.measure import Agreement, check_agreement
from gpcert.adapters.registry import SupportTable, agreement, as_posterior, register, supported

__all__ = [
    "as_posterior",
    "agreement",
    "supported",
    "register",
    "Adapter",
    "Agreement",
    "check_agreement",
    "Conversion",
    "LibraryPrediction",
    "Supported",
    "SupportTable",
]
