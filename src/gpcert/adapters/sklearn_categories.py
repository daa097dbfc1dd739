"""scikit-learn's encoders of categories as linear maps of indicators, and points as they take them.

Each output of a `OneHotEncoder` or `OrdinalEncoder` is a function of one column, which a region
keeps fixed: what the encoder computes for each category is all there is to know.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder

from gpcert.adapters import adapter
from gpcert.errors import InputError, UnsupportedModelError
from gpcert.inputs.tabular import Levels, checked_levels, with_others
from gpcert.regions import LinearMap
from gpcert.utils.optional_imports import optional
from gpcert.utils.processes import quiet

UNSEEN_ALLOWED = ("ignore", "infrequent_if_exist", "warn")
"""What `handle_unknown` is where a `OneHotEncoder` takes categories that it has not seen."""


def categories(name: str, step: OneHotEncoder | OrdinalEncoder, inputs: int) -> LinearMap:
    """Each output depends on one input, and is what the step computes for each category of it."""
    levels: dict[int, tuple[Any, ...]] = {}
    for j, labels in enumerate(step.categories_):
        try:
            levels |= checked_levels({j: list(labels)})
        except InputError as error:
            raise UnsupportedModelError(
                f"pipeline step {name!r}: expected categories that are all text or all finite "
                f"numbers, got {list(labels)[:9]}; fill in missing values before the fit"
            ) from error
    if getattr(step, "handle_unknown", "error") in UNSEEN_ALLOWED:
        levels = {j: with_others(labels) for j, labels in levels.items()}
    first = np.array([labels[0] for labels in step.categories_], dtype=object)

    def encoded(j: int) -> np.ndarray:
        rows = np.tile(first, (len(levels[j]), 1))
        rows[:, j] = [*step.categories_[j], *levels[j][len(step.categories_[j]) :]]
        with quiet(UserWarning):  # scikit-learn says that a category is unknown
            transformed: Any = step.transform(_named(rows, adapter.fitted_names(step)))
        dense = transformed.toarray() if issparse(transformed) else transformed
        return np.asarray(dense, dtype=np.float64)

    outputs = [encoded(j) for j in range(inputs)]
    varies = np.array([np.any(each != each[0], axis=0) for each in outputs])
    blocks = [(j, levels[j], (outputs[j] * varies[j]).T) for j in range(inputs)]
    shift = np.where(varies.any(axis=0), 0.0, outputs[0][0])
    return LinearMap.of_blocks(np.zeros((len(shift), inputs)), shift, blocks)


def _named(rows: np.ndarray, names: tuple[str, ...] | None) -> Any:
    """Rows as a step was fitted: in columns by name, if it was."""
    if names is None:
        return rows
    pandas = optional("pandas", "a pipeline fitted on columns by name")
    return pandas.DataFrame(rows, columns=list(names))


def decoded(X: np.ndarray, levels: Levels, names: tuple[str, ...] | None) -> Any:
    """X (n, d) as a step takes it: labels of categories, and columns by name if it was fitted on
    them."""
    text = {j: labels for j, labels in levels.items() if isinstance(labels[0], str)}
    rows = _named(X.astype(object) if text and names is None else X, names)
    for j, labels in text.items():
        column = np.array(labels, dtype=object)[X[:, j].astype(int)]
        if names is None:
            rows[:, j] = column
        else:
            rows[names[j]] = column
    return rows
