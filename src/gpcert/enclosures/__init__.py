"""Enclosures: proved bounds of the posterior over batches of cells."""

from gpcert.enclosures.evaluation import Evaluation
from gpcert.enclosures.local_posterior import LocalModel, LocalPosterior, local_model
from gpcert.enclosures.portfolio import Portfolio

__all__ = ["Evaluation", "LocalModel", "LocalPosterior", "Portfolio", "local_model"]
