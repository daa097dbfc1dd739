"""Explanations with proof: what moves a prediction, and which features decide it."""

from gpcert.explain.effects import effects
from gpcert.explain.effects_record import Effects

__all__ = ["effects", "Effects"]
