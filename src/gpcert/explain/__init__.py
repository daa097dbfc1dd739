"""Explanations with proof: what moves a prediction, and which features decide it."""

from gpcert.explain.attribution import Attribution, lime
from gpcert.explain.effects import Effects, effects
from gpcert.explain.pixels import PixelBudget, PixelBudgetTable, pixel_budget
from gpcert.explain.rankings import salient_features
from gpcert.explain.reasons import Reason, ReasonTable, contrastive, sufficient

__all__ = [
    "effects",
    "sufficient",
    "contrastive",
    "lime",
    "pixel_budget",
    "salient_features",
    "Attribution",
    "Effects",
    "PixelBudget",
    "PixelBudgetTable",
    "Reason",
    "ReasonTable",
]
