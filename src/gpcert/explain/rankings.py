"""Orders of features by importance, from every method there is."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np

from gpcert.committee import Model
from gpcert.errors import InputError
from gpcert.explain.arguments import read_order
from gpcert.explain.effects import Effects, effects
from gpcert.explain.lime_weights import lime
from gpcert.explain.predictions import importance_by_gradient
from gpcert.explain.reasons import sufficient
from gpcert.regions import Region
from gpcert.search import stop_if_interrupted

Ranking = Literal["effects", "lime", "gradient", "sufficient"]

RANKING_TOLERANCE = 0.01
"""Width of the effects that give an order (probabilities)."""

RANKINGS = get_args(Ranking)


def ranked_features(
    model: Model, x: np.ndarray, region: Region, ranking: Any, label: Any, random_state: int | None
) -> np.ndarray:
    """The movable features of the region, the most important for the decision `label` first.

    `ranking` is the name of a method, or the features themselves in order (others follow by index).
    """
    free, order = region.free, ranking
    if not isinstance(ranking, str):
        order = read_order("ranking", ranking, model)
    elif ranking in {"gradient", "sufficient"}:
        order = importance_by_gradient(model, x, region)
        if ranking == "sufficient":
            found = sufficient(model, x, region=region, random_state=random_state, progress=False)
            stop_if_interrupted(found.reason)
            inside = set(found.features)
            # those of the reason first, both parts by gradient
            order = sorted(order, key=lambda j: int(j) not in inside)
    elif ranking == "lime":
        order = lime(model, x, random_state=random_state).ranking(output=label)
    elif ranking == "effects":
        order = _by_effects(model, x, region, random_state).ranking(output=label)
    else:
        raise InputError(f"ranking: expected one of {RANKINGS} or an order, got {ranking!r}")
    first = [int(j) for j in order if j in free]
    rest = [int(j) for j in free if j not in set(first)]
    return np.array(first + rest, dtype=int)


def _by_effects(model: Model, x: np.ndarray, region: Region, random_state: int | None) -> Effects:
    reach = np.maximum(region.upper - x, x - region.lower)[region.free]
    span = float(reach.max(initial=0.0))
    found = effects(
        model,
        x,
        span or 1.0,
        features=region.free,
        domain=(region.lower, region.upper) if span else None,
        tol=RANKING_TOLERANCE,
        random_state=random_state,
        progress=False,
    )
    stop_if_interrupted(found.reason)
    return found
