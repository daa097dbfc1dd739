"""What an expansion of second degree about one Gaussian law leaves for another, to all orders.

Proofs: docs/mathematics.md, statements 9.16 and 10.12.
"""

from __future__ import annotations

import math

from gpcert.arrays import PerCell, namespace
from gpcert.enclosures.classes.metric import Sizes
from gpcert.enclosures.classes.moments import ClassJet
from gpcert.integrals.hermite_tail import hermite_tail
from gpcert.rounding import gamma, nonnegative, root, up


def orthogonal_rest(jet: ClassJet, sizes: Sizes) -> PerCell:
    """Upper bound (B,) of `|G - G_0 - p.da - <Q, dV + da da^T> / 2|` on every cell.

    Statement: at most `unexplained` times `hermite_tail`, Cauchy-Schwarz between the sum's part
    beyond degree 2 and the density's. Needs `jet.square`. Unlike the bounds of `remainder` it
    measures dV in the Frobenius norm and knows how little of the sum two degrees leave; it is
    infinite where the law changes by more than about a standard deviation.
    """
    xp = namespace(sizes.mean)
    length = unexplained(jet)
    tail = hermite_tail(sizes.mean, sizes.frobenius, sizes.operator)
    known = xp.isfinite(tail) & xp.isfinite(length)
    zero = xp.zeros_like(tail)
    rest = xp.where(known, tail, zero) * xp.where(known, length, zero)
    return xp.where(known, up(rest, 2), xp.full_like(rest, math.inf))


def unexplained(jet: ClassJet) -> PerCell:
    """Upper bound (B,) of the length of the sum s beyond degree 2, over the reference's law:
    `sqrt(E s^2 - (E s)^2 - |D1|^2 - |D2|_F^2 / 2)`.

    The computed value and derivatives are off by at most `errors`: the Frobenius norm of a form of
    n variables is at most `sqrt(n)` times its spectral one.
    """
    assert jet.square is not None
    xp = namespace(jet.value)
    first, second = jet.derivatives[:2]
    n = first.shape[1]
    lengths = [
        xp.abs(jet.value),
        xp.sqrt(xp.sum(first * first, axis=1)),
        xp.sqrt(xp.sum(second * second, axis=(1, 2))),
    ]
    scales = [1.0, 1.0, up(math.sqrt(n), 2)]
    left = jet.square
    for order, (length, scale) in enumerate(zip(lengths, scales, strict=True)):
        least = nonnegative(length * (1.0 - gamma(n * n + 8)) - up(scale * jet.errors[:, order], 4))
        part = least * least / (2.0 if order == 2 else 1.0)
        left = left - part * (1.0 - gamma(16))
    rounding = gamma(16) * (jet.square + xp.sum(xp.stack([x * x for x in lengths]), axis=0))
    return up(root(nonnegative(left + rounding)), 8)
