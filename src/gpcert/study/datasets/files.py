"""Where data come from: files as others publish them (npz, idx, CSV) in a folder, or OpenML; and
what every loader returns.
"""

from __future__ import annotations

import csv
import gzip
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from io import BufferedReader
from pathlib import Path

import numpy as np

from gpcert.errors import InputError
from gpcert.numerics.arrays import finite_array
from gpcert.utils.archive import open_archive


@dataclass(frozen=True, eq=False)
class Dataset:
    """Training and test points, one row each, with their labels.

    >>> data = Dataset([[0.0], [1.0]], [3, 8], [[0.5]], [8], name="three points")
    >>> data.dim, data.classes
    (1, (3, 8))
    """

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    name: str

    def __post_init__(self) -> None:
        for part in ("train", "test"):
            X = finite_array(f"X_{part}", getattr(self, f"X_{part}"), ndim=2)
            y = np.asarray(getattr(self, f"y_{part}"))
            if y.shape != (len(X),):
                raise InputError(f"y_{part}: expected {len(X)} labels, got shape {y.shape}")
            object.__setattr__(self, f"X_{part}", X)
            object.__setattr__(self, f"y_{part}", y)
        if self.X_train.shape[1] != self.X_test.shape[1]:
            raise InputError(
                f"X_test: expected {self.X_train.shape[1]} features as in X_train, "
                f"got {self.X_test.shape[1]}"
            )

    @property
    def dim(self) -> int:
        """Number of features."""
        return self.X_train.shape[1]

    @property
    def classes(self) -> tuple:
        """The labels that occur in the training part, in order."""
        return tuple(np.unique(self.y_train).tolist())


def shuffled_split(
    X: np.ndarray, y: np.ndarray, test_size: float, random_state: int | None, name: str
) -> Dataset:
    """Points in two parts, each with the same share of every class."""
    from sklearn.model_selection import train_test_split

    try:
        parts = train_test_split(X, y, test_size=test_size, stratify=y, random_state=random_state)
    except ValueError as error:
        raise InputError(f"test_size: expected a share that can be split off; {error}") from error
    X_train, X_test, y_train, y_test = map(np.asarray, parts)
    return Dataset(X_train, y_train, X_test, y_test, name)


def standardised(data: Dataset) -> Dataset:
    """Both parts with the training part's mean taken away, divided by its deviation.

    A feature that is constant in the training part is only centred.
    """
    mean, deviation = data.X_train.mean(0), data.X_train.std(0)
    deviation = np.where(deviation > 0, deviation, 1.0)
    X_train, X_test = ((X - mean) / deviation for X in (data.X_train, data.X_test))
    return replace(data, X_train=X_train, X_test=X_test)


def checked_classes(classes: Sequence[int], labels: np.ndarray, source: str) -> list[int]:
    """The classes that were asked for, all of which must be among the labels of the source."""
    wanted = list(classes)
    if len(set(wanted)) < 2 or len(set(wanted)) != len(wanted):
        raise InputError(f"classes: expected two or more different labels, got {classes!r}")
    present = np.unique(labels).tolist()
    missing = [label for label in wanted if label not in present]
    if missing:
        raise InputError(f"classes: expected labels among {present} of {source}, got {missing}")
    return wanted


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
    from sklearn.datasets import fetch_openml

    try:
        X, y = fetch_openml(name, version=version, as_frame=False, parser="auto", return_X_y=True)
    except OSError as error:  # urllib's errors are OSErrors
        raise InputError(
            f"{name}: expected OpenML to answer, got {error}; "
            "without a network give folder= with the npz file"
        ) from error
    return np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64).astype(np.int64)


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
        rows = np.loadtxt(path, delimiter=",", skiprows=int(header), ndmin=2, encoding="utf-8")
    except ValueError as error:  # also text that is no UTF-8
        raise InputError(f"{path.name}: expected numbers between commas; {error}") from error
    if rows.shape[1] != columns or not np.isfinite(rows).all():
        raise InputError(
            f"{path.name}: expected {columns} finite numbers per row, got shape {rows.shape}"
        )
    return rows


def read_named_columns(path: Path) -> tuple[list[str], list[list[str]]]:
    """Names and rows, as text, of a CSV file whose first row has the names; commas, semicolons or
    tabs."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = file.readline()
            delimiter = max(",;\t", key=first.count)
            names = next(csv.reader([first], delimiter=delimiter), [])
            rows = [row for row in csv.reader(file, delimiter=delimiter) if row]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path.name}: expected a CSV file; {error}") from error
    lengths = {len(row) for row in rows} - {len(names)}
    if lengths or not rows or len(set(names)) != len(names):
        raise InputError(
            f"{path.name}: expected different names in the first row and as many values in every "
            f"other row, got {len(names)} names and rows of {sorted(lengths)[:3]} values"
        )
    return [name.strip() for name in names], rows


def _is_numbers(line: str) -> bool:
    try:
        return bool([float(part) for part in line.split(",")])
    except ValueError:
        return False
