"""`gpcert certify`, `range` and `radius`: what is proved around each point."""

from __future__ import annotations

import math
from typing import Annotated

from rich.console import RenderableType

from gpcert.api import certified_radius_many, certify_many, prediction_range_many
from gpcert.api.ranges import QuantityName, Sides
from gpcert.certificates import Certificate, Radius
from gpcert.cli import options
from gpcert.cli.options import command, exits_within, label_of, radius_of
from gpcert.cli.results import ENDS, Files
from gpcert.cli.terminal import above, below, cells, exit_code, option
from gpcert.search import StopReason


@command(
    "certify",
    "Examples:",
    "gpcert certify model.npz points.csv --radius 0.1",
    "gpcert certify digits.joblib images.csv --radius 0.05 --domain 0,1 --jobs 4 "
    "--output results.json",
    "gpcert certify model.npz points.csv --radius 0.2 --norm 2 --features age,bmi --threshold 0.9",
    "gpcert certify regressor.npz - --radius 0.1 --delta 0.5 --csv - < points.csv",
    "Exit code: 0 all proved; 1 some refuted; 2 none refuted, some undecided; 3 bad input; 4 a "
    "defect.",
)
def certify(
    inputs: options.Inputs,
    radius: options.Radius,
    ball: options.Ball,
    decision: options.Decision,
    search: options.Search,
    files: Files,
) -> None:
    """Prove or refute that the decision at each point holds in a whole ball around it."""
    model, points, words = inputs.read(ball, decision, search)
    found = certify_many(model, points.X, radius_of(radius, model), **words)
    columns = ["decision", "status", "margin >=", "margin <=", "moved by", "boxes", "ms"]
    summary = f"{len(found)} points: {found.summary}"
    title = f"Certificates, l_{ball.norm} radius {radius}"
    files.end(points.named(found), title, columns, _certificate, summary, code=exit_code)


def _certificate(c: Certificate) -> list[RenderableType]:
    moved = "" if c.counterexample is None else f"{c.counterexample_distance:.4g}"
    return [*cells(c, "decision status margin"), moved, *cells(c, "boxes ms")]


@command(
    "range",
    "Examples:",
    "gpcert range model.npz points.csv --radius 0.1",
    "gpcert range model.npz points.csv --radius 0.1 --quantity variance --tol 0.001",
    "gpcert range regressor.npz points.csv --radius 0.1 --quantity band --beta 2",
    "gpcert range digits.joblib images.csv --radius 0.05 --domain 0,1 --class 8 --csv ranges.csv",
    exits_within("ranges", "their bounds"),
)
def ranges(
    inputs: options.Inputs,
    radius: options.Radius,
    ball: options.Ball,
    quantity: Annotated[
        QuantityName | None, option("by default the probability; regression: the mean")
    ] = None,
    beta: Annotated[
        float | None, option("standard deviations that a band reaches; 2 by default")
    ] = None,
    label: options.Label = None,
    sides: Annotated[
        Sides, option("search for one end only (with one output, or --class)")
    ] = "both",
    tol: Annotated[float, option("accuracy at which the search ends")] = 0.01,
    *,
    search: options.Search,
    files: Files,
) -> None:
    """Bound the smallest and the largest prediction in a ball around each point."""
    model, points, words = inputs.read(ball, search)
    found = prediction_range_many(
        model,
        points.X,
        radius_of(radius, model),
        tol=tol,
        quantity=quantity,
        beta=beta,
        output=label_of(label, model, quantity),
        sides=sides,
        all_outputs=label is None and sides == "both",
        **words,
    )
    met = sum(item.converged for item in found)
    summary = f"{len(found)} ranges: {met} within the tolerance {tol:g}, {len(found) - met} wider"
    title = f"Prediction ranges, l_{ball.norm} radius {radius}"
    columns = ["output", "quantity", *ENDS, "boxes", "ms"]
    shown = "output quantity minimum maximum boxes ms"
    files.end(points.named(found), title, columns, shown, summary)


@command(
    "radius",
    "Examples:",
    "gpcert radius model.npz points.csv",
    "gpcert radius digits.joblib images.csv --domain 0,1 --rtol 0.05 --seconds 20 "
    "--output radii.json",
    exits_within("radii", "their bounds"),
)
def radius(
    inputs: options.Inputs,
    ball: options.Ball,
    decision: options.Decision,
    max_radius: Annotated[
        float | None, option("radius at which the search for a counter-example ends")
    ] = None,
    rtol: Annotated[float, option("relative accuracy at which the search ends")] = 0.01,
    *,
    search: options.Search,
    files: Files,
) -> None:
    """Bracket the radius up to which the decision at each point is proved robust."""
    model, points, words = inputs.read(ball, decision, search)
    found = certified_radius_many(model, points.X, rtol=rtol, max_radius=max_radius, **words)
    met = sum(item.reason is StopReason.CONVERGED for item in found)
    summary = f"{len(found)} radii: {met} within the tolerance {rtol:g}, {len(found) - met} wider"
    title = f"Certified radii, l_{ball.norm}"
    files.end(points.named(found), title, RADIUS_COLUMNS, radius_cells, summary)


RADIUS_COLUMNS = ["decision", "proved up to", "refuted at", "ratio", "boxes", "ms"]


def radius_cells(item: Radius) -> list[RenderableType]:
    """Proved radius, distance of the known counter-example, their ratio, cost."""
    return [
        *cells(item, "decision"),
        below(item.lower),
        above(item.upper) if item.counterexample is not None else "none found",
        below(item.lower / item.upper) if 0 < item.upper < math.inf else "",
        *cells(item, "boxes ms"),
    ]
