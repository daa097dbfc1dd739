"""Scaling: seconds and boxes of a range against training points, features and radius."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import gpcert
from gpcert.kernels import SquaredExponential
from gpcert.study.experiments.base import Piece, Rows, Sources, Tables
from gpcert.study.experiments.pictures import logarithmic, panels
from gpcert.study.experiments.results import (
    Estimate,
    Finding,
    ResultFigure,
    ResultTable,
    bootstrap,
    exceeds,
    opposite,
)
from gpcert.utils.optional_imports import Figure

CLAIMED = {
    "probability": {"sparse": False, "quantity": "probability"},
    "probability, sparse": {"sparse": True, "quantity": "probability"},
    "mean": {"sparse": False, "quantity": "mean"},
}
"""What one box costs with the paper's bounds (closed forms), for its claims about time."""

AXES = {"train": "training points N", "features": "features d", "radius": "radius gamma"}


@dataclass(frozen=True)
class Settings:
    """One of the three varies, the others keep the value in `base`; one box is timed with
    `box_train` training points, and as many inducing points as `box_inducing`."""

    train: tuple[int, ...] = (125, 250, 500, 1000, 2000, 4000)
    features: tuple[int, ...] = (2, 4, 8, 16, 32, 64)
    radius: tuple[float, ...] = (0.025, 0.05, 0.1, 0.2, 0.4, 0.8)
    base_train: int = 500
    base_features: int = 4
    base_radius: float = 0.1
    box_train: int = 1000
    box_inducing: int = 100
    points: int = 20
    tol: float = 0.01
    boxes: int = 20000
    random_state: int = 0


def pieces(settings: Settings) -> list[Piece]:
    """One per axis and value, and one for single boxes."""
    every = [
        Piece(f"{axis}-{number}", {"axis": axis, "value": value})
        for axis in AXES
        for number, value in enumerate(getattr(settings, axis))
    ]
    return [*every, Piece("one-box", {"axis": "one box"})]


def compute(settings: Settings, arguments: Mapping[str, Any], sources: Sources) -> Rows:
    """Ranges around random points of one model, timed after the model's own set-up."""
    del sources
    if arguments["axis"] == "one box":
        yield from _one_box(settings)
        return
    chosen: dict[str, Any] = {axis: getattr(settings, f"base_{axis}") for axis in AXES}
    chosen[arguments["axis"]] = arguments["value"]
    model, X = _model(chosen["train"], chosen["features"], settings)
    budget = gpcert.Budget(seconds=None, boxes=settings.boxes)
    _ = gpcert.prediction_range(model, gpcert.Ball(X[0], 1e-3))  # norms of the model's matrices
    for k, x in enumerate(X):
        start = time.thread_time()
        region = gpcert.Ball(x, chosen["radius"])
        answer = gpcert.prediction_range(model, region, tol=settings.tol, budget=budget)
        seconds = time.thread_time() - start
        row = {"axis": arguments["axis"], "value": float(arguments["value"]), "point": k}
        cost = {"seconds": seconds, "boxes": answer.boxes, "converged": answer.converged}
        yield "times", {**row, **cost}


def _one_box(settings: Settings) -> Rows:
    """Seconds of one box around each point, with the paper's closed forms."""
    budget = gpcert.Budget(seconds=None, boxes=1)
    for what, options in CLAIMED.items():
        inducing = settings.box_inducing if options["sparse"] else None
        model, X = _model(settings.box_train, settings.base_features, settings, inducing)
        asked: Any = {"quantity": options["quantity"], "method": "paper", "budget": budget}
        asked["variance_bound"] = "analytic"
        _ = gpcert.prediction_range(model, gpcert.Ball(X[0], 1e-3), **asked)
        for k, x in enumerate(X):
            region = gpcert.Ball(x, settings.base_radius)
            start = time.thread_time()
            gpcert.prediction_range(model, region, **asked)
            yield "one-box", {"what": what, "point": k, "seconds": time.thread_time() - start}


def _model(
    train: int, features: int, settings: Settings, inducing: int | None = None
) -> tuple[gpcert.Posterior, np.ndarray]:
    """Two unit normals, 3 apart along each of the first two features, standardised; length-scale
    sqrt(d), so that distances in units of it do not grow with d; and points of the same clouds."""
    rng = np.random.default_rng(settings.random_state)
    count = train + settings.points
    labels = rng.permutation(np.arange(count) % 2)
    X = rng.standard_normal((count, features))
    X[np.arange(count), labels] += 3.0
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    kernel = SquaredExponential(np.full(features, np.sqrt(features)), 4.0)
    options: Any = {"max_epochs": 0, "random_state": settings.random_state}
    if inducing is not None:
        options |= {"inference": "ep", "sparse": "fic", "n_inducing": inducing}
    model = gpcert.models.GPClassifier(kernel, **options).fit(X[:train], labels[:train])
    return model.posterior_, X[train:]


def summary(tables: Tables) -> Rows:
    """Medians over the points."""
    for (axis, value), times in tables["times"].groups("axis", "value").items():
        row = {"axis": axis, "value": value}
        row |= bootstrap(times.numbers("seconds")).cells("median seconds")
        row["median boxes"] = float(np.median(times.numbers("boxes")))
        yield "medians", {**row, "converged": float(np.mean(times.numbers("converged")))}


def findings(tables: Tables) -> Iterator[Finding]:
    """Orders of growth: the slope of log seconds against log N, and of log boxes against d."""
    times = tables["times"]
    train = times.where(axis="train")
    slope = _slope(train.distinct("value"), train, "seconds", np.log)
    last = _slope(train.distinct("value")[-2:], train, "seconds", np.log)
    yield Finding(
        "A range costs less than the third power of the training points",
        "cubic for the paper's variance programs",
        f"seconds grow as N to the power {slope} over all N, {last} over the last step",
        opposite(exceeds(last, 3.0)),
        "least squares of log seconds on log N; yes: the interval of the last step, where "
        "fixed costs count least, lies below 3",
        beyond=True,
    )
    features = times.where(axis="features")
    boxes = _slope(features.distinct("value"), features, "boxes", np.asarray)
    yield Finding(
        "Boxes grow exponentially with the features in the worst case",
        "worst case exponential",
        f"log boxes grow by {boxes} per feature at this radius",
        exceeds(boxes, 0.0),
        "yes: the interval of the slope lies above 0; a no does not contradict a worst case",
    )
    yield from _claims(tables["one-box"])


MUCH = 2.0
"""What "much faster" means at least."""


def _claims(times: ResultTable) -> Iterator[Finding]:
    """What the paper says of time, about one box with its own bounds."""
    seconds = {what: times.where(what=what).numbers("seconds") for what in CLAIMED}
    whole = seconds["probability"]
    for claim, paper, what, level in (
        ("Sparse models need less time", "significantly less", "probability, sparse", 1.0),
        ("Regression is much faster than classification", "much faster", "mean", MUCH),
    ):
        ratio = bootstrap(whole / seconds[what])
        yield Finding(
            claim,
            paper,
            f"one box of a probability {np.median(whole):.3g} s, of {what} "
            f"{np.median(seconds[what]):.3g} s: median ratio {ratio}",
            exceeds(ratio, level),
            f"the paper's bounds by closed forms; yes: the interval of the ratio lies above "
            f"{level:g}",
        )


def _slope(values: list[float], times: ResultTable, what: str, scale: Any) -> Estimate:
    """Slope of log `what` against these values of the scaled axis, the points resampled."""
    columns = [times.where(value=value).numbers(what) for value in values]
    logs = np.log(np.stack(columns, axis=1))
    x = np.asarray(scale(np.array(values, float)), float)
    x = x - x.mean()

    def slope(rows: np.ndarray, axis: int) -> np.ndarray:
        return rows.mean(axis=axis) @ x / (x @ x)

    return bootstrap(logs, slope)


def draw(tables: Tables) -> Figure:
    """Seconds against each axis, both logarithmic; numbers are median boxes."""
    figure, each = panels(AXES.items(), columns=3)
    for ax, (axis, label) in each:
        rows = tables["medians"].where(axis=axis)
        x, middle, low, high, boxes = map(
            rows.numbers, ("value", "median seconds", "low", "high", "median boxes")
        )
        ax.fill_between(x, low, high, color="#0072B2", alpha=0.2, linewidth=0)
        ax.plot(x, middle, color="#0072B2", marker="o")
        beside = {"xytext": (0, 7), "textcoords": "offset points", "ha": "center"}
        for count, *place in zip(boxes, x, middle, strict=True):
            ax.annotate(f"{count:g}", tuple(place), **beside, fontsize="small")
        ax.margins(y=0.2)
        logarithmic(ax, x)
        ax.set_xlabel(label)
        ax.set_ylabel("seconds per range (numbers: boxes)")
    return figure


TITLE = "Scaling: time of a range against training points, features and radius"
SETTINGS = {
    "smallest": Settings(
        (20, 40),
        (2, 3),
        (0.05, 0.1),
        base_train=20,
        base_features=2,
        box_train=30,
        box_inducing=5,
        points=2,
        boxes=50,
    ),
    "quick": Settings(
        (125, 250, 500, 1000),
        (2, 4, 8, 16),
        (0.05, 0.1, 0.2, 0.4),
        250,
        box_train=500,
        box_inducing=50,
        points=8,
    ),
    "full": Settings(),
}
CAPTIONS = {
    "medians": "Median CPU seconds with their 95 % interval, boxes, and share of converged "
    "searches",
    "one-box": "CPU seconds of one box with the paper's closed forms",
    "times": "CPU seconds and boxes of every range, both sides",
}
FIGURE = ResultFigure(
    "times",
    "Median CPU seconds (band: 95 % interval) and boxes (numbers) of the range of a "
    "probability, both sides, against one quantity while the others are fixed",
    ("medians",),
)
NOTES = (
    "Beyond the paper, which states orders of growth. Laplace classifiers of generated data "
    "with fixed kernel parameters, all features free; one BLAS thread; the model's own "
    "set-up (norms of its matrices) is not counted.",
    "Up to twelve free features the engine takes third derivatives as whole tensors, beyond it "
    "takes another way: hence the step between 8 and 16.",
)
