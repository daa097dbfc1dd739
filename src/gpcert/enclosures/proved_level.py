"""Does a function stay above a level on its cells? Asked of enclosures whose own minimum says no.

Proofs: docs/mathematics.md, statements 5.1 and 5.9.
"""

from __future__ import annotations

from gpcert.arrays import Array, namespace
from gpcert.enclosures.enclosure import Enclosure
from gpcert.enclosures.inner_search import CellPolynomial, at_least
from gpcert.rounding import gamma, up

MOST_FEATURES = 32
"""Beyond, halving boxes gains too little for the f^2 operations that it takes."""


def stays_above(enclosure: Enclosure, level: Array, asked: Array) -> Array:
    """Mask (B,): `q >= level` (B,) is proved on cells where that is `asked` (B,); never elsewhere.

    Statement: where a polynomial below `exp(rate |d|^2) (q - level)`, that of degree 3 if it is
    known, is at least 0 on the cell's box, q is at least the level there.
    """
    xp = namespace(level)
    geometry, index = enclosure.geometry, xp.nonzero(asked)[0]
    proved = xp.zeros_like(asked)
    features = geometry.half.shape[1]
    plain = enclosure.hessian is not None and geometry.is_plain
    if len(index) == 0 or not plain or not 0 < features <= MOST_FEATURES:
        return proved
    hessian, slack = enclosure.at_level(level)
    assert hessian is not None
    cubic = enclosure.cubic
    if cubic is not None:
        slack = up(slack - cubic.saved, 1)
    above = enclosure.value - level
    need = up(slack - above + gamma(4) * (xp.abs(slack) + xp.abs(above)), 2)
    polynomial = CellPolynomial(
        enclosure.gradient[index],
        hessian[index],
        None if cubic is None else cubic.tensor[index],
        geometry.half[index],
    )
    proved[index] = at_least(polynomial, need[index])
    return proved
