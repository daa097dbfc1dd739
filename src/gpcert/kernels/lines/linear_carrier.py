"""The carrier of linear functions: phi(x, z_i) = alpha_i + beta_i.d, d = x - c in frame units.

Proofs: docs/mathematics.md, statement 12.3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from gpcert.arrays import Array, namespace
from gpcert.kernels.lines.base import Carrier
from gpcert.regions.frame import Reach
from gpcert.rounding import TINY, gamma, up


@dataclass(frozen=True, eq=False)
class LinearCarrier(Carrier):
    """Linear functions, known by their values at the centres and by their slopes.

    `values` (B, N) are known up to `errors` (B, N), `slopes` (N, f) up to `gamma(roundings)` times
    themselves (and up to what underflow takes), in the frame coordinates of `reach`.
    """

    values: Array
    errors: Array
    slopes: Array
    reach: Reach
    roundings: int = 4

    @cached_property
    @np.errstate(over="ignore")
    def spread(self) -> Array:
        """Upper bound (B, N) of `|beta_i.d|` over each cell's box."""
        half = self.reach.half
        xp, f = namespace(half), half.shape[1]
        total = half @ abs(self.slopes).T
        lost = TINY * xp.sum(half, axis=1)[:, None]
        return xp.where(
            xp.any(half > 0, axis=1)[:, None],
            up(total, f + self.roundings + 4) + lost,
            xp.zeros_like(total),
        )

    @cached_property
    @np.errstate(over="ignore", invalid="ignore")
    def _magnitude(self) -> Array:
        return up(abs(self.values) + self.errors + self.spread, 4)

    def magnitude(self) -> Array:
        """`|alpha_i| + sum_j |beta_ij| half_j`, rounded up."""
        return self._magnitude

    def minimum(self, coefficients: Array) -> Array:
        """`sum_i a_i alpha_i + min_d (sum_i a_i beta_i).d`, exact up to rounding."""
        return joint_minimum([(self, coefficients)])

    def form(self, coefficients: Array, summands: int) -> tuple[Array, Array, Array]:
        """`sum_i a_i phi(x, z_i)` as a value (B,), slopes (B, f) and an error (B,) over the cell.

        The sums over i have N terms each, `|a_i alpha_i|` and `|a_i beta_ij| half_j`, together at
        most `|a_i| magnitude_i`; their rounding is counted by that size, and so is the rounding
        of a sum of so many forms.
        """
        xp, half = namespace(coefficients), self.reach.half
        (_, N), f = coefficients.shape, half.shape[1]
        sizes = abs(coefficients)
        count = N + f + self.roundings + summands + 16
        error = xp.sum(sizes * self.errors, axis=1)
        error = error + gamma(count) * xp.sum(sizes * self._magnitude, axis=1)
        # underflow of slopes in either units
        lost = 1.0 + xp.sum(half * (1.0 + self.reach.unit), axis=1)
        error = error + (TINY * (1.0 + N)) * lost
        flat = xp.sum(coefficients * self.values, axis=1)
        return flat, coefficients @ self.slopes, up(error, N + 8)


@np.errstate(over="ignore", invalid="ignore")
def joint_minimum(terms: Sequence[tuple[LinearCarrier, Array]]) -> Array:
    """Certified lower bound (B,) of the minimum over each cell of a sum of linear functions.

    `sum_m sum_i a_mi phi_m(x, z_i)` with coefficients (B, N), all carriers on the same cells, each
    on some of their features. Exact up to rounding, over parts of balls too: the sum is again
    linear. Minima of the summands apart would lose what cancels between them.
    """
    reach = terms[0][0].reach
    xp = namespace(reach.half)
    forms = [carrier.form(coefficients, len(terms)) for carrier, coefficients in terms]
    flat = reduce(lambda a, b: a + b, [form[0] for form in forms])
    error = reduce(lambda a, b: a + b, [form[2] for form in forms])
    if reach.cells is None:
        assert len(terms) == 1, "carriers have cells in common"
        least = -xp.sum(abs(forms[0][1]) * reach.half, axis=1)
        error = error + gamma(reach.half.shape[1] + 4) * abs(least)
    else:
        slope = xp.zeros_like(reach.cells.lower)
        for (carrier, _), form in zip(terms, forms, strict=True):
            index = xp.asarray(carrier.reach.columns, device=slope.device)
            # in the user's units, exactly: the frame's are powers of two
            slope[:, index] = slope[:, index] + form[1] / carrier.reach.unit
        least = reach.cells.linear_minimum(slope)
    # sums of 2 m + 1 numbers; the errors' own sum is rounded up
    size = abs(least) + reduce(lambda a, b: a + b, [abs(form[0]) for form in forms])
    total = flat + least - up(error + gamma(len(terms) + 2) * size, 2 * len(terms) + 4)
    return xp.where(xp.isfinite(total), total, xp.full_like(total, -math.inf))
