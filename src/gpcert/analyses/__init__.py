"""Analyses of a model: attacks, safety curves, robustness, certified accuracy, worst cases."""

from gpcert.analyses.accuracy import certified_accuracy
from gpcert.analyses.accuracy_record import CertifiedAccuracy
from gpcert.analyses.attack import attack, predict_gradient
from gpcert.analyses.attack_table import Attack, AttackTable
from gpcert.analyses.robustness import robustness
from gpcert.analyses.robustness_table import Robustness, RobustnessTable
from gpcert.analyses.safety import safety_curve
from gpcert.analyses.safety_record import SafetyCurve, SafetyStep
from gpcert.analyses.worst_case import worst_case
from gpcert.analyses.worst_case_table import WorstCase, WorstCaseTable

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
