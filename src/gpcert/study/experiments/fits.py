"""The classifiers of the experiments, trained as in the paper; which pixels of an image move; the
paper's delta of many points, each in a ball of its own; and LIME's weights (Ribeiro, Singh and
Guestrin 2016), written out so that every machine has them.

LIME has two versions, as the paper does not say which it means. `lime_tabular` is the algorithm of
the package `lime` 0.2.0.1 for tables without discretisation (also behind `gpcert.explain.lime`,
where the package is installed): random points of the data's spread, weighted by their distance from
x, ridge regression. `lime_of_scripts` is what the scripts published with the paper run: for tables
x plus standard normal noise, for images pixels set to 0 or left, weighted by the cosine distance
from x, least squares. Of an image only pixels that are not 0 can get a weight there.
"""

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
from gpcert.study.experiments.results import Estimate, Finding, bootstrap, share
from gpcert.utils.optional_imports import optional

if TYPE_CHECKING:
    from gpcert.models import GPClassifier


PATCHES = ("sift", "sift-scale", "blob")
"""How the pixels that move are chosen."""

SIFT_OPTIONS = {"n_scales": 35, "c_edge": 20.0, "c_dog": 0.0}
"""Of scikit-image's detector: the scales and the edge threshold of the published scripts, and no
contrast threshold."""

SCALES_AN_OCTAVE = 3
SMALLEST_SCALE = 1.0
"""Blobs have at least the radius of a pixel."""


def key_patch(image: np.ndarray, count: int = 10, patch: str = "sift") -> np.ndarray:
    """The pixels of a square image that move, in their order: a disc around one key point.

    "sift": the `count` pixels nearest to the SIFT key point (Lowe 2004) of the largest scale, found
    with the settings of the published scripts; needs scikit-image. "sift-scale": those within that
    scale, at most `count` of them, which the scripts take column by column. "blob": the `count`
    pixels nearest to the largest response of the Laplacian `s^2 |lap G_s * image|` over place and
    scale (Lindeberg 1998), which differences of Gaussians approximate; for images too small for
    SIFT, and needs no further library.

    >>> image = np.zeros((8, 8))
    >>> image[2, 5] = 1.0
    >>> key_patch(image.ravel(), 5, "blob").tolist()
    [13, 20, 21, 22, 29]
    """
    pixels = finite_array("image", image, ndim=1)
    side = image_shape(pixels.size)[0]
    if not 1 <= count <= pixels.size:
        raise InputError(f"count: expected 1 to {pixels.size} pixels, got {count!r}")
    if patch not in PATCHES:
        raise InputError(f"patch: expected one of {', '.join(PATCHES)}, got {patch!r}")
    picture = pixels.reshape(side, side)
    place, scale = _largest_blob(picture) if patch == "blob" else _largest_key_point(picture)
    rows, columns = np.indices((side, side))
    distance = ((rows - place[0]) ** 2 + (columns - place[1]) ** 2).ravel()
    if patch == "sift-scale":
        by_column = np.arange(pixels.size).reshape(side, side).T.ravel()
        within = by_column[distance[by_column] <= scale**2]
        if within.size:
            return np.sort(within[:count])
    return np.sort(np.argsort(distance, kind="stable")[:count])


def _largest_key_point(picture: np.ndarray) -> tuple[Any, float]:
    """Row and column, and scale, of the SIFT key point of the largest scale (the first of equal
    ones)."""
    detector = optional("skimage.feature", "key_patch").SIFT(**SIFT_OPTIONS)
    try:
        detector.detect(picture)
    except RuntimeError as error:  # it found none
        side = len(picture)
        raise InputError(
            f"image: expected an image with SIFT key points, got none in {side}x{side} pixels "
            f"({error}); take the patch 'blob'"
        ) from error
    k = int(np.argmax(detector.sigmas))
    return detector.positions[k], float(detector.sigmas[k])


def _largest_blob(picture: np.ndarray) -> tuple[Any, float]:
    """Row and column, and scale, of the largest response of the Laplacian."""
    from scipy.ndimage import gaussian_laplace

    side = len(picture)
    octaves = np.log2(max(side / 4.0, 1.0) / SMALLEST_SCALE)
    steps = np.arange(int(SCALES_AN_OCTAVE * octaves) + 1) / SCALES_AN_OCTAVE
    scales = SMALLEST_SCALE * 2.0**steps
    responses = [s**2 * np.abs(gaussian_laplace(picture, s, mode="nearest")) for s in scales]
    k, row, column = np.unravel_index(int(np.argmax(responses)), np.shape(responses))
    return (row, column), float(scales[k])


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
    """A squared exponential with one length-scale per feature, its parameters by maximum likelihood
    from 1, as in the published scripts, and from the scale of the data, each within `epochs`
    evaluations; `options` are those of `GPClassifier`. That few epochs do not converge, or that the
    variance ends at its bound where classes can be separated, is the experiment's own doing: no
    warning."""
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
    settings: Any,
    arguments: Mapping[str, Any],
    sources: Sources,
    points: int | None,
    **options: Any,
) -> tuple[Any, Dataset, GPClassifier]:
    """The case of a piece (`one_per_case`), its data with so many test points (None: all of them),
    and the model."""
    case = settings.cases[arguments["case"]]
    whole = sources.load(case.data)
    count = len(whole.X_test) if points is None else points
    data = subset(whole, settings.train, count, settings.random_state)
    return case, data, fitted(data, case.epochs, settings.random_state, **options)


def ball_options(name: str, x: np.ndarray, settings: Any) -> dict[str, Any]:
    """`features` and `domain` of the balls around x: all features, of images a patch in [0, 1] as
    the `pixels` and `patch` of the settings say."""
    if not SOURCES[name].image:
        return {}
    return {"features": key_patch(x, settings.pixels, settings.patch), "domain": (0.0, 1.0)}


PAPER_TESTS = 200
"""Test points of the paper's accuracies: 200 for Synthetic2D, and for all sets in its scripts."""
NORMAL_95 = 1.96
ROUNDED = 0.005
"""The paper gives accuracies as "around" whole per cents."""


def accuracy_finding(data: str, accuracy: float, tests: int, paper: float) -> Finding:
    """A test accuracy beside the paper's, both with their sampling error.

    >>> accuracy_finding("spam", 0.921, 1000, 0.93).agrees
    'yes'
    """
    error = np.sqrt(paper * (1.0 - paper) / PAPER_TESTS + accuracy * (1.0 - accuracy) / tests)
    apart = max(abs(accuracy - paper) - ROUNDED, 0.0)
    own = share(np.arange(tests) < round(accuracy * tests))
    return Finding(
        f"{SOURCES[data].label}: test accuracy around {paper:.0%}",
        f"{paper:.0%}",
        f"{accuracy:.1%} [{own.low:.1%}, {own.high:.1%}] of {tests} test points",
        "yes" if apart <= NORMAL_95 * error else "no",
        "yes if the difference, less half a per cent, is within 1.96 standard errors of both, the "
        f"paper's on {PAPER_TESTS} points ({NORMAL_95 * error:.1%})",
    )


def fit_cells(model: GPClassifier, data: Dataset) -> dict[str, Any]:
    """What a table says about a trained model: test accuracy and points, evidence, evaluations of
    it, and the variance of the kernel."""
    return {
        "accuracy": float(model.score(data.X_test, data.y_test)),
        "test points": len(data.y_test),
        "evidence": float(model.evidence_),
        "evaluations": len(model.trace_),
        "variance": float(model.kernel_.config()["variance"]),
    }


MIDDLES = {"mean": np.mean, "median": np.median}
"""The paper shows box plots and does not say which number its ratios are of; the few points near
the boundary rule the mean, the many far from it the median."""

PAPER_POINTS = 50
"""The paper's number of points, judged beside all of them."""

SMALLEST = 1e-12
"""A delta that is taken for no movement at all: ratios to less would say nothing."""


def delta_study(
    settings: Any,
    sources: Sources,
    key: Mapping[str, Any],
    train: int,
    epochs: int,
    **fit_options: Any,
) -> Rows:
    """One model, known by `key`, its mean delta, and attained and proved delta around each test
    point; of images a patch of pixels moves."""
    name = key["data"]
    data = subset(sources.load(name), train, settings.test, settings.random_state)
    model = fitted(data, epochs, settings.random_state, **fit_options)
    posterior = gpcert.as_posterior(model)
    limits = {"tol": settings.tol, "budget": gpcert.Budget(seconds=None, boxes=settings.boxes)}
    deltas = []
    for x in data.X_test[: settings.points]:
        options = limits | ball_options(name, x, settings)
        (point,) = gpcert.robustness(posterior, x[None], settings.radius, **options)
        deltas.append({"attained": point.delta.lower, "proved": point.delta.upper})
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
        middles = middle(values, axis=axis)
        return middles[..., 0] / np.maximum(middles[..., 1], SMALLEST)

    return bootstrap(np.stack([above, below], axis=1), ratio)


def fall_of(middle: Any, before: np.ndarray, after: np.ndarray) -> Estimate:
    """By how much a mean or median is less afterwards; the points are resampled together."""

    def fall(values: np.ndarray, axis: int) -> np.ndarray:
        middles = middle(values, axis=axis)
        return middles[..., 0] - middles[..., 1]

    return bootstrap(np.stack([before, after], axis=1), fall)


Predict = Callable[[np.ndarray], np.ndarray]
"""Points (n, d) to predictions (n, outputs)."""

RIDGE = 1.0
TABULAR_WIDTH = 0.75
SCRIPTS_WIDTH = 0.25
LEAST_WEIGHT = 0.01


LIMES = ("LIME (package)", "LIME (scripts)")
"""The two versions, as tables and figures call them."""


def limes(
    model: Any, output: int, x: np.ndarray, data: Dataset, settings: Any, *, image: bool
) -> dict[str, np.ndarray]:
    """(d,) the weights for one class at x by either version; `settings` have samples and a seed."""

    def predict(Z: np.ndarray) -> np.ndarray:
        return model.predict_proba(Z)[:, output : output + 1]

    how = (settings.samples, settings.random_state)
    package = lime_tabular(predict, x, data.X_train, *how)[0]
    scripts = lime_of_scripts(predict, x, *how, image=image)[0]
    return dict(zip(LIMES, (package, scripts), strict=True))


def lime_tabular(
    predict: Predict, x: np.ndarray, background: np.ndarray, samples: int, random_state: int
) -> np.ndarray:
    """(outputs, d) slopes per standard deviation of a feature.

    >>> def line(Z):
    ...     return Z @ np.array([[1.0], [-2.0]])
    >>> found = lime_tabular(line, np.zeros(2), np.eye(2), 2000, 0)
    >>> bool(found[0, 0] > 0 > found[0, 1])
    True
    """
    mean, spread = background.mean(axis=0), background.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    points = mean + spread * np.random.default_rng(random_state).standard_normal((samples, x.size))
    points[0] = x
    scaled = (points - mean) / spread
    distance = np.linalg.norm(scaled - scaled[0], axis=1)
    width = TABULAR_WIDTH * np.sqrt(x.size)
    return _slopes(scaled, predict(points), np.exp(-0.5 * (distance / width) ** 2), RIDGE)


def lime_of_scripts(
    predict: Predict, x: np.ndarray, samples: int, random_state: int, *, image: bool
) -> np.ndarray:
    """(outputs, d) slopes; 0 for the pixels of an image that are 0.

    >>> def line(Z):
    ...     return Z @ np.array([[1.0], [-2.0], [3.0]])
    >>> lime_of_scripts(line, np.array([1.0, 0.5, 0.0]), 500, 0, image=True).round(6).tolist()
    [[1.0, -2.0, 0.0]]
    """
    rng = np.random.default_rng(random_state)
    if image:
        points = x * rng.integers(0, 2, size=(samples, x.size))
    else:
        points = x + rng.standard_normal((samples, x.size))
    points[0] = x
    lengths = np.linalg.norm(points, axis=1) * np.linalg.norm(x)
    # an image all 0 has no direction: as far away as a right angle
    cosine = np.divide(points @ x, lengths, out=np.zeros(samples), where=lengths > 0)
    weights = np.exp(-0.5 * ((1.0 - cosine) / SCRIPTS_WIDTH) ** 2)
    seen = x > 0 if image else np.ones(x.size, dtype=bool)
    predicted = predict(points)
    found = np.zeros((predicted.shape[1], x.size))
    found[:, seen] = _slopes(points[:, seen], predicted, np.maximum(weights, LEAST_WEIGHT), 0.0)
    return found


def _slopes(Z: np.ndarray, values: np.ndarray, weights: np.ndarray, ridge: float) -> np.ndarray:
    """(outputs, d): weighted regression with an intercept that costs nothing."""
    share = weights / weights.sum()
    root = np.sqrt(weights)[:, None]
    A = root * (Z - share @ Z)
    B = root * (values - share @ values)
    if ridge:
        A = np.concatenate([A, np.sqrt(ridge) * np.eye(Z.shape[1])])
        B = np.concatenate([B, np.zeros((Z.shape[1], values.shape[1]))])
    return np.linalg.lstsq(A, B, rcond=None)[0].T
