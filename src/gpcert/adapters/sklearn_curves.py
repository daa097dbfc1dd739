"""scikit-learn's transforms of single features that do not decrease, as curves.

    PowerTransformer      Yeo-Johnson and Box-Cox, then a scaling,
    QuantileTransformer   piecewise linear, then perhaps a normal quantile,
    FunctionTransformer   with a function of NumPy in `FUNCTIONS`, or a `gpcert.functions.Curve`,
    clip=True of scalers.

A box of inputs maps to a box; for targets the inverse is what `predict` applies to the mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.preprocessing import FunctionTransformer, PowerTransformer, QuantileTransformer

from gpcert.errors import UnsupportedModelError
from gpcert.functions import (
    Affine,
    Bilog,
    Curve,
    Exp,
    Expm1,
    Increasing,
    InverseBilog,
    InversePowerBend,
    Log,
    Log1p,
    NormalCdf,
    NormalQuantile,
    Piecewise,
    Power,
    PowerBend,
)
from gpcert.numerics.arrays import finite_array

FUNCTIONS: dict[Callable[..., Any], tuple[Increasing, ...]] = {
    np.log: (Log(),),
    np.log1p: (Log1p(),),
    np.log10: (Log(), Affine(0.0, math.log(10.0))),
    np.log2: (Log(), Affine(0.0, math.log(2.0))),
    np.sqrt: (Power(0.5),),
    np.cbrt: (Power(1.0 / 3.0, True),),
    np.square: (Power(2.0),),
    np.exp: (Exp(),),
    np.expm1: (Expm1(),),
    np.exp2: (Affine(0.0, 1.0 / math.log(2.0)), Exp()),
}
"""Functions of NumPy that increase where they are defined; `square` from 0 on."""

NAMES = ", ".join(f"np.{function.__name__}" for function in FUNCTIONS)

THRESHOLD = 1e-7
"""`QuantileTransformer` takes what is nearer to an end as the end, for normal quantiles."""

LIMIT = 5.199337582605575
"""Normal quantiles are clipped to these."""

CURVED = (PowerTransformer, QuantileTransformer, FunctionTransformer)


def input_curves(name: str, step: Any, inputs: int) -> dict[int, Curve]:
    """The functions of all inputs that a fitted step computes."""
    if type(step) is FunctionTransformer:
        curve = function_curve(name, step.func, step.kw_args)
        return dict.fromkeys(range(inputs), curve)
    of_column: Any = _power if type(step) is PowerTransformer else _quantile
    return {j: of_column(step, j) for j in range(inputs)}


def function_curve(what: str, function: Any, options: Any) -> Curve:
    """Of a function that is known to increase, or a refusal."""
    if function is None:
        return Curve()
    if isinstance(function, Curve):
        return function
    known = FUNCTIONS.get(function) if isinstance(function, np.ufunc) else None
    if known is None or options:
        raise UnsupportedModelError(
            f"{what}: FunctionTransformer is not supported with {function!r}, whose values cannot "
            f"be bounded here; give one of {NAMES} as it is, or a gpcert.functions.Curve, which "
            "can be called like it; or apply the function to the data first"
        )
    return Curve(known)


def _power(step: PowerTransformer, j: int) -> Curve:
    """Box-Cox of exponent p: E_p(log x); Yeo and Johnson: E_p, E_(2-p) of the two-sided log."""
    p = float(step.lambdas_[j])
    if step.method == "box-cox":
        curve = Curve((Log(), PowerBend(p, -p)))
    else:
        curve = Curve((Bilog(), PowerBend(p, 2.0 - p)))
    return curve.then(_scaler(step, j)) if step.standardize else curve


def _scaler(step: PowerTransformer, j: int) -> Affine:
    return Affine(float(step._scaler.mean_[j]), float(step._scaler.scale_[j]))


def _quantile(step: QuantileTransformer, j: int) -> Curve:
    x = finite_array("quantiles_", np.asarray(step.quantiles_)[:, j])
    y = finite_array("references_", step.references_)
    normal = step.output_distribution == "normal"
    inside = THRESHOLD if normal else 0.0  # the ends begin a little inside
    low, high = float(x[0] + inside), float(x[-1] - inside)
    if not low < high:
        raise UnsupportedModelError(
            f"QuantileTransformer: expected a column with different values, got quantiles from "
            f"{x[0]:g} to {x[-1]:g} in column {j}; leave the column out"
        )
    places, first, count = np.unique(x, return_index=True, return_counts=True)
    sides = np.stack([y[first], y[first + count - 1]], axis=1)
    plain = Piecewise(tuple(np.repeat(places, 2).tolist()), tuple(sides.ravel().tolist()))
    inner = (places > low) & (places < high)
    at_ends = plain.value(np.array([low, high])) if normal else (sides[0, 1], sides[-1, 0])
    after, before = map(float, at_ends)
    knots = [low, low, low, *np.repeat(places[inner], 2).tolist(), high, high, high]
    values = [0.0, 0.0, after, *sides[inner].ravel().tolist(), before, 1.0, 1.0]
    curve = Curve((Piecewise(tuple(knots), tuple(values)),))
    return curve.then(NormalQuantile(LIMIT)) if normal else curve


def target_curve(transformer: Any) -> Curve | None:
    """What `inverse_transform` of a target computes; None where it is not known."""
    if type(transformer) is FunctionTransformer:
        what = "TransformedTargetRegressor: inverse_func"
        curve = function_curve(what, transformer.inverse_func, transformer.inv_kw_args)
        if not curve.everywhere:
            raise UnsupportedModelError(
                f"{what}: expected a function that is defined for all numbers, as a prediction may "
                f"be any, got {transformer.inverse_func!r}; ask about the regressor_ inside, whose "
                "targets are the transformed ones"
            )
        return curve
    if type(transformer) is PowerTransformer:
        return _power_inverse(transformer)
    if type(transformer) is QuantileTransformer:
        return _quantile_inverse(transformer)
    return None


def _quantile_inverse(step: QuantileTransformer) -> Curve:
    x = finite_array("quantiles_", np.asarray(step.quantiles_)[:, 0])
    y = finite_array("references_", step.references_)
    plain = Piecewise(tuple(y.tolist()), tuple(x.tolist()))
    if step.output_distribution != "normal":
        return Curve((plain,))
    low, high = THRESHOLD, 1.0 - THRESHOLD
    after, before = plain.value(np.array([low, high])).tolist()
    inner = (y > low) & (y < high)
    knots = [low, low, *y[inner].tolist(), high, high]
    values = [float(x[0]), after, *x[inner].tolist(), before, float(x[-1])]
    return Curve((NormalCdf(), Piecewise(tuple(knots), tuple(values))))


def _power_inverse(step: PowerTransformer) -> Curve:
    p, steps = float(step.lambdas_[0]), []
    if step.standardize:
        scaler = _scaler(step, 0)
        steps.append(Affine(-scaler.shift / scaler.scale, 1.0 / scaler.scale))
    if step.method == "box-cox":
        return Curve((*steps, InversePowerBend(p, -p), Exp()))
    return Curve((*steps, InversePowerBend(p, 2.0 - p), InverseBilog()))
