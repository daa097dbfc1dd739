"""Orders of features by importance, from every method there is."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from gpcert.arrays import finite_array
from gpcert.committee import Model
from gpcert.errors import InputError
from gpcert.explain.effects import effects
from gpcert.explain.gradients import importance_by_gradient
from gpcert.explain.lime_weights import lime
from gpcert.explain.reasons import sufficient
from gpcert.explain.slices import movable
from gpcert.regions import Region

__all__ = ["RANKINGS", "Ranking", "ranked_features"]

Ranking = Literal["effects", "lime", "gradient", "sufficient"]

RANKING_TOLERANCE = 0.01
"""Width of the effects that give an order (probabilities)."""

RANKINGS = ("effects", "lime", "gradient", "sufficient")


def ranked_features(
    model: Model,
    x: np.ndarray,
    region: Region,
    ranking: Any,
    label: Any,
    random_state: int | None,
) -> np.ndarray:
    """The movable features of the region, the most important for the decision `label` first.

    `ranking` is the name of a method, or the features themselves in order (others follow by index).
    """
    free = movable(region)
    if isinstance(ranking, str):
        order = _by_method(model, x, region, ranking, label, random_state)
    else:
        order = finite_array("ranking", ranking, ndim=1).astype(int)
        if len(np.unique(order)) != len(order) or not np.all(np.isin(order, np.arange(model.dim))):
            raise InputError(f"ranking: expected distinct features of 0..{model.dim - 1}")
    first = [int(j) for j in order if j in free]
    rest = [int(j) for j in free if j not in set(first)]
    return np.array(first + rest, dtype=int)


def _by_method(
    model: Model,
    x: np.ndarray,
    region: Region,
    name: str,
    label: Any,
    random_state: int | None,
) -> np.ndarray:
    gradient = importance_by_gradient(model, x, region)
    if name == "gradient":
        return gradient
    if name == "lime":
        return lime(model, x, random_state=random_state).ranking(output=label)
    if name == "sufficient":
        found = sufficient(model, x, region=region, random_state=random_state)
        inside = set(found.features)
        # those of the reason first, both parts by gradient
        return np.array(sorted(gradient, key=lambda j: int(j) not in inside))
    if name != "effects":
        raise InputError(f"ranking: expected one of {RANKINGS} or an order, got {name!r}")
    reach = np.maximum(region.upper - x, x - region.lower)[movable(region)]
    span = float(reach.max(initial=0.0))
    found = effects(
        model,
        x,
        span or 1.0,
        features=movable(region),
        domain=(region.lower, region.upper) if span else None,
        tol=RANKING_TOLERANCE,
        random_state=random_state,
    )
    return (found if found.binary or len(found.outputs) == 1 else found.of(label)).ranking()
