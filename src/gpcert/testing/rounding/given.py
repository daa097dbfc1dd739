"""Where computed numbers are taken as given by a shadow run, though no function rounded them: any
number would do, or their errors are bounded by something else than a count of roundings.

Names are qualified names without modules. A name that no longer exists fails a test.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpcert.kernels import KERNELS

Pairs = Sequence[tuple[Any, Any]]


@dataclass(frozen=True)
class Given:
    """Records whose fields, functions whose arguments and functions whose results are given."""

    records: frozenset[str] = frozenset()
    arguments: frozenset[str] = frozenset()
    results: frozenset[str] = frozenset()


LIBRARY_KERNELS = [kind for kind in KERNELS.values() if kind.__module__.startswith("gpcert.")]

RECORDS = {
    # what is certified is the model with these stored numbers
    "Posterior": "stored",
    **dict.fromkeys((kind.__name__ for kind in LIBRARY_KERNELS), "parameters as stored"),
    **dict.fromkeys(("Box", "Ball"), "ends and radius as stored; rounded by the constructors"),
    **dict.fromkeys(("Cells", "ImageCells"), "floats; that they cover is checked exactly"),
    **dict.fromkeys(("Frame", "ScaledCells"), "units are powers of two, widths are rounded up"),
    "SquaredExponentialTable": "coordinates carry 3 roundings, which `relative_error` counts",
    "WeightedExpansion": "K is known up to `relative_error`",
}

ARGUMENTS = {
    "SquaredExponentialTable.known_squared_norm": "less their errors, by the callers",
    **dict.fromkeys(
        ("QuadraticLowerModel.minimum", "QuadraticLowerModel.at_level", "above_level", "at_level"),
        "any level is valid",
    ),
    **dict.fromkeys(("form_size", "entry_sum", "reach"), "sizes of the computed tensor"),
    "transforms": "`shift` bounds what moved d",
    **dict.fromkeys(("split_bound", "split_maximum"), "any multiplier is valid"),
    "Cells.linear_minimum": "roundings of slopes are counted by the callers",
    "_least_bend": "the computed matrix: the model's `error` counts its roundings",
    "score": "gaps round once, which `_probability` counts, or are bounds",
    **dict.fromkeys(
        ("gaussian_integral_range", "conditional_mean"),
        "intervals share their ends, whatever these are; ranges are bounds",
    ),
    "Tolerance.needed": "when a search ends is no part of a bound",
    "SquareForm.tangent": "any point of contact is valid",
    "SmoothedLink._chord_minimum": "pieces share their ends, whatever these are",
}

RESULTS = {
    **dict.fromkeys(
        ("ScaledCells.center", "Frame.points"), "one rounding, which the kernels' extents count"
    ),
    **dict.fromkeys(
        ("Cells.half", "Cells.center", "Cells.middle"),
        "floats; that they cover is checked exactly",
    ),
    "SmoothedLink.enclose": "`error` counts the value's roundings and its own subtraction",
    "SquaredExponentialTable.values": "known up to `relative_error`",
    "independent_maximum": "factors of 1.01 cover the roundings of the errors",
    "Jet.sizes": "sizes of the computed parts: errors of these are bounded beside them",
    "WavesBatch._parts": "known up to `part_errors`",
    **dict.fromkeys(
        (
            "LocalRadial.regular_accuracy",
            "LocalRadial.accuracy",
            "LocalRadial.regular_values",
            "LocalRadial.general_values",
        ),
        "factors from 1.01 on cover their roundings",
    ),
}

GIVEN = Given(frozenset(RECORDS), frozenset(ARGUMENTS), frozenset(RESULTS))


def _both(result: Any) -> Pairs:
    """A value and its error."""
    return [(result[0], result[1])]


def _coefficients(model: Any) -> Pairs:
    """Value and gradient of a model, and their errors."""
    return [(model.value, model.errors[:, 0]), (model.gradient, model.errors[:, 1])]


STATED: Mapping[str, Callable[[Any], Pairs]] = {
    "LocalSquaredExponential.center_values": _both,
    "LocalTaylor._center_values": _both,
    "LocalSquaredExponential.model": _coefficients,
    "LocalTaylor.model": _coefficients,
    "exponential": _both,
    "AffinePhase.at": _both,
}
"""Functions that return values with their errors: the errors that arrive must be within them."""

STATED_ARGUMENTS: Mapping[str, Callable[[Any], Pairs]] = {
    "LiftedBox.minimum": lambda names: [(names["coefficients"], names["errors"])],
}
"""Functions that are called with values and their errors, by the names of their arguments."""
