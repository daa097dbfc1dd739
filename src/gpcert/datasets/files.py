"""Data files as others publish them: idx (MNIST's own format, also gzipped) and CSV."""

from __future__ import annotations

import gzip
import math
from collections.abc import Sequence
from io import BufferedReader
from pathlib import Path

import numpy as np

from gpcert.errors import InputError

LARGEST = 2**30
"""Bytes of an idx array: MNIST has 47 million."""

UNSIGNED_BYTES = 0x08
"""The only type of number that the MNIST files use."""


def first_file(folder: Path, names: Sequence[str]) -> Path | None:
    """The first of these names that is a file in the folder."""
    return next((folder / name for name in names if (folder / name).is_file()), None)


def read_idx(path: Path) -> np.ndarray:
    """The array of unsigned bytes in an idx file: two zero bytes, type, number of dimensions,
    sizes as big-endian 32-bit numbers, then the bytes; `.gz` files are unpacked as they are read.
    """
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rb") as file:
            return _array(file)
    except (InputError, OSError, EOFError) as error:
        raise InputError(f"{path.name}: expected an idx file of unsigned bytes; {error}") from error


def _array(file: BufferedReader | gzip.GzipFile) -> np.ndarray:
    start = file.read(4)
    if len(start) != 4 or start[:3] != bytes([0, 0, UNSIGNED_BYTES]):
        raise InputError(f"it begins with {start.hex() or 'nothing'}, not with 000008")
    header = file.read(4 * start[3])
    if len(header) != 4 * start[3]:
        raise InputError("its sizes are cut off")
    shape = np.frombuffer(header, dtype=">u4").tolist()
    size = math.prod(shape)
    if size > LARGEST:
        raise InputError(f"its shape {shape} has more than {LARGEST} bytes")
    content = file.read(size + 1)
    if len(content) != size:
        more = "more" if len(content) > size else "fewer"
        raise InputError(f"it has {more} bytes than its shape {shape} says")
    return np.frombuffer(content, dtype=np.uint8).reshape(shape)


def read_table(path: Path, columns: int) -> np.ndarray:
    """(n, columns) finite numbers of a CSV file; a first row of names is left out."""
    try:
        with path.open(encoding="utf-8") as file:
            header = not _is_numbers(file.readline())
        found = np.loadtxt(path, delimiter=",", skiprows=int(header), ndmin=2, encoding="utf-8")
    except ValueError as error:  # also text that is no UTF-8
        raise InputError(f"{path.name}: expected numbers between commas; {error}") from error
    if found.shape[1] != columns or not np.isfinite(found).all():
        raise InputError(
            f"{path.name}: expected {columns} finite numbers a row, got shape {found.shape}"
        )
    return found


def _is_numbers(line: str) -> bool:
    try:
        return bool([float(part) for part in line.split(",")])
    except ValueError:
        return False
