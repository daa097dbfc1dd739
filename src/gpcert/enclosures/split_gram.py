"""Products with the kernel matrix of the points whose sums are exact but for the last rounding.

Proofs: docs/mathematics.md, statements 6.10 and 16.12.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from gpcert.numerics.arrays import Array, Backend, PerRow, namespace
from gpcert.numerics.rounding import U, gamma, leading_power, root, up, up_float

SMALLEST = 2.0**-900
"""Rows of smaller entries are split as if their largest were this."""


@dataclass(frozen=True, eq=False)
class SplitGram:
    """K_ZZ on a backend: `high` has so few digits that sums of its products with as short weights
    are exact, `both` is `low` below `high`; None where plain sums do."""

    value: Annotated[Array, "N N"]
    size: float
    """The largest entry."""
    bits: int
    high: Array | None = None
    both: Array | None = None
    grid: float = 0.0

    @staticmethod
    def of(
        K: Annotated[np.ndarray, "N N"],
        exact: bool,
        backend: Backend,
        low: np.ndarray | None = None,
    ) -> SplitGram:
        """Of the computed matrix; exact sums are then of `K + low`, off by `rest_error` an
        entry."""
        N, size = len(K), float(np.abs(K).max())
        # N products of two integers of at most 2^b stay below 2^53
        bits = (53 - math.ceil(math.log2(N + 1))) // 2
        if not exact:
            return SplitGram(backend.asarray(K), size, bits)
        grid = 2.0 ** (math.frexp(size)[1] - bits)
        high = np.round(K / grid) * grid
        rest = K - high
        both = np.concatenate([high, rest if low is None else rest + low])
        return SplitGram(
            backend.asarray(K), size, bits, backend.asarray(high), backend.asarray(both), grid
        )

    @property
    def rest_error(self) -> float:
        """What the sum of a rest, at most `grid`, and a second part rounds."""
        return up_float(U * self.grid, 4)

    def times(
        self, W: Array, one: PerRow, exact: bool = True
    ) -> tuple[Array, Array | float, PerRow]:
        """`W K` (n, N) of the computed K as two parts, and a bound (n,) of the error of every
        entry; `one` is |w|_1. `exact`: by exact sums, where they are known; the second part is then
        at most `error / gamma(2 N)`, else there is none, and two roundings of the first are not
        counted.

        Exact sums: with w = w_h + w_l, w_h a multiple of a power of two, likewise K, all partial
        sums of `w_h K_h` are integers below 2^53 of a common unit (Statement 16.12).
        """
        xp, N = namespace(W), W.shape[1]
        if not exact or self.high is None or self.both is None:
            return W @ self.value, 0.0, gamma(N + 2) * self.size * one
        high, low = split(W, self.bits)
        rest = xp.concat([low, W], axis=1) @ self.both
        small = xp.sum(xp.abs(low), axis=1) * (1.0 + gamma(N))
        size = (self.size + self.grid) * small + self.grid * one
        return high @ self.high, rest, gamma(2 * N + 16) * size

    def dots(
        self,
        first: Annotated[Array, "B a N"],
        second: Annotated[Array, "B b N"],
        exact: bool = True,
    ) -> tuple[Array, Array | float, Array]:
        """`first second^T` (B, a, b) for (B, a, N) and (B, b, N) as two parts, and a bound of the
        error of every entry; `exact` as in `times`."""
        xp, N = namespace(first), first.shape[2]
        lengths = tuple(root(xp.sum(rows * rows, axis=2)) for rows in (first, second))
        if not exact or self.high is None:
            error = gamma(N + 2) * (1.0 + gamma(2 * N + 8))
            turned = xp.matrix_transpose(second)
            return first @ turned, 0.0, error * lengths[0][:, :, None] * lengths[1][:, None, :]
        (high, low), (H, L) = split(first, self.bits), split(second, self.bits)
        rest = low @ xp.matrix_transpose(H) + first @ xp.matrix_transpose(L)
        small = tuple(root(xp.sum(rows * rows, axis=2)) for rows in (low, L))
        error = small[0][:, :, None] * (lengths[1] + small[1])[:, None, :]
        error = error + lengths[0][:, :, None] * small[1][:, None, :]
        return high @ xp.matrix_transpose(H), rest, up(gamma(N + 4) * error, 2 * N + 16)


def split(rows: Annotated[Array, "... N"], bits: int) -> tuple[Array, Array]:
    """Rows (..., N) as whole multiples, at most 2^bits, of a power of two of each row, and the
    rest; both exact. The power of two is that of the largest entry."""
    xp = namespace(rows)
    largest = xp.max(xp.abs(rows), axis=-1)[..., None]
    largest = xp.maximum(largest, xp.full_like(largest, SMALLEST))
    grid = leading_power(largest) * 2.0 ** (2 - bits)
    high = xp.round(rows / grid) * grid
    return high, rows - high
