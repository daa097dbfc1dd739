"""Random search without gradients, after the Square attack (Andriushchenko, Croce, Flammarion and
Hein, *Square Attack*, 2020), for vectors of features instead of images."""

from __future__ import annotations

import math

import numpy as np

from gpcert.attacks.margins import Margins
from gpcert.attacks.neighbourhoods import Neighbourhoods
from gpcert.deadline import checkpoint

FIRST_PART = 0.8
"""Part of the features that the first proposals change; it is halved as the search goes on."""

HALVINGS = 5
"""How often the part is halved over the whole search."""


def random_search(
    margins: Margins, places: Neighbourhoods, *, iterations: int, rng: np.random.Generator
) -> np.ndarray:
    """(n, d): points found by changing random features to the ends of their intervals.

    Every iteration draws, for each point, a set of features and an end for each; in a norm ball the
    change is as large as the sphere allows when only they moved, the rest is drawn back by a random
    factor, and the sum is projected. A proposal is kept where the predicted margin falls, or stays
    and the latent one falls (predictions saturate).
    """
    rows = np.arange(len(places))
    d = places.center.shape[1]
    x = _ends(places, rng.choice([-1.0, 1.0], (len(places), d)), np.ones((len(places), d), bool))
    x = places.project(x, rows)
    value = margins.value(False, x, rows)
    free = places.upper > places.lower
    for t in range(iterations):
        checkpoint()
        part = FIRST_PART * 0.5 ** (HALVINGS * t / max(iterations, 1))
        chosen = free & (rng.random((len(places), d)) < part)
        none = ~chosen.any(axis=1)
        # where nothing was drawn, one feature is
        chosen[none, rng.integers(0, d, none.sum())] = True
        chosen &= free
        proposal = _ends(places, rng.choice([-1.0, 1.0], (len(places), d)), chosen)
        kept = x if places.p == math.inf else _drawn_back(places, x, rng)
        y = places.project(np.where(chosen, proposal, kept), rows)
        x, value = margins.better(x, value, y, rows)
    return x


def _ends(places: Neighbourhoods, signs: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """The centres with the chosen features moved up or down as far as they may together."""
    if places.p == math.inf:
        return np.where(signs > 0, places.upper, places.lower)
    count = np.maximum((chosen & (places.unit > 0)).sum(axis=1, keepdims=True), 1)
    return places.center + signs * places.unit * count ** (-1.0 / places.p)


def _drawn_back(places: Neighbourhoods, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return places.center + (x - places.center) * rng.random((len(x), 1))
