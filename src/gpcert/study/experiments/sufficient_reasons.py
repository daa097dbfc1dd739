"""Smallest reasons: pixels which, kept, prove a decision, or which, moved, flip it (beyond)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import gpcert
from gpcert.explain import contrastive, sufficient
from gpcert.plots.explanations import plot_kept_pixels
from gpcert.study.experiments.base import Piece, Rows, Sources, Tables, labelled
from gpcert.study.experiments.fits import Case, image_shape, trained
from gpcert.study.experiments.pictures import panels
from gpcert.study.experiments.results import ResultFigure, median_cells
from gpcert.utils.optional_imports import Figure

QUESTIONS = {"sufficient": sufficient, "contrastive": contrastive}
SHOWN = 2
"""Images per data set in the figure."""


@dataclass(frozen=True)
class Settings:
    """`points` random test images per data set; pixels move by the radius within [0, 1]; `boxes`
    per step of a search."""

    cases: tuple[Case, ...]
    train: int = 1000
    points: int = 20
    radii: tuple[float, ...] = (0.1, 0.2, 0.4)
    boxes: int = 8
    random_state: int = 0


def pieces(settings: Settings) -> list[Piece]:
    """One per image: a minute or so each, which its model, trained anew, adds little to."""
    return [
        Piece(f"{case.data}-{point}", {"case": k, "point": point}, (case.data,))
        for k, case in enumerate(settings.cases)
        for point in range(settings.points)
    ]


def compute(settings: Settings, arguments: Mapping[str, Any], sources: Sources) -> Rows:
    """Both kinds of reason of an image at every radius; the pixels of the first images."""
    case, data, model = trained(settings, arguments, sources, settings.points)
    budget = gpcert.Budget(seconds=None, boxes=settings.boxes)
    i = arguments["point"]
    x = data.X_test[i]
    for radius in settings.radii:
        for what, ask in QUESTIONS.items():
            reason = ask(model, x, radius, domain=(0.0, 1.0), budget=budget)
            head = {"data": case.data, "point": i, "radius": radius, "what": what}
            # a search may find none: nothing flips the decision, or nothing is known
            about = {
                "decision": reason.decision,
                "pixels": len(reason.features) if reason.found else None,
                "maybe superfluous": len(reason.undecided),
                "movable": len(reason.movable),
                "certificates": len(reason.steps),
                "boxes": reason.boxes,
            }
            yield "reasons", {**head, **about}
            if i < SHOWN and radius == settings.radii[-1]:
                for j, value in enumerate(x.tolist()):
                    part = {"in the reason": j in reason.features}
                    part["undecided"] = j in reason.undecided
                    yield "pixels", {**head, "pixel": j, "value": value, **part}


def summary(tables: Tables) -> Rows:
    """Sizes of the reasons."""
    for (data, what, radius), own in tables["reasons"].groups("data", "what", "radius").items():
        known = [count for count in own.column("pixels") if count is not None]
        row = {"data": data, "what": what, "radius": radius, "images": len(own.rows)}
        row |= {"with a reason": len(known), **median_cells(known, "median pixels")}
        yield "sizes", {**row, "proved minimal": own.column("maybe superfluous").count(0)}


def draw(tables: Tables) -> Figure:
    """Images with the pixels of their reasons at the largest radius."""
    images = tables["pixels"].groups("data", "point", "what", "radius")
    figure, each = panels(images.items(), columns=4)
    for ax, ((data, point, what, radius), own) in each:
        image = own.numbers("value")
        kept, weak = (np.flatnonzero(own.column(c)) for c in ("in the reason", "undecided"))
        none = len(kept) == 0 and (what == "contrastive" or len(weak) > 0)
        count = "none found" if none else f"{len(kept)} pixels"
        title = f"{labelled(data)}, point {point}\n{what}: {count} at {radius:g}"
        shape = image_shape(image.size)
        plot_kept_pixels(ax, image, kept.tolist(), shape, title=title, weak=weak.tolist())
    return figure


TITLE = "Smallest reasons: pixels that prove a decision when kept, or flip it when moved"
SETTINGS = {
    "smallest": Settings((Case("digits38", 2),), train=30, points=1, radii=(0.1,), boxes=2),
    "quick": Settings((Case("digits38"),), train=250, points=6, radii=(0.1, 0.3), boxes=4),
    "full": Settings((Case("mnist38"), Case("fashion-ts"))),
}
CAPTIONS = {
    "sizes": "Pixels of the smallest reasons found, their median with its 95 % interval; "
    "proved minimal: no pixel of the reason can be left out",
    "reasons": "Reason by reason",
    "pixels": "The images of the figure",
}
FIGURE = ResultFigure(
    "reasons",
    "Test images with the pixels of a smallest reason: kept as they are they prove the "
    "decision whatever the others do (sufficient), or moving them flips it (contrastive)",
    ("pixels",),
)
NOTES = (
    "Beyond the paper. A sufficient reason is proved by its last certificate; that it is "
    "minimal is proved but for the pixels counted as maybe superfluous.",
    "An image without a contrastive reason is robust at that radius, or not decided.",
)
