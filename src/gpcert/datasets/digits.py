"""The 8x8 digits that come with scikit-learn: no download."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_digits

from gpcert.datasets.record import Dataset, shuffled_split

__all__ = ["digits38"]

GREY_LEVELS = 16
"""Pixels of the embedded digits are whole numbers from 0 to 16."""


def digits38(test_size: float = 0.3, random_state: int | None = 0) -> Dataset:
    """Handwritten 3 and 8 as 8x8 images, pixels in [0, 1]; labels 3 and 8.

    Optical Recognition of Handwritten Digits (Alpaydin and Kaynak 1998), as embedded in
    scikit-learn: 183 + 174 images, split so that both parts have the same share of each class.

    >>> data = digits38()
    >>> data.X_train.shape, data.X_test.shape, data.classes
    ((249, 64), (108, 64), (3, 8))
    """
    X, y = (np.asarray(part) for part in load_digits(return_X_y=True))
    chosen = np.isin(y, (3, 8))
    X_train, X_test, y_train, y_test = shuffled_split(
        X[chosen] / GREY_LEVELS, y[chosen], test_size, random_state
    )
    return Dataset(X_train, y_train, X_test, y_test, name="digits 3 against 8")
