"""`gpcert level-set`, `gpcert invariant`, `gpcert uniform-beta`: where predictions meet a
specification, and what that says of a learned map and of the truth."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import gpcert
from gpcert.cli import options
from gpcert.cli.files import load_model
from gpcert.cli.reading import (
    domain_of,
    feature_of,
    label_from_text,
    numbers_of,
    parts_of,
    quantity_of,
)
from gpcert.cli.results import Picture
from gpcert.cli.terminal import ExitCode, check_folder, console, option, say, say_written
from gpcert.errors import InputError
from gpcert.utils.option_names import SECONDS
from gpcert.utils.optional_imports import optional

if TYPE_CHECKING:
    from gpcert.model.committee import Model

CONDITION = re.compile(
    r"\s*(?:(?P<label>[^:]+):)?(?P<quantity>[^<>=]*)(?P<side>[<>]=)(?P<level>.+)"
)


@dataclass(frozen=True)
class Asked:
    """The model, the region and the conditions."""

    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="a .npz or .joblib file as in gpcert certify")
    ]
    region: Annotated[
        str, option("the box: two numbers for all features as in 0,1, or age=20:80,bmi=15:40")
    ]
    threshold: Annotated[
        float | None,
        option("the level; without it and --condition the regions of a classifier's classes"),
    ] = None
    side: Annotated[str, option(">= or <=: the side of the level that is asked for")] = ">="
    condition: Annotated[
        list[str] | None,
        option(
            "instead of --threshold: a condition as in 'lcb>=0.9' or, of several outputs, "
            "'1:mean<=0.1'; may be repeated, and all have to hold"
        ),
    ] = None
    fixed: Annotated[str | None, option("features held at values, as in age=50,2=0.5")] = None

    def conditions(self, compared: options.Compared, model: Model) -> dict[str, Any]:
        """`threshold` of the verb and what belongs to it."""
        words = {
            "quantity": quantity_of(compared.quantity),
            "beta": compared.beta,
            "best_f": compared.best_f,
            "maximize": compared.maximize,
        }
        if self.condition is None:
            label = compared.label
            if label is not None and self.threshold is None:
                words["output"] = label_from_text("--class", label, getattr(model, "labels", ()))
            else:
                words["output"] = compared.arguments(model)["output"]
            return {"threshold": self.threshold, "side": self.side, **words}
        single = {"--threshold": self.threshold, "--class": compared.label}
        single |= {
            "--quantity": compared.quantity,
            "--side": self.side if self.side != ">=" else None,
        }
        given = [name for name, value in single.items() if value is not None]
        if given:
            raise InputError(f"{given[0]}: belongs to one level, got --condition as well; drop one")
        further = {name: words[name] for name in ("best_f", "maximize") if words[name] is not None}
        return {
            "threshold": [_read(text, compared.beta, further, model) for text in self.condition]
        }


def _read(text: str, beta: float | None, further: dict[str, Any], model: Model) -> tuple[Any, ...]:
    """A condition of `--condition`."""
    parts = CONDITION.fullmatch(text)
    try:
        level = float(parts["level"]) if parts else float("nan")
    except ValueError as error:
        raise InputError(f"--condition: expected a number at the end, got {text!r}") from error
    if parts is None:
        raise InputError(f"--condition: expected quantity>=level or quantity<=level, got {text!r}")
    quantity = quantity_of(parts["quantity"].strip() or None)
    words = further | ({} if quantity is None else {"quantity": quantity})
    if beta is not None and quantity in {"band", "lcb", "ucb"}:
        words["beta"] = beta
    label = None
    if parts["label"] is not None:
        names = getattr(model, "labels", ()) if quantity == "probability" else None
        labels = range(getattr(model, "outputs", 0)) if names is None else names
        label = label_from_text("--condition", parts["label"].strip(), list(labels))
    return (label, parts["side"], level, words)


@dataclass(frozen=True)
class Effort:
    """The cost limits."""

    tol: Annotated[float, option("share of the volume that may be left undecided")] = 0.01
    seconds: Annotated[float | None, option("time limit; what is proved by then is shown")] = (
        SECONDS
    )
    boxes: Annotated[int | None, option("largest number of boxes that are bounded")] = None
    memory: Annotated[float, option("gigabytes that boxes may hold")] = 2.0
    backend: options.BackendName = "numpy"
    progress: options.ShowProgress = None
    checkpoint: options.CheckpointFile = None

    def arguments(self) -> dict[str, Any]:
        """Of the verb."""
        budget = gpcert.Budget(self.seconds, self.boxes, 1e9 * self.memory)
        how = {"backend": self.backend, "progress": self.progress, "checkpoint": self.checkpoint}
        return {"tol": self.tol, "budget": budget, **how}


@dataclass(frozen=True)
class SetFiles:
    """Output files."""

    output: Annotated[Path | None, option("one .npz file; gpcert.load reads it")] = None
    csv: Annotated[Path | None, option("a table of the cells")] = None

    def check(self) -> None:
        """Check before the computation that results can be written."""
        if self.output is not None and self.output.suffix != ".npz":
            raise InputError(f"--output: expected a name that ends in .npz, got {self.output}")
        for path in (self.output, self.csv):
            check_folder("output", path)
        if self.csv is not None:
            optional("pandas", "--csv")


@options.command(
    "level-set",
    "Examples:",
    "gpcert level-set model.npz --region 0,1 --threshold 0.9 --quantity lcb --plot set.png",
    "gpcert level-set model.npz --region age=20:80,bmi=15:40 --condition 'mean>=0.9' "
    "--condition 'std<=0.1' --output set.npz",
    "gpcert level-set classifier.joblib --region 0,1",
    "Exit code: 0 no more than --tol of the volume is undecided; 2 more (the bounds are still "
    "valid); 3 bad input; 4 a defect.",
)
def level_set(
    asked: Asked, compared: options.Compared, effort: Effort, files: SetFiles, picture: Picture
) -> None:
    """Prove where predictions meet a specification, and how large that part of a region is."""
    model = load_model(asked.model)
    low, high = domain_of(asked.region, model)
    import numpy as np

    ends = np.stack([np.broadcast_to(end, (model.dim,)) for end in (low, high)]).astype(float)
    fixed = None
    if asked.fixed is not None:
        read = numbers_of("--fixed", asked.fixed, lambda name: feature_of("--fixed", name, model))
        if not isinstance(read, dict):
            raise InputError(f"--fixed: expected name=value, got {asked.fixed!r}")
        fixed = read
        for j, value in read.items():  # what is fixed needs no ends
            if not np.isfinite(ends[:, j]).all():
                ends[:, j] = value
    if not np.isfinite(ends).all():
        raise InputError(f"--region: expected finite ends for every feature, got {asked.region!r}")
    words = asked.conditions(compared, model)
    answer = gpcert.level_set(model, ends, fixed=fixed, **words, **effort.arguments())
    _finish(answer, files, picture, answer.converged)


@dataclass(frozen=True)
class Dynamics:
    """The learned map, and the states that are asked about."""

    models: Annotated[
        list[Path],
        typer.Argument(
            metavar="MODEL...",
            help="files as in gpcert certify, whose outputs one after another are the states",
        ),
    ]
    region: Annotated[
        str,
        option("low:high of every state, as in --region=-1:1,0:2 (with =, as it begins with -)"),
    ]
    step: Annotated[str, option("next: models predict the next state; delta: what is added")] = (
        "next"
    )
    disturbance: Annotated[
        str, option("largest size of what is added to the next state: a number, or one a state")
    ] = "0.0"
    inputs: Annotated[
        str | None, option("candidates for the inputs, ; between them, as in '-1,0;0,0;1,0'")
    ] = None

    def arguments(self) -> dict[str, Any]:
        """Of the verb."""
        ends = [part.split(":") for part in parts_of(self.region)]
        if any(len(pair) != 2 for pair in ends):
            raise InputError(f"--region: expected low:high of every state, got {self.region!r}")
        far = _numbers("--disturbance", parts_of(self.disturbance))
        rows = None if self.inputs is None else [parts_of(row) for row in self.inputs.split(";")]
        if rows is not None and len({len(row) for row in rows}) > 1:
            raise InputError(
                f"--inputs: expected as many numbers for every candidate, got {self.inputs!r}"
            )
        return {
            "region": [_numbers("--region", pair) for pair in ends],
            "step": self.step,
            "disturbance": far[0] if len(far) == 1 else far,
            "inputs": None if rows is None else [_numbers("--inputs", row) for row in rows],
        }


def _numbers(name: str, parts: list[str]) -> list[float]:
    """Of texts."""
    try:
        return [float(part) for part in parts]
    except ValueError as error:
        raise InputError(f"{name}: expected numbers, got {', '.join(parts)!r}") from error


@options.command(
    "invariant",
    "Examples:",
    "gpcert invariant map.npz --region=-1:1,-2:2 --disturbance 0.01 --output safe.npz",
    "gpcert invariant speed.npz torque.npz --region=-0.6:0.6,-1.5:1.5 --step delta "
    "--inputs='-2;0;2' --plot safe.png",
    "Exit code: 0 the images of all cells are known; 2 the budget ended first (the set is smaller, "
    "and valid); 3 bad input; 4 a defect.",
)
def invariant(
    asked: Dynamics,
    files: SetFiles,
    picture: Picture,
    beta: Annotated[float, option("the map lies within mean +- beta std; 0: is the mean")] = 2.0,
    cells: Annotated[int, option("about how many cells there are at first")] = 20_000,
    refine: Annotated[int, option("how often cells at the edge of the set are halved")] = 1,
    seconds: Annotated[float | None, option("time; the set by then is shown")] = SECONDS,
    boxes: Annotated[int | None, option("largest number of boxes that are bounded")] = None,
    memory: Annotated[float, option("gigabytes that boxes may hold")] = 2.0,
    backend: options.BackendName = "numpy",
    progress: options.ShowProgress = None,
    checkpoint: options.CheckpointFile = None,
) -> None:
    """Prove which states a learned map keeps inside a set, whatever is done within the band."""
    maps, arguments = [load_model(path) for path in asked.models], asked.arguments()
    answer = gpcert.invariant_set(
        maps,
        arguments.pop("region"),
        **arguments,
        beta=beta,
        cells=cells,
        refine=refine,
        budget=gpcert.Budget(seconds, boxes, 1e9 * memory),
        backend=backend,
        progress=progress,
        checkpoint=checkpoint,
    )
    _finish(answer, files, picture, answer.complete)


@options.command(
    "uniform-beta",
    "Examples:",
    "gpcert uniform-beta model.npz --norm-bound 3 --noise-bound 0.01 --delta 0.05 --labels y.csv",
    "gpcert uniform-beta model.npz --norm-bound 3 --noise-bound 0.01",
    "Exit code: 0; 3 bad input; 4 a defect.",
)
def uniform_beta(
    model: Annotated[list[Path], typer.Argument(metavar="MODEL...", help="files of regressions")],
    norm_bound: Annotated[str, option("of the truth in the kernel's space; one, or one an output")],
    noise_bound: Annotated[str, option("of the noise: sub-Gaussian, or its largest size")],
    delta: Annotated[
        float | None, option("probability of failure; without it the bound holds for certain")
    ] = None,
    labels: Annotated[Path | None, option("a CSV file of the observations, a column an output")] = (
        None
    ),
    rule: Annotated[str, option("with --delta: fiedler or chowdhury_gopalan")] = "fiedler",
    output: Annotated[Path | None, option("a JSON file for the answer; gpcert.load reads it")] = (
        None
    ),
) -> None:
    """Say how many standard deviations the truth can be from the mean, by published theorems."""
    check_folder("output", output)
    maps = [load_model(path) for path in model]
    observed = None if labels is None else _observed(labels)
    bounds = [
        _numbers(name, parts_of(text))
        for name, text in (("--norm-bound", norm_bound), ("--noise-bound", noise_bound))
    ]
    norms, noises = (each[0] if len(each) == 1 else each for each in bounds)
    answer = gpcert.uniform_beta(
        maps, norm_bound=norms, noise_bound=noises, delta=delta, y=observed, rule=rule
    )
    say(str(answer))
    if output is not None:
        answer.save(output)
        say_written(output)


def _observed(path: Path) -> list[list[float]]:
    """The numbers of a CSV file, whose first line may have names."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise InputError(f"--labels: {path} cannot be read ({error})") from error
    rows = [parts_of(line) for line in lines if line.strip()]
    if rows and not any(map(_is_number, rows[0])):
        rows = rows[1:]
    if not rows or len({len(row) for row in rows}) > 1:
        raise InputError(f"--labels: expected rows of as many numbers each in {path}")
    return [_numbers(f"--labels, {path}", row) for row in rows]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _finish(answer: Any, files: SetFiles, picture: Picture, done: bool) -> None:
    """Write and print what was found, and end."""
    if files.output is not None:
        answer.save(files.output)
    if files.csv is not None:
        answer.to_frame().to_csv(files.csv, index=False)
    terminal = console()
    picture.draw(answer.plot, terminal)
    say(str(answer), terminal)
    say_written(files.output, files.csv, place=terminal)
    raise typer.Exit(ExitCode.PROVED if done else ExitCode.UNDECIDED)
