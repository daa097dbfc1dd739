"""What is asked of a posterior, as functions of latent means and variances: each written once."""

from gpcert.quantities.band import Band
from gpcert.quantities.base import Quantity
from gpcert.quantities.moments import Mean, Std, Variance
from gpcert.quantities.probability import Probability

__all__ = ["Band", "Mean", "Probability", "Quantity", "Std", "Variance"]
