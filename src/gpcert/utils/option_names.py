"""The words that verbs and commands choose from, and the default of a budget; nothing is imported,
so that the help of a command is shown before anything else is loaded."""

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
"""What one search may take where nothing is said."""
