"""Degree 3 of an enclosure, kept beside it: what its error falls by where the cubic is added.

Proofs: docs/mathematics.md, statement 5.9.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpcert.arrays import Array, PerCell, namespace
from gpcert.kernels.nodes.beyond import CubicPart
from gpcert.rounding import down, gamma, up


@dataclass(frozen=True, eq=False)
class CubicTerm:
    """An enclosure's inequality holds with `T[d, d, d] / 6` added and `error - saved` for `error`.

    `tensor` (B, n): T over sorted triples; `saved`, `absolute` (B,), the latter at least the sum of
    all `|T_jkl| w_j w_k w_l / 6`. Zero where nothing is known: then nothing is said.
    """

    tensor: Array
    saved: Array
    absolute: Array

    @staticmethod
    def of(part: CubicPart | None, error: PerCell, sign: int) -> CubicTerm | None:
        """Of `sign f`, whose polynomial of degree 2 leaves `error` (B,), where degree 3 helps."""
        if part is None:
            return None
        xp = namespace(error)
        helps = (part.rest < error) & xp.isfinite(error) & xp.isfinite(part.absolute)
        zero = xp.zeros_like(error)
        saved = xp.where(helps, error, zero) - xp.where(helps, part.rest, zero)
        return CubicTerm(
            xp.where(helps[:, None], sign * part.tensor, xp.zeros_like(part.tensor)),
            xp.where(helps, down(saved, 1), zero),
            xp.where(helps, part.absolute, zero),
        )

    def scaled(self, factor: Array) -> CubicTerm:
        """Of an enclosure times factors (B,) >= 0."""
        absolute = up(factor * self.absolute, 1)
        saved = down(factor * self.saved - gamma(4) * absolute, 4)
        return CubicTerm(factor[:, None] * self.tensor, saved, absolute)

    @staticmethod
    def sum(first: CubicTerm | None, second: CubicTerm | None) -> CubicTerm | None:
        """Of a sum; one that knows nothing has its cubic in its error."""
        if first is None or second is None:
            return second if first is None else first
        absolute = up(first.absolute + second.absolute, 1)
        saved = down(first.saved + second.saved, 1)
        saved = down(saved - gamma(2) * absolute, 2)
        return CubicTerm(first.tensor + second.tensor, saved, absolute)

    @staticmethod
    def where(mask: PerCell, first: CubicTerm | None, second: CubicTerm | None) -> CubicTerm | None:
        """The first's under the mask (B,), the second's elsewhere."""
        xp, some = namespace(mask), second if first is None else first
        if some is None:
            return None
        none = some.scaled(xp.zeros_like(some.saved))
        one, two = first or none, second or none
        return CubicTerm(
            xp.where(mask[:, None], one.tensor, two.tensor),
            xp.where(mask, one.saved, two.saved),
            xp.where(mask, one.absolute, two.absolute),
        )
