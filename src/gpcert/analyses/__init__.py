"""Analyses of a model: attacks, safety curves, robustness, certified accuracy, worst cases."""

from gpcert.analyses.attack import attack, predict_gradient
from gpcert.analyses.attack_table import Attack, AttackTable

__all__ = ["Attack", "AttackTable", "attack", "predict_gradient"]
