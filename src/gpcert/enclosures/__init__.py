"""Enclosures: proved bounds of the posterior over batches of cells."""

from gpcert.enclosures.evaluation import Evaluation
from gpcert.enclosures.local_posterior import LocalPosterior

__all__ = ["Evaluation", "LocalPosterior"]
