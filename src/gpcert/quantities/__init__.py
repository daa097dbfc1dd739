"""What is asked of a model, as functions of latent means and variances: each written once."""

from gpcert.quantities.band import Band
from gpcert.quantities.classes import ClassSums
from gpcert.quantities.compound import Compound
from gpcert.quantities.deviation import Deviation
from gpcert.quantities.one_vs_rest import LeastSum, Share
from gpcert.quantities.output import Mean, OutputQuantity, Quantity, Std, Variance
from gpcert.quantities.probability import Probability
from gpcert.quantities.votes import PairVotes, Votes

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
    "Share",
    "Std",
    "Variance",
    "Votes",
]
