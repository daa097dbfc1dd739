"""`gpcert explain`: what moves the predictions at the points, and which features decide."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console, RenderableType
from rich.text import Text

from gpcert import explain as verbs
from gpcert.api.many import collect
from gpcert.cli import options
from gpcert.cli.exits import ExitCode
from gpcert.cli.options import MethodChoice, feature_of, named, parts_of, radius_of
from gpcert.cli.points import Points, read_points
from gpcert.cli.results import Files
from gpcert.cli.terminal import above, below, say, table
from gpcert.committee import Model
from gpcert.errors import InputError
from gpcert.explain.names import shown
from gpcert.extras import optional
from gpcert.plots.axes import new_figure
from gpcert.search import StopReason

EXAMPLES = """Examples:

gpcert explain model.npz points.csv --radius 0.1 --mean --plot effects.png

gpcert explain digits.joblib image.csv --radius 0.5 --domain 0,1 --shape 14,14 --plot map.png

gpcert explain model.npz point.csv --what sufficient --radius 0.3 --output reason.json

gpcert explain digits.joblib image.csv --what pixels --radius 1 --domain 0,1 --ranking gradient

Exit code: 0 all steps decided or within the tolerance; 2 some not (bounds hold all the same); 3 bad
input; 4 a defect."""

LARGEST_TABLE = 20
"""Rows printed for a point."""

MOST_POINTS = 10
"""Points whose tables are printed."""

REASON_COLUMNS = ["decision", "features", "undecided", "certificates", "boxes", "ms"]

PIXEL_COLUMNS = ["decision", "pixels that flip", "proved up to", "gap ≥", "gap ≤", "boxes", "ms"]


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


@dataclass(frozen=True)
class Asked:
    """What is explained, and how it is drawn."""

    what: Annotated[
        What,
        typer.Option(
            help="effects of features (intervals), a sufficient or contrastive reason, how many "
            "pixels flip the decision, or LIME's weights"
        ),
    ] = What.effects
    mean: Annotated[
        bool, typer.Option("--mean", help="effects and LIME: average over the points")
    ] = False
    label: Annotated[
        str | None,
        typer.Option("--class", metavar="LABEL", help="effects and LIME: class that is shown"),
    ] = None
    tol: Annotated[
        float | None, typer.Option(help="effects and pixels: width at which an interval ends")
    ] = None
    ranking: Annotated[RankingChoice, typer.Option(help="pixels: which are the most important")] = (
        RankingChoice.effects
    )
    betas: Annotated[
        str | None, typer.Option(help="pixels: numbers of pixels, as in 1,2,4; by default doubled")
    ] = None
    order: Annotated[
        str | None,
        typer.Option(help="reasons: features, the most important first; by default by gradient"),
    ] = None
    quantity: Annotated[
        options.Quantity | None,
        typer.Option(help="effects: by default the probability; regression: the mean"),
    ] = None
    background: Annotated[
        Path | None,
        typer.Option(help="lime: a CSV of points whose spread is sampled; else the model's own"),
    ] = None
    samples: Annotated[int, typer.Option(help="lime: random points around each point")] = 5000
    shape: Annotated[
        str | None, typer.Option(help="rows,columns of an image: pictures show pixels")
    ] = None
    plot: Annotated[
        Path | None,
        typer.Option(help="draw the result (reasons, pixels: of the first point), PNG, SVG or PDF"),
    ] = None

    @property
    def image(self) -> tuple[int, int] | None:
        """Rows and columns."""
        if self.shape is None:
            return None
        try:
            rows, columns = (int(part) for part in self.shape.split(","))
        except ValueError as error:
            raise InputError(
                f"--shape: expected rows,columns as in 14,14, got {self.shape!r}"
            ) from error
        return rows, columns

    @property
    def reasons(self) -> bool:
        """Whether a reason is asked for."""
        return self.what in {What.sufficient, What.contrastive}

    def check(self) -> None:
        """Find out before the work that the picture cannot be drawn."""
        image = self.image
        if self.reasons and self.plot is not None and image is None:
            raise InputError("--plot: a reason is drawn on an image; say --shape rows,columns")
        Files(self.plot).check()
        if self.plot is not None:
            optional("matplotlib", "--plot")


@options.grouped
def explain(
    inputs: options.Inputs,
    radius: options.Radius,
    asked: Asked,
    ball: options.Ball,
    decision: options.Decision,
    search: options.Search,
    files: Files,
) -> None:
    """Explain predictions with proof: effects as intervals, smallest reasons, pixel budgets."""
    _refuse_what_says_nothing(asked, ball, decision, search)
    effort = search.arguments()
    model, points = inputs.read()
    region = {"radius": radius_of(radius, model), **ball.arguments(model)}
    if asked.what is What.lime:
        found = _lime(model, points, asked, search.seed)
        _features(found, points, asked, files)
    if asked.what is What.effects:
        del region["norm"]
        kind = None if asked.quantity is None else asked.quantity.value
        work = {"quantity": kind, "tol": asked.tol, "n_jobs": search.jobs, **effort}
        _features(verbs.effects(model, points.X, **region, **work), points, asked, files)
    effort["progress"] = False  # of each point; that of all is shown
    if asked.what is What.pixels:
        choices = {"ranking": asked.ranking.value, **region, **effort}
        if asked.tol is not None:
            choices["tol"] = asked.tol
        betas = None if asked.betas is None else _counts(asked.betas)

        def gaps(x: np.ndarray) -> Any:
            return verbs.pixel_budget(model, x, betas, **choices)

        _rows(model, gaps, verbs.PixelBudgetTable, points, asked, search, files)
    verb = verbs.sufficient if asked.what is What.sufficient else verbs.contrastive
    words = {**region, **decision.arguments(model), **effort}
    if asked.order is not None:
        words["order"] = [feature_of("--order", part, model) for part in parts_of(asked.order)]

    def reason(x: np.ndarray) -> Any:
        return verb(model, x, **words)

    _rows(model, reason, verbs.ReasonTable, points, asked, search, files)


def _lime(model: Model, points: Points, asked: Asked, seed: int) -> Any:
    """LIME's weights at all points."""
    background = None
    if asked.background is not None:
        background = read_points(asked.background, None, model.dim, model.feature_names).X
    return verbs.lime(
        model, points.X, background=background, n_samples=asked.samples, random_state=seed
    )


def _counts(text: str) -> list[int]:
    try:
        return [int(part) for part in parts_of(text)]
    except ValueError as error:
        raise InputError(f"--betas: expected whole numbers as in 1,2,4, got {text!r}") from error


def _refuse_what_says_nothing(
    asked: Asked, ball: options.Ball, decision: options.Decision, search: options.Search
) -> None:
    """Options that this kind of explanation does not have."""
    what, reasons = asked.what, asked.reasons
    given = {
        "--betas": what is not What.pixels and asked.betas is not None,
        "--order": not reasons and asked.order is not None,
        "--quantity": what is not What.effects and asked.quantity is not None,
        "--background": what is not What.lime and asked.background is not None,
        "--norm": what in {What.effects, What.lime} and ball.norm != "inf",
        "--threshold, --class-weight, --delta and --output-norm": not reasons
        and decision != options.Decision(),
        "--method": what is What.lime and search.method is not MethodChoice.taylor,
        "--variance-bound": what is What.lime and search.variance_bound is not None,
    }
    for option, wrong in given.items():
        if wrong:
            raise InputError(f"{option}: expected none with --what {what.value}; leave it out")


def _features(answer: Any, points: Points, asked: Asked, files: Files) -> None:
    """Effects, or LIME's weights, of all points at once."""
    found = replace(answer, labels=points.labels)
    label = found.outputs[-1]
    if asked.label is not None:
        label = named("--class", asked.label, [each for each in found.outputs if each is not None])
    found = found.mean() if asked.mean else found
    _report(files, found, lambda place: _show(found, label, place))

    def draw(ax: Any) -> None:
        if asked.image is None:
            found.plot(ax, output=label)
        else:
            found.heat_map(asked.image, ax, output=label)

    _draw(asked.plot, draw, files)
    settled = asked.what is What.lime or found.converged
    raise typer.Exit(ExitCode.PROVED if settled else ExitCode.UNDECIDED)


def _rows(
    model: Model,
    function: Callable[[np.ndarray], Any],
    kind: type[Any],
    points: Points,
    asked: Asked,
    search: options.Search,
    files: Files,
) -> None:
    """A record for every point, in a table."""
    work = [(x,) for x in model.check_inputs(points.X)]
    found, complete = collect(
        model, function, work, {"n_jobs": search.jobs, "progress": search.progress}
    )
    labels = tuple(points.labels[row] for row in found)
    result = kind(tuple(found.values()), complete, labels)
    good = sum(map(_settled, result))
    summary = f"{len(result)} points: {good} decided, {len(result) - good} not"
    title = f"{asked.what.value.capitalize()}, the others fixed at the point"
    if asked.what is What.pixels:
        title = f"Pixels that flip the decision, by {asked.ranking.value}"
    columns = REASON_COLUMNS if asked.reasons else PIXEL_COLUMNS
    files.report(result, title, columns, _cells, summary)

    def draw(ax: Any) -> None:
        result[0].plot(ax, **({"shape": asked.image} if asked.reasons else {}))

    if len(result):
        _draw(asked.plot, draw, files)
    settled = complete and good == len(result)
    raise typer.Exit(ExitCode.PROVED if settled else ExitCode.UNDECIDED)


def _settled(answer: Any) -> bool:
    if isinstance(answer, verbs.Reason):
        return not answer.undecided
    return answer.reason is StopReason.CONVERGED


def _cells(answer: Any) -> list[RenderableType]:
    decision = "" if answer.decision is None else str(answer.decision)
    cost = [str(answer.boxes), f"{1e3 * answer.seconds:.1f}"]
    if isinstance(answer, verbs.Reason):
        names = shown(answer.feature_names) if answer.found else "no reason"
        return [decision, names, str(len(answer.undecided)), str(len(answer.steps)), *cost]
    least, safe = (
        "none" if beta is None else str(beta) for beta in (answer.least_beta, answer.safe_beta)
    )
    ends = [below(float(answer.lower[-1])), above(float(answer.upper[-1]))]
    return [decision, least, safe, *ends, *cost]


def _report(files: Files, result: Any, show: Callable[[Console], None]) -> None:
    """Write the files, then show the result; also where the files cannot be written."""
    try:
        files.save(result)
    except OSError:
        show(Files().place)
        raise
    show(files.place)
    files.say_written()


def _show(answer: Any, label: Any, place: Console) -> None:
    """A table per point, the largest first."""
    for point, name in enumerate(answer.labels[:MOST_POINTS]):
        rows = table(f"Point {name}" + ("" if label is None else f", {label}"), _heads(answer))
        for feature in answer.ranking(point=point, output=label)[:LARGEST_TABLE]:
            cells = _row(answer, int(feature), point, label)
            rows.add_row(*map(Text, cells))  # names are not read as markup
        place.print(rows)
    if len(answer.labels) > MOST_POINTS:
        more = len(answer.labels) - MOST_POINTS
        say(f"... and {more} more points; --output and --csv write all", place)
    if isinstance(answer, verbs.Effects) and not answer.converged:
        say(f"some intervals are wider than was asked for: {answer.reason.value}", place)


def _heads(answer: Any) -> list[str]:
    return ["feature", *(["≥", "≤"] if isinstance(answer, verbs.Effects) else [answer.method])]


def _row(answer: Any, feature: int, point: int, label: Any) -> list[str]:
    if isinstance(answer, verbs.Effects):
        found = answer.interval(feature, point=point, output=label)
        name = answer.feature_names[answer.features.index(feature)]
        return [name, below(found.lower), above(found.upper)]
    value = answer.values[point, list(answer.outputs).index(label), feature]
    return [answer.feature_names[feature], f"{value:.4g}"]


def _draw(path: Path | None, draw: Callable[[Any], None], files: Files) -> None:
    """The picture."""
    if path is None:
        return
    figure = new_figure(6.4, 4.8)
    draw(figure.subplots())
    figure.savefig(path)
    say(f"written: {path}", files.place)
