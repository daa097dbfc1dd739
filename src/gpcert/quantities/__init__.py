"""What is asked of a model, as functions of latent means and variances: each written once."""

from gpcert.quantities.committee import LeastSum, PairVotes, Share, Votes
from gpcert.quantities.compound import ClassSums, Compound, Deviation
from gpcert.quantities.contrast import LeastMeans, SameDecision, SameSide, WeightedMeans
from gpcert.quantities.improvement import (
    ExpectedImprovement,
    Improvement,
    LogExpectedImprovement,
    LogProbabilityOfImprovement,
    ProbabilityOfImprovement,
)
from gpcert.quantities.mixture import MixtureMoment
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
from gpcert.quantities.quantile import Quantile
from gpcert.quantities.slope import PredictionSlope, PredictionSteepness, Slope

__all__ = [
    "Band",
    "ClassSums",
    "Compound",
    "Deviation",
    "ExpectedImprovement",
    "Improvement",
    "LeastMeans",
    "LeastSum",
    "LogExpectedImprovement",
    "LogProbabilityOfImprovement",
    "Mean",
    "MixtureMoment",
    "OutputQuantity",
    "PairVotes",
    "PredictionSlope",
    "PredictionSteepness",
    "Probability",
    "ProbabilityOfImprovement",
    "Quantile",
    "Quantity",
    "Response",
    "SameDecision",
    "SameSide",
    "Share",
    "Slope",
    "Std",
    "Variance",
    "Votes",
    "WeightedMeans",
]
