"""Rounding: the unit roundoff, gamma_n, named accuracies of library functions, outward steps; sums,
products and norms rounded in a chosen direction.

Model (Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd ed., ch. 2-3): every basic
operation in float64 returns `fl(a op b) = (a op b)(1 + d)`, `|d| <= U`, barring underflow, and a
sum or dot product of n terms in any order, with or without fused multiply-add, satisfies
`|fl(sum) - sum| <= gamma(n) * sum |terms|`. Underflow adds at most `TINY` an operation.

Library functions are assumed accurate to the named number of units in the last place below. They
are documented or measured as far better (<= 1 ulp for NumPy and glibc exp, <= 2 ulp for CUDA exp,
SciPy's ndtr and erf a few ulp); the constants are generous and tested against 200-bit arithmetic.

Proofs: docs/mathematics.md, statements 13.2, 13.4, 13.6, 14.3, 16.1 to 16.5 and 16.10.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from gpcert.numerics.arrays import Array, PerVector, Reals, Vectors, namespace

U = 2.0**-53
"""Unit roundoff of float64."""

TINY = 2.0**-1000
"""Far above anything that underflow can lose (2^-1022 an operation), far below any result."""

EXP_ULPS = 8
"""Assumed: |fl(exp x) - exp x| <= EXP_ULPS * U * exp x, also for expm1 and log1p."""

NORMAL_CDF_ULPS = 64
"""Assumed: |fl(Phi z) - Phi z| <= (NORMAL_CDF_ULPS + 4 min(z, 0)^2) U Phi z for the normal
distribution function where Phi z is normal (Statement 16.11)."""


SIN_COS_ULPS = 8
"""Assumed: |fl(sin x) - sin x| <= SIN_COS_ULPS * U * |sin x| for every finite float x, also for
cos: the libraries reduce arguments exactly (Payne and Hanek)."""

ASIN_LOG_ULPS = 8
"""Assumed: |fl(asin x) - asin x| <= ASIN_LOG_ULPS * U * |asin x|, also for log."""

POW_ULPS = 16
"""Assumed: |fl(a^b) - a^b| <= POW_ULPS * U * a^b; glibc, NumPy, SLEEF and CUDA keep within 4."""


def gamma(n: int | float) -> float:
    """`gamma_n = n U / (1 - n U)`, rounded up: the error factor of n successive roundings.

    >>> 0 < gamma(3) < 4e-16
    True
    """
    nu = n * U
    if nu >= 0.01:
        raise OverflowError(f"gamma({n}): more than 10^14 roundings are not supported")
    return nu / (1.0 - nu) * (1.0 + 4 * U)


def up(x: Array, roundings: int = 1) -> Array:
    """A number >= the real value that `x` was computed from with so many relative roundings.

    Reason: the real value is <= x + |x| gamma(n)(1 + ...) <= x + 2 n U |x|, and adding `4 n U |x|`
    leaves room for the roundings of this line itself.

    >>> import numpy as np
    >>> bool(up(np.float64(1.0)) > 1.0)
    True
    """
    return x + (abs(x) * (4.0 * roundings * U) + TINY)


def down(x: Array, roundings: int = 1) -> Array:
    """A number <= the real value that `x` was computed from; the mirror of `up`."""
    return x - (abs(x) * (4.0 * roundings * U) + TINY)


def given(x: Array) -> Array:
    """x as it is: what follows is about this float, whatever it was computed from. Either any
    number would do, as for the slope of a line, or the error of x is bounded apart.

    Tests of rounding counts (`gpcert.testing.rounding_counts`) begin to count anew here.

    >>> given(0.1) == 0.1
    True
    """
    return x


def root(square: Array) -> Array:
    """Square root of a computed sum of squares, for an upper bound; the callers count roundings.

    Reason: squares of numbers below 2^-511 vanish, so a sum may lose 2^-1022 a term and its root
    2^-511, far more than the TINY that `up` adds to the root: TINY belongs under it.

    >>> import numpy as np
    >>> bool(root(np.float64(1e-160) ** 2) > 1e-160)
    True
    """
    return namespace(square).sqrt(square + TINY)


def up_float(x: float, roundings: int = 1) -> float:
    """`up` for a Python float."""
    return float(up(float(x), roundings))


def scaled(values: np.ndarray, exponent: int) -> np.ndarray:
    """`2^exponent values`, rounded where an entry underflows; a product is faster than ldexp."""
    return values * 2.0**exponent if abs(exponent) <= 1000 else np.ldexp(values, exponent)


def scaled_to_one(values: np.ndarray) -> tuple[np.ndarray, int]:
    """`2^-e values` with its largest entry in [1/2, 1), and e; e = 0 where all are zero.

    Exact, but for entries that underflow: those are below 2^-1022 of the largest.

    >>> scaled_to_one(np.array([3.0, -8.0]))[0].tolist()
    [0.1875, -0.5]
    """
    largest = float(np.abs(values).max(initial=0.0))
    exponent = math.frexp(largest)[1]
    return scaled(values, -exponent), exponent


def raised_power(value: float, exponent: int) -> float:
    """`2^exponent value` for a value >= 0, rounded up; infinite where that is not a float."""
    with np.errstate(over="ignore", under="ignore"):
        return up_float(float(np.ldexp(value, exponent)), 1)


def leading_power(x: Array) -> Array:
    """2^e for 2^e <= |x| < 2^(e + 1), from 2^-900 on; 0 for 0.

    From basic operations alone, as a library's `pow` may round (Rump, Zimmermann, Boldo &
    Melquiond 2009, *Computing predecessor and successor in rounding to nearest*, Algorithm 3.5);
    at 2^-60 x, as 2^52 times the largest floats would overflow.

    >>> leading_power(np.array([0.0, 5.0, 8.0, 1.7e308])).tolist() == [0.0, 4.0, 8.0, 2.0**1023]
    True
    """
    q = (2.0**-60 * x) * (2.0**52 + 1.0)
    return namespace(x).abs(q - (1.0 - U) * q) * 2.0**60


def nonnegative(x: Array) -> Array:
    """`max(x, 0)` elementwise; NaN stays NaN, so that no bound is made from one."""
    xp = namespace(x)
    return xp.maximum(x, xp.zeros((), dtype=x.dtype, device=x.device))


def two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`(s, e)` with `s = fl(a + b)` and `s + e = a + b` in real arithmetic, barring overflow.

    Reason: Knuth's TwoSum (TAOCP vol. 2, 4.2.2, theorem B); sums never lose digits to underflow.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        s = a + b
        rest = s - a
        return s, (a - (s - rest)) + (b - rest)


def add_up(a: Reals, b: Reals) -> Reals:
    """The smallest float >= a + b (infinity where that overflows).

    >>> bool(add_up(np.float64(1.0), np.float64(1e-300)) > 1.0)
    True
    """
    s, e = two_sum(a, b)
    return np.where(e > 0, np.nextafter(s, np.inf), s)


def add_down(a: Reals, b: Reals) -> Reals:
    """The largest float <= a + b (minus infinity where that overflows)."""
    return -add_up(-a, -b)


def two_product(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`(p, e)` with `p = fl(a b)` and `p + e = a b` in real arithmetic, barring overflow (numbers
    from 2^990 on) and underflow (products below 2^-960).

    Reason: Dekker's TwoProduct, see `product_up`.

    >>> p, e = two_product(np.float64(1.0 + 2.0**-30), np.float64(1.0 + 2.0**-30))
    >>> float(e) == 2.0**-60
    True
    """
    p = a * b
    (ah, al), (bh, bl) = halves(a), halves(b)
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


def product_up(a: Reals, b: Reals) -> Reals:
    """A float >= a b for a, b >= 0: the smallest one, but for products near the ends of float64.

    Reason: Dekker's TwoProduct (Numer. Math. 18, 1971): with halves of 26 bits all partial products
    are exact, so the sign of the error of `fl(a b)` is known; where a half may overflow or a
    partial product underflow, one step up is taken whatever it is. Zero is exact.

    >>> float(product_up(np.float64(0.25), np.float64(3.0)))
    0.75
    >>> from fractions import Fraction
    >>> Fraction(float(product_up(np.float64(0.1), np.float64(3.0)))) >= Fraction(0.1) * 3
    True
    """
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        p, error = two_product(a, b)
    plain = (a < 2.0**990) & (b < 2.0**990) & (p > 2.0**-960) & (p < 2.0**1020)
    above = np.where(plain, error > 0, (a > 0) & (b > 0))
    return np.where(above, np.nextafter(p, np.inf), p)


def halves(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`high + low = a`, 26 bits each (Veltkamp's split)."""
    c = (2.0**27 + 1.0) * a
    high = c - (c - a)
    return high, a - high


def difference_down(a: float, b: Fraction) -> float:
    """The largest float <= `a - b`, where a may be infinite; exact up to that one step.

    >>> difference_down(1.0, Fraction(1, 3)) < Fraction(2, 3), difference_down(0.5, Fraction(1, 4))
    (True, 0.25)
    """
    if not math.isfinite(a):
        return a
    exact = Fraction(a) - b
    try:
        near = float(exact)  # correctly rounded
    except OverflowError:
        return math.nextafter(math.inf, 0.0) if exact > 0 else -math.inf
    return near if Fraction(near) <= exact else math.nextafter(near, -math.inf)


def difference_up(a: float, b: Fraction) -> float:
    """The smallest float >= `a - b`: the mirror of `difference_down`."""
    return -difference_down(-a, -b)


def on_grid(values: np.ndarray) -> np.ndarray:
    """The values rounded to multiples of 2^-50 of the largest one (in size, as a power of two).

    Sums and differences of two such numbers, and their halves, are then exact in float64; the step
    is at least 2^-1070, so that halves are floats.

    >>> float(on_grid(np.array([1.0, 1e-20]))[1])
    0.0
    """
    largest = float(np.abs(values).max(initial=0.0))
    if largest == 0.0:
        return values
    step = max(math.frexp(largest)[1] - 50, -1070)  # largest < 2^50 2^step
    return np.ldexp(np.round(np.ldexp(values, -step)), step)


def exact_dot(a: Sequence[float], b: Sequence[float]) -> Fraction:
    """`sum_j a_j b_j` of floats, exactly.

    >>> exact_dot([1e200, 1.0, -1e200], [1.0, 3.0, 1.0])
    Fraction(3, 1)
    """
    terms = [(*_integer(x), *_integer(y)) for x, y in zip(a, b, strict=True) if x and y]
    if not terms:
        return Fraction(0)
    least = min(e + f for _, e, _, f in terms)
    total = sum((n * m) << (e + f - least) for n, e, m, f in terms)
    return Fraction(total) * Fraction(2) ** least


def _integer(x: float) -> tuple[int, int]:
    """`x = n 2^e`."""
    mantissa, exponent = math.frexp(x)
    return int(math.ldexp(mantissa, 53)), exponent - 53


SMALLEST = 2.0**-1068
"""More than gradual underflow takes of the last product, `M S^(1/p)`; not TINY, which would widen
balls of radius 1e-298: all else is relative here."""

LARGE = 1e308
"""Stands for an overflowed norm where a lower bound is asked for."""


def dual_exponent(p: float) -> float:
    """`q = p / (p - 1)` with `1/p + 1/q = 1`, rounded down (exact for p = 1, 2 and infinity).

    Reason for the direction: `||g||_q` decreases in q, so a smaller q keeps an upper bound.

    >>> dual_exponent(2.0), dual_exponent(1.0), dual_exponent(math.inf)
    (2.0, inf, 1.0)
    """
    if p == 1.0:
        return math.inf
    if p == 2.0:
        return 2.0
    if p == math.inf:
        return 1.0
    return max(1.0, p / (p - 1.0) * (1.0 - 8 * U))  # three roundings; the real q is above 1


def norm(x: Vectors, p: float) -> PerVector:
    """`||x||_p` along the last axis (not empty), in plain floating point.

    Statement 13.4: with `M = max |x_j|` and `S = sum (|x_j| / M)^p` the computed `M S^(1/p)` is
    within a factor `1 +- c U` of it, `c = n + 2 POW_ULPS + 40`. Reason: powers and root are off by
    POW_ULPS each, the sum by n, the rest by less than 40; scaling by M keeps the powers from
    overflowing, and what underflows is below `2^-1022` while S >= 1.
    """
    xp = namespace(x)
    a = xp.abs(x)
    if p == 1.0:
        return xp.sum(a, axis=-1)
    largest = xp.max(a, axis=-1)
    if p == math.inf:
        return largest
    safe = xp.where(largest > 0, largest, xp.ones_like(largest))
    t = a / safe[..., None]
    if p == 2.0:
        return largest * xp.sqrt(xp.sum(t * t, axis=-1))
    return largest * xp.sum(t**p, axis=-1) ** (1.0 / p)


def _roundings(x: Array) -> int:
    """c of `norm`, over which `norm_upper` and `norm_lower` step."""
    return int(x.shape[-1]) + 2 * POW_ULPS + 40


def norm_upper(x: Vectors, p: float, roundings: int = 0) -> PerVector:
    """A number >= `||x||_p`, where x itself carries so many relative roundings; 0 for x = 0, and
    infinite where an entry is, or is no number."""
    xp = namespace(x)
    value = norm(x, p)
    upper = value + (value * (4.0 * (_roundings(x) + roundings) * U) + SMALLEST)
    upper = xp.where(xp.isnan(upper), xp.full_like(upper, math.inf), upper)
    return xp.where(xp.all(x == 0, axis=-1), xp.zeros_like(upper), upper)


def norm_lower(x: Vectors, p: float, roundings: int = 0) -> PerVector:
    """A number in `[0, ||x||_p]`, where x itself carries so many relative roundings."""
    xp = namespace(x)
    value = xp.clip(norm(x, p), 0.0, LARGE)  # infinity minus its own slack would be NaN
    slack = value * (4.0 * (_roundings(x) + roundings) * U) + SMALLEST
    return xp.clip(value - slack, 0.0, None)
