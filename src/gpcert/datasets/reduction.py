"""Fewer features: the least relevant of a sparse linear classifier are left out, one by one."""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression

from gpcert.datasets.record import Dataset
from gpcert.errors import InputError


def l1_features(data: Dataset, C: float = 0.01, loss: float | None = None) -> np.ndarray:
    """Features that are left when test accuracy starts to fall, in order; the paper's reduction.

    An l1-penalised logistic regression (`C` times the sum of losses is weighed against the
    coefficients) is trained, the feature with the
    smallest coefficient in size is left out, and so on. "Starts to fall" is not defined in the
    paper: here accuracy may be at most `loss` below that with all features, by default its standard
    error; features are left out until the first that costs more. Expects standardised features.

    >>> from gpcert.datasets import Dataset
    >>> X = np.random.default_rng(0).standard_normal((200, 3))
    >>> y = (X[:, 1] > 0).astype(int)
    >>> data = Dataset(X[:100], y[:100], X[100:], y[100:], name="one matters")
    >>> l1_features(data, C=1.0).tolist()
    [1]
    """
    if len(data.classes) != 2:
        raise InputError(f"data: expected two classes, got {len(data.classes)}")
    kept = np.arange(data.dim)
    before, least = kept, None
    while True:
        model = LogisticRegression(l1_ratio=1.0, C=C, solver="liblinear", random_state=0)
        model.fit(data.X_train[:, kept], data.y_train)
        accuracy = float(model.score(data.X_test[:, kept], data.y_test))
        if least is None:
            error = np.sqrt(accuracy * (1.0 - accuracy) / len(data.y_test))
            least = accuracy - (error if loss is None else loss)
        elif accuracy < least:
            return before
        if len(kept) == 1:
            return kept
        before = kept
        kept = np.delete(kept, int(np.argmin(np.abs(model.coef_[0]))))
