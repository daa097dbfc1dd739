"""`gpcert boxes`: proved ranges over many boxes, from arrays of their corners."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import gpcert
from gpcert.cli import options
from gpcert.cli.files import load_model, read_points
from gpcert.cli.reading import parts_of, quantity_of
from gpcert.cli.terminal import ExitCode, check_folder, console, option, say, say_written, table
from gpcert.errors import InputError

if TYPE_CHECKING:
    import numpy as np

    from gpcert.inputs.tabular import Names
    from gpcert.model.committee import Model


@dataclass(frozen=True)
class Corners:
    """The models and the boxes."""

    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="a .npz or .joblib file as in gpcert certify")
    ]
    lower: Annotated[
        Path,
        typer.Argument(
            metavar="LOWER",
            help="least corners, one box per row: a .npy or CSV file; or a .npz file with the "
            "arrays lower and upper, and then no UPPER",
        ),
    ]
    upper: Annotated[
        Path | None, typer.Argument(metavar="UPPER", help="greatest corners, .npy or CSV")
    ] = None
    others: Annotated[
        list[Path] | None, option("further models, whose outputs follow; may be repeated", "--with")
    ] = None

    def read(self) -> tuple[list[Model], np.ndarray, np.ndarray]:
        """Models and corners from their files."""
        models = [load_model(path) for path in (self.model, *(self.others or ()))]
        if self.lower.suffix == ".npz":
            if self.upper is not None:
                raise InputError("UPPER: expected none beside a .npz file with lower and upper")
            archive = _loaded(self.lower)
            if not {"lower", "upper"} <= set(archive):
                raise InputError(
                    f"{self.lower}: expected the arrays lower and upper, got {sorted(archive)}"
                )
            return models, archive["lower"], archive["upper"]
        if self.upper is None:
            raise InputError(
                "UPPER: expected a file with the greatest corners, got none; or give one .npz file "
                "with the arrays lower and upper"
            )
        from gpcert.inputs.tabular import common_names

        names = common_names("--with", (model.feature_names for model in models))
        low, high = (_rows(path, models[0].dim, names) for path in (self.lower, self.upper))
        return models, low, high


@dataclass(frozen=True)
class BoxQuestion:
    """The quantities to bound, and the tolerance."""

    quantity: Annotated[
        str,
        option(
            "mean, std, variance, lcb, ucb, band, probability, module:NAME (a Quantity object of "
            "your own), or several: mean,std"
        ),
    ] = "mean"
    beta: Annotated[
        float | None, option("standard deviations of lcb, ucb and band; 2 by default")
    ] = None
    affine: Annotated[
        bool, option("also affine functions below and above each box", "--affine")
    ] = False
    tol: Annotated[float | None, option("split boxes until every bound is within it")] = None
    rtol: Annotated[float | None, option("the same, relative to the size of the bound")] = None

    @property
    def has_tolerance(self) -> bool:
        """Whether boxes are split, down to a tolerance."""
        return self.tol is not None or self.rtol is not None


@dataclass(frozen=True)
class EffortOptions:
    """The cost limits."""

    seconds: Annotated[
        float | None, option("for all boxes; by default 60 with --tol or --rtol, else no limit")
    ] = None
    boxes: Annotated[int | None, option("largest number of boxes that are bounded")] = None
    memory: Annotated[float, option("gigabytes that open boxes may hold")] = 2.0
    jobs: options.Jobs = None
    backend: options.BackendName = "numpy"
    progress: Annotated[
        bool | None, option("show progress; by default on a terminal", "--progress/--no-progress")
    ] = None

    def check(self) -> None:
        """Check the number of processes before files are read."""
        options.check_jobs(self.jobs)

    def budget(self, has_tolerance: bool) -> gpcert.Budget:
        """The limits; without a tolerance there is no time limit by default."""
        default = gpcert.Budget().seconds if has_tolerance else None
        seconds = default if self.seconds is None else self.seconds
        return gpcert.Budget(seconds, self.boxes, 1e9 * self.memory)


@dataclass(frozen=True)
class OutputPaths:
    """Output files for the bounds."""

    output: Annotated[Path | None, option("one .npz file; gpcert.load reads it")] = None
    out: Annotated[
        Path | None,
        option("a folder of .npy files, written during the run: a stopped run can be resumed"),
    ] = None
    imdp: Annotated[Path | None, option("a folder of arrays for tools for interval MDPs")] = None

    def streamed(self, names: Sequence[str]) -> dict[str, Path] | None:
        """A file of every quantity."""
        if self.out is None:
            return None
        self.out.mkdir(parents=True, exist_ok=True)
        return {name: self.out / f"{name}.npy" for name in names}

    def check(self) -> None:
        """Check before the computation that results can be written."""
        if self.output is not None and self.output.suffix != ".npz":
            raise InputError(f"--output: expected a name that ends in .npz, got {self.output}")
        for path in (self.output, self.out, self.imdp):
            check_folder("output", path)

    def write(self, bounds: gpcert.BoxBounds) -> None:
        """Write the remaining files, and print the paths of all."""
        if self.output is not None:
            bounds.save(self.output)
        if self.imdp is not None and bounds.complete:
            bounds.save_imdp(self.imdp)
        elif self.imdp is not None:
            say(f"not written: {self.imdp}, as not all boxes were bounded", style="yellow")
        say_written(self.output, self.out, self.imdp if bounds.complete else None)


@options.command(
    "boxes",
    "Examples:",
    "gpcert boxes model.npz lower.npy upper.npy --output bounds.npz",
    "gpcert boxes position.npz corners.npz --with speed.npz --quantity mean,std --imdp abstraction",
    "gpcert boxes model.npz lower.csv upper.csv --quantity mean,std --affine --out folder --jobs 2",
    "Exit code: 0 all boxes bounded (with --tol or --rtol: to within it); 2 some not (their bounds "
    "are still valid; with --out the same command resumes); 3 bad input; 4 a defect.",
)
def boxes(
    corners: Corners, question: BoxQuestion, effort: EffortOptions, paths: OutputPaths
) -> None:
    """Bound means, standard deviations and probabilities over each of many boxes."""
    models, lower, upper = corners.read()
    quantities: Any = [quantity_of(name) for name in parts_of(question.quantity)]
    from gpcert.api.questions import quantity_requests

    names = list(quantity_requests(quantities, question.beta))
    bounds = gpcert.bound_boxes(
        models,
        lower,
        upper,
        quantity=quantities,
        beta=question.beta,
        affine=question.affine,
        tol=question.tol,
        rtol=question.rtol,
        budget=effort.budget(question.has_tolerance),
        backend=effort.backend,
        out=paths.streamed(names),
        n_jobs=effort.jobs,
        progress=effort.progress,
    )
    _show(bounds)
    paths.write(bounds)
    within = bounds.complete and (bounds.converged or not question.has_tolerance)
    raise typer.Exit(ExitCode.PROVED if within else ExitCode.UNDECIDED)


def _show(bounds: gpcert.BoxBounds) -> None:
    """Widths of the ranges of every output, and how many boxes were bounded."""
    import numpy as np

    rows = table("Ranges over boxes", ["quantity", "output", "least width", "median", "largest"])
    for name, values in bounds.ranges.items():
        for k, label in enumerate(bounds.outputs[name]):
            widths = values[:, k, 1] - values[:, k, 0]
            summary = (widths.min(), np.median(widths), widths.max())
            rows.add_row(name, str(label), *(f"{width:.4g}" for width in summary))
    terminal = console()
    terminal.print(rows)
    say(f"{bounds.summary} ({bounds.seconds:.1f} s)", terminal)


def _rows(path: Path, dim: int, names: Names) -> np.ndarray:
    """(R, d) from a .npy or CSV file."""
    if path.suffix != ".npy":
        return read_points(path, None, dim, names).X
    return _loaded(path)


def _loaded(path: Path) -> Any:
    """The arrays of a NumPy file, without running code."""
    import numpy as np

    try:
        content = np.load(path, allow_pickle=False)
        return content if isinstance(content, np.ndarray) else dict(content)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: expected a file of NumPy arrays ({error})") from error
