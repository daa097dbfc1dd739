"""Allowed values of options of verbs and commands, and the default time limit. This module imports
nothing, so that the help of a command needs no other module."""

from typing import Literal

__all__ = [
    "AttackName",
    "MethodName",
    "QuantityName",
    "Ranking",
    "Side",
    "Sides",
    "VarianceBound",
    "SECONDS",
]

AttackName = Literal["gpfgs", "gpfgs_probability", "pgd", "square", "best"]

MethodName = Literal["taylor", "paper", "both"]

QuantityName = Literal[
    "probability",
    "response",
    "mean",
    "variance",
    "std",
    "band",
    "lcb",
    "ucb",
    "ei",
    "log_ei",
    "pi",
    "log_pi",
]

Ranking = Literal["effects", "lime", "gradient", "sufficient"]

Side = Literal["maximum", "minimum"]

Sides = Literal["both", "minimum", "maximum"]

VarianceBound = Literal["solver", "analytic"]

SECONDS = 60.0
"""Default time limit of one search."""

SideName = Literal["below", "above"]
"""On which side of a threshold an event is."""
