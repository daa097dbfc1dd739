"""`gpcert explain`: effects of features on predictions, and features that decide; `gpcert explore`:
a page on which a model is explored.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

import typer
from rich.console import RenderableType
from rich.text import Text

import gpcert
from gpcert.cli import options
from gpcert.cli.files import Points, load_model, read_points
from gpcert.cli.options import command
from gpcert.cli.reading import features_of, label_from_text, numbers_of, parts_of, quantity_of
from gpcert.cli.results import Files, Picture
from gpcert.cli.terminal import ExitCode, above, below, cells, option, say, say_written, table
from gpcert.errors import InputError
from gpcert.utils.option_names import Ranking

if TYPE_CHECKING:
    import numpy as np


LARGEST_TABLE = 20
"""Rows printed for a point."""

MAX_POINTS = 10
"""Points whose tables are printed."""

REASON_COLUMNS = ["decision", "features", "undecided", "certificates", "boxes", "ms"]

PIXEL_COLUMNS = ["decision", "pixels that flip", "proved up to", "gap ≥", "gap ≤", "boxes", "ms"]


ALWAYS = {"model", "points", "header", "what", "output", "csv", "plot"}
"""Parameters of every kind of explanation."""

_REGION, _SEARCH = (
    "radius relative features domain scale",
    "seconds boxes memory jobs backend seed method variance_bound progress",
)
_REASONS = (
    f"{_REGION} {_SEARCH} norm order shape threshold class_weight delta output_norm quantity beta "
    "best_f maximize label"
)
USED = {
    "effects": f"{_REGION} {_SEARCH} checkpoint mean label tol rtol quantity beta shape",
    "sufficient": _REASONS,
    "contrastive": _REASONS,
    "pixels": f"{_REGION} {_SEARCH} norm ranking betas tol rtol",
    "lime": "mean label background samples shape seed",
}
"""Further parameters of each kind; others do not apply to it."""

What = Literal["effects", "sufficient", "contrastive", "pixels", "lime"]
"""Kinds of explanation."""


@dataclass(frozen=True)
class ExplainQuestion:
    """The kind of explanation, and options for its plot."""

    what: Annotated[
        What,
        option(
            "effects of features (intervals), a sufficient or contrastive reason, how many "
            "pixels flip the decision, or LIME's weights"
        ),
    ] = "effects"
    mean: Annotated[bool, option("effects and LIME: average over the points", "--mean")] = False
    label: Annotated[
        str | None,
        option(
            "effects and LIME: class or target that is shown; reasons: that of --quantity",
            "--class",
            "--target",
            metavar="LABEL",
        ),
    ] = None
    tol: Annotated[float | None, option("effects and pixels: largest width of an interval")] = None
    rtol: Annotated[float | None, option("effects and pixels: the same, relative to the size")] = (
        None
    )
    ranking: Annotated[Ranking, option("pixels: which are the most important")] = "effects"
    betas: Annotated[
        str | None, option("pixels: numbers of pixels, as in 1,2,4; by default doubled")
    ] = None
    order: Annotated[
        str | None, option("reasons: features, the most important first; by default by gradient")
    ] = None
    quantity: Annotated[
        str | None,
        option(
            "effects: by default the probability; regression: the mean; reasons: what --threshold "
            "is compared with; module:NAME, a Quantity object of your own"
        ),
    ] = None
    beta: Annotated[
        float | None, option("standard deviations of --quantity lcb or ucb; 2 by default")
    ] = None
    best_f: options.BestValue = None
    maximize: options.LargeValues = None
    background: Annotated[
        Path | None, option("lime: a CSV of points whose spread is sampled; else the model's own")
    ] = None
    samples: Annotated[int, option("lime: random points around each point")] = 5000
    shape: Annotated[str | None, option("rows,columns of an image: pictures show pixels")] = None

    @property
    def image(self) -> tuple[int, int] | None:
        """Rows and columns of the image."""
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
        """Whether the explanation is a reason."""
        return self.what in {"sufficient", "contrastive"}


@options.command(
    "explain",
    "Examples:",
    "gpcert explain model.npz points.csv --radius 0.1 --mean --plot effects.png",
    "gpcert explain digits.joblib image.csv --radius 0.5 --domain 0,1 --shape 14,14 --plot map.png",
    "gpcert explain model.npz point.csv --what sufficient --radius 0.3 --output reason.json",
    "gpcert explain digits.joblib image.csv --what pixels --radius 1 --domain 0,1 "
    "--ranking gradient",
    "Exit code: 0 all steps decided or within the tolerance; 2 some not (bounds are still "
    "valid); 3 bad input; 4 a defect.",
)
def explain(
    inputs: options.Inputs,
    ball_radius: options.BallRadius,
    question: ExplainQuestion,
    ball: options.Ball,
    decision: options.Decision,
    search: options.Search,
    files: Files,
    picture: Picture,
    typed: options.TypedOptions,
) -> None:
    """Explain predictions with proof: effects as intervals, smallest reasons, pixel budgets."""
    typed.only(ALWAYS | set(USED[question.what].split()), f"on --what {question.what}")
    if picture.plot is None:
        typed.without(["shape"], "without --plot")
    if question.what != "lime":
        ball_radius.required()
    if question.reasons and picture.plot is not None and question.image is None:
        raise InputError("--plot: a reason is drawn on an image; say --shape rows,columns")
    verbs = gpcert.explain
    model, points, arguments = inputs.read(ball_radius, ball, search)
    if question.what != "effects":
        del arguments["checkpoint"]
    if question.what == "lime":
        lime_options: Any = {"n_samples": question.samples, "random_state": search.seed}
        if question.background is not None:
            layout = (model.dim, model.feature_names, model.levels)
            background = read_points(question.background, None, *layout)
            lime_options["background"] = background.X
        _features(verbs.lime(model, points.X, **lime_options), points, question, files, picture)
    tolerances = {"tol": question.tol, "rtol": question.rtol}
    if question.what == "effects":
        del arguments["norm"]
        arguments |= {
            "quantity": quantity_of(question.quantity),
            "beta": question.beta,
            **tolerances,
        }
        result = verbs.effects(model, points.X, **arguments)
        _features(result, points, question, files, picture)
    arguments["progress"] = False  # only the progress over all points is shown
    del arguments["n_jobs"]
    if question.what == "pixels":
        arguments["ranking"] = question.ranking
        arguments["betas"] = None if question.betas is None else _counts(question.betas)
        arguments |= tolerances
        verb, kind = verbs.pixel_budget, verbs.PixelBudgetTable
    else:
        arguments |= decision.arguments(model)
        arguments |= options.Compared(
            question.quantity, question.label, question.beta, question.best_f, question.maximize
        ).arguments(model)
        if question.order is not None:
            arguments["order"] = features_of(question.order, model, "--order")
        verb = verbs.sufficient if question.what == "sufficient" else verbs.contrastive
        kind = verbs.ReasonTable

    def ask(x: np.ndarray, radius: Any) -> Any:
        return verb(model, x, radius=radius, **arguments)

    from gpcert.api.many import collect

    radius = arguments.pop("radius")
    X = model.check_inputs(points.X)
    per_point = getattr(radius, "ndim", 0) == 2  # a row for each point
    work = [(x, radius[k] if per_point else radius) for k, x in enumerate(X)]
    effort = {"n_jobs": search.jobs, "progress": search.progress}
    result, complete = collect(model, ask, work, effort)
    labels = tuple(points.labels[row] for row in result)
    _rows(kind(tuple(result.values()), complete, labels), question, files, picture)


def _counts(text: str) -> list[int]:
    try:
        return [int(part) for part in parts_of(text)]
    except ValueError as error:
        raise InputError(f"--betas: expected whole numbers as in 1,2,4, got {text!r}") from error


def _features(
    record: Any, points: Points, question: ExplainQuestion, files: Files, picture: Picture
) -> NoReturn:
    """Effects, or LIME's weights, of all points at once."""
    result = replace(record, labels=points.labels)
    label = result.outputs[-1]
    if question.label is not None:
        label = label_from_text(
            "--class", question.label, [each for each in result.outputs if each is not None]
        )
    result = result.mean() if question.mean else result
    files.report(result, lambda files: _show(result, label, files))
    drawn = result.plot if question.image is None else partial(result.heat_map, question.image)
    picture.draw(lambda ax: drawn(ax, output=label), files.place)
    settled = question.what == "lime" or result.converged
    raise typer.Exit(ExitCode.PROVED if settled else ExitCode.UNDECIDED)


def _rows(result: Any, question: ExplainQuestion, files: Files, picture: Picture) -> NoReturn:
    """A record for every point, in a table."""
    settled = sum(map(_settled, result))
    summary = f"{len(result)} points: {settled} decided, {len(result) - settled} not"
    title = f"{question.what.capitalize()}, the others fixed at the point"
    if question.what == "pixels":
        title = f"Pixels that flip the decision, by {question.ranking}"
    columns = REASON_COLUMNS if question.reasons else PIXEL_COLUMNS
    files.report(result, lambda files: files.show(result, title, columns, _cells, summary))
    if len(result):
        shape = {"shape": question.image} if question.reasons else {}
        picture.draw(lambda ax: result[0].plot(ax, **shape), files.place)
    all_settled = result.complete and settled == len(result)
    raise typer.Exit(ExitCode.PROVED if all_settled else ExitCode.UNDECIDED)


def _settled(answer: Any) -> bool:
    return answer.reason in {gpcert.StopReason.DECIDED, gpcert.StopReason.CONVERGED}


def _cells(answer: Any) -> list[RenderableType]:
    if isinstance(answer, gpcert.explain.Reason):
        from gpcert.explain.arguments import listed_names

        names = listed_names(answer.feature_names) if answer.found else "no reason"
        details = [names, str(len(answer.undecided)), str(len(answer.steps))]
    elif not answer.betas:  # the decision at x is not proved
        details = ["not known", "not known", "", ""]
    else:
        betas = (answer.least_beta, answer.safe_beta)
        details = ["none" if beta is None else str(beta) for beta in betas]
        details += [below(float(answer.lower[-1])), above(float(answer.upper[-1]))]
    return [*cells(answer, "decision"), *details, *cells(answer, "boxes ms")]


def _show(answer: Any, label: Any, files: Files) -> None:
    """A table per point, the largest first."""
    proved = isinstance(answer, gpcert.explain.Effects)
    heads = ["feature", *(["≥", "≤"] if proved else [answer.method])]
    for point, name in enumerate(answer.labels[:MAX_POINTS]):
        rows = table(f"Point {name}" + ("" if label is None else f", {label}"), heads)
        for feature, low, high in answer.largest(LARGEST_TABLE, point=point, output=label):
            texts = [below(low), above(high)] if proved else [f"{low:.4g}"]
            rows.add_row(*map(Text, (feature, *texts)))  # names are not markup
        files.place.print(rows)
    if len(answer.labels) > MAX_POINTS:
        more = len(answer.labels) - MAX_POINTS
        say(f"... and {more} more points; --output and --csv write all", files.place)
    if proved and not answer.converged:
        say(f"some intervals are wider than the tolerance: {answer.reason.value}", files.place)
    say_written(*files.written, place=files.place)


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
