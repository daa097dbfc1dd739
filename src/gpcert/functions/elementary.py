"""Logarithms, powers and their like, each with certified values.

Every operation carries the error that its library function is assumed to have, outwards; the
signed functions are odd, or join two branches at 0, where both are 0.

Proofs: docs/mathematics.md, statement 18.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from gpcert.errors import InputError
from gpcert.functions.base import Increasing
from gpcert.numerics.arrays import Array, Reals, namespace
from gpcert.numerics.rounding import ASIN_LOG_ULPS, EXP_ULPS, POW_ULPS, down, nonnegative, up

LARGEST = 709.0
"""exp of more may be no float."""

NOTHING = -2000.0
"""exp of it is 0 but for less than TINY."""


def check_number(what: str, value: Any, positive: bool = False) -> None:
    """An `InputError` unless it is a finite number, > 0 where it must be."""
    number = isinstance(value, int | float) and math.isfinite(value)
    if not number or (positive and not value > 0):
        raise InputError(f"{what}: expected a{' positive' * positive} number, got {value!r}")


@dataclass(frozen=True)
class Affine(Increasing):
    """`(x - shift) / scale`, scale > 0."""

    shift: float
    scale: float

    name: ClassVar[str] = "affine"

    def __post_init__(self) -> None:
        check_number("Affine: shift", self.shift)
        check_number("Affine: scale", self.scale, positive=True)

    def value(self, x: Reals) -> Reals:
        return (x - self.shift) / self.scale

    def slope(self, x: np.ndarray) -> np.ndarray:
        return np.full_like(x, 1.0 / self.scale)

    def inverse(self, y: np.ndarray) -> np.ndarray:
        return self.shift + self.scale * y

    def ends(self, low: Array, high: Array) -> tuple[Array, Array]:
        return down(self.value(low), 2), up(self.value(high), 2)


@dataclass(frozen=True)
class Clip(Increasing):
    """`min(max(x, low), high)`: exact."""

    low: float
    high: float

    name: ClassVar[str] = "clip"

    def value(self, x: Reals) -> Reals:
        return x.clip(self.low, self.high)

    def slope(self, x: np.ndarray) -> np.ndarray:
        return ((x >= self.low) & (x <= self.high)).astype(np.float64)

    def inverse(self, y: np.ndarray) -> np.ndarray:
        return y

    def ends(self, low: Array, high: Array) -> tuple[Array, Array]:
        return self.value(low), self.value(high)


@dataclass(frozen=True)
class Round(Increasing):
    """The nearest whole number, the even one of two: exact."""

    name: ClassVar[str] = "round"

    def value(self, x: Reals) -> Reals:
        return namespace(x).round(x)

    def slope(self, x: np.ndarray) -> np.ndarray:
        return np.zeros_like(x)

    def inverse(self, y: np.ndarray) -> np.ndarray:
        return y

    def ends(self, low: Array, high: Array) -> tuple[Array, Array]:
        return self.value(low), self.value(high)


class _Library(Increasing):
    """A function of the library, accurate to so many units in the last place."""

    ulps: ClassVar[int]

    def ends(self, low: Array, high: Array) -> tuple[Array, Array]:
        return down(self.value(low), self.ulps), up(self.value(high), self.ulps)


@dataclass(frozen=True)
class Log(_Library):
    """`log x`, x > 0."""

    name: ClassVar[str] = "log"
    domain: ClassVar[tuple[float, float]] = (0.0, math.inf)  # pyright: ignore
    open_below: ClassVar[bool] = True
    ulps: ClassVar[int] = ASIN_LOG_ULPS

    def value(self, x: Reals) -> Reals:
        return namespace(x).log(x)

    def slope(self, x: np.ndarray) -> np.ndarray:
        return 1.0 / x

    def inverse(self, y: np.ndarray) -> np.ndarray:
        return np.exp(y)


@dataclass(frozen=True)
class Log1p(_Library):
    """`log(1 + x)`, x > -1."""

    name: ClassVar[str] = "log1p"
    domain: ClassVar[tuple[float, float]] = (-1.0, math.inf)  # pyright: ignore
    open_below: ClassVar[bool] = True
    ulps: ClassVar[int] = EXP_ULPS

    def value(self, x: Reals) -> Reals:
        return namespace(x).log1p(x)

    def slope(self, x: np.ndarray) -> np.ndarray:
        return 1.0 / (1.0 + x)

    def inverse(self, y: np.ndarray) -> np.ndarray:
        return np.expm1(y)


class _Growing(Increasing):
    """exp and expm1: beyond `LARGEST` at least what they are there, and perhaps infinite."""

    least: ClassVar[float]

    def ends(self, low: Array, high: Array) -> tuple[Array, Array]:
        xp = namespace(low)
        first = down(self.value(low.clip(None, LARGEST)), EXP_ULPS)
        over = high > LARGEST
        last = up(self.value(high.clip(None, LARGEST)), EXP_ULPS)
        return first.clip(self.least, None), xp.where(over, xp.full_like(high, math.inf), last)


@dataclass(frozen=True)
class Exp(_Growing):
    """`exp x`."""

    name: ClassVar[str] = "exp"
    range: ClassVar[tuple[float, float]] = (0.0, math.inf)
    least: ClassVar[float] = 0.0

    def value(self, x: Reals) -> Reals:
        return namespace(x).exp(x)

    def slope(self, x: np.ndarray) -> np.ndarray:
        return np.exp(x)

    def inverse(self, y: np.ndarray) -> np.ndarray:
        return np.log(y)


@dataclass(frozen=True)
class Expm1(_Growing):
    """`exp(x) - 1`."""

    name: ClassVar[str] = "expm1"
    range: ClassVar[tuple[float, float]] = (-1.0, math.inf)
    least: ClassVar[float] = -1.0

    def value(self, x: Reals) -> Reals:
        return namespace(x).expm1(x)

    def slope(self, x: np.ndarray) -> np.ndarray:
        return np.exp(x)

    def inverse(self, y: np.ndarray) -> np.ndarray:
        return np.log1p(y)


@dataclass(frozen=True)
class Power(Increasing):
    """`sign(x) |x|^exponent`, exponent > 0; of x >= 0 only where it is not `signed`.

    >>> Power(3.0, signed=True).value(np.array([-2.0])).tolist()
    [-8.0]
    """

    exponent: float
    signed: bool = False

    name: ClassVar[str] = "power"

    def __post_init__(self) -> None:
        check_number("Power: exponent", self.exponent, positive=True)

    @property
    def domain(self) -> tuple[float, float]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return (-math.inf if self.signed else 0.0, math.inf)

    def value(self, x: Reals) -> Reals:
        xp = namespace(x)
        return xp.sign(x) * abs(x) ** self.exponent

    def slope(self, x: np.ndarray) -> np.ndarray:
        return self.exponent * np.abs(x) ** (self.exponent - 1.0)

    def inverse(self, y: np.ndarray) -> np.ndarray:
        return np.sign(y) * np.abs(y) ** (1.0 / self.exponent)

    def ends(self, low: Array, high: Array) -> tuple[Array, Array]:
        first, last = down(self.value(low), POW_ULPS), up(self.value(high), POW_ULPS)
        return (first if self.signed else nonnegative(first)), last


def _two_branches(
    x: Reals, above: Callable[[Reals], Reals], below: Callable[[Reals], Reals]
) -> Reals:
    """`above(x)` of x >= 0, and `-below(-x)` of the others."""
    return namespace(x).where(x >= 0, above(nonnegative(x)), -below(nonnegative(-x)))


@dataclass(frozen=True)
class Bilog(_Library):
    """`sign(x) log(1 + |x|)`.

    >>> Bilog().value(np.array([-1.0, 0.0])).round(3).tolist()
    [-0.693, 0.0]
    """

    name: ClassVar[str] = "bilog"
    ulps: ClassVar[int] = EXP_ULPS

    def value(self, x: Reals) -> Reals:
        return _two_branches(x, namespace(x).log1p, namespace(x).log1p)

    def slope(self, x: np.ndarray) -> np.ndarray:
        return 1.0 / (1.0 + np.abs(x))

    def inverse(self, y: np.ndarray) -> np.ndarray:
        return np.sign(y) * np.expm1(np.abs(y))


@dataclass(frozen=True)
class InverseBilog(Increasing):
    """`sign(x) (exp|x| - 1)`."""

    name: ClassVar[str] = "inverse-bilog"

    def value(self, x: Reals) -> Reals:
        return _two_branches(x, namespace(x).expm1, namespace(x).expm1)

    def slope(self, x: np.ndarray) -> np.ndarray:
        return np.exp(np.abs(x))

    def inverse(self, y: np.ndarray) -> np.ndarray:
        return np.sign(y) * np.log1p(np.abs(y))

    def ends(self, low: Array, high: Array) -> tuple[Array, Array]:
        return -self._above(-low), self._above(high)

    def _above(self, x: Array) -> Array:
        xp = namespace(x)
        value = up(self.value(x.clip(-LARGEST, LARGEST)), EXP_ULPS)
        return xp.where(x > LARGEST, xp.full_like(x, math.inf), value)


@dataclass(frozen=True)
class PowerBend(Increasing):
    """`E_p(x)` of x >= 0 and `-E_q(-x)` of the others, `E_p(u) = (exp(p u) - 1) / p`, `E_0(u) = u`.

    After `Log` with q = -p it is the Box-Cox transform of exponent p, after `Bilog` with q = 2 - p
    that of Yeo and Johnson.
    """

    p: float
    q: float

    name: ClassVar[str] = "power-bend"

    def __post_init__(self) -> None:
        check_number("PowerBend: p", self.p)
        check_number("PowerBend: q", self.q)

    def value(self, x: Reals) -> Reals:
        return _two_branches(x, lambda u: _bent(u, self.p), lambda u: _bent(u, self.q))

    def slope(self, x: np.ndarray) -> np.ndarray:
        return np.exp(np.where(x >= 0, self.p * x, -self.q * x))

    def inverse(self, y: np.ndarray) -> np.ndarray:
        return InversePowerBend(self.p, self.q).value(y)

    def ends(self, low: Array, high: Array) -> tuple[Array, Array]:
        """The rounded product `p u` is moved outwards before `E_p`, which increases, takes it."""
        xp = namespace(low)

        def side(x: Array, outwards: Callable[[Array, int], Array]) -> Array:
            mirrored = up if outwards is down else down
            above = _bent_bound(nonnegative(x), self.p, outwards)
            below = -_bent_bound(nonnegative(-x), self.q, mirrored)
            return xp.where(x >= 0, above, below)

        return side(low, down), side(high, up)


def _bent(u: Reals, p: float) -> Reals:
    return u if p == 0.0 else namespace(u).expm1(p * u) / p


def _bent_bound(u: Array, p: float, outwards: Callable[[Array, int], Array]) -> Array:
    """A bound of E_p(u), u >= 0, from below (`down`) or above (`up`)."""
    if p == 0.0:
        return u
    xp = namespace(u)
    t = nonnegative(outwards(abs(p) * u, 1)) if p > 0 else -outwards(abs(p) * u, 1).clip(0.0, None)
    over = t > LARGEST
    value = xp.expm1(t.clip(None, LARGEST)) / p
    bound = nonnegative(outwards(value, EXP_ULPS + 1))
    beyond = xp.full_like(u, math.inf) if outwards is up else bound
    return xp.where(over, beyond, bound)


@dataclass(frozen=True)
class InversePowerBend(Increasing):
    """The inverse of `PowerBend(p, q)`: `log(1 + p y) / p` of y >= 0, where that is defined."""

    p: float
    q: float

    name: ClassVar[str] = "inverse-power-bend"

    def __post_init__(self) -> None:
        check_number("InversePowerBend: p", self.p)
        check_number("InversePowerBend: q", self.q)

    def value(self, x: Reals) -> Reals:
        return _two_branches(x, lambda u: _unbent(u, self.p), lambda u: _unbent(u, self.q))

    def slope(self, x: np.ndarray) -> np.ndarray:
        return 1.0 / (1.0 + np.where(x >= 0, self.p * x, -self.q * x))

    def inverse(self, y: np.ndarray) -> np.ndarray:
        return PowerBend(self.p, self.q).value(y)

    def ends(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Beyond the domain, where `1 + p y` is not positive, infinite."""
        xp = namespace(low)

        def side(x: Array, outwards: Callable[[Array, int], Array]) -> Array:
            mirrored = up if outwards is down else down
            above = _unbent_bound(nonnegative(x), self.p, outwards)
            below = -_unbent_bound(nonnegative(-x), self.q, mirrored)
            return xp.where(x >= 0, above, below)

        return side(low, down), side(high, up)


def _unbent(y: Reals, p: float) -> Reals:
    return y if p == 0.0 else namespace(y).log1p(p * y) / p


def _unbent_bound(y: Array, p: float, outwards: Callable[[Array, int], Array]) -> Array:
    if p == 0.0:
        return y
    xp = namespace(y)
    moved = outwards(abs(p) * y, 1)
    t = nonnegative(moved) if p > 0 else -nonnegative(moved)
    known = t > -1.0
    value = xp.log1p(xp.where(known, t, xp.zeros_like(t))) / p
    bound = nonnegative(outwards(value, EXP_ULPS + 1))
    return xp.where(known, bound, xp.full_like(y, math.inf))


@dataclass(frozen=True)
class Kumaraswamy(Increasing):
    """`1 - (1 - x^a)^b` on [0, 1], a, b > 0: the distribution function of Kumaraswamy (1980).

    >>> Kumaraswamy(1.0, 1.0).value(np.array([0.25])).tolist()
    [0.25]
    """

    a: float
    b: float

    name: ClassVar[str] = "kumaraswamy"
    domain: ClassVar[tuple[float, float]] = (0.0, 1.0)  # pyright: ignore

    def __post_init__(self) -> None:
        check_number("Kumaraswamy: a", self.a, positive=True)
        check_number("Kumaraswamy: b", self.b, positive=True)

    def value(self, x: Reals) -> Reals:
        return 1.0 - self._left(x) ** self.b

    def slope(self, x: np.ndarray) -> np.ndarray:
        return self.a * self.b * x ** (self.a - 1.0) * self._left(x) ** (self.b - 1.0)

    def inverse(self, y: np.ndarray) -> np.ndarray:
        return (1.0 - (1.0 - np.clip(y, 0.0, 1.0)) ** (1.0 / self.b)) ** (1.0 / self.a)

    def ends(self, low: Array, high: Array) -> tuple[Array, Array]:
        left = self._left(low, down).clip(0.0, 1.0), self._left(high, up).clip(0.0, 1.0)
        first = down(1.0 - up(left[0] ** self.b, POW_ULPS).clip(0.0, 1.0), 1)
        last = up(1.0 - down(left[1] ** self.b, POW_ULPS).clip(0.0, 1.0), 1)
        return first.clip(0.0, 1.0), last.clip(0.0, 1.0)

    def _left(self, x: Array, outwards: Callable[[Array, int], Array] | None = None) -> Array:
        """`1 - x^a` as `-expm1(a log x)`, which keeps its digits near x = 1; a bound of it for a
        bound of x^a from below (`down`) or above (`up`)."""
        xp = namespace(x)
        power = self.a * xp.log(xp.where(x > 0, x, xp.ones_like(x)))
        power = power if outwards is None else outwards(power, ASIN_LOG_ULPS + 1)
        power = xp.where(x > 0, power, xp.full_like(x, NOTHING)).clip(NOTHING, 0.0)
        left = -xp.expm1(power)
        return left if outwards is None else -outwards(-left, EXP_ULPS)
