"""Does a function stay above a level on its cells? Asked of enclosures whose own minimum says no.

Proofs: docs/mathematics.md, statements 5.1 and 5.9.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gpcert.arrays import Array, namespace
from gpcert.enclosures.enclosure import Enclosure, LevelBound
from gpcert.enclosures.inner_search import CellPolynomial, at_least
from gpcert.rounding import gamma, up

MOST_FEATURES = 32
"""Beyond, halving boxes gains too little for the f^2 operations that it takes."""


STEPS = 4
"""Of the search for the level that is enough: it then lies within a few percent of the gap."""


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


@dataclass(frozen=True, eq=False)
class Level:
    """`lowest(q, rows)`: a certified bound (n,) of some goal on cells `rows` (n,) where the model's
    function is at least q (n,), which does not decrease in q; `best`: the model's own minimum."""

    lowest: Callable[[Array, Array], Array]
    model: Enclosure
    best: LevelBound

    def reached(self, lower: Array, enough: float) -> Array:
        """Bounds `lower` (B,) of the goal, raised where sub-boxes prove what is enough.

        The least q that is enough is sought between what is proved and what the polynomial attains
        (false position, a little beyond); any q would be valid.
        """
        xp, best, model = namespace(lower), self.best, self.model
        attained = model.at(best.point) * xp.exp(-model.rate * xp.sum(best.point**2, axis=1))
        known = (lower < enough) & (attained > best.lower) & xp.isfinite(best.lower)
        rows = xp.nonzero(known)[0]
        if len(rows) == 0:
            return lower
        above = self.lowest(attained[rows], rows)
        rows, above = rows[above >= enough], above[above >= enough]
        low, top, below = best.lower[rows], attained[rows], lower[rows]
        for _ in range(STEPS):
            share = (enough - below) / xp.where(above > below, above - below, xp.ones_like(above))
            share = 0.02 + 0.98 * xp.minimum(xp.maximum(share, 0.0 * share), xp.ones_like(share))
            middle = low + share * (top - low)
            found = self.lowest(middle, rows)
            good = found >= enough
            low, below = xp.where(good, low, middle), xp.where(good, below, found)
            top, above = xp.where(good, middle, top), xp.where(good, found, above)
        level, asked = xp.zeros_like(lower), xp.zeros_like(known)
        level[rows], asked[rows] = top, True
        proved = stays_above(model, level, asked)[rows]
        raised = 1.0 * lower
        raised[rows] = xp.where(proved, xp.maximum(lower[rows], above), lower[rows])
        return raised
