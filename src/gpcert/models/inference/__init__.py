"""Inference: covariances and targets in, a `Fit` (posterior, evidence, gradient) out."""

from gpcert.models.inference.ep import ep
from gpcert.models.inference.fit import EvidenceGradient, Fit, exact
from gpcert.models.inference.laplace import laplace, softmax_laplace

__all__ = ["EvidenceGradient", "Fit", "ep", "exact", "laplace", "softmax_laplace"]
