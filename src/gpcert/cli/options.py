"""Groups of options that several commands share, and the options that were typed."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

import gpcert
from gpcert.cli.files import Points, load_model, read_points
from gpcert.cli.reading import (
    domain_of,
    features_of,
    label_from_text,
    label_of,
    numbers_of,
    parts_of,
    per_feature,
    quantity_of,
    radius_of,
    scale_of,
)
from gpcert.cli.terminal import option
from gpcert.errors import InputError
from gpcert.utils.option_names import SECONDS, MethodName, VarianceBound

if TYPE_CHECKING:
    from gpcert.model.committee import Model

Jobs = Annotated[int | None, option("processes; -1 for one per core")]

BackendName = Annotated[str, option("numpy, torch, torch:cpu or torch:cuda")]

ShowProgress = Annotated[
    bool | None, option("show progress; by default on a terminal", "--progress/--no-progress")
]

CheckpointFile = Annotated[
    Path | None,
    option("save the searches here every 30 s; gpcert resume goes on from it after a kill"),
]

Label = Annotated[
    str | None,
    option(
        "the class of this label; in regression the target, counted from 0",
        "--class",
        "--target",
        metavar="LABEL",
    ),
]


@dataclass(frozen=True)
class Inputs:
    """The model and the points."""

    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="a .npz file of Posterior.save (numbers only), or a fitted model of scikit-learn "
            "or gpcert.models in a .joblib file (code: open only files that you trust)",
        ),
    ]
    points: Annotated[
        Path,
        typer.Argument(
            metavar="POINTS.csv",
            help="one point per row, one feature per column, - for standard input; a header is "
            "matched with the model's feature names, a column id or index names the rows",
        ),
    ]
    header: Annotated[
        bool | None, option("whether the first row of POINTS holds names", "--header/--no-header")
    ] = None

    def read(self, *groups: Group) -> tuple[Model, Points, dict[str, Any]]:
        """Model and points from their files, and keyword arguments from groups of options."""
        model = load_model(self.model)
        layout = (model.dim, model.feature_names, model.levels)
        points = read_points(self.points, self.header, *layout)
        arguments = [group.arguments(model, points) for group in groups]
        return model, points, {name: value for each in arguments for name, value in each.items()}


class Group(Protocol):
    """Options that translate to keyword arguments of the verbs."""

    def arguments(self, model: Model, points: Points) -> dict[str, Any]:
        """The keyword arguments, for this model and these points."""
        ...


@dataclass(frozen=True)
class BallRadius:
    """The radius of the balls around the points."""

    radius: Annotated[
        str | None,
        option(
            "radius of the ball around each point: a number, one per feature as in 0.1,0,0.2, by "
            "name as in age=2,bmi=0.5 (the others are fixed), or a .csv file with a row of radii "
            "per point and the columns of POINTS"
        ),
    ] = None
    relative: Annotated[
        str | None,
        option(
            "instead of --radius: a fraction of each value, 0.05 for 5 % (zeros stay fixed); also "
            "one per feature or by name"
        ),
    ] = None

    def arguments(self, model: Model, points: Points) -> dict[str, Any]:
        """`radius` and `relative` of the verbs."""
        radius, relative = self.radius, self.relative
        return {
            "radius": None if radius is None else radius_of(radius, model, points),
            "relative": None if relative is None else per_feature("--relative", relative, model),
        }

    def required(self) -> None:
        """An `InputError` unless exactly one of them is given."""
        values = (self.radius, self.relative)
        if (values[0] is None) == (values[1] is None):
            got = "neither" if values[0] is None else "both"
            raise InputError(f"--radius: expected either --radius or --relative, got {got}")

    @property
    def title(self) -> str:
        """The radius as text, for titles."""
        if self.relative is not None:
            return f"radius {self.relative} of each value"
        file = self.radius is not None and self.radius.lower().endswith(".csv")
        return f"radii of {Path(str(self.radius)).name}" if file else f"radius {self.radius}"


@dataclass(frozen=True)
class Ball:
    """The region's shape."""

    norm: Annotated[str, option("norm of the ball: inf, 1, 2 or any p >= 1")] = "inf"
    features: Annotated[
        str | None,
        option(
            "features that may move, by number from 0 or by name, as in 0,3 or age,bmi; all "
            "by default"
        ),
    ] = None
    domain: Annotated[
        str | None,
        option(
            "valid values of every feature, as in 0,1 or -inf,1; or by name, as in "
            "age=0:120,bmi=0:inf"
        ),
    ] = None
    scale: Annotated[
        str | None,
        option(
            "unit of the radius: std, each feature's standard deviation in the training data; "
            "or numbers, one per feature as in 1,20 or by name as in age=10,bmi=2"
        ),
    ] = None

    def arguments(self, model: Model, points: Points | None = None) -> dict[str, Any]:
        """`norm`, `features`, `domain` and `scale` of the verbs."""
        readers = {"features": features_of, "domain": domain_of, "scale": scale_of}
        texts = {name: text for name, text in vars(self).items() if text is not None}
        parsed = {
            name: readers[name](text, model) for name, text in texts.items() if name in readers
        }
        return {**vars(self), **parsed}

    def title(self, ball_radius: BallRadius | None = None) -> str:
        """Norm, radius and its unit, for titles.

        >>> Ball(scale="std").title(BallRadius("0.1"))
        'l_inf radius 0.1 standard deviations'
        >>> Ball(scale="1,20").title(), Ball(norm="2").title()
        ('l_inf radius in units of scale', 'l_2 balls')
        >>> Ball().title(BallRadius(relative="0.05"))
        'l_inf radius 0.05 of each value'
        """
        if self.scale is None:
            return f"l_{self.norm} {'balls' if ball_radius is None else ball_radius.title}"
        unit = "standard deviations" if parts_of(self.scale) == ["std"] else "units of scale"
        return f"l_{self.norm} {'radius in' if ball_radius is None else ball_radius.title} {unit}"


@dataclass(frozen=True)
class Decision:
    """The definition of "the same decision"."""

    threshold: Annotated[
        float | None,
        option("probability (regression: mean) that decides; by default what predict does"),
    ] = None
    class_weight: Annotated[
        str | None,
        option("cost of a mistake on each class, as in a=1,b=5, or in the classes' order 1,5"),
    ] = None
    delta: Annotated[float | None, option("regression: how far the mean may move")] = None
    output_norm: Annotated[str, option("regression: norm in which delta is measured")] = "inf"

    def arguments(self, model: Model, points: Points | None = None) -> dict[str, Any]:
        """Arguments of the verbs that certify decisions."""
        if self.class_weight is None:
            return dict(vars(self))

        def label(name: str) -> Any:
            return label_from_text("--class-weight", name, model.labels)

        weights = numbers_of("--class-weight", self.class_weight, label)
        return {**vars(self), "class_weight": weights}


BestValue = Annotated[
    float | None, option("reference value of ei and pi; by default the best mean at the points")
]

LargeValues = Annotated[
    bool | None, option("ei, pi: whether large values are better", "--maximize/--minimize")
]


@dataclass(frozen=True)
class Compared:
    """The value that is compared with the threshold."""

    quantity: Annotated[
        str | None,
        option(
            "what --threshold is compared with: mean, variance, std, lcb or ucb (mean -+ beta std) "
            "or probability; module:NAME, a Quantity object of your own"
        ),
    ] = None
    label: Label = None
    beta: Annotated[
        float | None, option("standard deviations of --quantity lcb or ucb; 2 by default")
    ] = None
    best_f: BestValue = None
    maximize: LargeValues = None

    def arguments(self, model: Model, points: Points | None = None) -> dict[str, Any]:
        """`quantity`, `output` and the quantity's parameters, for verbs that certify decisions."""
        quantity = quantity_of(self.quantity)
        parameters = {"beta": self.beta, "best_f": self.best_f, "maximize": self.maximize}
        return {"quantity": quantity, "output": label_of(self.label, model, quantity), **parameters}


@dataclass(frozen=True)
class Search:
    """Search options and cost limits."""

    seconds: Annotated[
        float | None, option("time for one point; bounds are valid when it is used up")
    ] = SECONDS
    boxes: Annotated[int | None, option("largest number of boxes for one point")] = None
    memory: Annotated[float, option("gigabytes that the boxes of one point may hold")] = 2.0
    jobs: Jobs = None
    backend: BackendName = "numpy"
    seed: Annotated[int, option("seed of the starting points of local search")] = 0
    method: Annotated[MethodName, option("family of bounds")] = "taylor"
    variance_bound: Annotated[
        VarianceBound | None,
        option("with --method paper or both: how the paper's variance is bounded"),
    ] = None
    progress: Annotated[
        bool | None,
        option("show intermediate bounds; by default on a terminal", "--progress/--no-progress"),
    ] = None
    checkpoint: CheckpointFile = None

    def arguments(self, model: Model | None = None, points: Points | None = None) -> dict[str, Any]:
        """Search arguments of the verbs of many points; they do not depend on the model."""
        return {
            "budget": gpcert.Budget(self.seconds, self.boxes, 1e9 * self.memory),
            "backend": self.backend,
            "random_state": self.seed,
            "method": self.method,
            "variance_bound": self.variance_bound,
            "n_jobs": self.jobs,
            "progress": self.progress,
            "checkpoint": self.checkpoint,
        }

    def check(self) -> None:
        """Check the limits before files are read."""
        check_jobs(self.jobs)
        self.arguments()


def check_jobs(jobs: int | None) -> None:
    """An `InputError` for no processes."""
    if jobs == 0:
        raise InputError("--jobs: expected a number of processes, or -1 for one per core; got 0")


Command = Callable[..., None]


@dataclass(frozen=True)
class TypedOptions:
    """The options and arguments that were typed, by parameter."""

    typed: Mapping[str, str]

    @staticmethod
    def of(context: typer.Context) -> TypedOptions:
        """The options of the command line, without defaults."""
        typed = {}
        for each in context.command.params:
            source = context.get_parameter_source(str(each.name))
            if source is not None and source.name == "COMMANDLINE":
                typed[str(each.name)] = each.opts[0]
        return TypedOptions(typed)

    def only(self, used: Iterable[str], why: str) -> None:
        """An `InputError` for options that have no effect here."""
        known = set(used)
        others = [option for name, option in self.typed.items() if name not in known]
        if others:
            raise InputError(f"{', '.join(others)}: no effect {why}; leave it out")

    def without(self, unused: Iterable[str], why: str) -> None:
        """An `InputError` for any of the `unused` options."""
        self.only(set(self.typed) - set(unused), why)


def command(name: str, *epilog: str) -> Callable[[Command], Command]:
    """A decorator for commands, with paragraphs below the help (examples, exit codes). Parameters
    that are groups of options become these options; groups are checked before the computation."""

    def decorated(function: Command) -> Command:
        hints = typing.get_type_hints(function, include_extras=True)
        spread: list[inspect.Parameter] = []
        groups: dict[str, Any] = {}
        typed_name: str | None = None
        for parameter_name, parameter in inspect.signature(function).parameters.items():
            if hints[parameter_name] is TypedOptions:
                typed_name = parameter_name
            elif is_dataclass(hints[parameter_name]):
                groups[parameter_name] = hints[parameter_name]
                spread += inspect.signature(
                    hints[parameter_name], eval_str=True
                ).parameters.values()
            else:
                spread.append(parameter.replace(annotation=hints[parameter_name]))
        spread = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in spread]

        def called(context: typer.Context, **values: Any) -> None:
            if typed_name is not None:
                values[typed_name] = TypedOptions.of(context)
            for parameter_name, kind in groups.items():
                group = kind(**{field.name: values.pop(field.name) for field in fields(kind)})
                if hasattr(group, "check"):  # before the computation
                    group.check()
                values[parameter_name] = group
            function(**values)

        called.__doc__ = function.__doc__
        context = inspect.Parameter(
            "context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context
        )
        spread.append(context)
        called.__dict__["__signature__"] = inspect.Signature(spread)
        called.__annotations__ = {each.name: each.annotation for each in spread}
        called.__dict__["registered"] = {"name": name, "epilog": "\n\n".join(epilog)}
        return called

    return decorated


def exits_within(what: str, bounds: str = "they") -> str:
    """The exit codes of a command whose searches end within a tolerance."""
    return (
        f"Exit code: 0 all {what} within the tolerance; 2 some not ({bounds} are still valid); 3 "
        "bad input; 4 a defect."
    )
