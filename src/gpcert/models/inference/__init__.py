"""Inference: covariances and targets in, a `Fit` (posterior, evidence, gradient) out."""

from gpcert.models.inference.ep import ep
from gpcert.models.inference.exact import exact
from gpcert.models.inference.laplace import laplace
from gpcert.models.inference.record import EvidenceGradient, Fit
from gpcert.models.inference.softmax_laplace import softmax_laplace

__all__ = ["EvidenceGradient", "Fit", "ep", "exact", "laplace", "softmax_laplace"]
