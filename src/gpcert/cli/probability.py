"""`gpcert probability`, `gpcert expectation`, `gpcert sobol`: answers for random inputs, named in
text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import gpcert
from gpcert.cli import options
from gpcert.cli.files import load_model
from gpcert.cli.reading import label_of, quantity_of
from gpcert.cli.results import Picture
from gpcert.cli.terminal import ExitCode, check_folder, console, option, say, say_written
from gpcert.errors import InputError
from gpcert.utils.option_names import SideName
from gpcert.utils.optional_imports import optional

if TYPE_CHECKING:
    from gpcert.certificates import Expectation, FailureProbability
    from gpcert.model.committee import Model

LAW = re.compile(r"(?:(?P<feature>[^=(]+)=)?\s*(?P<name>[a-z_]+)\((?P<numbers>[^()]*)\)")


@dataclass(frozen=True)
class RandomInputs:
    """The model and the distributions of its inputs."""

    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="a .npz or .joblib file as in gpcert certify")
    ]
    laws: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT...",
            help="one for each feature, in order or by name: norm(0,1), uniform(-1,2) (loc, "
            "scale), age=lognorm(0.5,scale=40), or a number; distributions of scipy.stats",
        ),
    ]

    def read(self) -> tuple[Model, Any]:
        """The model, and its inputs as `failure_probability` takes them."""
        model, laws = load_model(self.model), [_law(text) for text in self.laws]
        named = [name for name, _ in laws if name is not None]
        if named and len(named) < len(laws):
            raise InputError(f"INPUT: expected names of all features or of none, got {self.laws}")
        return model, dict(laws) if named else [law for _, law in laws]


def _law(text: str) -> tuple[str | None, Any]:
    """The name of a feature, if one is given, and a frozen distribution or a number."""
    from scipy import stats

    name, _, value = text.rpartition("=")
    match = LAW.fullmatch(text.strip())
    if match is None:
        try:
            return name or None, float(value)
        except ValueError as error:
            raise InputError(
                f"INPUT: expected a distribution, as norm(0,1), or a number, got {text!r}"
            ) from error
    kind = getattr(stats, match["name"], None)
    if not isinstance(kind, stats.rv_continuous):
        raise InputError(
            f"INPUT: expected a distribution with a density of scipy.stats, got {text!r}"
        )
    places, options = [], {}
    for part in filter(None, (part.strip() for part in match["numbers"].split(","))):
        word, _, number = part.rpartition("=")
        try:
            if word:
                options[word.strip()] = float(number)
            else:
                places.append(float(number))
        except ValueError as error:
            raise InputError(f"INPUT: expected numbers in {text!r}, got {part!r}") from error
    try:
        law = kind(*places, **options)
    except (TypeError, ValueError) as error:
        raise InputError(f"INPUT: {text!r}: {error}") from error
    feature = match["feature"]
    return (feature.strip() if feature else None), law


@dataclass(frozen=True)
class Asked:
    """The quantity, the accuracy, the cost limits and where the answer goes."""

    quantity: Annotated[
        str, option("mean, lcb, ucb, std, variance, probability, or module:NAME")
    ] = "mean"
    beta: Annotated[float | None, option("standard deviations of lcb and ucb; 2 by default")] = None
    label: options.Label = None
    tol: Annotated[float | None, option("stop when the bounds are within it")] = None
    rtol: Annotated[float | None, option("the same, relative to the lower bound's size")] = None
    seconds: Annotated[float | None, option("time; bounds are valid when it is used up")] = 60.0
    boxes: Annotated[int | None, option("largest number of boxes")] = None
    memory: Annotated[float, option("gigabytes that boxes may hold")] = 2.0
    backend: options.BackendName = "numpy"
    progress: options.ShowProgress = None
    checkpoint: options.CheckpointFile = None
    output: Annotated[Path | None, option("a JSON file for the answer; gpcert.load reads it")] = (
        None
    )

    def check(self) -> None:
        """Check before the computation that the answer can be written."""
        check_folder("output", self.output)

    def arguments(self, model: Model) -> dict[str, Any]:
        """As the verbs take them."""
        name = self.quantity
        known = name == "prediction"
        chosen: Any = name if known else quantity_of(name)
        asked = "mean" if known or name in {"ei", "pi"} else chosen
        return {
            "quantity": chosen,
            "beta": self.beta,
            "output": label_of(self.label, model, asked),
            "tol": self.tol,
            "rtol": self.rtol,
            "budget": gpcert.Budget(self.seconds, self.boxes, 1e9 * self.memory),
            "backend": self.backend,
            "progress": self.progress,
            "checkpoint": self.checkpoint,
        }

    def end(self, answer: FailureProbability | Expectation) -> None:
        """Print and write the answer."""
        say(str(answer))
        if self.output is not None:
            answer.save(self.output)
            say_written(self.output)
        raise typer.Exit(ExitCode.PROVED if answer.converged else ExitCode.UNDECIDED)


EXITS = (
    "Exit code: 0 within the tolerance; 2 the budget ended first (the bounds are still valid); "
    "3 bad input; 4 a defect."
)


@options.command(
    "probability",
    "Examples:",
    'gpcert probability model.npz "norm(0,1)" "norm(0,1)" --threshold 0',
    'gpcert probability model.npz "uniform(-1,2)" 0.5 --threshold 3 --side above --rtol 0.001',
    'gpcert probability model.npz "norm(0,1)" "norm(0,1)" --threshold 0 --quantity prediction',
    EXITS,
)
def probability(
    inputs: RandomInputs,
    asked: Asked,
    threshold: Annotated[float, option("a number in the quantity's units")],
    side: Annotated[SideName, option("of the threshold on which the quantity is to lie")] = "below",
) -> None:
    """Bound the probability that a prediction lies below a threshold when inputs are random."""
    model, laws = inputs.read()
    asked.end(
        gpcert.failure_probability(model, laws, threshold, side=side, **asked.arguments(model))
    )


@options.command(
    "expectation",
    "Examples:",
    'gpcert expectation model.npz "norm(0,1)" "norm(0,1)"',
    'gpcert expectation model.npz "norm(0,1)" 0.5 --quantity std --tol 0.001 --output e.json',
    EXITS,
)
def expectation(
    inputs: RandomInputs,
    asked: Asked,
    best_f: options.BestValue = None,
    maximize: options.LargeValues = None,
) -> None:
    """Bound the mean of a prediction when inputs are random."""
    model, laws = inputs.read()
    more = {"best_f": best_f, "maximize": maximize}
    asked.end(gpcert.expectation(model, laws, **asked.arguments(model), **more))


@options.command(
    "sobol",
    "Examples:",
    'gpcert sobol model.npz "uniform(-1,2)" "norm(0,1)"',
    'gpcert sobol model.npz "norm(0,1)" "norm(0,1)" 0.5 --tol 0.001 --csv s.csv --plot s.png',
    EXITS,
)
def sobol(
    inputs: RandomInputs,
    picture: Picture,
    label: options.Label = None,
    tol: Annotated[float, option("stop when the bounds of every index are within it")] = 0.01,
    seconds: Annotated[float | None, option("time; bounds are valid when it is used up")] = 60.0,
    boxes: Annotated[
        int | None, option("largest number of sums of Gaussians that stand for the kernel")
    ] = None,
    memory: Annotated[float, option("gigabytes that these may take")] = 2.0,
    progress: options.ShowProgress = None,
    output: Annotated[Path | None, option("a JSON file for the answer; gpcert.load reads it")] = (
        None
    ),
    csv: Annotated[Path | None, option("a table of the indices")] = None,
) -> None:
    """Bound what each random input explains of a prediction's variance: Sobol' indices."""
    for path in (output, csv):
        check_folder("output", path)
    if csv is not None:
        optional("pandas", "--csv")
    model, laws = inputs.read()
    answer = gpcert.sobol_indices(
        model,
        laws,
        output=label_of(label, model, "mean"),
        tol=tol,
        budget=gpcert.Budget(seconds, boxes, 1e9 * memory),
        progress=progress,
    )
    if csv is not None:
        answer.to_frame().to_csv(csv, index=False)
    if output is not None:
        answer.save(output)
    terminal = console()
    picture.draw(answer.plot, terminal)
    say(str(answer), terminal)
    say_written(output, csv, place=terminal)
    raise typer.Exit(ExitCode.PROVED if answer.converged else ExitCode.UNDECIDED)
