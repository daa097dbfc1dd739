"""The data sets that experiments name, and what identifies their content."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from gpcert.datasets import Dataset, digits, fashion, mnist, spambase, synthetic2d
from gpcert.errors import InputError

LOADERS: dict[str, Callable[[str | None], Dataset]] = {
    "synthetic2d": lambda folder: synthetic2d(),
    "synthetic2d-published": lambda folder: synthetic2d(shift=5.0),
    "digits38": lambda folder: digits((3, 8)),
    "digits358": lambda folder: digits((3, 5, 8)),
    "spam": lambda folder: spambase(folder, features="paper"),
    "mnist38": lambda folder: mnist((3, 8), folder),
    "mnist358": lambda folder: mnist((3, 5, 8), folder),
    "fashion-ts": lambda folder: fashion((0, 6), folder),
    "fashion-tsp": lambda folder: fashion((0, 2, 6), folder),
}
"""By name: the paper's, as far as they go, and scikit-learn's digits in their place offline."""

OFFLINE = ("synthetic2d", "synthetic2d-published", "digits38", "digits358")
"""Those that need no file and no download."""


@dataclass(frozen=True)
class Sources:
    """Data sets by name: generated, embedded, from files in a folder, or from OpenML.

    A copy of it travels to the processes that compute; each of them loads what it needs, once.

    >>> Sources().load("synthetic2d").dim
    2
    """

    folder: str | None = None

    def __post_init__(self) -> None:
        if self.folder is not None:
            object.__setattr__(self, "folder", str(Path(self.folder).absolute()))

    def load(self, name: str) -> Dataset:
        """The data set of this name."""
        if name not in LOADERS:
            raise InputError(f"data: expected one of {list(LOADERS)}, got {name!r}")
        return _loaded(name, None if name in OFFLINE else self.folder)

    def digest(self, name: str) -> str:
        """SHA-256 of all numbers and labels of a data set, as the experiments see them."""
        return _digest(self.load(name))


@cache
def _loaded(name: str, folder: str | None) -> Dataset:
    return LOADERS[name](folder)


@cache
def _digest(data: Dataset) -> str:
    found = hashlib.sha256()
    for part in (data.X_train, data.y_train, data.X_test, data.y_test):
        array = np.ascontiguousarray(part)
        found.update(f"{array.dtype.str} {array.shape} ".encode())
        found.update(array.tobytes())
    return found.hexdigest()


def subset(data: Dataset, n_train: int, n_test: int, random_state: int) -> Dataset:
    """Training and test points drawn at random; all of them where there are no more.

    A larger draw with the same seed contains a smaller one, so that sizes can be compared.

    >>> small = subset(digits((3, 8)), 20, 10, random_state=0)
    >>> large = subset(digits((3, 8)), 40, 10, random_state=0)
    >>> bool(np.array_equal(small.X_train, large.X_train[:20]))
    True
    """
    rng = np.random.default_rng(random_state)
    train = rng.permutation(len(data.X_train))[:n_train]
    test = rng.permutation(len(data.X_test))[:n_test]
    return replace(
        data,
        X_train=data.X_train[train],
        y_train=data.y_train[train],
        X_test=data.X_test[test],
        y_test=data.y_test[test],
    )
