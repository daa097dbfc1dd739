"""`gpcert radius`: how far each point may move before the decision changes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Annotated

import typer
from rich.table import Table

from gpcert.api import certified_radius
from gpcert.certificates import Radius
from gpcert.cli import options
from gpcert.cli.exits import ExitCode
from gpcert.cli.models import load_model
from gpcert.cli.points import read_points
from gpcert.cli.records import save_radii
from gpcert.cli.terminal import above, below, console, say, say_written, table
from gpcert.search import Budget, StopReason

__all__ = ["radius", "radius_table", "EXAMPLES"]

EXAMPLES = """Examples:

gpcert radius model.npz points.csv

gpcert radius digits.joblib images.csv --domain 0,1 --tol 0.05 --seconds 20 --output radii.json

Exit code: 0 all radii within the tolerance; 2 some not (their bounds hold all the same); 3 bad
input; 4 a defect."""


def radius(
    model: options.ModelFile,
    points: options.PointsFile,
    *,
    norm: options.Norm = "inf",
    features: options.Features = None,
    domain: options.Domain = None,
    threshold: options.Threshold = None,
    delta: options.Delta = None,
    output_norm: options.OutputNorm = "inf",
    tol: Annotated[float, typer.Option(help="relative accuracy at which the search ends")] = 0.01,
    seconds: options.Seconds = 10.0,
    backend: options.Backend = "numpy",
    method: options.Method = options.MethodChoice.taylor,
    variance: options.Variance = None,
    header: options.Header = None,
    output: options.Output = None,
) -> None:
    """Bracket the radius up to which the decision at each point is proved robust."""
    region = options.region_options(norm, features, domain)
    options.check_output(output)
    posterior, X = load_model(model), read_points(points, header)
    found: list[Radius] = []
    for x in posterior.check_inputs(X):
        item = certified_radius(
            posterior,
            x,
            **region,
            threshold=threshold,
            delta=delta,
            output_norm=output_norm,
            tol=tol,
            budget=Budget(seconds=seconds),
            backend=backend,
            **options.method_options(method, variance),
        )
        found.append(item)
        if item.reason is StopReason.INTERRUPTED:
            break
    console().print(radius_table(f"Certified radii, l_{norm}", range(len(found)), found))
    if output is not None:
        save_radii(output, found)
    say_written(output)
    met = sum(item.reason is StopReason.CONVERGED for item in found)
    say(f"{len(found)} radii: {met} within the tolerance {tol:g}, {len(found) - met} wider")
    raise typer.Exit(ExitCode.PROVED if met == len(found) else ExitCode.UNDECIDED)


def radius_table(title: str, names: Iterable[int], found: Iterable[Radius]) -> Table:
    """One row a point: proved radius, distance of the known counter-example, their ratio."""
    columns = ["point", "decision", "proved up to", "refuted at", "ratio", "boxes", "ms"]
    rows = table(title, columns)
    for name, item in zip(names, found, strict=True):
        rows.add_row(
            str(name),
            "" if item.decision is None else str(item.decision),
            below(item.lower),
            above(item.upper) if item.counterexample is not None else "none found",
            below(item.lower / item.upper) if 0 < item.upper < math.inf else "",
            str(item.boxes),
            f"{1e3 * item.seconds:.1f}",
        )
    return rows
