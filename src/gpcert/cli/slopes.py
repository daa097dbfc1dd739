"""`gpcert monotone`, `lipschitz`, `difference` and `fair`: slopes and differences of the mean in a
ball around each point."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import gpcert
from gpcert.cli import options
from gpcert.cli.files import Points
from gpcert.cli.reading import feature_of, label_of, parts_of, per_feature
from gpcert.cli.results import ENDS, Files, Picture
from gpcert.cli.terminal import ExitCode, above, below, cells, option
from gpcert.errors import InputError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gpcert.certificates import FairnessTable, LipschitzTable
    from gpcert.model.committee import Model

Tolerance = Annotated[float | None, option("largest distance between both ends of a bound")]
Relative = Annotated[float | None, option("the same, relative to the size of the bound")]
Distance = Annotated[str, option("norm of the distance between inputs: 1, 2 or inf")]

WANTED = "--rises, --falls, --convex, --concave"

ALONE = ["jobs", "checkpoint"]
"""Options that the points, one after another, have no use for."""


@options.command(
    "monotone",
    "Examples:",
    "gpcert monotone model.npz points.csv --radius 0.5 --rises age --falls bmi,bp",
    "Exit code: 0 all proved; 1 some refuted; 2 none refuted, some undecided; 3 bad input; 4 a "
    "defect.",
)
def monotone(
    inputs: options.Inputs,
    ball_radius: options.BallRadius,
    ball: options.Ball,
    rises: Annotated[
        str | None, option("features along which the mean shall never fall, as in age,bmi or 0,2")
    ] = None,
    falls: Annotated[str | None, option("features along which it shall never rise")] = None,
    convex: Annotated[str | None, option("features along which it shall be convex")] = None,
    concave: Annotated[str | None, option("features along which it shall be concave")] = None,
    quantity: Annotated[
        str, option("mean, or of two classes probability: what rises or falls; or std, variance")
    ] = "mean",
    label: options.Label = None,
    *,
    search: options.Search,
    files: Files,
    picture: Picture,
    typed: options.TypedOptions,
) -> None:
    """Prove or refute that the mean (or a probability) never falls, or never rises, as a feature
    grows, or is convex or concave along it."""
    typed.without(ALONE, "on points one after another")
    model, points, regions, arguments = _read(inputs, ball_radius, ball, search)
    asked: dict[int, str] = {}
    for sign, text in {"+": rises, "-": falls, "convex": convex, "concave": concave}.items():
        for name in [] if text is None else parts_of(text):
            j = feature_of(WANTED, name, model)
            if j in asked:
                raise InputError(f"{WANTED}: expected every feature once, got {name!r}")
            asked[j] = sign
    if not asked:
        raise InputError(f"{WANTED}: expected a feature in one of them, got none")
    arguments |= {"quantity": quantity, "output": _output(label, model)}
    tables = [gpcert.certify_monotone(model, region, asked, **arguments) for region in regions]
    pairs = list(zip(points.labels, tables, strict=True))
    labels = [f"{point}: {row.feature}" for point, table in pairs for row in table]
    rows = tuple(row for table in tables for row in table)
    result = gpcert.MonotonicityTable(rows, all(t.complete for t in tables), tuple(labels))
    columns = ["direction", "status", "least slope >=", "least slope <=", "boxes", "ms"]
    title = f"Monotony, {ball.title(ball_radius)}"
    told = "direction status slope boxes ms"
    files.end(result, title, columns, told, _verdicts(result), picture, code=_code)


@options.command(
    "lipschitz",
    "Examples:",
    "gpcert lipschitz model.npz points.csv --radius 0.5 --distance 2",
    options.exits_within("constants"),
)
def lipschitz(
    inputs: options.Inputs,
    ball_radius: options.BallRadius,
    ball: options.Ball,
    distance: Distance = "2",
    of: Annotated[
        str, option("mean, std, probability, or jacobian: all outputs together")
    ] = "mean",
    label: options.Label = None,
    tol: Tolerance = None,
    rtol: Relative = None,
    *,
    search: options.Search,
    files: Files,
    picture: Picture,
    typed: options.TypedOptions,
) -> None:
    """Bound the Lipschitz constant of the mean, or of another prediction, in a ball around each
    point."""
    typed.without(ALONE, "on points one after another")
    model, points, regions, arguments = _read(inputs, ball_radius, ball, search)
    arguments |= {"norm": distance, "of": of, "output": _output(label, model)}
    rows = [gpcert.lipschitz(model, each, tol=tol, rtol=rtol, **arguments) for each in regions]
    from gpcert.certificates import LipschitzTable

    result: LipschitzTable = points.labelled(LipschitzTable(tuple(rows)))
    within = sum(row.converged for row in rows)
    summary = f"{len(rows)} constants: {within} within the tolerance, {len(rows) - within} wider"
    columns = ["attained", "proved", "boxes", "ms"]

    def shown(row: gpcert.LipschitzBound) -> list[RenderableType]:
        return [below(row.lower), above(row.upper), *cells(row, "boxes ms")]

    title = f"Lipschitz constants, {ball.title(ball_radius)}"
    files.end(result, title, columns, shown, summary, picture)


@options.command(
    "difference",
    "Examples:",
    "gpcert difference model.npz points.csv --radius age=5,bmi=1 --change sex=0:1",
    "gpcert difference model.npz points.csv --radius 0.1 --change dose=0.5",
    options.exits_within("ranges", "their bounds"),
)
def difference(
    inputs: options.Inputs,
    ball_radius: options.BallRadius,
    ball: options.Ball,
    change: Annotated[
        str,
        option("what changes: name=from:to (values or categories) or name=step, by commas"),
    ],
    label: options.Label = None,
    tol: Tolerance = None,
    rtol: Relative = None,
    *,
    search: options.Search,
    files: Files,
    typed: options.TypedOptions,
) -> None:
    """Bound by how much the mean changes with its inputs, for all points of a ball."""
    typed.without(ALONE, "on points one after another")
    read = _values("--change", change)
    model, points, regions, arguments = _read(inputs, ball_radius, ball, search, set(read))
    asked = {
        feature_of("--change", name, model): _parsed("--change", name, texts, model)
        for name, texts in read.items()
    }
    arguments |= {"output": _output(label, model), "tol": tol, "rtol": rtol}
    rows = [gpcert.difference_range(model, each, asked, **arguments) for each in regions]
    result = points.labelled(gpcert.RangeTable(tuple(rows)))
    within = sum(row.converged for row in rows)
    summary = f"{len(rows)} ranges: {within} within the tolerance, {len(rows) - within} wider"
    columns = [*ENDS, "boxes", "ms"]
    title = f"Changes of the mean, {change}, {ball.title(ball_radius)}"
    files.end(result, title, columns, "minimum maximum boxes ms", summary)


@options.command(
    "fair",
    "Examples:",
    "gpcert fair credit.joblib people.csv --radius age=1,income=100 --protected sex",
    "gpcert fair model.npz people.csv --radius 0 --protected sex=0:1 --delta 0.1 "
    "--similar age=2,income=500",
    "Exit code: 0 all proved; 1 some refuted; 2 none refuted, some undecided; 3 bad input; 4 a "
    "defect.",
)
def fair(
    inputs: options.Inputs,
    ball_radius: options.BallRadius,
    ball: options.Ball,
    protected: Annotated[
        str, option("features with the values that count, as in sex=0:1; of categories the name")
    ],
    delta: Annotated[float | None, option("how much the mean may differ")] = None,
    threshold: Annotated[
        float | None, option("or a value that decides; by default the decision of two classes")
    ] = None,
    similar: Annotated[
        str | None,
        option("by how much the other features of both may differ, as in age=2,income=500"),
    ] = None,
    distance: Annotated[str, option("norm of these differences over their radii")] = "inf",
    label: options.Label = None,
    *,
    search: options.Search,
    files: Files,
    picture: Picture,
    typed: options.TypedOptions,
) -> None:
    """Prove or refute that nobody in a ball is treated differently for a protected feature."""
    typed.without(ALONE, "on points one after another")
    read = _values("--protected", protected)
    model, points, regions, arguments = _read(inputs, ball_radius, ball, search, set(read))
    values: dict[int, Any] = {}
    for name, texts in read.items():
        j = feature_of("--protected", name, model)
        known = model.levels.get(j) if not texts else None
        if not texts and known is None:
            raise InputError(f"--protected: expected the values of {name!r}, as in {name}=0:1")
        values[j] = known or _parsed("--protected", name, texts, model)
    arguments |= {
        "delta": delta,
        "threshold": threshold,
        "norm": distance,
        "output": _output(label, model),
        "similar": None if similar is None else per_feature("--similar", similar, model),
    }
    rows = [gpcert.certify_fair(model, each, values, **arguments) for each in regions]
    from gpcert.certificates import FairnessTable

    result: FairnessTable = points.labelled(FairnessTable(tuple(rows)))
    columns = ["status", "margin >=", "margin <=", "boxes", "ms"]
    title, told = f"Fairness, {ball.title(ball_radius)}", "status margin boxes ms"
    files.end(result, title, columns, told, _verdicts(result), picture, code=_code)


def _read(
    inputs: options.Inputs,
    ball_radius: options.BallRadius,
    ball: options.Ball,
    search: options.Search,
    held: Collection[str] = (),
) -> tuple[Model, Points, list[gpcert.Region], dict[str, Any]]:
    """Model, points, the ball around each, in which what is `held` does not move unless radii by
    name say so, and the options of the search."""
    from gpcert.api.regions import RegionSpecification

    ball_radius.required()
    model, points, arguments = inputs.read(ball_radius, ball, search)
    shape = ("radius", "relative", "norm", "features", "domain", "scale")
    about = {name: arguments.pop(name) for name in shape}
    by_name = any(isinstance(about[name], Mapping) for name in ("radius", "relative", "scale"))
    if held and about["features"] is None and not by_name:
        fixed = {feature_of("option", name, model) for name in held} | set(model.levels)
        about["features"] = [j for j in range(model.dim) if j not in fixed]
    where = RegionSpecification.read(about, about["radius"])
    regions = where.around_each(model, model.check_inputs(points.X), points.X)
    del arguments["n_jobs"], arguments["checkpoint"]
    return model, points, regions, arguments


def _values(name: str, text: str) -> dict[str, list[str]]:
    """Texts by feature: `a=0:1,b=5,c` is {"a": ["0", "1"], "b": ["5"], "c": []}."""
    texts: dict[str, list[str]] = {}
    for part in parts_of(text):
        feature, sign, values = part.partition("=")
        if not feature or feature in texts:
            raise InputError(f"{name}: expected every feature once, as in a=0:1, got {text!r}")
        texts[feature] = values.split(":") if sign else []
    return texts


def _parsed(name: str, feature: str, texts: list[str], model: Model) -> Any:
    """Values as the verbs take them: a number alone is a step."""
    levels = model.levels.get(feature_of(name, feature, model))
    values: list[Any] = []
    for text in texts:
        known = [level for level in levels or () if str(level) == text]
        try:
            values.append(known[0] if known else float(text))
        except ValueError as error:
            raise InputError(f"{name}: expected numbers or categories, got {text!r}") from error
    if not values:
        raise InputError(f"{name}: expected {feature}=from:to or {feature}=step, got no value")
    return values[0] if len(values) == 1 else values


def _output(label: str | None, model: Model) -> Any:
    return label_of(label, model, "mean")


def _verdicts(table: gpcert.MonotonicityTable | FairnessTable) -> str:
    statuses = [row.status for row in table]
    told = (f"{statuses.count(each)} {each.name}" for each in gpcert.Status)
    return f"{len(statuses)} questions: {', '.join(told)}"


def _code(table: gpcert.MonotonicityTable | FairnessTable) -> ExitCode:
    """As of certificates."""
    statuses = {row.status for row in table}
    if gpcert.Status.NOT_ROBUST in statuses:
        return ExitCode.REFUTED
    proved = table.complete and statuses <= {gpcert.Status.ROBUST}
    return ExitCode.PROVED if proved else ExitCode.UNDECIDED
