"""Explanations with proof: what moves a prediction, and which features decide it."""

from gpcert.explain.attribution import Attribution
from gpcert.explain.effects import effects
from gpcert.explain.effects_record import Effects
from gpcert.explain.lime_weights import lime
from gpcert.explain.pixels import pixel_budget
from gpcert.explain.pixels_record import PixelBudget, PixelBudgetTable
from gpcert.explain.reason_record import Reason, ReasonTable
from gpcert.explain.reasons import contrastive, sufficient
from gpcert.explain.salient import salient_features

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
