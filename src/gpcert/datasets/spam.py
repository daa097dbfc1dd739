"""UCI Spambase: 57 frequencies of words and characters in e-mails."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, get_args

import numpy as np

from gpcert.datasets.files import first_file, read_table
from gpcert.datasets.record import Dataset, shuffled_split, standardised
from gpcert.datasets.reduction import l1_features
from gpcert.datasets.sources import download, read_npz
from gpcert.errors import InputError

FEATURES = 57
Features = Literal["all", "paper", "reduced"]

PAPER_COLUMNS = (4, 6, 15, 16, 18, 20, 22, 24, 51, 52, 56)
"""The paper's features, counted from 0 (there from 1: 5 7 16 17 19 21 23 25 52 53 57)."""


def spambase(
    folder: str | Path | None = None,
    *,
    features: Features = "all",
    test_size: float = 0.25,
    standardise: bool = True,
    random_state: int | None = 0,
) -> Dataset:
    """Spam (1) and other (0) e-mails, standardised by the training part as in the paper.

    From OpenML, or from `folder`: `spambase.npz` with the arrays `X` (n, 57) and `y` (n,), or
    `spambase.csv` or `spambase.data`, the label last.
    `features` are "all", the eleven that the paper's scripts use ("paper"), or those that the
    paper's way of reducing them leaves here ("reduced", see `l1_features`: it depends on the split
    and on a penalty that the paper does not give). The rows are shuffled before the split, since
    the file has all spam first.

    Cite: Hopkins, Reeber, Forman, Suermondt (1999), Spambase, doi:10.24432/C53G6X.
    """
    if features not in get_args(Features):
        raise InputError(f"features: expected one of {get_args(Features)}, got {features!r}")
    if folder is None:
        X, y = download("spambase", version=1)
    else:
        table = first_file(Path(folder), ("spambase.csv", "spambase.data"))
        if table is None or (Path(folder) / "spambase.npz").is_file():
            X, y = read_npz(folder, "spambase.npz", ("X", "y"), (FEATURES,))
        else:
            found = read_table(table, FEATURES + 1)
            X, y = found[:, :-1], found[:, -1]
    if X.ndim != 2 or X.shape[1] != FEATURES or y.shape != (len(X),):
        raise InputError(
            f"spambase: expected X of shape (n, {FEATURES}) and y (n,), got {X.shape} and {y.shape}"
        )
    # float32 files hold rounded decimals; they become exact float64 numbers
    X = np.asarray(X, dtype=np.float64)
    if features == "paper":
        X = X[:, PAPER_COLUMNS]
    X_train, X_test, y_train, y_test = shuffled_split(
        X, y.astype(np.int64), test_size, random_state
    )
    scaled = standardised(X_train, X_test)
    if features == "reduced":
        kept = l1_features(Dataset(scaled[0], y_train, scaled[1], y_test, name="Spambase"))
        X_train, X_test, scaled = X_train[:, kept], X_test[:, kept], [X[:, kept] for X in scaled]
    if standardise:
        X_train, X_test = scaled
    return Dataset(X_train, y_train, X_test, y_test, name="Spambase")
