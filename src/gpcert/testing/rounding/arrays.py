"""Shadow arrays: NumPy arrays of float64 that carry bounds of their own rounding errors.

A `Shadow` has two bounds of `|computed - exact|` an entry, in units of U, where exact is what the
same operations give in real arithmetic from the numbers that were last taken as given; see `rules`.
Comparisons and branches use the computed numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpcert.testing.rounding.rules import (
    UNMODELLED,
    allowance_left,
    allowance_of,
    bounds_of,
    plain,
    product_bounds,
    ufunc_bounds,
)

SMALLEST = 2.0**-900
"""Numbers below this have no counts: what underflow takes is covered by TINY, not by counts."""


class Shadow(np.ndarray):
    """An array with its error bounds; see the module.

    >>> x = shadow([1.0, 2.0]) / 3.0
    >>> (x + x * x).roundings().tolist()
    [4.0, 4.0]
    """

    bounds: tuple[np.ndarray, np.ndarray]
    """`weighted` and `counted` errors, see `rules`."""

    allowance: Any
    """How much of it is an allowance for errors: zero, or of its shape; see `Allowance`."""

    sites: frozenset[Any]
    """The counts that it was rounded up by, and those of the allowances in it."""

    def __array_finalize__(self, source: Any) -> None:
        self.bounds = (np.zeros(self.shape), np.zeros(self.shape))
        self.allowance = 0.0
        self.sites = getattr(source, "sites", frozenset())

    def roundings(self, counted: bool = True) -> np.ndarray:
        """The error bounds relative to `U |x|`; zero where x is tiny, infinite or NaN."""
        size = np.abs(plain(self))
        usable = np.isfinite(size) & (size > SMALLEST)
        with np.errstate(all="ignore"):
            return np.where(usable, self.bounds[counted] / np.where(usable, size, 1.0), 0.0)

    def accept(self) -> None:
        """Take the computed numbers as given from here on."""
        for bound in self.bounds:
            bound[...] = 0.0
        self.allowance = 0.0

    def __getitem__(self, key: Any) -> Any:
        value, place = super().__getitem__(key), _plain_key(key)
        allowance = self.allowance[place] if np.ndim(self.allowance) else 0.0
        return _with(value, [bound[place] for bound in self.bounds], self.sites, allowance)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, plain(value))
        for bound, new in zip(self.bounds, bounds_of(value), strict=True):
            bound[_plain_key(key)] = new
        self.sites |= sites_of([value])

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        out = options.pop("out", None)
        options = {name: plain(value) for name, value in options.items()}
        with np.errstate(all="ignore"):
            result = getattr(ufunc, method)(*map(plain, inputs), **options)
            bounds = ufunc_bounds(ufunc, method, inputs, result, options)
            allowance = allowance_left(ufunc, method, inputs, bounds)
        sites = sites_of(inputs)
        if out is not None:
            out[0][...] = _with(result, bounds, sites)
            if isinstance(out[0], Shadow):
                out[0].allowance = allowance
            return out[0]
        if isinstance(result, tuple):
            return tuple(_with(each, None, sites) for each in result)
        return _with(result, bounds, sites, allowance)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        name = function.__name__
        if name in _RULES:
            return _RULES[name](*args, **options)
        if name in _MOVING:
            return _moved(function, args, options)
        if name in _PLAIN:
            return function(*_stripped(args), **_stripped(options))
        if name not in _BY_UFUNCS:
            UNMODELLED.add(name)
        return super().__array_function__(function, types, args, options)

    def astype(self, dtype: Any, *args: Any, **options: Any) -> Any:
        """See NumPy."""
        return _with(super().astype(dtype, *args, **options), self.bounds, self.sites)

    @property
    def T(self) -> Any:
        """See NumPy."""
        return self.transpose()

    @property
    def mT(self) -> Any:
        """See NumPy."""
        return self.swapaxes(-1, -2)

    def tolist(self) -> Any:
        """See NumPy."""
        return plain(self).tolist()


def _method(name: str) -> Callable[..., Any]:
    def call(self: Shadow, *args: Any, **options: Any) -> Any:
        value = getattr(np.ndarray, name)(self, *args, **options)
        return _with(value, [getattr(b, name)(*args, **options) for b in self.bounds], self.sites)

    call.__doc__ = "See NumPy."
    return call


for _name in (
    *("reshape", "transpose", "swapaxes", "copy", "ravel", "flatten", "take", "repeat"),
    *("diagonal", "squeeze"),
):
    setattr(Shadow, _name, _method(_name))


class Allowance(float):
    """A number that holds `allowance` for errors, and the counts that it was made by.

    >>> gamma = Allowance.of(1e-15)
    >>> (1.0 - 4.0 * gamma).allowance == 4e-15
    True
    """

    allowance: float = 0.0
    sites: frozenset[Any] = frozenset()

    @staticmethod
    def of(
        value: float, sites: frozenset[Any] = frozenset(), allowance: float | None = None
    ) -> Allowance:
        """All of it is an allowance, unless `allowance` says how much."""
        made = Allowance(value)
        made.allowance = abs(value) if allowance is None else allowance
        made.sites = sites
        return made

    def _joined(self, other: Any, value: float, allowance: float) -> Allowance:
        return Allowance.of(value, self.sites | getattr(other, "sites", frozenset()), allowance)

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, int | float):
            return NotImplemented
        allowance = self.allowance * abs(other) + allowance_of(other) * abs(float(self))
        return self._joined(other, float(self) * float(other), allowance)

    __rmul__ = __mul__

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, int | float):
            return NotImplemented
        return self._joined(other, float(self) + float(other), self.allowance + allowance_of(other))

    __radd__ = __add__

    def __neg__(self) -> Any:
        return Allowance.of(-float(self), self.sites, self.allowance)

    def __sub__(self, other: Any) -> Any:
        return self + (-other) if isinstance(other, int | float) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return -self + other if isinstance(other, int | float) else NotImplemented

    def __truediv__(self, other: Any) -> Any:
        return self * (1.0 / float(other)) if isinstance(other, int | float) else NotImplemented


def shadow(values: Any) -> Shadow:
    """Numbers that are given: a shadow without an error; one that has some keeps it."""
    return values if isinstance(values, Shadow) else np.array(values, dtype=float).view(Shadow)


def sites_of(values: Any) -> frozenset[Any]:
    """The counts behind any of these."""
    return frozenset().union(*(getattr(each, "sites", ()) for each in values))


def _with(value: Any, bounds: Any, sites: frozenset[Any], allowance: Any = 0.0) -> Any:
    """The value as a shadow with these bounds, if it is made of floats."""
    array = np.asarray(plain(value))
    if array.dtype.kind != "f":
        return plain(value)
    made = array.view(Shadow)
    if bounds is not None:
        usable = np.isfinite(array)
        weighted, counted = (np.where(usable, plain(b), 0.0) for b in bounds)
        made.bounds = weighted, counted
    made.sites, made.allowance = sites, allowance
    return made


def _plain_key(key: Any) -> Any:
    return tuple(map(plain, key)) if isinstance(key, tuple) else plain(key)


def _stripped(values: Any) -> Any:
    """Arguments without bounds."""
    if isinstance(values, dict):
        return {name: _stripped(each) for name, each in values.items()}
    if isinstance(values, list | tuple):
        return type(values)(_stripped(each) for each in values)
    return plain(values)


def _shadows_in(values: Any) -> list[Any]:
    if isinstance(values, list | tuple):
        return [a for each in values for a in _shadows_in(each)]
    return [values] if isinstance(values, Shadow) else []


def _bounds_in(values: Any, k: int) -> Any:
    """The arguments with bounds in place of arrays of floats."""
    if isinstance(values, list | tuple) and _shadows_in(values):
        return type(values)(_bounds_in(each, k) for each in values)
    if isinstance(values, Shadow):
        return values.bounds[k]
    if isinstance(values, np.ndarray) and values.dtype.kind == "f":
        return np.zeros(values.shape)
    return values


def _moved(function: Any, args: Any, options: dict[str, Any]) -> Any:
    """A function that only moves entries: applied to values and bounds alike."""
    value = function(*_stripped(args), **_stripped(options))
    sites = sites_of(_shadows_in(args))
    parts = [function(*_bounds_in(args, k), **_stripped(options)) for k in range(2)]
    if isinstance(value, list | tuple):
        triples = zip(value, *parts, strict=True)
        return type(value)([_with(v, (w, c), sites) for v, w, c in triples])
    return _with(value, parts, sites)


def _where(condition: Any, *both: Any) -> Any:
    choose = plain(condition)
    if not both:
        return np.where(choose)
    first, second = map(bounds_of, both)
    bounds = [np.where(choose, a, b) for a, b in zip(first, second, strict=True)]
    allowances = [allowance_of(each) for each in both]
    allowance = np.where(choose, *allowances) if any(np.any(each) for each in allowances) else 0.0
    return _with(np.where(choose, *map(plain, both)), bounds, sites_of(both), allowance)


def _einsum(subscripts: str, *operands: Any, **options: Any) -> Any:
    values = [plain(each) for each in operands]
    sizes = [np.abs(each) for each in values]

    def product(*parts: Any) -> Any:
        return np.einsum(subscripts, *parts)

    terms = product(*map(np.ones_like, sizes)) + len(values) - 2
    bounds = []
    for k in range(2):
        total = terms * product(*sizes)
        for place, each in enumerate(operands):
            error = np.broadcast_to(bounds_of(each)[k], sizes[place].shape)
            total = total + product(*(error if i == place else s for i, s in enumerate(sizes)))
        bounds.append(total)
    return _with(np.einsum(subscripts, *values, **options), bounds, sites_of(operands))


def _of_two(function: Any) -> Callable[..., Any]:
    def rule(a: Any, b: Any, *args: Any, **options: Any) -> Any:
        def product(x: Any, y: Any) -> Any:
            return function(x, y, *args, **options)

        value = product(plain(a), plain(b))
        return _with(value, product_bounds(a, b, product), sites_of((a, b)))

    return rule


def _like(name: str) -> Callable[..., Any]:
    def rule(*args: Any, **options: Any) -> Any:
        return _with(getattr(np, name)(*_stripped(args), **options), None, frozenset())

    return rule


_RULES: dict[str, Callable[..., Any]] = {
    "where": _where,
    "einsum": _einsum,
    **{
        f.__name__: _of_two(f)
        for f in (np.tensordot, np.dot, np.vdot, np.vecdot, np.inner, np.outer)
    },
    "astype": lambda x, dtype, **options: x.astype(dtype, **options),
    **{name: _like(name) for name in ("zeros_like", "ones_like", "full_like", "empty_like")},
}


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_MOVING = _names(
    "stack concatenate broadcast_to broadcast_arrays reshape transpose swapaxes moveaxis take "
    "take_along_axis repeat tile flip roll diagonal diag expand_dims squeeze triu tril copy "
    "split array_split matrix_transpose permute_dims concat unstack vstack hstack column_stack "
    "append delete atleast_1d atleast_2d ravel rot90"
)

_BY_UFUNCS = _names("sum max min amax amin prod clip cumsum cumulative_sum mean trace")

_PLAIN = _names(
    "shape ndim size argsort argmax argmin any all nonzero flatnonzero array_equal searchsorted "
    "unique eigh eigvalsh svd solve inv cholesky pinv lexsort count_nonzero argwhere isin "
    "allclose isclose array_repr array_str array2string save savez shares_memory "
    "may_share_memory can_cast result_type triu_indices iscomplexobj"
)
"""Of which no error matters: answers about arrays, and what is proved afterwards."""
