"""Images: MNIST and Fashion-MNIST, pooled to 14x14 as in the paper; scikit-learn's 8x8 digits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gpcert.errors import InputError
from gpcert.study.datasets.files import (
    Dataset,
    checked_classes,
    download,
    first_file,
    read_idx,
    read_npz,
    read_table,
    shuffled_split,
)

GREY_LEVELS = 16
"""Pixels of the embedded digits are whole numbers from 0 to 16."""


def digits(
    classes: Sequence[int] = (3, 8), test_size: float = 0.3, random_state: int | None = 0
) -> Dataset:
    """Handwritten digits of the given classes as 8x8 images, pixels in [0, 1].

    Optical Recognition of Handwritten Digits (Alpaydin and Kaynak 1998), as embedded in
    scikit-learn: about 180 images per class, split so that both parts have the same share of each.

    >>> data = digits((3, 8))
    >>> data.X_train.shape, data.X_test.shape, data.classes
    ((249, 64), (108, 64), (3, 8))
    """
    from sklearn.datasets import load_digits

    X, y = (np.asarray(part) for part in load_digits(return_X_y=True))
    wanted = checked_classes(classes, y, "the embedded digits")
    chosen = np.isin(y, wanted)
    name = f"digits {' against '.join(map(str, wanted))}"
    return shuffled_split(X[chosen] / GREY_LEVELS, y[chosen], test_size, random_state, name)


KEYS = ("x_train", "y_train", "x_test", "y_test")
IDX = (
    "train-images-idx3-ubyte",
    "train-labels-idx1-ubyte",
    "t10k-images-idx3-ubyte",
    "t10k-labels-idx1-ubyte",
)
SIDE = 28
TRAIN_SIZE = 60000
"""OpenML stores the 60000 training images first, then the 10000 test images."""


def mnist(
    classes: Sequence[int] = (3, 8), folder: str | Path | None = None, size: int = 14
) -> Dataset:
    """Handwritten digits of the given classes; pixels in [0, 1], labels are the digits.

    From OpenML (`mnist_784`; scikit-learn keeps a copy), or from `folder`: `mnist_358.npz` with
    uint8 arrays `x_train` (n, 28, 28), `y_train` (n,), `x_test`, `y_test`; or the four idx files
    `mnist/train-images-idx3-ubyte` and so on, also `.gz`; or `mnist_train.csv` and
    `mnist_test.csv` with the label first. `size` 14: means of 2x2 pixels; 28: all.
    """
    return _load("mnist_784", "mnist_358.npz", classes, folder, size)


def fashion(classes: Sequence[int], folder: str | Path | None = None, size: int = 14) -> Dataset:
    """Fashion-MNIST images of the given classes (0 t-shirt, 2 pullover, 6 shirt, ...).

    From OpenML (`Fashion-MNIST`), or from `folder`: `fashion_tsp.npz`, the four idx files in
    `fashion/`, or `fashion_train.csv` and `fashion_test.csv`; otherwise as `mnist`.
    """
    return _load("Fashion-MNIST", "fashion_tsp.npz", classes, folder, size)


def pooled(images: np.ndarray, size: int) -> np.ndarray:
    """Grey levels 0..255 (n, 28, 28) as rows of pixels in [0, 1], by 2x2 means where size is 14.

    >>> pooled(np.full((1, 28, 28), 255), 14).shape
    (1, 196)
    """
    if size not in (SIDE // 2, SIDE):
        raise InputError(f"size: expected {SIDE // 2} or {SIDE}, got {size!r}")
    step = SIDE // size
    blocks = np.asarray(images, dtype=np.float64).reshape(-1, size, step, size, step)
    return (blocks.mean(axis=(2, 4)) / 255.0).reshape(-1, size * size)


def _read(folder: Path, filename: str) -> tuple[np.ndarray, ...]:
    """Images and labels for training, then for testing: from npz, else idx, else CSV files."""
    name = filename.partition("_")[0]
    if not (folder / filename).is_file():
        if paths := _together(folder / name, IDX, ("", ".gz")):
            return tuple(map(read_idx, paths))
        if paths := _together(folder, (f"{name}_train", f"{name}_test"), (".csv",)):
            tables = [read_table(path, SIDE * SIDE + 1) for path in paths]
            return tuple(half for table in tables for half in (table[:, 1:], table[:, 0]))
    return read_npz(folder, filename, KEYS, (SIDE, SIDE))


def _together(folder: Path, stems: Sequence[str], endings: Sequence[str]) -> list[Path]:
    """The files of these names with one of the endings: all of them, or none where none is."""
    paths = {stem: first_file(folder, [stem + ending for ending in endings]) for stem in stems}
    if any(paths.values()):
        for stem, path in paths.items():
            if path is None:
                raise InputError(
                    f"folder: expected the file {stem}{endings[0]} in {str(folder)!r} beside the "
                    "others"
                )
    return [path for path in paths.values() if path is not None]


def _load(
    name: str, filename: str, classes: Sequence[int], folder: str | Path | None, size: int
) -> Dataset:
    if folder is None:
        X, y = download(name, version=1)
        parts = X[:TRAIN_SIZE], y[:TRAIN_SIZE], X[TRAIN_SIZE:], y[TRAIN_SIZE:]
    else:
        parts = _read(Path(folder), filename)
    wanted = checked_classes(classes, parts[1], filename if folder is not None else name)
    chosen = []
    for x, y in (parts[:2], parts[2:]):
        if x.size != len(y) * SIDE * SIDE or y.ndim != 1:
            raise InputError(
                f"{filename}: expected one label for each {SIDE}x{SIDE} image, "
                f"got shapes {x.shape} and {y.shape}"
            )
        keep = np.isin(y, wanted)
        chosen += [pooled(x[keep], size), y[keep].astype(np.int64)]
    label = " against ".join(str(c) for c in wanted)
    return Dataset(*chosen, name=f"{filename.partition('_')[0]} {label}")
