"""How rounding errors grow through NumPy's universal functions: the rules of `Shadow` arrays.

An operand may carry `bounds`, two arrays of its shape: upper bounds of its error in units of U, to
first order. A rule takes the operands and the computed result v and gives those of the result: the
operands' errors times the derivative, and the operation's own rounding (Statements 16.1, 16.3).

The two bounds differ in sums of terms of one sign only: `weighted` adds the errors, `counted` takes
the largest count of roundings of any term for all of them, so that it does not depend on sizes.
Zeros and powers of two as factors, and zeros in sums, round nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpcert.numerics.rounding import (
    ASIN_LOG_ULPS,
    EXP_ULPS,
    NORMAL_CDF_ULPS,
    POW_ULPS,
    SIN_COS_ULPS,
    U,
)

Rule = Callable[[Any, np.ndarray], Any]

UNMODELLED: set[str] = set()
"""Functions met whose results were taken as given, for want of a rule."""


SHARES: dict[Any, float] = {}
"""By count of an allowance in a sum: the largest share of it that an error in that sum took."""


def plain(value: Any) -> Any:
    """The array without its bounds; anything else as it is."""
    return np.ndarray.view(value, np.ndarray) if hasattr(value, "bounds") else value


def bounds_of(value: Any) -> Any:
    """Both bounds of an operand; zeros of what is given."""
    return getattr(value, "bounds", (0.0, 0.0))


def allowance_of(value: Any) -> Any:
    """How much of a number is an allowance for errors."""
    return getattr(value, "allowance", 0.0)


def counts(bound: Any, x: Any) -> np.ndarray:
    """Roundings: an error in units of U over the size of the number; huge where that is zero."""
    bound, size = np.broadcast_arrays(np.asarray(bound, dtype=float), np.abs(x))
    return np.where(bound > 0, bound / np.where(size > 0, size, 1e-300), 0.0)


def ufunc_bounds(
    ufunc: np.ufunc, method: str, inputs: Any, result: Any, options: dict[str, Any]
) -> list[np.ndarray] | None:
    """Both bounds of what a method of a ufunc gave; None where no rule is known."""
    if isinstance(result, tuple) or getattr(result, "dtype", np.dtype(bool)).kind != "f":
        return None
    bounds, v = None, plain(result)
    if method == "reduce":
        bounds = _reduced(ufunc, inputs[0], v, options)
    elif method == "accumulate" and ufunc is np.add:
        bounds = _accumulated(inputs[0], options)
    elif method in ("__call__", "outer"):
        if method == "outer":
            first, second = inputs
            inputs = (np.reshape(first, np.shape(first) + (1,) * np.ndim(second)), second)
        if ufunc is np.matmul:
            bounds = product_bounds(inputs[0], inputs[1], np.matmul)
        elif ufunc.__name__ in _UFUNCS:
            bounds = _UFUNCS[ufunc.__name__](inputs, v)
    if bounds is None:
        UNMODELLED.add(f"{ufunc.__name__}.{method}")
        return None
    return [np.array(np.broadcast_to(plain(bound), np.shape(v)), float) for bound in bounds]


def product_bounds(a: Any, b: Any, product: Callable[..., Any]) -> Any:
    """Of sums of products of two arrays, as `product` forms them: n roundings of sums of n."""
    sizes = [np.abs(plain(a)), np.abs(plain(b))]
    rounding = product(*(np.ones_like(size) for size in sizes)) * product(*sizes)
    return [
        rounding
        + product(np.broadcast_to(ea, sizes[0].shape), sizes[1])
        + product(sizes[0], np.broadcast_to(eb, sizes[1].shape))
        for ea, eb in zip(bounds_of(a), bounds_of(b), strict=True)
    ]


def allowance_left(ufunc: np.ufunc, method: str, inputs: Any, bounds: Any) -> Any:
    """The allowance in a result. One for the error of the other term of a sum (or of a factor
    `1 - gamma(n)`) covers that, and the `bounds` fall by it."""
    allowances, name = [allowance_of(each) for each in inputs], ufunc.__name__
    if (
        bounds is None
        or method != "__call__"
        or not any(np.any(allowance) for allowance in allowances)
    ):
        return 0.0
    sizes = [np.abs(plain(each)) for each in inputs]
    if name in ("negative", "absolute", "positive"):
        return allowances[0]
    if name == "multiply":
        factors = zip(allowances, sizes, strict=True)
        covers = any(
            np.any(allowance) and np.all(allowance <= 1e-3 * size) for allowance, size in factors
        )
        return _covered(allowances[0] * sizes[1] + sizes[0] * allowances[1], bounds, covers)
    if name == "divide":
        covers = np.any(allowances[0]) and np.all(allowances[0] <= 1e-3 * sizes[0])
        return _covered(allowances[0] / sizes[1], bounds, covers)
    if name in ("add", "subtract"):
        errors = [bounds_of(each)[0] * U for each in inputs]
        covers = _meant(allowances[0], sizes[1], errors[1]) | _meant(
            allowances[1], sizes[0], errors[0]
        )
        _observe(inputs, allowances, bounds, covers)
        return _covered(allowances[0] + allowances[1], bounds, covers)
    return 0.0


def _observe(inputs: Any, allowances: Any, bounds: Any, covers: Any) -> None:
    """Note which share of an allowance is taken by the errors that it covers."""
    allowance = np.broadcast_to(allowances[0] + allowances[1], np.shape(bounds[1]))
    used = np.where(covers, bounds[0] * U / np.where(allowance > 0, allowance, np.inf), 0.0)
    largest = float(np.max(np.nan_to_num(used), initial=0.0))
    for each, part in zip(inputs, allowances, strict=True):
        for site in getattr(each, "sites", ()) if np.any(part) else ():
            SHARES[site] = max(SHARES.get(site, 0.0), largest)


def _meant(allowance: Any, size: Any, error: Any) -> Any:
    """Whether an allowance is meant for the error of a term: it is small beside the term, or about
    as large as its error. An error added to another one, each with roundings, is neither."""
    return (np.asarray(allowance) > 0) & ((allowance < 1e-3 * size) | (1e-4 * allowance < error))


def _covered(allowance: Any, bounds: Any, covers: Any) -> np.ndarray:
    """What is left of the allowance after the errors that it covers."""
    allowance = np.broadcast_to(np.asarray(allowance, dtype=float), np.shape(bounds[1]))
    used = np.where(covers, np.minimum(allowance / U, np.maximum(*bounds)), 0.0)
    for bound in bounds:
        bound[...] = np.where(covers, np.maximum(bound - allowance / U, 0.0), bound)
    return allowance - used * U


def _power_of_two(x: Any) -> Any:
    mantissa = np.abs(np.frexp(np.asarray(x, dtype=float))[0])
    return (mantissa == 0.5) | (mantissa == 0.0)


def _sum(sign: float) -> Rule:
    def rule(inputs: Any, v: np.ndarray) -> Any:
        a, b = np.asarray(plain(inputs[0])), sign * np.asarray(plain(inputs[1]))
        (wa, ca), (wb, cb) = map(bounds_of, inputs)
        rounding = np.where((a == 0) | (b == 0), 0.0, np.abs(v))
        alike = (np.sign(a) * np.sign(b) > 0) | ((a == 0) & (ca == 0)) | ((b == 0) & (cb == 0))
        most = np.maximum(counts(ca, a), counts(cb, b))
        counted = np.where(alike & np.isfinite(most), most * np.abs(v), ca + cb)
        return wa + wb + rounding, counted + rounding

    return rule


def _multiply(inputs: Any, v: np.ndarray) -> Any:
    a, b = (np.abs(plain(each)) for each in inputs)
    rounding = np.where(_power_of_two(a) | _power_of_two(b), 0.0, np.abs(v))
    both = zip(*map(bounds_of, inputs), strict=True)
    return [ea * b + a * eb + rounding for ea, eb in both]


def _divide(inputs: Any, v: np.ndarray) -> Any:
    a, b = (np.abs(plain(each)) for each in inputs)
    rounding = np.where(_power_of_two(b) | (np.asarray(a) == 0), 0.0, np.abs(v))
    both = zip(*map(bounds_of, inputs), strict=True)
    return [(ea + np.abs(v) * eb) / b + rounding for ea, eb in both]


def _function(slope: Callable[..., Any], ulps: Any) -> Rule:
    """Of one argument: `|f'(x)| error + ulps |f(x)|`."""

    def rule(inputs: Any, v: np.ndarray) -> Any:
        x = plain(inputs[0])
        steep, rounding = np.abs(slope(x, v)), (ulps(x) if callable(ulps) else ulps) * np.abs(v)
        return [
            np.where(np.asarray(e) > 0, steep * e, 0.0) + rounding for e in bounds_of(inputs[0])
        ]

    return rule


def _sqrt(inputs: Any, v: np.ndarray) -> Any:
    safe = np.where(v > 0, v, 1.0)
    return [
        np.where(v > 0, e / (2.0 * safe) + v, np.sqrt(np.maximum(e, 0.0) / U))
        for e in map(np.asarray, bounds_of(inputs[0]))
    ]


def _power(inputs: Any, v: np.ndarray) -> Any:
    """Squares, roots and inverses are operations of their own to NumPy and torch."""
    x, k = map(plain, inputs)
    exponent = np.asarray(k, dtype=float)
    ulps = np.where(np.isin(exponent, (2.0, 0.5, -1.0)), 1.0, POW_ULPS)
    rounding = np.where(np.isin(exponent, (0.0, 1.0)), 0.0, ulps) * np.abs(v)
    safe = np.where(np.asarray(x) == 0, 1.0, x)
    return [np.abs(k * v / safe) * e + rounding for e in bounds_of(inputs[0])]


def _chosen(sign: float) -> Rule:
    """Of a maximum (or minimum): the other one may be it, as far as its error is larger."""

    def rule(inputs: Any, v: np.ndarray) -> Any:
        a, b = (np.asarray(plain(each), dtype=float) for each in inputs)
        first, apart = sign * a >= sign * b, np.nan_to_num(np.abs(a - b) / U)
        both = zip(*map(bounds_of, inputs), strict=True)
        return [
            np.where(first, np.maximum(ea, eb - apart), np.maximum(eb, ea - apart))
            for ea, eb in both
        ]

    return rule


def _clip(inputs: Any, v: np.ndarray) -> Any:
    return [np.where(v == plain(inputs[0]), e, 0.0) for e in bounds_of(inputs[0])]


def _same(inputs: Any, v: np.ndarray) -> Any:
    return bounds_of(inputs[0])


def _exact(inputs: Any, v: np.ndarray) -> Any:
    return 0.0, 0.0


def _ldexp(inputs: Any, v: np.ndarray) -> Any:
    return [np.ldexp(e, plain(inputs[1])) for e in bounds_of(inputs[0])]


_UFUNCS: dict[str, Rule] = {
    "add": _sum(1.0),
    "subtract": _sum(-1.0),
    "multiply": _multiply,
    "divide": _divide,
    "sqrt": _sqrt,
    "square": lambda inputs, v: _multiply((inputs[0], inputs[0]), v),
    "reciprocal": lambda inputs, v: _divide((1.0, inputs[0]), v),
    **dict.fromkeys(("power", "float_power"), _power),
    **dict.fromkeys(("maximum", "fmax"), _chosen(1.0)),
    **dict.fromkeys(("minimum", "fmin"), _chosen(-1.0)),
    "clip": _clip,
    **dict.fromkeys(("absolute", "fabs", "negative", "positive", "nextafter", "copysign"), _same),
    "ldexp": _ldexp,
    **dict.fromkeys(("sign", "floor", "ceil", "rint", "trunc"), _exact),
    "exp": _function(lambda x, v: v, EXP_ULPS),
    "expm1": _function(lambda x, v: v + 1.0, EXP_ULPS),
    "log": _function(lambda x, v: 1.0 / x, ASIN_LOG_ULPS),
    "log1p": _function(lambda x, v: 1.0 / (1.0 + x), EXP_ULPS),
    "sin": _function(lambda x, v: np.ones_like(v), SIN_COS_ULPS),
    "cos": _function(lambda x, v: np.ones_like(v), SIN_COS_ULPS),
    "arcsin": _function(lambda x, v: 1.0 / np.sqrt(1.0 - x * x), ASIN_LOG_ULPS),
    "erf": _function(lambda x, v: 1.13 * np.exp(-x * x), 8.0),
    "ndtr": _function(
        lambda x, v: 0.4 * np.exp(-0.5 * x * x),
        lambda x: NORMAL_CDF_ULPS + 4.0 * np.minimum(x, 0.0) ** 2,
    ),
}


def _reduced(ufunc: np.ufunc, x: Any, v: np.ndarray, options: dict[str, Any]) -> Any:
    value = plain(x)
    axis = options.get("axis", 0)
    axes = range(value.ndim) if axis is None else np.atleast_1d(axis)
    rounding = max(int(np.prod([value.shape[i] for i in axes])) - 1, 0) if value.ndim else 0
    keep = {"axis": axis, "keepdims": options.get("keepdims", False)}
    if ufunc is np.add:
        size = np.add.reduce(np.abs(value), **options)
        weighted, counted = (np.add.reduce(b, **options) for b in bounds_of(x))
        most = np.max(counts(bounds_of(x)[1], value), initial=0.0, **keep)
        alike = (size <= np.abs(v) * (1.0 + 1e-9)) & (most < 1e12)
        return weighted + rounding * size, np.where(alike, most * size, counted) + rounding * size
    if ufunc in (np.maximum, np.minimum) and value.size:
        return [np.max(b, initial=0.0, **keep) for b in bounds_of(x)]
    if ufunc is np.multiply:
        roundings = (np.add.reduce(counts(b, value), **options) for b in bounds_of(x))
        return [(each + rounding) * np.abs(v) for each in roundings]
    return None


def _accumulated(x: Any, options: dict[str, Any]) -> Any:
    rounding = np.shape(x)[options.get("axis", 0)] - 1
    size = np.add.accumulate(np.abs(plain(x)), **options)
    return [np.add.accumulate(b, **options) + rounding * size for b in bounds_of(x)]
