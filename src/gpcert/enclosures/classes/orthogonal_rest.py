"""What an expansion about one Gaussian law leaves for another, to all orders.

Proofs: docs/mathematics.md, statements 9.16 and 10.12.
"""

from __future__ import annotations

import math

from gpcert.arrays import Array, PerCell, namespace
from gpcert.enclosures.classes.metric import Sizes
from gpcert.enclosures.classes.moments import ClassJet, derivative_norm
from gpcert.integrals.hermite_tail import hermite_tail
from gpcert.rounding import gamma, nonnegative, root, up


def orthogonal_rest(jet: ClassJet, sizes: Sizes) -> PerCell:
    """Upper bound (B,) of what the expansion of the sum leaves on every cell: that of taylor_bound,
    all of second degree in da and dV where D_4 is known, else without D_3 and D_4.

    Statement: at most the known degrees 3, 4, ..., `jet.order` by their norms, and `unexplained`
    times `hermite_tail`, Cauchy-Schwarz between the sum's part beyond these and the density's.
    Needs `jet.square`. Unlike the bounds of `remainder` it measures dV in the Frobenius norm and
    knows how little of the sum the known degrees leave; it is infinite where the law changes by
    more than about a standard deviation.
    """
    xp = namespace(sizes.mean)
    length = unexplained(jet)
    tail = hermite_tail(sizes.mean, sizes.frobenius, sizes.operator, jet.order)
    known = xp.isfinite(tail) & xp.isfinite(length)
    zero = xp.zeros_like(tail)
    rest = xp.where(known, tail, zero) * xp.where(known, length, zero)
    A, W = (xp.where(known, size, zero) for size in (sizes.mean, sizes.spread))
    for order in range(3, jet.order + 1):
        rest = rest + _known_degree(jet, order, A, W)
    rest = up(rest, 8 * jet.order)
    return xp.where(known, rest, xp.full_like(rest, math.inf))


def _known_degree(jet: ClassJet, order: int, A: Array, W: Array) -> Array:
    """`|D_k| sum_i A^(k - 2 i) W^i / ((k - 2 i)! i! 2^i)`, A and W sizes of da and dV, without what
    is expanded: k - i = 2, where D_4 is known."""
    total = 0.0 * A
    for i in range(order // 2 + 1):
        if order - i > 2 or jet.order < 4:
            share = math.factorial(order - 2 * i) * math.factorial(i) * 2**i
            total = total + A ** (order - 2 * i) * W**i / share
    return derivative_norm(jet, order) * total


def unexplained(jet: ClassJet) -> PerCell:
    """Upper bound (B,) of the length of the sum s beyond the known degrees, over the reference's
    law: `sqrt(E s^2 - (E s)^2 - |D_1|^2 - |D_2|_F^2 / 2 - ...)`.

    The computed value and derivatives are off by at most `errors`: the Frobenius norm of a form of
    order k of n variables is at most `n^((k - 1) / 2)` times its spectral one.
    """
    assert jet.square is not None
    xp, n = namespace(jet.value), jet.derivatives[0].shape[1]
    left = rounding = jet.square
    for order in range(jet.order + 1):
        part = jet.value[:, None] if order == 0 else jet.derivatives[order - 1]
        part = xp.reshape(part, (part.shape[0], n**order))
        length = xp.sqrt(xp.sum(part * part, axis=1))
        off = up(n ** (0.5 * max(order - 1, 0)) * jet.errors[:, order], 8)
        least = nonnegative(length * (1.0 - gamma(n**order + 8)) - off)
        left = left - least * least * (1.0 - gamma(16)) / math.factorial(order)
        rounding = rounding + length * length
    return up(root(nonnegative(left + gamma(16 + jet.order) * rounding)), 8)
