"""MNIST and Fashion-MNIST, chosen classes, pooled to 14x14 as in the paper."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gpcert.datasets.record import Dataset, checked_classes
from gpcert.datasets.sources import download, read_npz
from gpcert.errors import InputError

__all__ = ["mnist", "fashion", "pooled"]

KEYS = ("x_train", "y_train", "x_test", "y_test")
SIDE = 28
TRAIN_SIZE = 60000
"""OpenML stores the 60000 training images first, then the 10000 test images."""


def mnist(
    classes: Sequence[int] = (3, 8), folder: str | Path | None = None, size: int = 14
) -> Dataset:
    """Handwritten digits of the given classes; pixels in [0, 1], labels are the digits.

    From OpenML (`mnist_784`), or from `mnist_358.npz` in `folder` with uint8 arrays `x_train`
    (n, 28, 28), `y_train` (n,), `x_test`, `y_test`. `size` 14: means of 2x2 pixels; 28: all.
    """
    return _load("mnist_784", "mnist_358.npz", classes, folder, size)


def fashion(classes: Sequence[int], folder: str | Path | None = None, size: int = 14) -> Dataset:
    """Fashion-MNIST images of the given classes (0 t-shirt, 2 pullover, 6 shirt, ...).

    From OpenML (`Fashion-MNIST`), or from `fashion_tsp.npz` in `folder`; otherwise as `mnist`.
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


def _load(
    name: str, filename: str, classes: Sequence[int], folder: str | Path | None, size: int
) -> Dataset:
    if folder is None:
        X, y = download(name, version=1)
        parts = X[:TRAIN_SIZE], y[:TRAIN_SIZE], X[TRAIN_SIZE:], y[TRAIN_SIZE:]
    else:
        parts = read_npz(folder, filename, KEYS, (SIDE, SIDE))
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
