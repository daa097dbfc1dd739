"""Points from arrays and data frames, whose columns are matched by name.

If a model has feature names, the columns of a data frame (pandas, polars or any other with the
interchange protocol) are put into the model's order; a missing, unknown or duplicate name is an
error. If only one of them has names, columns are matched by position, as in scikit-learn. No data
frame library is imported here. `spread_of` gives the standard deviations of training data, the unit
of `scale="std"`.

Categorical features: `levels` maps the index of a feature to its labels, `{3: ("blue", "red")}`. A
category is represented by a number: by the label if all labels are numbers, else by 0, 1, ... in
their order.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from gpcert.errors import InputError
from gpcert.numerics.arrays import finite_array

NO_LEVELS: Levels = MappingProxyType({})

Names = tuple[str, ...] | None


def read_points(
    name: str, X: Any, dim: int, features: Names = None, levels: Levels = NO_LEVELS
) -> np.ndarray:
    """X as a finite (n, dim) array in the model's order of features, or an `InputError`.

    Booleans are the numbers 0 and 1, as in scikit-learn. In features that have `levels`, text is
    replaced by the number of the category.

    >>> read_points("X", [[1, True]], 2).tolist()
    [[1.0, 1.0]]
    """
    order = _order(name, column_names(name, X), features)
    try:
        values = X if order is None else np.asarray(X)[:, order]
    except (TypeError, ValueError, IndexError) as error:
        raise InputError(f"{name}: expected a table of numbers ({error})") from error
    points = finite_array(name, coded(name, values, levels, features), booleans=True)
    if points.ndim != 2:
        raise InputError(
            f"{name}: expected 2 dimensions, one row per point, got shape {points.shape}"
            + ("; pass [x] for one point" if points.ndim == 1 else "")
        )
    if points.shape[1] != dim:
        raise InputError(f"{name}: expected {dim} features, got shape {points.shape}")
    return points


def read_point(
    name: str,
    x: Any,
    dim: int,
    features: Names = None,
    advice: str = "pass one row at a time",
    levels: Levels = NO_LEVELS,
) -> np.ndarray:
    """x as a finite (dim,) array: a vector, a row of a data frame, or a mapping by name.

    `advice` says what to do with more than one point; `levels` as in `read_points`.

    >>> read_point("x", {"bmi": 20, "age": 60}, 2, ("age", "bmi")).tolist()
    [60.0, 20.0]
    """
    if isinstance(x, Mapping) and features is None:
        raise InputError(
            f"{name}: expected a vector of {dim} numbers, got names; the model was fitted without "
            "names of its features"
        )
    values = list(x.values()) if isinstance(x, Mapping) else x
    if not _is_table(x):  # a table has two dimensions, an error below
        labels = x if isinstance(x, Mapping) else x.index if hasattr(x, "iloc") else ()
        names = _only_text(name, list(labels))
        if (
            isinstance(x, Mapping) and labels and names is None
        ):  # matching by position would be a guess
            raise InputError(
                f"{name}: expected names of features as keys, out of {list(features or ())}, got "
                f"{list(labels)}"
            )
        order = _order(name, names, features)
        values = values if order is None else [_listed(values, levels)[j] for j in order]
        values = coded(name, values, levels, features)
    point = finite_array(name, values, booleans=True)
    if point.ndim == 2:
        raise InputError(
            f"{name}: expected one point, a vector of {dim} numbers, got shape {point.shape}; "
            f"for one row pass {name}[0] ({name}.iloc[0] of a data frame), for several {advice}"
        )
    if point.ndim != 1:
        raise InputError(f"{name}: expected 1 dimension(s), got shape {point.shape}")
    if len(point) != dim:
        raise InputError(f"{name}: expected {dim} features, got {len(point)}")
    return point


def _listed(values: Any, levels: Levels) -> np.ndarray:
    """Values as an array, of objects if some features are categorical."""
    return np.asarray(values, dtype=object if levels else None)


def column_names(name: str, X: Any) -> Names:
    """Column names of a data frame; None for arrays and for columns that are only numbered."""
    if not _is_table(X):
        return None
    labels = X.columns if hasattr(X, "iloc") else X.__dataframe__().column_names()
    return _only_text(name, list(labels))


def row_labels(X: Any) -> tuple[Any, ...] | None:
    """Row labels from the index of a data frame; None if X has no index.

    Text and numbers are unchanged, anything else (dates, tuples) becomes text.
    """
    if not (_is_table(X) and hasattr(X, "iloc")):
        return None
    labels = [each.item() if isinstance(each, np.generic) else each for each in X.index]
    return tuple(each if isinstance(each, str | int | float) else str(each) for each in labels)


def labels_of(X: Any, rows: Sequence[int]) -> tuple[Any, ...]:
    """Labels of the rows with these numbers: from the index of a data frame, else the numbers.

    >>> labels_of([[1.0], [2.0], [3.0]], [0, 2])
    (0, 2)
    """
    names = row_labels(X)
    return tuple(rows) if names is None else tuple(names[row] for row in rows)


def _is_table(X: Any) -> bool:
    return hasattr(X, "__dataframe__") or (hasattr(X, "columns") and hasattr(X, "iloc"))


def _only_text(name: str, labels: Sequence[Any]) -> Names:
    text = [isinstance(label, str) for label in labels]
    if not any(text):
        return None
    if not all(text):
        raise InputError(f"{name}: expected names of features that are all text, got {labels}")
    return tuple(map(str, labels))


def _order(name: str, column_list: Names, features: Names) -> list[int] | None:
    """Positions of the model's features among the column names; None: match by position."""
    if column_list is None or features is None:
        return None
    missing = [feature for feature in features if feature not in column_list]
    unknown = [each for each in column_list if each not in features]
    twice = sorted({each for each in column_list if column_list.count(each) > 1})
    if missing or unknown or twice:
        problems = (("missing", missing), ("unknown", unknown), ("duplicate", twice))
        text = "; ".join(f"{what}: {', '.join(map(repr, each))}" for what, each in problems if each)
        raise InputError(
            f"{name}: expected the features that the model was fitted with, got others ({text}); "
            "pass just those columns, in any order (the index of a data frame may hold labels)"
        )
    return [column_list.index(feature) for feature in features]


def checked_names(names: Any, d: int) -> tuple[str, ...] | None:
    """The d distinct names of the features, or None where there are none.

    >>> checked_names(["age", "bmi"], 2)
    ('age', 'bmi')
    """
    if names is None:
        return None
    listed = isinstance(names, tuple | list) or (isinstance(names, np.ndarray) and names.ndim == 1)
    name_tuple = tuple(names) if listed else None
    if (
        name_tuple is None
        or len(name_tuple) != d
        or not all(isinstance(name, str) for name in name_tuple)
    ):
        raise InputError(f"feature_names: expected {d} names, got {names!r}")
    if len(set(name_tuple)) != d:
        raise InputError(f"feature_names: expected distinct names, got {list(name_tuple)}")
    return tuple(map(str, name_tuple))


def common_names(what: str, each: Iterable[Names]) -> Names:
    """The common feature names of models with the same inputs; None if no model has names.

    An `InputError` if two models have different names or a different order: the same columns would
    mean different features.

    >>> common_names("model", [None, ("age", "bmi")])
    ('age', 'bmi')
    """
    known = list(dict.fromkeys(names for names in each if names is not None))
    if len(known) > 1:
        first, second = map(list, known[:2])
        raise InputError(
            f"{what}: expected the same names of features in the same order for all, got {first} "
            f"and {second}; fit them on the same columns"
        )
    return known[0] if known else None


def spread_of(X: Any) -> np.ndarray:
    """(d,) standard deviations of the columns of X (n, d), divided by n as in scikit-learn's
    scalers.

    They are exactly 0 for constant features, and positive for all others even after underflow, as a
    spread of 0 would keep a feature fixed.

    >>> spread_of([[0.1, 1.0], [0.1, 3.0], [0.1, 2.0]]).round(3).tolist()
    [0.0, 0.816]
    """
    values = finite_array("X", X, ndim=2)
    # scaled by powers of two: squares of 1e-170 would be 0, those of 1e170 infinite
    exponents = np.frexp(np.abs(values).max(axis=0))[1]
    deviations = np.ldexp(np.ldexp(values, -exponents).std(axis=0), exponents)
    constant = values.min(axis=0) == values.max(axis=0)
    return np.where(constant, 0.0, np.maximum(deviations, np.finfo(float).smallest_subnormal))


Levels = Mapping[int, tuple[Any, ...]]


def checked_levels(levels: Any) -> dict[int, tuple[Any, ...]]:
    """Labels by feature, ordered by index: distinct, all text or all finite numbers.

    >>> checked_levels({2: [1, 3], 0: ["a", "b"]})
    {0: ('a', 'b'), 2: (1.0, 3.0)}
    """
    checked: dict[int, tuple[Any, ...]] = {}
    items: Any = levels.items() if isinstance(levels, Mapping) else [(None, levels)]
    for j, labels in items:
        label_tuple = tuple(_plain(label) for label in labels) if _several(labels) else ()
        kinds = {type(label) for label in label_tuple}
        whole = isinstance(j, int) and not isinstance(j, bool) and j >= 0
        if (
            not whole
            or len(kinds) != 1
            or not kinds <= {str, float}
            or len(set(label_tuple)) < len(label_tuple)
        ):
            raise InputError(
                "levels: expected distinct labels by the number of a feature, all text or all "
                f"numbers, got {labels!r} for {j!r}"
            )
        checked[j] = label_tuple
    return dict(sorted(checked.items()))


def _several(labels: Any) -> bool:
    return isinstance(labels, Sequence | np.ndarray) and not isinstance(labels, str | bytes)


def _plain(label: Any) -> Any:
    """Text or a finite number; None, which is not a valid label, for anything else."""
    if isinstance(label, str):
        return str(label)
    number = isinstance(label, int | float | np.number | np.bool_)
    return float(label) if number and math.isfinite(label) else None


OTHERS = "(any other)"
"""The label for all text that is not a category, if the model supports unknown categories."""


def with_others(labels: tuple[Any, ...]) -> tuple[Any, ...]:
    """Labels with one more for all other text; numeric labels are unchanged.

    >>> with_others(("no", "yes"))
    ('no', 'yes', '(any other)')
    """
    return (*labels, OTHERS) if isinstance(labels[0], str) and OTHERS not in labels else labels


def codes_of(labels: Sequence[Any]) -> np.ndarray:
    """The numbers that represent the labels.

    >>> codes_of(("no", "yes")).tolist(), codes_of((1.0, 5.0)).tolist()
    ([0.0, 1.0], [1.0, 5.0])
    """
    text = isinstance(labels[0], str)
    return np.arange(len(labels), dtype=np.float64) if text else np.array(labels, dtype=np.float64)


def listed(labels: Sequence[Any]) -> str:
    """Labels as text, at most nine."""
    texts = [label if isinstance(label, str) else f"{label:g}" for label in labels]
    return ", ".join(texts[:9]) + (", ..." if len(texts) > 9 else "")


def coded(name: str, values: Any, levels: Levels, names: Sequence[str] | None) -> Any:
    """A table (n, d), or one row (d,), with categories given as text replaced by their numbers.

    `names` are the names of the features, if they have any.

    >>> coded("X", [["red", 2.0]], {0: ("blue", "red")}, None).tolist()
    [[1.0, 2.0]]
    """
    if not levels:
        return values
    table = np.array(values, dtype=object)
    rows = np.atleast_2d(table)  # a view
    if rows.ndim != 2 or rows.shape[1] <= max(levels):
        return values  # wrong shape: the caller raises the error
    for j, labels in levels.items():
        codes = dict(zip(labels, codes_of(labels).tolist(), strict=True))
        known = set(codes.values())
        for row in rows:
            value: Any = row[j]
            code: Any = codes.get(value, codes.get(OTHERS)) if isinstance(value, str) else value
            try:
                right = float(code) in known
            except (TypeError, ValueError):
                right = False
            if not right:
                column = f"feature {j}" if names is None else f"column {names[j]!r}"
                raise InputError(
                    f"{name}: expected one of the categories {listed(labels)} in {column}, got "
                    f"{value!r}"
                )
            row[j] = code
    return table
