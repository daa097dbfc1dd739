"""Degree 3 of an enclosure, kept beside it: what its error falls by where the cubic is added.

Proofs: docs/mathematics.md, statement 5.9.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from gpcert.arrays import Array, Index, PerCell, namespace
from gpcert.fusion import fused
from gpcert.kernels.nodes.base import CubicPart
from gpcert.rounding import down, gamma, up

LARGEST_FACTOR = 2.0**100
"""Enclosures scaled by more, or by less than its inverse, forget their cubic: so products of some
factors neither overflow nor underflow."""


@dataclass(frozen=True, eq=False)
class CubicTerm:
    """An enclosure's inequality holds with `T[d, d, d] / 6` added and `error - saved` for `error`.

    T is the sum of `factor (B,) tensor (B, n)` over the `parts`, tensors over sorted triples: few
    cells ever ask for its entries. `saved`, `absolute` (B,), the latter at least the sum of all
    `|T_jkl| w_j w_k w_l / 6`. Zero where nothing is known: then nothing is said.
    """

    parts: tuple[tuple[Array, Array], ...]
    saved: Array
    absolute: Array

    def tensor(self, index: Index) -> Annotated[Array, "i tuples"]:
        """T (n, f (f+1) (f+2) / 6) of some of the cells."""
        xp, total = namespace(self.saved), 0.0
        for factor, tensor in self.parts:
            each, entries = factor[index][:, None], tensor[index]
            # where nothing is known the entries may be infinite
            total = total + xp.where(each == 0.0, xp.zeros_like(entries), each * entries)
        return total

    @staticmethod
    def of(part: CubicPart | None, error: PerCell, sign: int) -> CubicTerm | None:
        """Of `sign f`, whose polynomial of degree 2 leaves `error` (B,), where degree 3 helps."""
        if part is None:
            return None
        factor, saved, absolute = _helpful(part.rest, part.absolute, error, sign)
        return CubicTerm(((factor, part.tensor),), saved, absolute)

    def scaled(self, factor: PerCell) -> CubicTerm:
        """Of an enclosure times factors (B,) >= 0."""
        usable, absolute, saved = _scaled(factor, self.saved, self.absolute)
        parts = tuple((usable * own, tensor) for own, tensor in self.parts)
        return CubicTerm(parts, saved, absolute)

    @staticmethod
    def sum(first: CubicTerm | None, second: CubicTerm | None) -> CubicTerm | None:
        """Of a sum; one that knows nothing has its cubic in its error."""
        if first is None or second is None:
            return second if first is None else first
        parts = _parts(first, second)
        joined = tuple((one + two, tensor) for one, two, tensor in parts)
        absolute = up(first.absolute + second.absolute, 1)
        saved = down(first.saved + second.saved, 1)
        # every entry is a sum of so many terms, each of them a product
        saved = down(saved - gamma(2 * len(joined)) * absolute, 2)
        return CubicTerm(joined, saved, absolute)

    @staticmethod
    def where(mask: PerCell, first: CubicTerm | None, second: CubicTerm | None) -> CubicTerm | None:
        """The first's under the mask (B,), the second's elsewhere."""
        xp, some = namespace(mask), second if first is None else first
        if some is None:
            return None
        none = some.scaled(xp.zeros_like(some.saved))
        one, two = first or none, second or none
        return CubicTerm(
            tuple((xp.where(mask, own, its), tensor) for own, its, tensor in _parts(one, two)),
            xp.where(mask, one.saved, two.saved),
            xp.where(mask, one.absolute, two.absolute),
        )


def _parts(first: CubicTerm, second: CubicTerm) -> list[tuple[Array, Array, Array]]:
    """The factors in both of every tensor of either: the sides of one model have the same."""
    zero = 0.0 * first.parts[0][0]
    found = {id(tensor): [factor, zero, tensor] for factor, tensor in first.parts}
    for factor, tensor in second.parts:
        found.setdefault(id(tensor), [zero, zero, tensor])[1] = factor
    return [(one, two, tensor) for one, two, tensor in found.values()]


@fused
def _helpful(rest: Array, absolute: Array, error: Array, sign: int) -> tuple[Array, Array, Array]:
    """Factor, `saved` and `absolute` of `CubicTerm.of`."""
    xp = namespace(error)
    helps = (rest < error) & xp.isfinite(error) & xp.isfinite(absolute)
    zero = xp.zeros_like(error)
    saved = xp.where(helps, error, zero) - xp.where(helps, rest, zero)
    factor = xp.where(helps, zero + float(sign), zero)
    return factor, xp.where(helps, down(saved, 1), zero), xp.where(helps, absolute, zero)


@fused
def _scaled(factor: Array, saved: Array, absolute: Array) -> tuple[Array, Array, Array]:
    """The factor where it is taken, `absolute` and `saved` of `CubicTerm.scaled`."""
    xp = namespace(factor)
    zero = xp.zeros_like(saved)
    kept = (factor <= LARGEST_FACTOR) & (factor >= 1.0 / LARGEST_FACTOR)
    usable = xp.where(kept, factor, zero)
    absolute = up(usable * absolute, 1)
    saved = down(usable * saved - gamma(4) * absolute, 4)
    return usable, xp.where(kept, absolute, zero), xp.where(kept, saved, zero)
