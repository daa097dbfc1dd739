"""Ball arithmetic (python-flint): every number is an `arb`, a ball that contains the real value.

Lengths and inner products in feature space come from a kernel's values alone: with
`K(s, t) = k(c + s d, c + t d)`,

    <D_d^i phi(c), D_d^j phi(c)> = i! j! a_ij,       K(s, t) = sum a_ij s^i t^j,

and the a_ij follow from power series of K along the lines t = r s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import flint as library
import numpy as np

BITS = 200
"""Working precision: rounding is then near 1e-60, far below every float64 error bound."""


def flint() -> Any:
    """The module `flint`, its precision raised to `BITS`.

    >>> flint().ctx.prec >= BITS
    True
    """
    library.ctx.prec = max(library.ctx.prec, BITS)
    return library


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
    known = value.coeffs() if isinstance(value, module.arb_series) else [module.arb(value)]
    return [*known, *[module.arb(0)] * count][:count]


def dot(a: Sequence[Any], b: Sequence[Any]) -> Any:
    """`sum_j a_j b_j` of balls or power series."""
    return total(s * t for s, t in zip(a, b, strict=True))


def total(parts: Iterable[Any]) -> Any:
    """The sum of balls or power series."""
    return sum(parts, flint().arb(0))


Surface = Callable[[Any, Any], Any]
"""`K(s, t)` for numbers or power series s and t."""


def line_surface(
    kernel: Callable[[Sequence[Any], Sequence[Any]], Any], c: Sequence[Any], d: Sequence[Any]
) -> Surface:
    """`K(s, t)` along d from c."""

    def K(s: Any, t: Any) -> Any:
        x = [a + s * b for a, b in zip(c, d, strict=True)]
        y = [a + t * b for a, b in zip(c, d, strict=True)]
        return kernel(x, y)

    return K


def diagonal_coefficients(surface: Surface) -> dict[tuple[int, int], Any]:
    """`a_ij` for i, j <= 3 of a symmetric surface K(s, t) = K(t, s).

    The coefficient of tau^n of `K(tau, r tau)` is `sum_i a_(n-i)i r^i`; its even and odd parts in r
    and the side a_0n give the others.
    """
    tau = flint().arb_series([0, 1])
    side = coefficients(surface(0 * tau, tau), 7)
    line = {r: coefficients(surface(tau, r * tau), 7) for r in (1, -1, 2, -2)}

    def odd(r: int, n: int) -> Any:
        return (line[r][n] - line[-r][n]) / 2

    def even(r: int, n: int) -> Any:
        return (line[r][n] + line[-r][n]) / 2

    a = {(0, n): side[n] for n in range(4)}
    a[1, 1] = line[1][2] - 2 * side[2]
    a[1, 2] = even(1, 3) - side[3]  # a_30 + a_12
    a[2, 2] = even(1, 4) - 2 * side[4]  # a_40 + a_22 + a_04
    a[1, 3] = odd(1, 4) / 2  # a_31 + a_13
    # odd_r = a_41 r + a_23 r^3 + a_05 r^5, a_41 = a_14
    a[2, 3] = ((odd(2, 5) - 32 * side[5]) - 2 * (odd(1, 5) - side[5])) / 6
    # odd_r = a_51 r + a_33 r^3 + a_15 r^5, a_51 = a_15
    a[3, 3] = (17 * odd(1, 6) - odd(2, 6)) / 9
    return {**a, **{(j, i): value for (i, j), value in a.items()}}


def remainder_length(
    surface: Surface, order: int, a: dict[tuple[int, int], Any] | None = None
) -> Any:
    """`||Phi(1) - sum_{i <= order} Phi^(i)(0) / i!||` where `<Phi(s), Phi(t)> = K(s, t)`."""
    module = flint()
    one, tau = module.arb(1), module.arb_series([0, 1])
    a = diagonal_coefficients(surface) if a is None else a
    at_end = coefficients(surface(tau, one + 0 * tau), 3)
    known = total(a[i, j] for i in range(order + 1) for j in range(order + 1))
    square = coefficients(surface(one, one), 1)[0] - 2 * total(at_end[: order + 1]) + known
    return square.max(module.arb(0)).sqrt()
