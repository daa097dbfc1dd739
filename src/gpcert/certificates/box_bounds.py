"""Proved ranges of several quantities over many boxes, as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gpcert.archive import open_archive, plain_label, read_arrays, write_arrays
from gpcert.certificates.io import package_version
from gpcert.errors import InputError
from gpcert.json_text import from_json, to_json

FORMAT = "gpcert-boxes-1"

PLAIN = ("reached", "converged", "tol", "boxes", "seconds")
"""Fields that stand in the header of a file as they are."""


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
    converged : whether every end is known to within `tol`, where one was asked for.
    tol : as asked for; None if each box was bounded once.
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

    def __repr__(self) -> str:
        names = ", ".join(f"{name} of {len(self.outputs[name])}" for name in self.ranges)
        end = "" if self.complete else f", {self.reached} reached"
        return f"BoxBounds({len(self)} boxes in {self.lower.shape[1]} features{end}; {names})"

    def save(self, path: str | Path) -> None:
        """Write one file, `.npz` with a header; `BoxBounds.load` reads it."""
        header = {
            "format": FORMAT,
            "version": package_version(),
            "outputs": self._plain_outputs(),
            **{name: getattr(self, name) for name in PLAIN},
            "models": list(self.models),
            "affine": list(self.affine),
        }
        arrays = {f"range_{name}": values for name, values in self.ranges.items()}
        arrays |= {f"lines_{name}": values for name, values in self.affine.items()}
        write_arrays(path, header, {"lower": self.lower, "upper": self.upper, **arrays})

    @staticmethod
    def wrote(path: str | Path) -> bool:
        """Whether an archive says that it is a file of `save`."""
        try:
            with open_archive(path, "a file of gpcert") as archive:
                header = from_json(archive.text("header"))
        except InputError:
            return False
        return isinstance(header, dict) and header.get("format") == FORMAT

    @staticmethod
    def load(path: str | Path) -> BoxBounds:
        """Read a file of `save`; names, shapes and sizes are checked before it is unpacked."""
        header, arrays = read_arrays(path, {FORMAT: _check})
        return BoxBounds(
            lower=arrays["lower"],
            upper=arrays["upper"],
            ranges={name: arrays[f"range_{name}"] for name in header["outputs"]},
            outputs={name: tuple(labels) for name, labels in header["outputs"].items()},
            models=tuple(header["models"]),
            affine={name: arrays[f"lines_{name}"] for name in header.get("affine", [])},
            **{name: header[name] for name in PLAIN},
        )

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
    if wrong or not isinstance(outputs, dict) or not isinstance(header.get("tol"), float | None):
        raise InputError(
            f"expected the header of BoxBounds.save; look at {wrong or 'outputs, tol'}"
        )
    if not all(isinstance(labels, list) for labels in outputs.values()):
        raise InputError("outputs: expected lists of labels")
    if "lower" not in shapes or len(shapes["lower"]) != 2:
        raise InputError("lower: expected an array of shape (R, d)")
    expected = {"lower": shapes["lower"], "upper": shapes["lower"]}
    rows, dim = shapes["lower"]
    affine = header.get("affine", [])
    if not isinstance(affine, list) or not set(affine) <= set(outputs):
        raise InputError(f"affine: expected some of {list(outputs)}, got {affine!r}")
    lined = {f"lines_{name}": (rows, len(outputs[name]), 2, dim + 1) for name in affine}
    expected |= lined
    expected |= {f"range_{name}": (rows, len(each), 2) for name, each in outputs.items()}
    if dict(shapes) != expected:
        raise InputError(f"expected arrays of shapes {expected}, got {dict(shapes)}")
