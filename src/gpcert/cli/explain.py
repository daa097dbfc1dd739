"""`gpcert explain`: what moves the predictions at the points, and which features decide."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from gpcert import explain as verbs
from gpcert.cli import options
from gpcert.cli.exits import ExitCode
from gpcert.cli.models import load_model
from gpcert.cli.points import read_points
from gpcert.cli.terminal import above, below, console, say, say_written, table
from gpcert.errors import InputError
from gpcert.search import Budget

if TYPE_CHECKING:
    from gpcert.explain import Attribution, Effects, PixelBudget, Reason

    Answer = Effects | Attribution | Reason | PixelBudget

__all__ = ["explain", "EXAMPLES"]

EXAMPLES = """Examples:

gpcert explain model.npz points.csv --radius 0.1 --mean --picture effects.png

gpcert explain digits.joblib image.csv --radius 0.5 --domain 0,1 --shape 14,14 --picture map.png

gpcert explain model.npz point.csv --what sufficient --radius 0.3 --output reason.json

gpcert explain digits.joblib image.csv --what pixels --radius 1 --domain 0,1 --ranking gradient

Exit code: 0 all steps decided or within the tolerance; 2 some not (bounds hold all the same); 3 bad
input; 4 a defect."""

LARGEST_TABLE = 20
"""Rows printed for a point."""


class What(StrEnum):
    """Kinds of explanation."""

    effects = "effects"
    sufficient = "sufficient"
    contrastive = "contrastive"
    pixels = "pixels"
    lime = "lime"


class RankingChoice(StrEnum):
    """Rankings for --what pixels."""

    effects = "effects"
    lime = "lime"
    gradient = "gradient"
    sufficient = "sufficient"


def explain(
    model: options.ModelFile,
    points: options.PointsFile,
    *,
    what: Annotated[
        What,
        typer.Option(
            help="effects of features (intervals), a sufficient or contrastive reason, how many "
            "pixels flip the decision, or LIME's weights"
        ),
    ] = What.effects,
    radius: options.Radius,
    features: options.Features = None,
    domain: options.Domain = None,
    mean: Annotated[bool, typer.Option("--mean", help="effects: average over the points")] = False,
    label: Annotated[
        str | None, typer.Option("--class", metavar="LABEL", help="class that is shown")
    ] = None,
    tol: Annotated[float | None, typer.Option(help="width at which an interval ends")] = None,
    ranking: Annotated[
        RankingChoice, typer.Option(help="pixels: which are the most important")
    ] = RankingChoice.effects,
    seconds: Annotated[float, typer.Option(help="time of the effects, or of one step")] = 60.0,
    jobs: Annotated[int, typer.Option(help="effects: threads")] = 1,
    shape: Annotated[
        str | None, typer.Option(help="rows,columns of an image: pictures show pixels")
    ] = None,
    header: options.Header = None,
    output: Annotated[
        Path | None, typer.Option(help="write the results here as JSON (points are numbered)")
    ] = None,
    csv: Annotated[Path | None, typer.Option(help="write the table here as CSV")] = None,
    picture: Annotated[Path | None, typer.Option(help="write a picture (PNG, SVG, PDF)")] = None,
) -> None:
    """Explain predictions with proof: effects as intervals, smallest reasons, pixel budgets."""
    options.check_output(output, csv, picture)
    region = options.region_options("inf", features, domain)
    side = _shape(shape)
    posterior, X = load_model(model), read_points(points, header)
    X = posterior.check_inputs(X)
    budget = Budget(seconds=seconds)
    found: list[Answer] = []
    if what is What.effects:
        effects = verbs.effects(
            posterior,
            X,
            radius,
            features=region["features"],
            domain=region["domain"],
            tol=tol,
            budget=budget,
            n_jobs=jobs,
        )
        found.append(effects.mean() if mean else effects)
    elif what is What.lime:
        weights = verbs.lime(posterior, X)
        found.append(weights.mean() if mean else weights)
    else:
        for x in X:
            found.append(_asked(what, posterior, x, radius, region, ranking.value, tol, budget))
    shown = _label(found[0], label)
    for index, answer in enumerate(found):
        _show(index, answer, shown)
    _write(found, output, csv)
    if picture is not None:
        _draw(found[0], picture, shown, side)
    say_written(output, csv, picture)
    raise typer.Exit(ExitCode.PROVED if all(map(_settled, found)) else ExitCode.UNDECIDED)


def _asked(
    what: What,
    model: Any,
    x: np.ndarray,
    radius: float,
    region: dict[str, Any],
    ranking: str,
    tol: float | None,
    budget: Budget,
) -> Any:
    if what is What.pixels:
        if region["features"] is not None:
            raise InputError("--features: with --what pixels all pixels may move; drop it")
        width = 0.01 if tol is None else tol
        return verbs.pixel_budget(
            model,
            x,
            ranking=ranking,
            radius=radius,
            domain=region["domain"],
            tol=width,
            budget=budget,
        )
    verb = verbs.sufficient if what is What.sufficient else verbs.contrastive
    return verb(model, x, radius, **region, budget=budget)


def _shape(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    try:
        rows, columns = (int(part) for part in text.split(","))
    except ValueError as error:
        raise InputError(f"--shape: expected rows,columns as in 14,14, got {text!r}") from error
    return rows, columns


def _label(answer: Any, text: str | None) -> Any:
    """The output whose label prints as this text; by default the last one."""
    labels = getattr(answer, "outputs", ())
    if not labels:
        return None
    if text is None:
        return labels[-1]
    same = [label for label in labels if str(label) == text]
    if len(same) != 1:
        raise InputError(f"--class: expected one of {', '.join(map(str, labels))}; got {text!r}")
    return same[0]


def _settled(answer: Any) -> bool:
    if isinstance(answer, verbs.Effects):
        return answer.converged
    return not (isinstance(answer, verbs.Reason) and answer.undecided)


def _show(index: int, answer: Any, label: Any) -> None:
    if isinstance(answer, verbs.Reason):
        say(f"point {index}: {answer}")
        return
    if isinstance(answer, verbs.PixelBudget):
        rows = table(f"Point {index}, pixels by {answer.method}", ["pixels", "gap ≥", "gap ≤"])
        for beta, low, high in zip(answer.betas, answer.lower, answer.upper, strict=True):
            rows.add_row(str(beta), below(float(low)), above(float(high)))
        console().print(rows)
        say(repr(answer))
        return
    for point in range(len(answer.X)):
        title = f"Point {point}, {label}" if len(answer.X) > 1 else str(label)
        rows = table(title, ["feature", "≥", "≤"])
        for feature in answer.ranking(point=point, output=label)[:LARGEST_TABLE]:
            rows.add_row(*_row(answer, int(feature), point, label))
        console().print(rows)


def _row(answer: Any, feature: int, point: int, label: Any) -> list[str]:
    if isinstance(answer, verbs.Effects):
        found = answer.interval(feature, point=point, output=label)
        name = answer.feature_names[answer.features.index(feature)]
        return [name, below(found.lower), above(found.upper)]
    value = answer.values[point, list(answer.outputs).index(label), feature]
    return [answer.feature_names[feature], f"{value:.4g}", "(no bound)"]


def _write(found: Sequence[Any], output: Path | None, csv: Path | None) -> None:
    if output is not None:
        for index, answer in enumerate(found):
            answer.save(output if len(found) == 1 else _numbered(output, index))
    if csv is not None:
        frames = [answer.to_frame() for answer in found]
        for index, frame in enumerate(frames):
            path = csv if len(found) == 1 else _numbered(csv, index)
            frame.to_csv(path, index=False)


def _numbered(path: Path, index: int) -> Path:
    return path.with_name(f"{path.stem}-{index}{path.suffix}")


def _draw(answer: Any, path: Path, label: Any, shape: tuple[int, int] | None) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.8), layout="constrained")
    ax = figure.subplots()
    if isinstance(answer, verbs.Reason):
        if shape is None:
            raise InputError("--picture: a reason is drawn on an image; say --shape rows,columns")
        answer.plot(ax, shape=shape)
    elif isinstance(answer, verbs.PixelBudget):
        answer.plot(ax)
    elif shape is not None:
        answer.heat_map(shape, ax, output=label)
    else:
        answer.plot(ax, output=label)
    figure.savefig(path)
