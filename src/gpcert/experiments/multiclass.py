"""Several classes: accuracy, decisions and probabilities of 3/5/8 over a patch of pixels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import gpcert
from gpcert.experiments.base import Experiment, Piece, Rows, Tables
from gpcert.experiments.fits import ball_words, fitted, labelled
from gpcert.experiments.pictures import panels, shared_legend
from gpcert.experiments.results import Finding, ResultFigure, ResultTable
from gpcert.experiments.sources import Sources, subset
from gpcert.experiments.statistics import share
from gpcert.extras import Figure

STATUSES = ("ROBUST", "NOT_ROBUST", "UNKNOWN")
LOOKS = {
    "ROBUST": ("#009E73", "", "proved"),
    "NOT_ROBUST": ("#D55E00", "//", "refuted"),
    "UNKNOWN": ("#BBBBBB", "..", "undecided"),
}


@dataclass(frozen=True)
class Case:
    """One data set of several classes, epochs of training, and the paper's accuracy."""

    data: str
    epochs: int = 10
    accuracy: float | None = None


@dataclass(frozen=True)
class Settings:
    """`points` random test points per data set; `range_points` of them get the ranges of all class
    probabilities at `range_radius`; `boxes` per search."""

    cases: tuple[Case, ...]
    train: int = 1000
    points: int = 50
    radii: tuple[float, ...] = (0.1, 0.25, 0.5, 1.0)
    range_points: int = 10
    range_radius: float = 0.1
    pixels: int = 10
    tol: float = 0.01
    boxes: int = 100
    random_state: int = 0


def pieces(settings: Settings) -> list[Piece]:
    """One per data set."""
    return [Piece(case.data, {"case": k}, (case.data,)) for k, case in enumerate(settings.cases)]


def compute(settings: Settings, arguments: Mapping[str, Any], sources: Sources) -> Rows:
    """The model's accuracy on the whole test set, verdicts at all radii, and ranges."""
    case = settings.cases[arguments["case"]]
    whole = sources.load(case.data)
    data = subset(whole, settings.train, len(whole.X_test), settings.random_state)
    model = fitted(data, case.epochs, settings.random_state, likelihood="softmax")
    right = model.predict(data.X_test) == data.y_test
    accuracy = share(right)
    rows: Rows = {
        "models": [
            {
                "data": case.data,
                "training points": len(data.X_train),
                "test points": len(right),
                **accuracy.cells("accuracy"),
                "paper": case.accuracy,
            }
        ],
        "decisions": [],
        "ranges": [],
    }
    budget = gpcert.Budget(seconds=None, boxes=settings.boxes)
    for i, x in enumerate(data.X_test[: settings.points]):
        where = ball_words(case.data, x, settings.pixels)
        head = {"data": case.data, "point": i, "label": data.y_test[i].item()}
        for radius in settings.radii:
            found = gpcert.certify(model, x, radius=radius, budget=budget, **where)
            rows["decisions"].append({**head, "right": bool(right[i]), **_verdict(radius, found)})
        if i < settings.range_points:
            region = gpcert.Ball(x, settings.range_radius, **where)
            rows["ranges"] += [
                {**head, "class": c, **_range(model, region, c, settings)} for c in data.classes
            ]
    return rows


def _verdict(radius: float, found: gpcert.Certificate) -> dict[str, Any]:
    return {
        "radius": radius,
        "status": found.status.name,
        "margin lower": float(found.margin.lower),
        "margin upper": float(found.margin.upper),
        "boxes": found.boxes,
    }


def _range(model: Any, region: gpcert.Ball, label: Any, settings: Settings) -> dict[str, Any]:
    budget = gpcert.Budget(seconds=None, boxes=settings.boxes)
    found = gpcert.prediction_range(model, region, output=label, tol=settings.tol, budget=budget)
    return {
        "radius": settings.range_radius,
        "minimum lower": float(found.minimum.lower),
        "minimum upper": float(found.minimum.upper),
        "maximum lower": float(found.maximum.lower),
        "maximum upper": float(found.maximum.upper),
        "converged": found.converged,
        "boxes": found.boxes,
    }


def tables(settings: Settings, rows: Rows) -> list[ResultTable]:
    """Models, verdicts by radius, and all of them point by point."""
    del settings
    shares = []
    for data, radius in dict.fromkeys((r["data"], r["radius"]) for r in rows["decisions"]):
        own = [r for r in rows["decisions"] if (r["data"], r["radius"]) == (data, radius)]
        found = share([r["status"] == "ROBUST" for r in own])
        counts = {s: sum(r["status"] == s for r in own) for s in STATUSES}
        row = {"data": data, "radius": radius, "points": len(own), **counts}
        shares.append({**row, **found.cells("proved")})
    return [
        ResultTable.of(
            "models",
            "Softmax, Laplace: test accuracy with its 95 % interval, and the paper's",
            rows["models"],
        ),
        ResultTable.of(
            "shares",
            "Verdicts on the decision when ten pixels move, and the share that is proved with its "
            "95 % interval",
            shares,
        ),
        ResultTable.of("decisions", "Verdicts point by point", rows["decisions"]),
        ResultTable.of(
            "ranges", "Proved bounds of the least and greatest class probability", rows["ranges"]
        ),
    ]


NEAR = 0.01
"""The paper gives accuracies as "around" whole per cents."""


def findings(tables: Tables) -> list[Finding]:
    """The accuracies, where the paper gives one."""
    return [
        Finding(
            f"{labelled(str(row['data']))}: test accuracy around {row['paper']:.0%}",
            f"{row['paper']:.0%}",
            f"{row['accuracy']:.1%} [{row['low']:.1%}, {row['high']:.1%}]",
            _near(row),
            "yes if the 95 % interval comes within one per cent of the paper's number; more is "
            "better, but it is another number",
        )
        for row in tables["models"].records()
        if row["paper"] is not None
    ]


def _near(row: Mapping[str, Any]) -> str:
    return "yes" if row["low"] - NEAR <= row["paper"] <= row["high"] + NEAR else "no"


def draw(name: str, tables: Tables) -> Figure:
    """Stacked bars of verdicts against the radius."""
    del name
    data = tables["shares"].distinct("data")
    figure, axes = panels(len(data))
    for ax, each in zip(axes, data, strict=True):
        rows = tables["shares"].where(data=each).records()
        bottom = np.zeros(len(rows))
        for status, (colour, hatch, label) in LOOKS.items():
            height = np.array([row[status] / row["points"] for row in rows])
            ax.bar(
                range(len(rows)),
                height,
                0.7,
                bottom=bottom,
                color=colour,
                hatch=hatch,
                edgecolor="white",
                label=label,
            )
            bottom += height
        ax.set_xticks(range(len(rows)), [f"{row['radius']:g}" for row in rows])
        ax.set(title=labelled(each), xlabel="radius, ten pixels free", ylabel="share of points")
    shared_legend(figure, axes)
    return figure


EXPERIMENT = Experiment(
    name="multiclass",
    title="Several classes: decisions and class probabilities of 3/5/8 over ten pixels",
    settings={
        "smallest": Settings(
            (Case("digits358", 1),),
            train=20,
            points=2,
            radii=(0.1,),
            range_points=1,
            pixels=2,
            tol=0.2,
            boxes=1,
        ),
        "quick": Settings((Case("digits358"),), train=250, points=12, range_points=3, boxes=100),
        "full": Settings(
            (Case("mnist358", accuracy=0.93), Case("fashion-tsp", accuracy=0.85)),
        ),
    },
    pieces=pieces,
    compute=compute,
    tables=tables,
    findings=findings,
    draw=draw,
    figures=(
        ResultFigure(
            "verdicts",
            "Share of test points whose decision is proved, refuted or undecided when the ten "
            "pixels around the strongest blob move by the radius within [0, 1]",
            ("shares",),
        ),
    ),
    notes=(
        "The paper gives accuracies for these models and analyses their interpretability; the "
        "verdicts and ranges are what it does for two classes, here for three.",
        "A verdict counts whether or not the decision is right; the table says which are.",
    ),
)
