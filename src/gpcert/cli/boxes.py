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
    """What is bounded, and how well."""

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
    tol: Annotated[float | None, option("split boxes until every end is known to within it")] = None
    rtol: Annotated[float | None, option("the same, as a part of what is bounded")] = None

    @property
    def near(self) -> bool:
        """Whether boxes are split."""
        return self.tol is not None or self.rtol is not None


@dataclass(frozen=True)
class EffortOptions:
    """What it may cost."""

    seconds: Annotated[
        float | None, option("for all boxes; by default 60 with --tol or --rtol, else no limit")
    ] = None
    boxes: Annotated[int | None, option("most boxes that are bounded")] = None
    memory: Annotated[float, option("gigabytes that open boxes may hold")] = 2.0
    jobs: options.Jobs = None
    backend: options.BackendName = "numpy"
    progress: Annotated[
        bool | None, option("how far it is; by default on a terminal", "--progress/--no-progress")
    ] = None

    def check(self) -> None:
        """Find out before files are read that the number of processes makes no sense."""
        options.check_jobs(self.jobs)

    def budget(self, near: bool) -> gpcert.Budget:
        """The limits; without a tolerance the work has an end of its own."""
        usual = gpcert.Budget().seconds if near else None
        seconds = usual if self.seconds is None else self.seconds
        return gpcert.Budget(seconds, self.boxes, 1e9 * self.memory)


@dataclass(frozen=True)
class OutputPaths:
    """Where the bounds go."""

    output: Annotated[Path | None, option("one .npz file; gpcert.load reads it")] = None
    out: Annotated[
        Path | None, option("a folder of .npy files, written while it runs: a killed run goes on")
    ] = None
    imdp: Annotated[Path | None, option("a folder of arrays for tools for interval MDPs")] = None

    def streamed(self, names: Sequence[str]) -> dict[str, Path] | None:
        """A file of every quantity."""
        if self.out is None:
            return None
        self.out.mkdir(parents=True, exist_ok=True)
        return {name: self.out / f"{name}.npy" for name in names}

    def check(self) -> None:
        """That results can be written, before the work."""
        if self.output is not None and self.output.suffix != ".npz":
            raise InputError(f"--output: expected a name that ends in .npz, got {self.output}")
        for path in (self.output, self.out, self.imdp):
            check_folder("output", path)

    def write(self, bounds: gpcert.BoxBounds) -> None:
        """The files that are not there yet, and where all are."""
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
    "hold all the same; with --out the same command goes on); 3 bad input; 4 a defect.",
)
def boxes(corners: Corners, asked: BoxQuestion, effort: EffortOptions, places: OutputPaths) -> None:
    """Bound means, standard deviations and probabilities over each of many boxes."""
    models, lower, upper = corners.read()
    quantities: Any = [quantity_of(name) for name in parts_of(asked.quantity)]
    from gpcert.api.questions import quantity_requests

    names = list(quantity_requests(quantities, asked.beta))
    found = gpcert.bound_boxes(
        models,
        lower,
        upper,
        quantity=quantities,
        beta=asked.beta,
        affine=asked.affine,
        tol=asked.tol,
        rtol=asked.rtol,
        budget=effort.budget(asked.near),
        backend=effort.backend,
        out=places.streamed(names),
        n_jobs=effort.jobs,
        progress=effort.progress,
    )
    _show(found)
    places.write(found)
    met = found.complete and (found.converged or not asked.near)
    raise typer.Exit(ExitCode.PROVED if met else ExitCode.UNDECIDED)


def _show(found: gpcert.BoxBounds) -> None:
    """Widths of the ranges of every output, and how many boxes were bounded."""
    import numpy as np

    rows = table("Ranges over boxes", ["quantity", "output", "least width", "median", "largest"])
    for name, values in found.ranges.items():
        for k, label in enumerate(found.outputs[name]):
            widths = values[:, k, 1] - values[:, k, 0]
            ends = (widths.min(), np.median(widths), widths.max())
            rows.add_row(name, str(label), *(f"{width:.4g}" for width in ends))
    place = console()
    place.print(rows)
    say(f"{found.summary} ({found.seconds:.1f} s)", place)


def _rows(path: Path, dim: int, names: Names) -> np.ndarray:
    """(R, d) from a .npy or CSV file."""
    if path.suffix != ".npy":
        return read_points(path, None, dim, names).X
    return _loaded(path)


def _loaded(path: Path) -> Any:
    """The arrays of a file of NumPy's, without code."""
    import numpy as np

    try:
        found = np.load(path, allow_pickle=False)
        return found if isinstance(found, np.ndarray) else dict(found)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: expected a file of NumPy's arrays ({error})") from error
