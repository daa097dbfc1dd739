"""What is asked of a model, as functions of latent means and variances: each written once."""

from gpcert.quantities.committee import LeastSum, PairVotes, Share, Votes
from gpcert.quantities.compound import ClassSums, Compound, Deviation
from gpcert.quantities.output import (
    Band,
    Mean,
    OutputQuantity,
    Probability,
    Quantity,
    Response,
    Std,
    Variance,
)

__all__ = [
    "Band",
    "ClassSums",
    "Compound",
    "Deviation",
    "LeastSum",
    "Mean",
    "OutputQuantity",
    "PairVotes",
    "Probability",
    "Quantity",
    "Response",
    "Share",
    "Std",
    "Variance",
    "Votes",
]
