"""Options that several commands share, and how their text is read."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from gpcert.errors import InputError

__all__ = [
    "ModelFile",
    "PointsFile",
    "Radius",
    "Norm",
    "Features",
    "Domain",
    "Threshold",
    "Delta",
    "OutputNorm",
    "Seconds",
    "Header",
    "Backend",
    "Method",
    "Variance",
    "Output",
    "MethodChoice",
    "VarianceChoice",
    "method_options",
    "region_options",
    "check_output",
]


class MethodChoice(StrEnum):
    """Families of bounds; see `gpcert.prediction_range`."""

    taylor = "taylor"
    paper = "paper"
    both = "both"


class VarianceChoice(StrEnum):
    """Ways to bound the paper's variance programs."""

    solver = "solver"
    analytic = "analytic"


ModelFile = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="a .npz file of Posterior.save (numbers only), or a fitted model of scikit-learn "
        "or gpcert.models in a .joblib file (code: open only files that you trust)",
    ),
]
PointsFile = Annotated[
    Path,
    typer.Argument(
        metavar="POINTS.csv", help="one point a row, one feature a column; a header row is found"
    ),
]
Radius = Annotated[float, typer.Option(help="radius of the ball around each point")]
Norm = Annotated[str, typer.Option(help="norm of the ball: inf, 1, 2 or any p >= 1")]
Features = Annotated[
    str | None,
    typer.Option(help="features that may move, counted from 0, as in 0,3,5; all by default"),
]
Domain = Annotated[
    str | None, typer.Option(help="valid values of every feature, as in 0,1 or -inf,1")
]
Threshold = Annotated[
    float | None,
    typer.Option(help="probability (regression: mean) that decides; a classifier's default is 1/2"),
]
Delta = Annotated[float | None, typer.Option(help="regression: how far the mean may move")]
OutputNorm = Annotated[str, typer.Option(help="regression: norm in which delta is measured")]
Seconds = Annotated[float, typer.Option(help="time for one point; bounds are valid when it ends")]
Header = Annotated[
    bool | None,
    typer.Option("--header/--no-header", help="whether the first row of POINTS holds names"),
]
Backend = Annotated[str, typer.Option(help="numpy, torch, torch:cpu or torch:cuda")]
Method = Annotated[MethodChoice, typer.Option(help="family of bounds")]
Variance = Annotated[
    VarianceChoice | None,
    typer.Option(help="with --method paper or both: how the paper's variance is bounded"),
]
Output = Annotated[Path | None, typer.Option(help="write the results here as JSON")]


def region_options(norm: str, features: str | None, domain: str | None) -> dict[str, Any]:
    """The arguments of `gpcert.Ball` besides centre and radius.

    >>> region_options("2", "0,3", "-inf,1")
    {'norm': '2', 'features': [0, 3], 'domain': (-inf, 1.0)}
    """
    ends = None
    if domain is not None:
        numbers = _listed("--domain", domain, float)
        if len(numbers) != 2:
            raise InputError(f"--domain: expected two numbers as in 0,1, got {domain!r}")
        ends = (numbers[0], numbers[1])
    chosen = None if features is None else _listed("--features", features, int)
    return {"norm": norm, "features": chosen, "domain": ends}


def method_options(method: MethodChoice, variance: VarianceChoice | None) -> dict[str, Any]:
    """The arguments `method` and `variance` of the verbs.

    >>> method_options(MethodChoice.both, None)
    {'method': 'both', 'variance': None}
    """
    return {"method": method.value, "variance": None if variance is None else variance.value}


def check_output(*paths: Path | None) -> None:
    """Find out before the work, not after it, that results cannot be written."""
    for path in paths:
        if path is not None and not path.absolute().parent.is_dir():
            raise InputError(f"output: expected an existing folder, got {str(path.parent)!r}")
        if path is not None and path.is_dir():
            raise InputError(f"output: expected the name of a file, got the folder {str(path)!r}")


def _listed(name: str, text: str, kind: Callable[[str], Any]) -> list[Any]:
    try:
        return [kind(part) for part in text.split(",")]
    except ValueError as error:
        example = "0,3,5" if kind is int else "0,1"
        raise InputError(f"{name}: expected numbers as in {example}, got {text!r}") from error
