"""The paper's mean bound for any tree of kernels: lines under and over each k(x, z_i).

Proofs: docs/mathematics.md, statements 12.4 and 12.10.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from gpcert.arrays import Array, namespace
from gpcert.kernels.lines.affine_algebra import interval_term, lower_combination
from gpcert.kernels.lines.base import Carrier, Enclosed
from gpcert.kernels.lines.linear_carrier import LinearCarrier, joint_minimum
from gpcert.rounding import gamma, up

__all__ = ["affine_lower_bound"]


@np.errstate(over="ignore", invalid="ignore")
def affine_lower_bound(enclosed: Enclosed, weights: Array) -> Array:
    """Certified lower bound (B,) of `sum_i t_i k(x, z_i)` over each cell, t (N,) or (B, N).

    With `under` where t_i >= 0 and `over` where t_i < 0 the sum is at least
    `sum_i intercept_i + sum_m min_x sum_i slope_mi phi_m(x, z_i)`. The interval bound
    `sum_i min(t_i low_i, t_i high_i)` is another; the better one counts. Linear carriers are
    minimised together, as their sum is linear. Reference: Patane et al.,
    Proposition "mean bound", with the sign and weights of Statement 12.4.
    """
    xp = namespace(enclosed.low)
    each = interval_term(weights, enclosed)
    lines = lower_combination([(weights, enclosed)], each)
    total, size = xp.sum(lines.intercept, axis=1), xp.sum(abs(lines.intercept), axis=1)
    for least in _minima(lines.slopes):
        total, size = total + least, size + abs(least)
    count = each.shape[1] + len(lines.slopes) + 4
    total = total - up(gamma(count) * size, count)
    plain = xp.sum(each, axis=1) - up(gamma(count) * xp.sum(abs(each), axis=1), count)
    lowest = xp.full_like(total, -math.inf)
    total = xp.where(xp.isfinite(total), total, lowest)
    plain = xp.where(xp.isfinite(plain), plain, lowest)
    return xp.maximum(total, plain)


def _minima(slopes: Sequence[tuple[Carrier, Array]]) -> Iterator[Array]:
    """One minimum for all linear carriers on the same cells, one for each other carrier."""
    together: dict[int, list[tuple[LinearCarrier, Array]]] = {}
    for carrier, slope in slopes:
        if not isinstance(carrier, LinearCarrier):
            yield carrier.minimum(slope)
        else:
            cells = carrier.reach.cells
            key = id(carrier) if cells is None else id(cells)
            together.setdefault(key, []).append((carrier, slope))
    for group in together.values():
        yield joint_minimum(group)
