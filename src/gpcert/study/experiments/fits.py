"""The classifiers of the experiments, trained as in the paper; which pixels of an image move; the
paper's delta of many points, each in a ball of its own."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import gpcert
from gpcert.errors import InputError
from gpcert.kernels import SquaredExponential
from gpcert.numerics.arrays import finite_array
from gpcert.study.datasets import Dataset
from gpcert.study.experiments.base import SOURCES, Rows, Sources, subset
from gpcert.study.experiments.statistics import Estimate, bootstrap

if TYPE_CHECKING:
    from gpcert.models import GPClassifier

SCALES_AN_OCTAVE = 3
SMALLEST_SCALE = 1.0
"""Blobs have at least the radius of a pixel."""


def key_patch(image: np.ndarray, count: int = 10) -> np.ndarray:
    """The `count` pixels nearest to the strongest key point of a square image, in their order.

    The paper perturbs ten pixels that SIFT selects (a disc around one key point). SIFT's key points
    are extrema of differences of Gaussians over place and scale (Lowe 2004), which approximate the
    scale-normalised Laplacian `s^2 |lap G_s * image|` used here (Lindeberg 1998). Detectors with
    contrast and edge thresholds find none in many images of 14x14 pixels; the largest response
    always exists, depends on the image alone, and so is the same for all models compared.

    >>> image = np.zeros((8, 8))
    >>> image[2, 5] = 1.0
    >>> key_patch(image.ravel(), 5).tolist()
    [13, 20, 21, 22, 29]
    """
    from scipy.ndimage import gaussian_laplace

    pixels = finite_array("image", image, ndim=1)
    side = image_shape(pixels.size)[0]
    if not 1 <= count <= pixels.size:
        raise InputError(f"count: expected 1 to {pixels.size} pixels, got {count!r}")
    octaves = np.log2(max(side / 4.0, 1.0) / SMALLEST_SCALE)
    steps = np.arange(int(SCALES_AN_OCTAVE * octaves) + 1) / SCALES_AN_OCTAVE
    picture = pixels.reshape(side, side)
    responses = [
        s**2 * np.abs(gaussian_laplace(picture, s, mode="nearest"))
        for s in SMALLEST_SCALE * 2.0**steps
    ]
    place = divmod(int(np.argmax(np.max(responses, axis=0))), side)
    rows, columns = np.indices((side, side))
    distance = (rows - place[0]) ** 2 + (columns - place[1]) ** 2
    return np.sort(np.argsort(distance.ravel(), kind="stable")[:count])


def image_shape(pixels: int) -> tuple[int, int]:
    """Rows and columns of a square image.

    >>> image_shape(196)
    (14, 14)
    """
    side = int(np.sqrt(pixels) + 0.5)
    if side * side != pixels:
        raise InputError(f"image: expected a square number of pixels, got {pixels}")
    return side, side


def fitted(data: Dataset, epochs: int, random_state: int = 0, **options: Any) -> GPClassifier:
    """A squared exponential with one length-scale per feature, started at 1 as in the published
    scripts, its parameters by maximum likelihood within `epochs` evaluations; `options` are those
    of `GPClassifier`. That few epochs do not converge, or that the variance ends at its bound where
    classes can be separated, is the experiment's own doing: no warning."""
    from sklearn.exceptions import ConvergenceWarning

    from gpcert.models import GPClassifier

    kernel = SquaredExponential(np.ones(data.dim))
    model = GPClassifier(kernel, max_epochs=epochs, random_state=random_state, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(data.X_train, data.y_train)


@dataclass(frozen=True)
class Case:
    """One data set, and epochs of training."""

    data: str
    epochs: int = 10


@dataclass(frozen=True)
class BallCase(Case):
    """And the largest radius of the balls."""

    largest: float = 1.0


def trained(
    settings: Any, arguments: Mapping[str, Any], sources: Sources, points: int | None, **words: Any
) -> tuple[Any, Dataset, GPClassifier]:
    """The case of a piece (`one_per_case`), its data with so many test points (None: all of them),
    and the model."""
    case = settings.cases[arguments["case"]]
    whole = sources.load(case.data)
    count = len(whole.X_test) if points is None else points
    data = subset(whole, settings.train, count, settings.random_state)
    return case, data, fitted(data, case.epochs, settings.random_state, **words)


def ball_words(name: str, x: np.ndarray, pixels: int) -> dict[str, Any]:
    """`features` and `domain` of the balls around x: all features, of images a patch in [0, 1]."""
    if not SOURCES[name].image:
        return {}
    return {"features": key_patch(x, pixels), "domain": (0.0, 1.0)}


def fit_cells(model: GPClassifier, data: Dataset) -> dict[str, Any]:
    """What a table says about a trained model: test accuracy, evidence, evaluations of it, and the
    variance of the kernel."""
    return {
        "accuracy": float(model.score(data.X_test, data.y_test)),
        "evidence": float(model.evidence_),
        "evaluations": len(model.trace_),
        "variance": float(model.kernel_.config()["variance"]),
    }


SMALLEST = 1e-12
"""A delta that is taken for no movement at all: ratios to less would say nothing."""


def delta_study(
    settings: Any, sources: Sources, key: Mapping[str, Any], train: int, epochs: int, **options: Any
) -> Rows:
    """One model, known by `key`, its mean delta, and attained and proved delta around each test
    point; of images a patch of pixels moves."""
    name = key["data"]
    data = subset(sources.load(name), train, settings.test, settings.random_state)
    model = fitted(data, epochs, settings.random_state, **options)
    posterior = gpcert.as_posterior(model)
    how = {"tol": settings.tol, "budget": gpcert.Budget(seconds=None, boxes=settings.boxes)}
    deltas = []
    for x in data.X_test[: settings.points]:
        words = how | ball_words(name, x, settings.pixels)
        (found,) = gpcert.robustness(posterior, x[None], settings.radius, **words)
        deltas.append({"attained": found.delta.lower, "proved": found.delta.upper})
    mean = bootstrap([ends["proved"] for ends in deltas], np.mean)
    yield "models", {**key, **fit_cells(model, data), **mean.cells("mean delta")}
    for k, ends in enumerate(deltas):
        yield "deltas", {**key, "point": k, **ends}


def ratio_of(middle: Callable[..., np.ndarray], above: np.ndarray, below: np.ndarray) -> Estimate:
    """Mean (or median) of one over that of the other at the same points, which are resampled
    together.

    >>> ratio_of(np.mean, np.array([2.0, 4.0]), np.array([1.0, 2.0])).value
    2.0
    """

    def ratio(values: np.ndarray, axis: int) -> np.ndarray:
        found = middle(values, axis=axis)
        return found[..., 0] / np.maximum(found[..., 1], SMALLEST)

    return bootstrap(np.stack([above, below], axis=1), ratio)
