"""What every loader returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpcert.errors import InputError
from gpcert.numerics.arrays import finite_array


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
    features: tuple[str, ...] = ()
    """Their names, where the source has some."""

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
