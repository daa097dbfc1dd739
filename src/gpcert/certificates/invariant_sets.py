"""Sets of states that a learned map is proved to keep inside: cells, and the input of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from gpcert.certificates.text import TextTable
from gpcert.errors import InputError
from gpcert.inputs.tabular import read_points
from gpcert.numerics.rounding import down
from gpcert.utils.archive import read_arrays, write_arrays
from gpcert.utils.optional_imports import Axes, DataFrame, optional, package_version

FORMAT = "gpcert-invariant-set-1"

PLAIN = ("beta", "step", "complete", "seconds", "boxes")
"""Fields that stand in the header of a file as they are."""

ARRAYS = ("lower", "upper", "choice", "inputs", "disturbance", "bounds")

POINTS = 2**20
"""Pairs of points and cells that are compared at a time."""


@dataclass(frozen=True, eq=False)
class InvariantSet:
    """A union of cells such that from every state in it, with the input of its cell, the next state
    is in it again: for every map within `beta` standard deviations of the means at every point, and
    every disturbance.

    Attributes
    ----------
    lower, upper : (R, n), the cells.
    choice : (R,) numbers of rows of `inputs`, the input of every cell.
    inputs : (m, k), the inputs that could be chosen; (1, 0) if there are none.
    disturbance : (n,), the largest size of what is added to the next state.
    bounds : (2, n), the box of states that was asked about.
    beta, step : as asked for.
    complete : whether the images of all cells were bounded.
    boxes, seconds : images that were bounded, and wall-clock time.
    models : fingerprints of the models.
    """

    lower: np.ndarray
    upper: np.ndarray
    choice: np.ndarray
    inputs: np.ndarray
    disturbance: np.ndarray
    bounds: np.ndarray
    beta: float
    step: str
    complete: bool
    boxes: int
    seconds: float
    models: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.lower)

    @property
    def share(self) -> float:
        """The set's share of the volume of `bounds`, rounded down."""
        width = self.bounds[1] - self.bounds[0]
        parts = down(np.prod((self.upper - self.lower) / width, axis=1), 4 * len(width))
        return max(0.0, float(down(parts.sum(), len(parts) + 1)))

    def contains(self, x: Any) -> Any:
        """Whether a state x (n,) is in the set; of rows (R, n) an array."""
        number = self._cell(x)
        return number >= 0 if number.ndim else bool(number >= 0)

    def input_at(self, x: Any) -> np.ndarray | None:
        """The input (k,) of the cell that holds the state x; None where it is in none."""
        cell = self._cell(x)
        if cell.ndim:
            raise InputError(f"x: expected one state, got {len(cell)}")
        return None if cell < 0 else self.inputs[int(self.choice[cell])]

    def _cell(self, x: Any) -> np.ndarray:
        """The number of a cell that holds x, or -1; of rows an array."""
        single = np.ndim(x) == 1
        X = read_points("x", [x] if single else x, self.bounds.shape[1])
        numbers = np.full(len(X), -1)
        step = max(1, POINTS // max(1, len(self)))
        for k in range(0, len(X), step) if len(self) else ():
            rows = X[k : k + step, None]
            inside = np.all((self.lower <= rows) & (rows <= self.upper), axis=2)
            numbers[k : k + step] = np.where(inside.any(axis=1), inside.argmax(axis=1), -1)
        return numbers[0] if single else numbers

    @property
    def summary(self) -> str:
        """In words, how large the set is."""
        said = f"{len(self)} cells, {100 * self.share:.4g} % of the volume asked about"
        return said if self.complete else f"{said}; not all images were bounded in time"

    def __repr__(self) -> str:
        n = self.bounds.shape[1]
        return f"InvariantSet({n} states, beta={self.beta:g}, step={self.step!r}; {self.summary})"

    def __str__(self) -> str:
        return str(self.shown())

    def _repr_html_(self) -> str:
        return self.shown().html()

    def shown(self) -> TextTable:
        """What was found as a small table."""
        rows = {"set": self.summary, "map": f"{self.step}, mean +- {self.beta:g} std"}
        rows["disturbance"] = ", ".join(f"{each:g}" for each in self.disturbance)
        if self.inputs.shape[1]:
            rows["inputs"] = f"{len(self.inputs)} to choose from"
        rows["cost"] = f"{self.boxes} images, {self.seconds:.3g} s"
        return TextTable("", (), list(rows.items()))

    def to_frame(self) -> DataFrame:
        """A row for each cell: its ends, and its input."""
        ends = (("low", self.lower), ("high", self.upper), ("input", self.inputs[self.choice]))
        columns = {
            f"{name} {j}": values[:, j] for name, values in ends for j in range(values.shape[1])
        }
        return optional("pandas", "to_frame").DataFrame(columns)

    def plot(self, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw the set in two states, `features=`, the others `at=` a point."""
        return import_module("gpcert.plots.sets").plot_invariant_set(ax, self, **options)

    def save(self, path: str | Path) -> None:
        """Write one file, `.npz` with a header; `gpcert.load` reads it."""
        header = {"format": FORMAT, "version": package_version(), "models": list(self.models)}
        header |= {name: getattr(self, name) for name in PLAIN}
        write_arrays(path, header, {name: 1.0 * getattr(self, name) for name in ARRAYS})

    @staticmethod
    def load(path: str | Path) -> InvariantSet:
        """Read a file of `save`."""
        header, arrays = read_arrays(path, {FORMAT: _check})
        if not all(np.isfinite(array).all() for array in arrays.values()):
            raise InputError(f"{path}: expected finite numbers")
        choice = arrays["choice"].astype(int)
        if np.any(arrays["lower"] > arrays["upper"]) or not np.all(
            (choice >= 0) & (choice < len(arrays["inputs"]))
        ):
            raise InputError(f"{path}: expected cells and numbers of inputs")
        about: dict[str, Any] = {name: header[name] for name in PLAIN}
        return InvariantSet(
            **(arrays | {"choice": choice}), **about, models=tuple(header["models"])
        )


def _check(header: dict[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """That the arrays of a file fit each other and the header."""
    kinds = {"beta": float, "step": str, "complete": bool, "seconds": float, "boxes": int}
    kinds["models"] = list
    wrong = [name for name, kind in kinds.items() if not isinstance(header.get(name), kind)]
    if wrong:
        raise InputError(f"expected the header of InvariantSet.save; look at {wrong}")
    if set(shapes) != set(ARRAYS) or len(shapes["lower"]) != 2 or len(shapes["inputs"]) != 2:
        raise InputError(f"expected the arrays {', '.join(ARRAYS)}, got {dict(shapes)}")
    rows, n = shapes["lower"]
    wanted = {"lower": (rows, n), "upper": (rows, n), "choice": (rows,)}
    wanted |= {"inputs": shapes["inputs"], "disturbance": (n,), "bounds": (2, n)}
    if dict(shapes) != wanted:
        raise InputError(f"expected arrays of shapes {wanted}, got {dict(shapes)}")
