"""What a model predicts at one point, in plain floating point: for pictures, never for verdicts."""

from __future__ import annotations

import math

import numpy as np

from gpcert.committee import Model
from gpcert.enclosures.goals import Goal


def plain_value(goal: Goal, model: Model, x: np.ndarray) -> float | None:
    """The goal at x (d,); None where plain floating point has no finite value.

    >>> from gpcert import Posterior
    >>> from gpcert.enclosures.goals import ScalarGoal
    >>> from gpcert.kernels import SquaredExponential
    >>> from gpcert.quantities import Mean
    >>> p = Posterior(SquaredExponential(1.0), [[0.0]], [2.0])
    >>> plain_value(ScalarGoal(Mean(0, 1)), p, np.zeros(1))
    2.0
    """
    return plain_values(goal, model, x[None])[0]


def plain_values(goal: Goal, model: Model, X: np.ndarray) -> list[float | None]:
    """The same at points (n, d)."""
    with np.errstate(all="ignore"):  # extreme models overflow; bounds do not rest on this
        found = goal.function(model)(X)[0].tolist()
    return [value if math.isfinite(value) else None for value in found]
