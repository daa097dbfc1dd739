"""Normal inputs turned so that one coordinate points to where failure is most probable: rare events
of many inputs are then nearly functions of that one.

Proofs: docs/mathematics.md, statement 22.10.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize

from gpcert.api.input_laws import ReadInputs, standard_normals
from gpcert.enclosures.goals import Goal
from gpcert.integrals.families import Normal
from gpcert.model.committee import Model
from gpcert.model.posterior import Posterior
from gpcert.numerics.rounding import gamma, up_float
from gpcert.regions import LinearMap

FEATURES = 6
"""From so many inputs on."""

STARTS = 5
"""Of the local search for the most probable place: any direction would be valid."""


def turned(model: Model, given: ReadInputs, goal: Goal, level: float) -> ReadInputs | None:
    """The inputs in turned coordinates, where that can help: `x = m + A z`, A about the deviations
    times a reflection. What rounding makes of the law counts as probability that is lost."""
    marginals, d = given.law.marginals, model.dim
    normal = all(type(marginal.family) is Normal for marginal in marginals)
    plain = isinstance(model, Posterior) and model.features is None and given.behind is None
    if not (normal and plain and len(marginals) == d >= FEATURES):
        return None
    mean = np.array([marginal.loc for marginal in marginals])
    deviations = np.array([marginal.scale for marginal in marginals])
    place = _most_probable(model, goal, level, (mean, deviations))
    if place is None:
        return None
    matrix = deviations[:, None] * _reflection(place / np.linalg.norm(place))
    share = matrix / deviations[:, None]
    # the covariance in standard deviations, less the identity
    change = share @ share.T - np.eye(d)
    size = float(np.linalg.norm(change)) + gamma(4 * d + 32) * d
    return standard_normals(LinearMap(matrix, mean), given.told, up_float(1.5 * size, 8))


def _reflection(direction: np.ndarray) -> np.ndarray:
    """An orthogonal matrix, about, whose first column is a unit vector."""
    v = direction - np.eye(len(direction))[0]
    square = float(v @ v)
    return np.eye(len(v)) - (2.0 / square) * np.outer(v, v) if square > 0 else np.eye(len(v))


def _most_probable(
    model: Model, goal: Goal, level: float, scaling: tuple[np.ndarray, np.ndarray]
) -> np.ndarray | None:
    """About the point nearest to 0, in standard deviations, where the goal has a value."""
    function, (mean, deviations) = goal.function(model), scaling
    rng, best = np.random.default_rng(0), None

    def value(u: np.ndarray) -> float:
        return float(function((mean + deviations * u)[None])[0][0]) - level

    def slope(u: np.ndarray) -> np.ndarray:
        return function((mean + deviations * u)[None])[1][0] * deviations

    surface = {"type": "eq", "fun": value, "jac": slope}
    for _ in range(STARTS):
        nearest = minimize(
            lambda u: float(u @ u),
            rng.normal(size=len(mean)),
            jac=lambda u: 2.0 * u,
            method="SLSQP",
            constraints=surface,
        )
        usable = nearest.success and np.isfinite(nearest.x).all() and 0.1 < nearest.fun < 80.0
        if usable and (best is None or nearest.fun < best.fun):
            best = nearest
    return None if best is None else best.x
