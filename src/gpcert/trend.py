"""Linear trends: the part `slope_c . z` of a latent mean, z what the kernel sees of an input.

    mu_c(x) = offset_c + scale_c (k(z, Z) t_c + slope_c . z),     z = x, or W x + b.

Linear mean functions of the libraries are this. The slope stands inside the scale, as the weights
do, so that powers of two take it to unit form exactly; and behind the linear features, where the
libraries' mean functions stand as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from gpcert.arrays import finite_array
from gpcert.errors import InputError
from gpcert.rounding import on_grid


def checked_slope(slope: Any, m: int, q: int) -> np.ndarray:
    """Slopes as (m, q), zero where there is no trend.

    >>> checked_slope([1.0, 2.0], 1, 2).tolist()
    [[1.0, 2.0]]
    """
    if slope is None:
        return np.zeros((m, q))
    values = finite_array("slope", slope)
    if values.shape == (q,) and m == 1:
        values = values[None]
    if values.shape != (m, q):
        raise InputError(
            f"slope: expected shape ({m}, {q}), one number for each output and each of the "
            f"features that the kernel sees, or None, got {values.shape}"
        )
    return values.copy()


def slope_on_grid(slope: np.ndarray) -> np.ndarray:
    """The slopes of each feature on a grid that all outputs share: their differences are exact."""
    return np.stack([on_grid(column) for column in slope.T], axis=1)


def slope_exponent(slope: np.ndarray, points: np.ndarray) -> int | None:
    """e with 2^e about the largest `|slope_j z_j|` over the points; None without a slope.

    A feature that is 0 at all points counts as 1.
    """
    (used,) = np.nonzero(slope)
    if not len(used):
        return None
    sizes = np.abs(points[:, used]).max(axis=0)
    sizes = np.where(sizes > 0, sizes, 1.0)
    return int((np.frexp(slope[used])[1] + np.frexp(sizes)[1]).max())


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
