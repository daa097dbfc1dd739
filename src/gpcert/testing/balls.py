"""Ball arithmetic (python-flint): every number is an `arb`, a ball that contains the real value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np

from gpcert.extras import optional

BITS = 200
"""Working precision: rounding is then near 1e-60, far below every float64 error bound."""


def flint() -> Any:
    """The module `flint`, its precision raised to `BITS`.

    >>> flint().ctx.prec >= BITS
    True
    """
    module = _flint()
    module.ctx.prec = max(module.ctx.prec, BITS)
    return module


@cache
def _flint() -> Any:
    return optional("flint", "the ball-arithmetic reference")


def exact(values: Any) -> list[Any]:
    """The floats of a vector as exact balls."""
    arb = flint().arb
    return [arb(float(v)) for v in np.asarray(values, dtype=np.float64).ravel()]


@contextmanager
def series_length(terms: int) -> Iterator[None]:
    """Power series are cut after so many terms (ten by default): short ones are cheap."""
    context = flint().ctx
    before, context.cap = context.cap, terms
    try:
        yield
    finally:
        context.cap = before


def coefficients(value: Any, count: int) -> list[Any]:
    """The first coefficients of a power series; of a plain ball, which is constant, too.

    >>> [float(c) for c in coefficients(flint().arb_series([1, 2]) ** 2, 4)]
    [1.0, 4.0, 4.0, 0.0]
    """
    module = flint()
    found = value.coeffs() if isinstance(value, module.arb_series) else [module.arb(value)]
    return [*found, *[module.arb(0)] * count][:count]


def dot(a: Sequence[Any], b: Sequence[Any]) -> Any:
    """`sum_j a_j b_j` of balls or power series."""
    return total(s * t for s, t in zip(a, b, strict=True))


def total(parts: Iterable[Any]) -> Any:
    """The sum of balls or power series."""
    return sum(parts, flint().arb(0))
