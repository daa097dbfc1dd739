"""`gpcert level-set`: where predictions meet a specification."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import gpcert
from gpcert.cli import options
from gpcert.cli.files import load_model
from gpcert.cli.reading import domain_of, feature_of, label_from_text, numbers_of, quantity_of
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
    found = CONDITION.fullmatch(text)
    try:
        level = float(found["level"]) if found else float("nan")
    except ValueError as error:
        raise InputError(f"--condition: expected a number at the end, got {text!r}") from error
    if found is None:
        raise InputError(f"--condition: expected quantity>=level or quantity<=level, got {text!r}")
    quantity = quantity_of(found["quantity"].strip() or None)
    words = further | ({} if quantity is None else {"quantity": quantity})
    if beta is not None and quantity in {"band", "lcb", "ucb"}:
        words["beta"] = beta
    label = None
    if found["label"] is not None:
        names = getattr(model, "labels", ()) if quantity == "probability" else None
        labels = range(getattr(model, "outputs", 0)) if names is None else names
        label = label_from_text("--condition", found["label"].strip(), list(labels))
    return (label, found["side"], level, words)


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
    progress: Annotated[
        bool | None, option("show progress; by default on a terminal", "--progress/--no-progress")
    ] = None

    def arguments(self) -> dict[str, Any]:
        """Of the verb."""
        budget = gpcert.Budget(self.seconds, self.boxes, 1e9 * self.memory)
        how = {"backend": self.backend, "progress": self.progress}
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
    found = gpcert.level_set(model, ends, fixed=fixed, **words, **effort.arguments())
    if files.output is not None:
        found.save(files.output)
    if files.csv is not None:
        found.to_frame().to_csv(files.csv, index=False)
    terminal = console()
    picture.draw(found.plot, terminal)
    say(str(found), terminal)
    say_written(files.output, files.csv, place=terminal)
    raise typer.Exit(ExitCode.PROVED if found.converged else ExitCode.UNDECIDED)
