"""Enclosures: proved bounds of the posterior over batches of cells."""

from gpcert.enclosures.evaluation import Evaluation, Portfolio
from gpcert.enclosures.local_posterior import LocalModel, LocalPosterior, local_model

__all__ = ["Evaluation", "LocalModel", "LocalPosterior", "Portfolio", "local_model"]
