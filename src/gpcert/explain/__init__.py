"""Explanations with proof: what moves a prediction, and which features decide it."""

from gpcert.explain.effects import effects
from gpcert.explain.effects_record import Effects
from gpcert.explain.reason_record import Reason
from gpcert.explain.reasons import contrastive, sufficient

__all__ = ["effects", "sufficient", "contrastive", "Effects", "Reason"]
