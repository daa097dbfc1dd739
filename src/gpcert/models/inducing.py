"""Inducing points of sparse models, chosen before training and fixed during it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.utils import check_array, check_random_state

from gpcert.errors import InputError

INDUCING = ("random", "kmeans")

LARGEST_KMEANS = 10_000
"""Points from which on mini-batches take the place of Lloyd's iterations over all of them."""


def inducing_points(
    X: Any, count: int, kind: str = "random", random_state: Any = None
) -> np.ndarray:
    """(count, d) points for inputs X (N, d).

    "random": a subset of the rows of X, each row at most once (rows of X that are equal may both
    be chosen); "kmeans": centres of k-means clusters, which are no training points in general.

    >>> inducing_points([[0.0], [1.0], [2.0]], 2, random_state=0).shape
    (2, 1)
    """
    X = check_array(X, dtype="float64")
    if kind not in INDUCING:
        words = ", ".join(map(repr, INDUCING))
        raise InputError(f"inducing: expected one of {words}, got {kind!r}")
    whole = isinstance(count, int | np.integer) and not isinstance(count, bool)
    if not whole or not 1 <= count <= len(X):
        raise InputError(
            f"n_inducing: expected a whole number between 1 and the {len(X)} training points, "
            f"got {count!r}"
        )
    random = check_random_state(random_state)
    if kind == "random":
        return X[random.permutation(len(X))[:count]]
    return _centres(X, int(count), random)


def _centres(X: np.ndarray, count: int, random: np.random.RandomState) -> np.ndarray:
    """Some may coincide where X has fewer distinct rows: the model's jitter allows for that."""
    options: Any = {"n_clusters": count, "n_init": 1, "random_state": random}
    method = (MiniBatchKMeans if len(X) > LARGEST_KMEANS else KMeans)(**options)
    return np.asarray(method.fit(X).cluster_centers_)
