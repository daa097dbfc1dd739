"""Where the larger data sets come from: npz files in a folder of the user's, or OpenML."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from sklearn.datasets import fetch_openml

from gpcert.archive import open_archive
from gpcert.errors import InputError

KINDS = ("b1", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8")
"""Types of numbers that data sets come in."""


def read_npz(
    folder: str | Path, filename: str, keys: Sequence[str], point: Sequence[int]
) -> tuple[np.ndarray, ...]:
    """The arrays of an npz file, in the order of `keys`; nothing in the file is executed.

    The keys are of points and of their labels, in turn; `point` is the shape of one point.
    """
    if not Path(folder).is_dir():
        raise InputError(
            f"folder: expected a folder that holds {filename}, but {str(folder)!r} is none; "
            "leave folder out to download from OpenML"
        )
    path = Path(folder) / filename
    if not path.is_file():
        raise InputError(
            f"folder: expected the file {filename} in {str(folder)!r}; it is not there"
        )
    with open_archive(path, f"an npz file with the arrays {', '.join(keys)}") as archive:
        missing = [key for key in keys if key not in archive.names]
        if missing:
            raise InputError(f"missing {', '.join(missing)}")
        shapes = archive.shapes(keys, KINDS)
        for points, labels in zip(keys[::2], keys[1::2], strict=True):
            rows = shapes[points]
            if shapes[labels] != rows[:1] or math.prod(rows[1:]) != math.prod(point):
                raise InputError(
                    f"expected points of {'x'.join(map(str, point))} numbers in {points} and one "
                    f"label for each in {labels}, got shapes {rows} and {shapes[labels]}"
                )
        arrays = {key: archive.array(key, KINDS) for key in keys}
        for labels in keys[1::2]:
            # a NaN is not equal to itself, an infinity has a NaN as remainder
            with np.errstate(invalid="ignore"):
                whole = np.all(np.remainder(arrays[labels].astype(np.float64), 1.0) == 0.0)
            if not whole:
                raise InputError(f"expected whole numbers in {labels}")
        return tuple(arrays.values())


def download(name: str, version: int) -> tuple[np.ndarray, np.ndarray]:
    """Data and labels (as numbers) of an OpenML data set; scikit-learn keeps a copy on disk."""
    try:
        X, y = fetch_openml(name, version=version, as_frame=False, parser="auto", return_X_y=True)
    except OSError as error:  # urllib's errors are OSErrors
        raise InputError(
            f"{name}: expected OpenML to answer, got {error}; "
            "without a network give folder= with the npz file"
        ) from error
    return np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64).astype(np.int64)
