"""`gpcert explore`: a page on which a model is explored."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gpcert.cli.files import load_model, read_points
from gpcert.cli.options import command
from gpcert.cli.reading import features_of, numbers_of
from gpcert.cli.terminal import option, say, say_written
from gpcert.errors import InputError


@command(
    "explore",
    "Examples:",
    "gpcert explore model.npz",
    "gpcert explore model.npz --data points.csv --features age,bmi",
    "gpcert explore model.npz --html page.html",
)
def explore(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="a .npz or .joblib file as in gpcert certify")
    ],
    data: Annotated[
        Path | None, option("points to show and to choose from: a CSV or .npy file")
    ] = None,
    features: Annotated[str | None, option("two features for the map, by name or number")] = None,
    threshold: Annotated[
        float | None, option("regression: the decision is mean > threshold")
    ] = None,
    shape: Annotated[str | None, option("rows,columns of an image, for models on pixels")] = None,
    port: Annotated[int, option("port at the loopback address; 0: a free one", min=0)] = 0,
    browser: Annotated[bool, option("open a browser", "--browser/--no-browser")] = True,
    page: Annotated[
        Path | None, option("write one self-contained page instead of serving", "--html")
    ] = None,
) -> None:
    """Explore a model on a page: click a point, see what is proved around it."""
    from gpcert.explorer import Explorer

    posterior = load_model(model)
    names, levels = posterior.feature_names, posterior.levels
    points = None if data is None else read_points(data, None, posterior.dim, names, levels)
    chosen = None if features is None else features_of(features, posterior)
    explorer = Explorer(
        posterior,
        None if points is None else points.X,
        ids=None if points is None else points.labels,
        features=chosen,
        threshold=threshold,
        shape=None if shape is None else _shape(shape),
    )
    if page is not None:
        explorer.save(page)
        say_written(page)
        return
    say("press Ctrl-C to stop")
    explorer.serve(port, show=browser)


def _shape(text: str) -> tuple[int, int]:
    numbers = numbers_of("--shape", text, str)
    if isinstance(numbers, dict) or len(numbers) != 2:
        raise InputError(f"--shape: expected rows,columns as in 28,28, got {text!r}")
    return int(numbers[0]), int(numbers[1])
