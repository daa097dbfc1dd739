"""Proved ranges of several quantities over many boxes: as arrays that save and load, and while they
are computed, in memory or in a file that a run goes on from."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from gpcert.errors import InputError
from gpcert.utils.archive import (
    from_json,
    plain_label,
    read_arrays,
    to_json,
    write_arrays,
)
from gpcert.utils.optional_imports import Axes, package_version

FORMAT, PROGRESS_FORMAT = "gpcert-boxes-1", "gpcert-boxes-progress-1"

PLAIN = ("reached", "converged", "tol", "boxes", "seconds")
"""Fields that stand in the header of a file as they are."""

NOTHING = np.array([-np.inf, np.inf])
"""The range of a box that has not been bounded: true of every model."""


@dataclass(frozen=True, eq=False)
class BoxBounds:
    """`bounds["mean"][r, o]` is `(low, high)`: the mean of output o stays between them on box r.

    Every number holds, also of a run that was interrupted: boxes that it did not reach have
    infinite ends.

    Attributes
    ----------
    lower, upper : (R, d), the boxes.
    ranges : {quantity: (R, outputs, 2)}.
    outputs : {quantity: labels of the outputs}, one after another for several models.
    reached : how many boxes were bounded; `complete` if all were.
    converged : whether every end is known to within `tol` or `rtol`, where one was asked for.
    tol, rtol : as asked for; each box was bounded once where both are None.
    met : of how many boxes all ends are known so well; None where no tolerance was asked for.
    boxes : enclosures that were evaluated, with those of the refinement.
    seconds : wall-clock time.
    models : fingerprints of the models.
    affine : {quantity: (R, outputs, 2, d + 1)}, if `affine=True` was asked for: with
        `*slope, offset = affine["mean"][r, o, 0]` the mean is at least `slope.x + offset` for every
        real point x of box r, and at most that of `affine["mean"][r, o, 1]`.
    """

    lower: np.ndarray
    upper: np.ndarray
    ranges: Mapping[str, np.ndarray]
    outputs: Mapping[str, tuple[Any, ...]]
    reached: int
    converged: bool
    tol: float | None
    boxes: int
    seconds: float
    models: tuple[str, ...]
    affine: Mapping[str, np.ndarray] = field(default_factory=dict)
    met: int | None = None
    rtol: float | None = None

    def __len__(self) -> int:
        return len(self.lower)

    def __getitem__(self, quantity: str) -> np.ndarray:
        if quantity not in self.ranges:
            known = ", ".join(map(repr, self.ranges))
            raise InputError(f"quantity: expected one of {known}, got {quantity!r}")
        return self.ranges[quantity]

    @property
    def complete(self) -> bool:
        """Whether all boxes were bounded."""
        return self.reached == len(self)

    @property
    def summary(self) -> str:
        """In words, how many boxes were bounded, and how many not as well as asked."""
        count = len(self)
        said = f"{self.reached} of {count} boxes bounded"
        said += "" if self.complete else ", the others have infinite ends"
        absolute = [] if self.tol is None else [f"{self.tol:g}"]
        relative = [] if self.rtol is None else [f"{self.rtol:g} of the value"]
        asked = " or ".join(absolute + relative)
        if not asked or self.converged or self.met == count:
            return f"{said} to within {asked}" if asked else said
        left = "some boxes" if self.met is None else f"{count - self.met} of {count} boxes"
        return f"{said}; the tolerance {asked} was not reached for {left}, whose bounds hold"

    def __repr__(self) -> str:
        names = ", ".join(f"{name} of {len(self.outputs[name])}" for name in self.ranges)
        state = f"complete={self.complete}, converged={self.converged}"
        size = f"{len(self)} boxes in {self.lower.shape[1]} features"
        return f"BoxBounds({size}; {names}; {self.summary}; {state})"

    def plot(self, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw one end of the ranges, in two features as colours: `quantity=`, `output=`, `end=`,
        `features=`, `at=`. See `gpcert.plots.plot_boxes`."""
        return import_module("gpcert.plots.sets").plot_boxes(ax, self, **options)

    def save(self, path: str | Path) -> None:
        """Write one file, `.npz` with a header; `BoxBounds.load` reads it."""
        header = {
            "format": FORMAT,
            "version": package_version(),
            "outputs": self._plain_outputs(),
            **{name: getattr(self, name) for name in (*PLAIN, "met", "rtol")},
            "models": list(self.models),
            "affine": list(self.affine),
        }
        arrays = {f"range_{name}": values for name, values in self.ranges.items()}
        arrays |= {f"lines_{name}": values for name, values in self.affine.items()}
        write_arrays(path, header, {"lower": self.lower, "upper": self.upper, **arrays})

    @staticmethod
    def load(path: str | Path) -> BoxBounds:
        """Read a file of `save`; names, shapes and sizes are checked before it is unpacked."""
        header, arrays = read_arrays(path, {FORMAT: _check})
        bounds = BoxBounds(
            lower=arrays["lower"],
            upper=arrays["upper"],
            ranges={name: arrays[f"range_{name}"] for name in header["outputs"]},
            outputs={name: tuple(labels) for name, labels in header["outputs"].items()},
            models=tuple(header["models"]),
            affine={name: arrays[f"lines_{name}"] for name in header.get("affine", [])},
            met=header.get("met"),  # older files have neither
            rtol=header.get("rtol"),
            **{name: header[name] for name in PLAIN},
        )
        bounds._check_numbers(path)
        return bounds

    def _check_numbers(self, path: str | Path) -> None:
        """Of what was loaded: boxes and ranges whose ends do not cross, and no NaN."""
        pairs = {"lower and upper": (self.lower, self.upper)}
        pairs |= {name: (each[..., 0], each[..., 1]) for name, each in self.ranges.items()}
        # written so that NaN, which compares false, is refused
        wrong = [name for name, (low, high) in pairs.items() if not np.all(low <= high)]
        wrong += [f"affine {name}" for name, each in self.affine.items() if np.isnan(each).any()]
        if not 0 <= self.reached <= len(self):
            wrong.append("reached")
        if self.met is not None and not 0 <= self.met <= len(self):
            wrong.append("met")
        if wrong:
            raise InputError(f"{path}: expected bounds of boxes; look at {', '.join(wrong)}")

    def save_imdp(self, folder: str | Path) -> None:
        """Write the arrays that tools for interval Markov decision processes read.

        `extents.npy` (R + 1, d, 2): lower and upper ends of every box, the box around all of them
        last; `mean.npy` and `std.npy` (R, outputs, 2), as far as they were bounded.
        """
        if not self.complete:
            raise InputError(
                f"save_imdp: expected bounds of all {len(self)} boxes, got {self.reached}; go on "
                "with the same call (out= a path resumes)"
            )
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        extents = np.stack([self.lower, self.upper], axis=-1)
        whole = np.stack([self.lower.min(axis=0), self.upper.max(axis=0)], axis=-1)
        np.save(place / "extents.npy", np.concatenate([extents, whole[None]]))
        for name, values in self.ranges.items():
            np.save(place / f"{name}.npy", values)
        about = {"outputs": self._plain_outputs(), "models": list(self.models)}
        (place / "about.json").write_text(to_json(about))

    def _plain_outputs(self) -> dict[str, list[Any]]:
        """The labels of the outputs as text, numbers and truth values."""
        return {name: [plain_label(label) for label in own] for name, own in self.outputs.items()}


def _check(header: dict[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """That the arrays of a file fit each other and the header."""
    outputs = header.get("outputs")
    kinds = {"reached": int, "boxes": int, "seconds": float, "models": list, "converged": bool}
    wrong = [name for name, kind in kinds.items() if not isinstance(header.get(name), kind)]
    optional = {"tol": float | None, "rtol": float | None, "met": int | None}
    wrong += [name for name, kind in optional.items() if not isinstance(header.get(name), kind)]
    if wrong or not isinstance(outputs, dict):
        where = wrong or "outputs"
        raise InputError(f"expected the header of BoxBounds.save; look at {where}")
    if not all(isinstance(labels, list) for labels in outputs.values()):
        raise InputError("outputs: expected lists of labels")
    if "lower" not in shapes or len(shapes["lower"]) != 2:
        raise InputError("lower: expected an array of shape (R, d)")
    expected = {"lower": shapes["lower"], "upper": shapes["lower"]}
    rows, dim = shapes["lower"]
    affine = header.get("affine", [])
    if not isinstance(affine, list) or not set(affine) <= set(outputs):
        raise InputError(f"affine: expected some of {list(outputs)}, got {affine!r}")
    expected |= {f"lines_{name}": (rows, len(outputs[name]), 2, dim + 1) for name in affine}
    expected |= {f"range_{name}": (rows, len(each), 2) for name, each in outputs.items()}
    if dict(shapes) != expected:
        raise InputError(f"expected arrays of shapes {expected}, got {dict(shapes)}")


@dataclass(eq=False)
class BoxFile:
    """`values` (R, outputs, ...), infinite where nothing is known; the numbers of `done` blocks.

    A file has its progress beside it, from which a run that was killed goes on.
    """

    values: np.ndarray
    identity: str
    progress: Path | None = None
    done: set[int] = field(default_factory=set)
    nothing: np.ndarray = field(default_factory=NOTHING.copy)

    @staticmethod
    def of(
        target: Any, rows: tuple[int, int], identity: str, nothing: np.ndarray = NOTHING
    ) -> BoxFile:
        """A new array, an array of the user's, or a file: a new one, or one of the same call;
        (boxes, outputs) times `nothing`, which is true of every box."""
        shape = (*rows, *nothing.shape)
        if isinstance(target, str | os.PathLike):
            return _opened(Path(target), shape, identity, nothing)
        if target is None:
            target = np.empty(shape)
        if not isinstance(target, np.ndarray) or target.shape != shape or target.dtype != float:
            got = getattr(target, "shape", type(target)), getattr(target, "dtype", "")
            raise InputError(f"out: expected a float64 array of shape {shape}, got {got}")
        if not target.flags.writeable:
            raise InputError("out: expected an array that can be written, got a read-only one")
        target[...] = nothing
        return BoxFile(target, identity, nothing=nothing)

    def forget_unfinished(self, block: int, rows: slice) -> None:
        """Know nothing of a block that an earlier run did not finish: where it was killed, or the
        machine with it, an affine function may have a slope of one search and an offset of
        another, which is no bound."""
        if self.done and block not in self.done:  # of a file without any all was forgotten
            self.values[rows] = self.nothing

    def write(self, block: int, rows: slice, values: np.ndarray, finished: bool) -> None:
        """Put a block's ranges in their place; noted as done only once they are on the disk."""
        self.values[rows] = values
        if not finished:
            return
        self.done.add(block)
        if isinstance(self.values, np.memmap):
            self.values.flush()
        self.note()

    def note(self) -> None:
        """Write which blocks are done beside the file."""
        if self.progress is None:
            return
        about = {"format": PROGRESS_FORMAT, "identity": self.identity, "done": sorted(self.done)}
        new = self.progress.with_name(self.progress.name + ".new")
        new.write_text(to_json(about))
        new.replace(self.progress)  # a kill finds the old text or the new one


def _opened(path: Path, shape: tuple[int, ...], identity: str, nothing: np.ndarray) -> BoxFile:
    if path.suffix != ".npy":
        raise InputError(f"out: expected a path that ends in .npy, got {str(path)!r}")
    if not path.parent.is_dir():
        raise InputError(f"out: expected a path in a folder that exists, got {str(path)!r}")
    progress = path.with_name(path.name + ".progress.json")
    if not path.exists():
        file = BoxFile(np.empty(0), identity, progress, nothing=nothing)
        file.note()
        file.values = np.lib.format.open_memmap(path, mode="w+", dtype=np.float64, shape=shape)
        file.values[...] = nothing
        return file
    record = from_json(progress.read_text()) if progress.exists() else None
    about = record if isinstance(record, dict) else {}
    if about.get("format") != PROGRESS_FORMAT or about.get("identity") != identity:
        raise InputError(
            f"out: {str(path)!r} exists and is not of a call with this model, these boxes and this "
            "accuracy by this version of gpcert; choose another path, or delete it"
        )
    values = np.lib.format.open_memmap(path, mode="r+")
    if values.shape != shape or values.dtype != np.float64:
        raise InputError(f"out: expected a float64 array of shape {shape}, got {values.shape}")
    done = {int(k) for k in about["done"]}
    if not done:  # the kill may have come before all of it was filled
        values[...] = nothing
    return BoxFile(values, identity, progress, done, nothing)
