"""Two arithmetics behind one set of formulas: 200-bit balls that prove, floats that only search.

Nothing here, nor in the other `hunt_*` references, shares code with gpcert's bounds or with
`gpcert.testing`: every formula is written from its definition.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from flint import arb, ctx

BITS = 200


@contextmanager
def precise(bits: int = BITS) -> Iterator[None]:
    """Ball arithmetic of so many bits inside the block."""
    before = ctx.prec
    ctx.prec = bits
    try:
        yield
    finally:
        ctx.prec = before


class Balls:
    """Numbers with proved errors."""

    @staticmethod
    def number(value: Any) -> arb:
        """A float64 as the number that it is."""
        return value if isinstance(value, arb) else arb(float(value))

    @staticmethod
    def pi() -> arb:
        return arb.pi()

    exp = staticmethod(lambda x: x.exp())
    log = staticmethod(lambda x: x.log())
    cos = staticmethod(lambda x: x.cos())
    sin = staticmethod(lambda x: x.sin())

    @staticmethod
    def sqrt(x: arb) -> arb:
        """The root of a number that is >= 0 by its meaning, although its ball may reach below."""
        if bool(x > 0) or bool(x == 0):
            return x.sqrt()
        top = x.upper()
        half = (top.sqrt() if bool(top > 0) else arb(0)) / 2
        return arb(half.mid(), half.upper())


class Floats:
    """NumPy arrays; overflow and NaN are the caller's to look after."""

    number = staticmethod(np.float64)
    pi = staticmethod(lambda: np.pi)
    exp, log, cos, sin = (staticmethod(f) for f in (np.exp, np.log, np.cos, np.sin))
    sqrt = staticmethod(lambda x: np.sqrt(np.maximum(x, 0.0)))


def around(value: float, error: float) -> arb:
    """`value` within `error`."""
    return arb(float(value), float(error))


def clipped(x: arb) -> arb:
    """`max(x, 0)`."""
    if bool(x >= 0):
        return x
    if bool(x <= 0):
        return arb(0)
    half = x.upper() / 2
    return arb(half.mid(), half.upper())


def below(x: arb, bound: float) -> bool:
    """Whether x < bound is proved."""
    return bool(x < arb(float(bound))) if np.isfinite(bound) else bound == np.inf and x.is_finite()


def above(x: arb, bound: float) -> bool:
    """Whether x > bound is proved."""
    return below(-x, -bound)


def normal_cdf(x: arb) -> arb:
    """Phi(x) = erfc(-x / sqrt 2) / 2."""
    return (-x / arb(2).sqrt()).erfc() / 2


def shown(x: arb) -> str:
    """A ball for people."""
    return x.str(17, radius=True)
