"""`gpcert demo`: the whole job on data that needs no download."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.table import Table
from threadpoolctl import threadpool_limits

from gpcert.certificates import RadiusTable, RangeTable
from gpcert.cli.demo_picture import draw
from gpcert.cli.demo_study import Study, radii, study
from gpcert.cli.radius import COLUMNS, radius_cells
from gpcert.cli.terminal import above, below, console, say, say_written, table, verdict
from gpcert.datasets import digits as digits_of
from gpcert.datasets import synthetic2d
from gpcert.extras import optional
from gpcert.search import Budget

EXAMPLES = """Examples:

gpcert demo

gpcert demo --quick --output-dir /tmp/demo

The picture is demo.png; the results are JSON files beside it (gpcert.load)."""

PIXELS = (0.0, 1.0)
IMAGES = 3
"""Digits whose radius is sought and that are drawn."""


def demo(
    output_dir: Annotated[
        Path, typer.Option(help="folder for the picture and the results; made if missing")
    ] = Path("demo_output"),
    seconds: Annotated[float, typer.Option(help="time for one search")] = 1.0,
    quick: Annotated[
        bool, typer.Option("--quick", help="fewer training points, fewer rows")
    ] = False,
) -> None:
    """Fit two classifiers, prove what their predictions can do around test points, draw it."""
    start = time.perf_counter()
    optional("matplotlib", "the demo's picture")  # found out before the work
    output_dir.mkdir(parents=True, exist_ok=True)
    # matrices of some hundred rows: threads of a BLAS wait for each other more than they work
    with threadpool_limits(limits=1):
        written = _run(output_dir, Budget(seconds=seconds), quick)
    say(f"done in {time.perf_counter() - start:.1f} s")
    say_written(*written)


def _run(output_dir: Path, budget: Budget, quick: bool) -> list[Path]:
    """Both problems, and the files that hold them."""
    count = 4 if quick else 8
    plane = study(synthetic2d(n=60 if quick else 250), (0.15, 0.4), count + 2, None, budget)
    _show(plane)
    images_of = digits_of((3, 8), test_size=0.8 if quick else 0.3)
    digits = study(images_of, (0.05, 0.1), count, PIXELS, budget)
    _show(digits)
    # the most certain ones: their counter-examples are far enough away to be seen
    certainty = np.abs(digits.posterior.prediction(digits.data.X_test[digits.chosen])[:, 0] - 0.5)
    images = [digits.chosen[k] for k in np.argsort(-certainty)[:IMAGES]]
    found = radii(digits, images, PIXELS, budget)
    title = f"{digits.data.name}: certified l_inf radii, all 64 pixels, domain [0, 1]"
    written = [
        output_dir / name
        for name in ("demo.png", "synthetic2d.json", "digits.json", "ranges.json", "radii.json")
    ]
    draw(written[0], plane, digits, images, found)
    plane.certificates.save(written[1])
    digits.certificates.save(written[2])
    RangeTable(tuple(plane.ranges + digits.ranges)).save(written[3])
    RadiusTable(tuple(found), labels=tuple(images)).save(written[4])
    rows = table(title, ["point", *COLUMNS])
    for name, item in zip(images, found, strict=True):
        rows.add_row(str(name), *radius_cells(item))
    console().print(rows)
    return written


def _show(done: Study) -> None:
    parameters = done.posterior.kernel.config().items()
    kernel = ", ".join(f"{name} {np.round(value, 3)}" for name, value in parameters)
    say(
        f"{done.data.name}: {len(done.data.X_train)} training points, {done.data.dim} features, "
        f"test accuracy {100 * done.accuracy:.1f} %, {kernel}",
        style="bold",
    )
    console().print(_table(done))


def _table(done: Study) -> Table:
    second = (done.posterior.classes or (0, 1))[1]
    rows = table(
        f"{done.data.name}: is the decision the same in the whole l_inf ball?",
        [
            "point",
            "decision",
            "radius",
            "status",
            "boxes",
            "ms",
            f"proved range of p({second})",
            "boxes",
            "ms",
        ],
    )
    names = done.chosen * len(done.radii)
    for name, c, r in zip(names, done.certificates, done.ranges, strict=True):
        rows.add_row(
            str(name),
            str(c.decision),
            f"{c.region['radius']:g}",
            verdict(c.status),
            str(c.boxes),
            f"{1e3 * c.seconds:.1f}",
            f"[{below(r.minimum.lower)}, {above(r.maximum.upper)}]".replace("[", r"\["),
            str(r.boxes),
            f"{1e3 * r.seconds:.1f}",
        )
    return rows
