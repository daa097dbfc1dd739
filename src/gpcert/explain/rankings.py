"""Rankings of features by importance, from all methods; salient features."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.api.options import read_x, verb
from gpcert.errors import InputError
from gpcert.explain.arguments import decision_gradient, importance_by_gradient, read_order
from gpcert.explain.attribution import lime
from gpcert.explain.effects import Effects, effects
from gpcert.explain.reasons import sufficient
from gpcert.model.committee import Model
from gpcert.numerics.arrays import finite_array, whole_number
from gpcert.plots.axes import image_shape
from gpcert.regions import Region
from gpcert.search import stop_if_interrupted
from gpcert.utils.option_names import Ranking
from gpcert.utils.optional_imports import optional

RANKING_TOLERANCE = 0.01
"""Width of the effects that a ranking is based on (probabilities)."""

RANKINGS = get_args(Ranking)


def ranked_features(
    model: Model, x: np.ndarray, region: Region, ranking: Any, label: Any, random_state: int | None
) -> np.ndarray:
    """The movable features of the region, the most important for the decision `label` first.

    `ranking` is the name of a method, or the features in order (the others follow by index).
    """
    free, order = region.free, ranking
    if not isinstance(ranking, str):
        order = read_order("ranking", ranking, model)
    elif ranking in {"gradient", "sufficient"}:
        order = importance_by_gradient(model, x, region)
        if ranking == "sufficient":
            result = sufficient(model, x, region=region, random_state=random_state, progress=False)
            stop_if_interrupted(result.reason)
            if not result.found:
                raise InputError(
                    f"ranking: there is no sufficient reason at x ({result.reason.value}); "
                    "expected a point whose decision can be proved, or another ranking"
                )
            inside = set(result.features)
            # features of the reason first, each part ordered by gradient
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
    bounds: Any = {"domain": (region.lower, region.upper)} if span else {}
    search: Any = {"tol": RANKING_TOLERANCE, "random_state": random_state, "progress": False}
    result = effects(model, x, span or 1.0, features=region.free, **bounds, **search)
    stop_if_interrupted(result.reason)
    return result


Salience = Literal["sift", "variance", "sensitivity"]


@verb
def salient_features(
    model: Any,
    x: Any,
    count: int = 10,
    *,
    method: Salience = "sift",
    shape: tuple[int, int] | None = None,
) -> np.ndarray:
    """Indices of at most `count` features, the most salient first: for `features=` of any verb.

    "sift": pixels under the key points of the image x of `shape` (Lowe 2004, by scikit-image), as
    in the paper; there may be fewer than `count`. "variance": the features with the largest
    variance among the model's points. "sensitivity": those with the largest derivative of the
    decision at x.

    Example
    -------
    >>> import gpcert
    >>> from gpcert import explain
    >>> from gpcert.kernels import SquaredExponential
    >>> p = gpcert.Posterior(SquaredExponential(1.0), [[0.0, 0.0], [3.0, 1.0]], [-1.0, 1.0])
    >>> explain.salient_features(p, [1.0, 1.0], 1, method="variance").tolist()
    [0]
    """
    posterior = as_posterior(model)
    point = read_x(posterior, x, "ask for one point at a time")
    whole_number("count", count, 1)
    if method in ("variance", "sensitivity"):
        if shape is not None:
            raise InputError(
                f"shape: only used by method='sift', got method={method!r}; leave it out"
            )
        spread = method == "variance"
        sizes = np.var(posterior.places, axis=0) if spread else decision_gradient(posterior, point)
        return np.argsort(-np.abs(sizes), kind="stable")[:count]
    if method != "sift":
        raise InputError(f"method: expected 'sift', 'variance' or 'sensitivity', got {method!r}")
    if shape is None:
        raise InputError("shape: expected (rows, columns) of the image for method='sift'")
    return key_points(point, shape)[:count]


def key_points(image: Any, shape: tuple[int, int]) -> np.ndarray:
    """Pixels under the SIFT key points of an image, the largest blobs first, each once.

    Needs scikit-image. Small images often have no key points, which is an `InputError`.
    """
    feature = optional("skimage.feature", "SIFT")
    pixels = finite_array("image", image, ndim=1)
    shape = image_shape(shape, pixels.size)
    span = float(np.ptp(pixels)) or 1.0
    detector = feature.SIFT()
    try:
        detector.detect((pixels.reshape(shape) - pixels.min()) / span)
    except (
        RuntimeError,
        IndexError,
    ) as error:  # no key points, or an image too small for its scales
        raise InputError(
            f"SIFT found no key points in this image of {shape[0]} x {shape[1]} pixels ({error}); "
            "use method='variance' or 'sensitivity'"
        ) from error
    order = np.argsort(-np.asarray(detector.scales), kind="stable")
    places = np.asarray(detector.keypoints)[order]
    places = np.clip(places, 0, np.array(shape) - 1)
    flat = places[:, 0] * shape[1] + places[:, 1]
    _, first = np.unique(flat, return_index=True)
    return flat[np.sort(first)].astype(int)
