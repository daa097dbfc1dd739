"""The 8x8 digits that come with scikit-learn: no download."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.datasets import load_digits

from gpcert.datasets.record import Dataset, checked_classes, shuffled_split

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
    X, y = (np.asarray(part) for part in load_digits(return_X_y=True))
    wanted = checked_classes(classes, y, "the embedded digits")
    chosen = np.isin(y, wanted)
    X_train, X_test, y_train, y_test = shuffled_split(
        X[chosen] / GREY_LEVELS, y[chosen], test_size, random_state
    )
    name = f"digits {' against '.join(map(str, wanted))}"
    return Dataset(X_train, y_train, X_test, y_test, name=name)
