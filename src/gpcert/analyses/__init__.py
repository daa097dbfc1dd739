"""Analyses of a model: attacks, safety curves, robustness, certified accuracy, worst cases."""

from gpcert.analyses.accuracy import CertifiedAccuracy, certified_accuracy
from gpcert.analyses.attack import Attack, AttackTable, attack, predict_gradient
from gpcert.analyses.robustness import (
    Robustness,
    RobustnessTable,
    WorstCase,
    WorstCaseTable,
    robustness,
    worst_case,
)
from gpcert.analyses.safety import SafetyCurve, SafetyStep, safety_curve

__all__ = [
    "Attack",
    "AttackTable",
    "CertifiedAccuracy",
    "Robustness",
    "RobustnessTable",
    "SafetyCurve",
    "SafetyStep",
    "WorstCase",
    "WorstCaseTable",
    "attack",
    "certified_accuracy",
    "predict_gradient",
    "robustness",
    "safety_curve",
    "worst_case",
]
