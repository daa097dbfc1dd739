"""Attacks: local search for points that break a property. Never imports an enclosure.

`attack` and `descend` serve the search on one region; `attack_points` attacks many points at once,
and is what `gpcert.attack` calls.
"""

from gpcert.attacks.batch import AttackName, Effort, Neighbourhoods, attack_points
from gpcert.attacks.decisions import Comparison, Decision, Margins, decision_margins
from gpcert.attacks.descent import attack, descend
from gpcert.attacks.functions import prediction_and_gradient

__all__ = [
    "AttackName",
    "Comparison",
    "Decision",
    "Effort",
    "Margins",
    "Neighbourhoods",
    "attack",
    "attack_points",
    "decision_margins",
    "descend",
    "prediction_and_gradient",
]
