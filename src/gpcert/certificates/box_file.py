"""Ranges of many boxes while they are computed: in memory, or in a file."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from gpcert.errors import InputError
from gpcert.json_text import from_json, to_json

FORMAT = "gpcert-boxes-progress-1"

NOTHING = np.array([-np.inf, np.inf])
"""The range of a box that has not been bounded: true of every model."""


@dataclass(eq=False)
class BoxFile:
    """`values` (R, outputs, ...), infinite where nothing is known; the numbers of `done` blocks.

    A file has its progress beside it, from which a run that was killed goes on.
    """

    values: np.ndarray
    identity: str
    progress: Path | None = None
    done: set[int] = field(default_factory=set)

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
        return BoxFile(target, identity)

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
        about = {"format": FORMAT, "identity": self.identity, "done": sorted(self.done)}
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
        file = BoxFile(np.empty(0), identity, progress)
        file.note()
        file.values = np.lib.format.open_memmap(path, mode="w+", dtype=np.float64, shape=shape)
        file.values[...] = nothing
        return file
    found = from_json(progress.read_text()) if progress.exists() else None
    about = found if isinstance(found, dict) else {}
    if about.get("format") != FORMAT or about.get("identity") != identity:
        raise InputError(
            f"out: {str(path)!r} exists and is not of a call with this model, these boxes and this "
            "accuracy; choose another path, or delete it"
        )
    values = np.lib.format.open_memmap(path, mode="r+")
    if values.shape != shape or values.dtype != np.float64:
        raise InputError(f"out: expected a float64 array of shape {shape}, got {values.shape}")
    done = {int(k) for k in about["done"]}
    if not done:  # the kill may have come before all of it was filled
        values[...] = nothing
    return BoxFile(values, identity, progress, done)
