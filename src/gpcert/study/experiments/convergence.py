"""Convergence: the gap between proved and attained values against the boxes spent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import gpcert
from gpcert.study.experiments.base import Piece, Rows, Sources, Tables, labelled, one_per, subset
from gpcert.study.experiments.fits import ball_options, fitted
from gpcert.study.experiments.pictures import logarithmic, panels, shared_legend
from gpcert.study.experiments.results import (
    Finding,
    ResultFigure,
    ResultTable,
    bootstrap,
    exceeds,
    share,
)
from gpcert.utils.optional_imports import Figure

METHODS: dict[str, dict[str, Any]] = {
    "taylor": {},
    "paper, closed forms": {"method": "paper", "variance_bound": "analytic"},
    "paper, solvers": {"method": "paper", "variance_bound": "solver"},
}
"""Arguments of `gpcert.prediction_range`: ours, and Algorithm 1 with the paper's bounds."""

COLUMNS = ("data", "method", "point", "boxes", "gap", "converged", "seconds")

LOOKS = {
    "taylor": ("#0072B2", "o", "-"),
    "paper, closed forms": ("#D55E00", "s", "--"),
    "paper, solvers": ("#009E73", "^", ":"),
}


@dataclass(frozen=True)
class Settings:
    """Boxes grow by factors of `step` up to `boxes`; where solvers are called up to `solver_boxes`,
    at the first `solver_points` points."""

    data: tuple[str, ...]
    train: int = 100
    points: int = 300
    solver_points: int = 10
    radius: float = 0.5
    pixels: int = 4
    patch: str = "sift"
    epochs: int = 20
    tol: float = 0.01
    boxes: int = 1024
    solver_boxes: int = 16
    step: int = 2
    random_state: int = 0


def pieces(settings: Settings) -> list[Piece]:
    """One per point and method."""

    def cost(data: str, method: str, point: int) -> float:
        return 20.0 if "solvers" in method else 1.0

    every = one_per(cost, data=settings.data, method=METHODS, point=range(settings.points))
    return [piece for piece in every if _wanted(settings, **piece.arguments)]


def _wanted(settings: Settings, data: str, method: str, point: int) -> bool:
    del data
    return point < settings.solver_points or "solvers" not in method


def compute(settings: Settings, arguments: Mapping[str, Any], sources: Sources) -> Rows:
    """The same search with ever more boxes: it is deterministic, so each continues the last."""
    data_name, method = arguments["data"], arguments["method"]
    data = subset(sources.load(data_name), settings.train, settings.points, settings.random_state)
    model = gpcert.as_posterior(fitted(data, settings.epochs, settings.random_state))
    x = data.X_test[arguments["point"]]
    region = gpcert.Ball(x, settings.radius, **ball_options(data_name, x, settings))
    most = settings.solver_boxes if "solvers" in method else settings.boxes
    boxes = 1
    while boxes <= most:
        answer = gpcert.prediction_range(
            model,
            region,
            tol=settings.tol,
            sides="minimum",
            budget=gpcert.Budget(seconds=None, boxes=boxes),
            random_state=settings.random_state,
            **METHODS[method],
        )
        row = {**arguments, "allowed": boxes, "boxes": answer.boxes}
        row |= {"lower": answer.minimum.lower, "upper": answer.minimum.upper}
        row["gap"] = answer.minimum.upper - answer.minimum.lower
        yield "gaps", {**row, "seconds": answer.seconds, "converged": answer.converged}
        if answer.converged:
            break
        boxes *= settings.step


def summary(tables: Tables) -> Rows:
    """What every search needed: the last row of its course."""
    for group in tables["gaps"].groups(*COLUMNS[:3]).values():
        last = group.records()[-1]
        yield "ends", {name: last[name] for name in COLUMNS}


def findings(tables: Tables) -> Iterator[Finding]:
    """Convergence of the paper's method, and how many boxes ours saves."""
    for data in tables["ends"].distinct("data"):
        ends = tables["ends"].where(data=data)
        label = labelled(str(data))
        paper = "paper, closed forms"
        done = share(ends.where(method=paper).column("converged"))
        courses = tables["gaps"].where(data=data, method=paper).groups("point").values()
        gaps = [own.numbers("gap") for own in courses]
        ended = [any(own.column("converged")) for own in courses]
        fallen = share([e or gap[-1] <= 0.5 * gap[0] for e, gap in zip(ended, gaps, strict=True)])
        yield Finding(
            f"{label}: the paper's bounds converge as boxes are split",
            "converge for any tolerance (Theorem 1)",
            f"within the boxes allowed a share {done} of the points reaches the tolerance, "
            f"{fallen} reaches it or at least halves its first gap",
            exceeds(fallen, 0.5),
            "yes: the interval of the latter lies above one half",
        )
        ours, theirs = (ends.where(method=method).numbers("boxes") for method in ("taylor", paper))
        saved = bootstrap(theirs / ours)
        yield Finding(
            f"{label}: gpcert's bounds need fewer boxes than the paper's",
            "-",
            f"boxes of the paper's bounds over ours, median {saved}"
            + (" (a lower bound: not all converged)" if done.value < 1.0 else ""),
            exceeds(saved, 1.0),
            "yes: the interval of the median ratio lies above 1",
            beyond=True,
        )


def draw(tables: Tables) -> Figure:
    """Median gap over the points against boxes, and its quartiles; converged searches stay."""
    figure, each = panels(tables["gaps"].groups("data").items(), columns=3)
    for ax, (data, gaps) in each:
        for method, (colour, marker, line) in LOOKS.items():
            budgets, values = _courses(gaps.where(method=method))
            low, middle, high = np.quantile(values, [0.25, 0.5, 0.75], axis=0)
            # thin lines at the quartiles: areas would hide each other and the medians
            for quartile in (low, high):
                ax.plot(budgets, quartile, line, color=colour, linewidth=0.6, alpha=0.7)
            fewer = len(values) < len(gaps.distinct("point"))
            label = f"{method} ({len(values)} points)" if fewer else method
            ax.plot(budgets, middle, line, color=colour, marker=marker, markersize=4, label=label)
        logarithmic(ax, np.unique(gaps.numbers("allowed")))
        ax.set_xlabel("boxes allowed")
        ax.set_ylabel("attained less proved minimum")
        ax.set_title(labelled(data))
    return shared_legend(figure)


def _courses(table: ResultTable) -> tuple[np.ndarray, np.ndarray]:
    """Budgets (b,), growing, and gaps (points, b); after its end a search keeps its gap."""
    budgets = np.unique(table.numbers("allowed"))
    values = []
    for own in table.groups("point").values():
        last = np.searchsorted(own.numbers("allowed"), budgets, side="right") - 1
        values.append(np.maximum(own.numbers("gap")[last], 1e-12))  # a logarithm has no zero
    return budgets, np.array(values)


TITLE = "Convergence: bounds against boxes, the paper's method and ours"
SETTINGS = {
    "smallest": Settings(("synthetic2d",), train=12, points=1, epochs=2, boxes=8, solver_boxes=1),
    "quick": Settings(
        ("synthetic2d", "digits38"),
        train=40,
        points=5,
        boxes=512,
        solver_boxes=4,
        step=4,
        patch="blob",
    ),
    "full": Settings(("synthetic2d-1000", "spam", "mnist38")),
}
REASONS = {
    "Synthetic2D: the paper's bounds converge": "Their bounds of the mean close within 64 boxes; "
    "their lower bound of the variance stays at 0, as the kernel's variance is far above the least "
    "posterior variance.",
    "SPAM: the paper's bounds converge": "In eleven dimensions 1024 boxes halve each side once.",
}
CAPTIONS = {
    "ends": "Boxes until the gap is {tol:g}, or gap where the boxes end before",
    "gaps": "Bounds of the least probability by boxes spent",
}
FIGURE = ResultFigure(
    "gaps",
    "Median (and quartiles) over test points of the gap between the proved and the "
    "attained least probability, against the number of boxes",
    ("gaps",),
)
NOTES = (
    "Beyond the paper, which proves convergence and shows no curve of it.",
    "Small models, as the paper's variance bound by solvers takes seconds per box; solvers at the "
    "first ten points only.",
    "Of images four pixels move, those nearest to the largest SIFT key point.",
    "Where the paper's bounds do not converge it is their lower bound of the variance that "
    "stays at 0: trained kernel variances are hundreds of times the least posterior variance. "
    "Their bounds of the mean close within some dozens of boxes in two dimensions.",
)
