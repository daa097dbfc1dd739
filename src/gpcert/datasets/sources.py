"""Where the larger data sets come from: npz files in a folder of the user's, or OpenML."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.lib.npyio import NpzFile
from sklearn.datasets import fetch_openml

from gpcert.errors import InputError

__all__ = ["read_npz", "download"]


def read_npz(folder: str | Path, filename: str, keys: Sequence[str]) -> tuple[np.ndarray, ...]:
    """The arrays of an npz file, in the order of `keys`; nothing in the file is executed."""
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
    try:
        # opened here: NumPy leaves the file open when it is no zip archive
        with path.open("rb") as stream:
            file = np.load(stream, allow_pickle=False)
            found = dict(file) if isinstance(file, NpzFile) else {}
    except (OSError, EOFError, ValueError, zipfile.BadZipFile) as error:
        raise InputError(f"{path}: expected an npz file of plain arrays ({error})") from error
    missing = [key for key in keys if key not in found]
    if missing:
        raise InputError(
            f"{path}: expected an npz file with {', '.join(keys)}; missing {', '.join(missing)}"
        )
    return tuple(found[key] for key in keys)


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
