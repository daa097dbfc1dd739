"""What the analyses are asked: regions, decisions and effort, read once and handed on."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpcert.api.rules import RuleOptions
from gpcert.arrays import finite_array
from gpcert.attacks import Decision
from gpcert.errors import InputError


def plain_decision(options: RuleOptions) -> Decision:
    """What an attack is asked to change."""
    numbers = {"threshold": options.threshold, "delta": options.delta}
    threshold, delta = (
        None if value is None else float(finite_array(name, value, ndim=0))
        for name, value in numbers.items()
    )
    return Decision(threshold, options.class_weight, delta, options.output_norm)


def check_radii(radii: Any) -> np.ndarray:
    """Radii in growing order, each once.

    >>> check_radii([0.2, 0.1, 0.2]).tolist()
    [0.1, 0.2]
    """
    found = np.unique(finite_array("radii", radii, ndim=1))
    if not len(found) or found[0] < 0:
        raise InputError(f"radii: expected one or more numbers >= 0, got {radii!r}")
    return found
