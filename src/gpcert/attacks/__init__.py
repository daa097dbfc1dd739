"""Attacks: local search for points that violate a property. Imports no enclosures.

The branch-and-bound search on one region uses `attack` and `descend`; `gpcert.attack` calls
`attack_points`, which attacks many points at once.
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
