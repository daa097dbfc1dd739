"""Whole images: the share that is right and proved, all pixels free (beyond the paper)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import gpcert
from gpcert.plots.curves import plot_accuracy, step_radii
from gpcert.study.experiments.base import SOURCES, Rows, Sources, Tables, labelled
from gpcert.study.experiments.fits import BallCase, trained
from gpcert.study.experiments.pictures import panels
from gpcert.study.experiments.results import ResultFigure, ResultTable, fields, median_cells
from gpcert.utils.optional_imports import Figure


@dataclass(frozen=True)
class Settings:
    """`points` random test images per data set; `boxes` per verdict on the way to a radius."""

    cases: tuple[BallCase, ...]
    train: int = 1000
    points: int = 100
    radii: int = 21
    rtol: float = 0.02
    boxes: int = 8
    random_state: int = 0


def compute(settings: Settings, arguments: Mapping[str, Any], sources: Sources) -> Rows:
    """The robustness radius of every image, bracketed, and both curves."""
    case, data, model = trained(settings, arguments, sources, settings.points)
    radii = np.linspace(0.0, case.largest, settings.radii)
    accuracy = gpcert.certified_accuracy(
        model,
        data.X_test,
        data.y_test,
        radii,
        domain=(0.0, 1.0) if SOURCES[case.data].image else None,
        rtol=settings.rtol,
        budget=gpcert.Budget(seconds=None, boxes=settings.boxes),
    )
    for i, point in enumerate(accuracy):
        row = {"data": case.data, "point": i, **fields(point, "label decision right")}
        refuted = point.upper if np.isfinite(point.upper) else None
        row |= {"proved up to": point.lower, "refuted at": refuted, "boxes": point.boxes}
        yield "points", row
    for r, low, high in zip(radii.tolist(), accuracy.certified(), accuracy.attacked(), strict=True):
        shares = {"proved": float(low), "not refuted": float(high)}
        yield "curves", {"data": case.data, "radius": r, **shares}


def summary(tables: Tables) -> Rows:
    """How near the bounds are."""
    for data, points in tables["points"].groups("data").items():
        right = points.where(right=True).records()
        both = [row for row in right if row["refuted at"] is not None]
        proved = [row["proved up to"] for row in right]
        ratios = [row["proved up to"] / row["refuted at"] for row in both]
        row = {"data": data, "points": len(points.rows), "right": len(right)}
        row |= median_cells(proved, "median proved", "median proved ")
        yield "tightness", {**row, "refuted": len(both), **median_cells(ratios, "ratio", "ratio ")}


def draw(tables: Tables) -> Figure:
    """Both shares against the radius."""
    figure, each = panels(tables["curves"].groups("data").items(), sharey=True)
    for ax, (data, curves) in each:
        end = max(curves.column("radius"))
        plot_accuracy(ax, *accuracy_steps(tables["points"].where(data=data), end))
        ax.set_title(labelled(data))
    return figure


def accuracy_steps(points: ResultTable, end: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Radii and both shares, with every step of them."""
    right = np.array(points.column("right"), dtype=bool)[:, None]
    proved, refuted = (points.numbers(c)[:, None] for c in ("proved up to", "refuted at"))
    refuted = np.where(np.isnan(refuted), np.inf, refuted)
    radii = step_radii([*proved[right], *refuted[right]], end)
    certified = right & (proved > 0) & (proved >= radii)
    return radii, certified.mean(axis=0), (right & (refuted > radii)).mean(axis=0)


TITLE = "Whole images: certified accuracy with every pixel free"
SETTINGS = {
    "smallest": Settings(
        (BallCase("digits38", 2, largest=0.05),), train=30, points=3, radii=3, boxes=1
    ),
    "quick": Settings((BallCase("digits38", largest=0.4),), train=250, points=20, radii=9, boxes=2),
    "full": Settings((BallCase("mnist38", largest=0.2), BallCase("fashion-ts", largest=0.2))),
    "own": Settings((BallCase("own", 40, largest=1.0),)),
}
CAPTIONS = {
    "tightness": "Median proved radius of the images that are right, and the median ratio of "
    "proved to refuted radius of those with a counter-example, with 95 % intervals",
    "curves": "Shares that are right and proved, and right and not refuted",
    "points": "Radii image by image, every pixel free",
}
FIGURE = ResultFigure(
    "accuracy",
    "Share of test images that are right and proved robust (solid), and right and not "
    "refuted (dashed), against the l-infinity radius, every pixel free within [0, 1] (of an own "
    "table: every feature, in standard deviations)",
    ("points", "curves"),
)
NOTES = (
    "Beyond the paper, which moves ten pixels of an image: here all of them move.",
    "The true share lies between both curves.",
)
