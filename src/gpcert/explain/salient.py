"""Pixels worth perturbing: key points of the image, or those that vary or matter most."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.api.words import read_x, verb
from gpcert.arrays import finite_array, whole_number
from gpcert.errors import InputError
from gpcert.explain.predictions import decision_gradient
from gpcert.extras import optional
from gpcert.plots.axes import image_shape

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
    the paper does; they may be fewer. "variance": features that vary most among the model's points.
    "sensitivity": the steepest of the decision at x.

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
    if method == "variance":
        spread = np.var(posterior.places, axis=0)
        return np.argsort(-spread, kind="stable")[:count]
    if method == "sensitivity":
        slopes = np.abs(decision_gradient(posterior, point))
        return np.argsort(-slopes, kind="stable")[:count]
    if method != "sift":
        raise InputError(f"method: expected 'sift', 'variance' or 'sensitivity', got {method!r}")
    if shape is None:
        raise InputError("shape: expected (rows, columns) of the image for method='sift'")
    return key_points(point, shape)[:count]


def key_points(image: Any, shape: tuple[int, int]) -> np.ndarray:
    """Pixels under the SIFT key points of an image, the largest blobs first, each once.

    Needs scikit-image. Small images often have none: scikit-image then raises, and so do we.
    """
    feature = optional("skimage.feature", "SIFT")
    pixels = finite_array("image", image, ndim=1)
    shape = image_shape(shape, pixels.size)
    span = float(np.ptp(pixels)) or 1.0
    detector = feature.SIFT()
    try:
        detector.detect((pixels.reshape(shape) - pixels.min()) / span)
    except (RuntimeError, IndexError) as error:  # no key points; too small for its scales
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
