"""What a polynomial of degree 2 leaves of a function on each cell, and what degree 3 would.

Proofs: docs/mathematics.md, statements 3.6 and 5.9.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gpcert.arrays import Array, Index, PerCell, namespace
from gpcert.kernels.nodes.symmetric_tensors import sorted_index
from gpcert.kernels.sizes import times, total
from gpcert.rounding import gamma, up


@dataclass(frozen=True, eq=False)
class CubicPart:
    """With `T[d, d, d] / 6` added to its polynomial of degree 2, at most `rest` (B,) is left of a
    function. `tensor` (B, n): T over sorted triples, in the coordinates of the cells; `absolute`
    (B,): at least the sum of all `|T_jkl| w_j w_k w_l / 6`, w the half-widths."""

    tensor: Array
    rest: Array
    absolute: Array

    def where(self, mask: PerCell) -> CubicPart:
        """Nothing known (an infinite rest) elsewhere."""
        xp = namespace(mask)
        rest = xp.where(mask, self.rest, xp.full_like(self.rest, np.inf))
        return replace(self, rest=rest)


@dataclass(frozen=True, eq=False)
class Beyond:
    """`size` (B,): at most this is left by degree 2; what is known of degree 3, if anything is."""

    size: Array
    cubic: CubicPart | None = None

    def raised(self, amount: PerCell) -> Beyond:
        """Of a function that may differ by `amount` (B,) more."""
        cubic = self.cubic
        if cubic is not None:
            cubic = replace(cubic, rest=up(cubic.rest + amount, 1))
        return Beyond(up(self.size + amount, 1), cubic)

    @np.errstate(over="ignore", invalid="ignore")
    def scaled(self, factor: float) -> Beyond:
        """Of `factor` times the function, factor > 0."""
        xp = namespace(self.size)
        each = xp.full_like(self.size, factor)
        cubic = self.cubic
        if cubic is not None:
            absolute = times(cubic.absolute, each)
            rest = up(times(cubic.rest, each) + gamma(4) * absolute, 2)
            cubic = CubicPart(factor * cubic.tensor, rest, absolute)
        return Beyond(times(self.size, each), cubic)

    @staticmethod
    @np.errstate(over="ignore", invalid="ignore")
    def of_sum(parts: list[Beyond]) -> Beyond:
        """Of a sum; a part that knows nothing of degree 3 counts by its size."""
        known = [part.cubic for part in parts if part.cubic is not None]
        size = total([part.size for part in parts])
        if not known:
            return Beyond(size)
        absolute = total([cubic.absolute for cubic in known])
        left = [part.size if part.cubic is None else part.cubic.rest for part in parts]
        rest = up(total(left) + gamma(2 * len(known)) * absolute, 2)
        tensor = sum((cubic.tensor for cubic in known[1:]), known[0].tensor)
        return Beyond(size, CubicPart(tensor, rest, absolute))

    def placed(self, columns: Index, features: int) -> Beyond:
        """The same among more features, the function's own being those at `columns`."""
        if self.cubic is None:
            return self
        xp, tensor = namespace(self.size), self.cubic.tensor
        number = {tuple(row): i for i, row in enumerate(sorted_index(features, 3).entries.tolist())}
        own = columns[sorted_index(len(columns), 3).entries]
        at = np.array([number[tuple(row)] for row in np.sort(own, axis=1).tolist()], dtype=int)
        wide = xp.zeros((len(tensor), len(number)), dtype=tensor.dtype, device=tensor.device)
        wide[:, xp.asarray(at, device=tensor.device)] = tensor
        return Beyond(self.size, replace(self.cubic, tensor=wide))
