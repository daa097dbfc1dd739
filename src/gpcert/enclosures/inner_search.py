"""Is a polynomial of degree 3 at least a number on a box? Branch and bound without the kernel.

The polynomial of a cell holds on all of its sub-boxes: about their centres it is known by algebra
alone, f^3 operations each, where another cell of the outer search takes N f^2 and more. So what the
relaxations of off-diagonal curvature and of degree 3 lose is split away here, and the outer search
splits for the remainder only: `stays_above` asks it of enclosures whose own minimum says no.

Proofs: docs/mathematics.md, statements 5.1 and 5.9.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gpcert.enclosures.lower_model import QuadraticLowerModel
from gpcert.enclosures.polynomials import Minimum, apply, box_minimum
from gpcert.kernels.nodes.moments import dense
from gpcert.numerics.arrays import Array, Index, PerCell, PerRow, namespace, to_numpy
from gpcert.numerics.rounding import TINY, U, gamma, given, up
from gpcert.utils.processes import checkpoint

MAX_PARTS = 64
"""Sub-boxes looked at for one cell: beyond, another cell of the outer search costs no more."""

BLOCK = 2**18
"""Entries of the tensors of the cells that are searched together: bounds the memory."""


class CellPolynomial(NamedTuple):
    """`p(d) = gradient.d + d^T hessian d / 2 + T[d, d, d] / 6` on `|d_j| <= half_j`, a batch.

    `gradient`, `half` (B, f), `hessian` (B, f, f); `tensor` (B, n), T over sorted triples, or None.
    """

    gradient: Array
    hessian: Array
    tensor: Array | None
    half: Array


class _Parts(NamedTuple):
    """Sub-boxes of cells: the number of their cell (S,), on the host, and their corners (S, f)."""

    cell: np.ndarray
    low: Array
    high: Array

    def take(self, mask: Index) -> _Parts:
        index = namespace(self.low).asarray(np.flatnonzero(mask), device=self.low.device)
        return _Parts(self.cell[mask], self.low[index], self.high[index])


def at_least(polynomial: CellPolynomial, need: PerCell) -> PerCell:
    """Mask (B,): `p >= need` (B,) is proved on the whole box.

    Not proved is no statement: p may be less somewhere, or the sub-boxes ran out.
    """
    xp = namespace(need)
    f = polynomial.half.shape[1]
    size = max(1, BLOCK // (f**2 if polynomial.tensor is None else f**3))
    proved = []
    for start in range(0, len(need), size):
        checkpoint()
        rows = slice(start, start + size)
        part = CellPolynomial(*(None if each is None else each[rows] for each in polynomial))
        proved.append(_search(_Block(part, need[rows])))
    return xp.asarray(np.concatenate(proved), device=need.device)


def _search(block: _Block) -> np.ndarray:
    """Split sub-boxes until every one is proved, one is refuted, or there are too many."""
    cells = len(block.need)
    spent, failed = np.zeros(cells, dtype=int), np.zeros(cells, dtype=bool)
    half = block.polynomial.half
    parts = _Parts(np.arange(cells), -half, half)
    while len(parts.cell):
        local = block.about(parts)
        proved, refuted = (to_numpy(mask) for mask in local.judged())
        spent += np.bincount(parts.cell, minlength=cells)
        failed[parts.cell[refuted]] = True
        failed[parts.cell[~proved & (spent[parts.cell] >= MAX_PARTS)]] = True
        open_ = ~proved & ~failed[parts.cell]
        parts = local.children(open_)
    return ~failed


class _Block:
    """Some cells' polynomials with dense tensors, and what rounding may do to them."""

    def __init__(self, polynomial: CellPolynomial, need: Array) -> None:
        self.polynomial, self.need = polynomial, need
        xp = namespace(need)
        w, f = polynomial.half, polynomial.half.shape[1]
        self.tensor = None if polynomial.tensor is None else dense(polynomial.tensor, f, 3)
        slopes = xp.abs(polynomial.gradient) + apply(xp.abs(polynomial.hessian), w)
        if self.tensor is not None:
            slopes = slopes + apply(_along(xp.abs(self.tensor), w), w)
        # nested dot products of length f of terms below `slopes`; what underflows meets 1, d, d^2
        underflow = TINY * (1.0 + xp.sum(w, axis=1)) ** 3
        self.slopes = up(gamma(8 * f + 64) * 8.0 * slopes, 2 * f + 16) + underflow[:, None]
        self.slack = up(xp.sum(self.slopes * w, axis=1) + underflow, f + 4)

    def about(self, parts: _Parts) -> _Local:
        """The polynomials about the centres of sub-boxes."""
        xp = namespace(self.need)
        p = self.polynomial
        index = xp.asarray(parts.cell, device=self.need.device)
        middle = xp.minimum(xp.maximum(0.5 * parts.low + 0.5 * parts.high, parts.low), parts.high)
        half = xp.maximum(parts.high - middle, middle - parts.low) * (1.0 + 4.0 * U)
        gradient, hessian = p.gradient[index], p.hessian[index]
        turned = apply(hessian, middle)
        value = xp.sum(middle * (gradient + 0.5 * turned), axis=1)
        gradient = gradient + turned
        cubes, T = xp.zeros_like(half), None
        if self.tensor is not None:
            T = self.tensor[index]
            bent = _along(T, middle)
            twice = apply(bent, middle)
            value = value + xp.sum(middle * twice, axis=1) / 6.0
            gradient = gradient + 0.5 * twice
            hessian = hessian + bent
            cubes = 0.5 * apply(_along(xp.abs(T), half), half)
        need = up(self.need[index] + self.slack[index], 2)
        lost = self.slopes[index]
        return _Local(parts, need, lost, middle, half, value, gradient, hessian, cubes, T)


class _Local(NamedTuple):
    """`value + gradient.y + y^T hessian y / 2 + T[y, y, y] / 6`, |y_j| <= half_j, about `middle`;
    `cubes` (S, f) bounds half of `T[e_j, y, y]`, `lost` (S, f) the rounding of all slopes."""

    parts: _Parts
    need: Array
    lost: Array
    middle: Array
    half: Array
    value: Array
    gradient: Array
    hessian: Array
    cubes: Array
    tensor: Array | None

    def judged(self) -> tuple[PerRow, PerRow]:
        """Masks (S,): proved to be at least what is needed; less than it at some point (about)."""
        xp, f = namespace(self.need), self.half.shape[1]
        quadratic = box_minimum(self.half, self.gradient, self.hessian)
        cubic = up(xp.sum(self.cubes * self.half, axis=1) / 3.0, 4 * f + 16)
        lower = self.value + quadratic.lower - cubic
        rounding = gamma(8) * (xp.abs(self.value) + xp.abs(quadratic.lower) + cubic)
        y = xp.minimum(xp.maximum(quadratic.point, -self.half), self.half)
        slope = self.gradient + 0.5 * apply(self.hessian, y)
        if self.tensor is not None:
            slope = slope + apply(_along(self.tensor, y), y) / 6.0
        reached = self.value + xp.sum(y * slope, axis=1)
        return lower - rounding >= self.need, reached < self.need

    def children(self, open_: PerRow) -> _Parts:
        """Sub-boxes on whose faces the minima of the open ones lie, or their halves.

        Where `|gradient_j| > sum_k |H_jk| half_k + cubes_j`, p is monotone in y_j: a face will do.
        """
        xp, f = namespace(self.need), self.half.shape[1]
        size = xp.abs(self.hessian)
        bends = apply(size, self.half)
        limit = up(bends + self.cubes + self.lost, 4 * f + 16)
        wide = self.half > 0
        falls, rises = (self.gradient < -limit) & wide, (self.gradient > limit) & wide
        low = xp.where(falls, self.parts.high, self.parts.low)
        high = xp.where(rises, self.parts.low, self.parts.high)
        flat = to_numpy(xp.any(falls | rises, axis=1))
        faces = _Parts(self.parts.cell, low, high).take(open_ & flat)
        square = xp.abs(xp.linalg.diagonal(self.hessian)) * self.half
        loss = self.half * (bends - square + self.cubes)
        whole = open_ & ~flat
        index = xp.asarray(np.flatnonzero(whole), device=self.need.device)
        halves, middle = self.parts.take(whole), self.middle[index]
        axis = xp.argmax(loss, axis=1)[index]
        at = axis[:, None] == xp.arange(f, device=self.need.device)[None, :]
        parts = (
            faces,
            halves._replace(high=xp.where(at, middle, halves.high)),
            halves._replace(low=xp.where(at, middle, halves.low)),
        )
        low, high = (xp.concat([each[side] for each in parts], axis=0) for side in (1, 2))
        return _Parts(np.concatenate([each.cell for each in parts]), low, high)


def _along(tensor: Array, vector: Array) -> Array:
    """`T[., ., v]` (S, f, f) for dense tensors (S, f, f, f)."""
    xp = namespace(tensor)
    S, f = vector.shape
    flat = xp.reshape(tensor, (S, f * f, f)) @ vector[:, :, None]
    return xp.reshape(flat, (S, f, f))


MAX_FEATURES = 32
"""Beyond, halving boxes gains too little for the f^2 operations that it takes."""

STEPS = 4
"""Of the search for the level that is enough: it then lies within a few percent of the gap."""


def stays_above(enclosure: QuadraticLowerModel, level: PerCell, asked: PerCell) -> PerCell:
    """Mask (B,): `q >= level` (B,) is proved on cells where that is `asked` (B,); never elsewhere.

    Statement: where a polynomial below `exp(rate |d|^2) (q - level)`, that of degree 3 if it is
    known, is at least 0 on the cell's box, q is at least the level there.
    """
    xp = namespace(level)
    geometry, index = enclosure.geometry, xp.nonzero(asked)[0]
    proved = xp.zeros_like(asked)
    features = geometry.half.shape[1]
    plain = enclosure.hessian is not None and geometry.is_plain
    if len(index) == 0 or not plain or not 0 < features <= MAX_FEATURES:
        return proved
    hessian, slack = enclosure.at_level(level)
    assert hessian is not None
    cubic = enclosure.cubic
    if cubic is not None:
        slack = up(slack - cubic.saved, 1)
    above = enclosure.value - level
    need = up(slack - above + gamma(4) * (xp.abs(slack) + xp.abs(above)), 2)
    tensor = None if cubic is None else cubic.tensor(index)
    pieces = (enclosure.gradient[index], hessian[index], tensor, geometry.half[index])
    proved[index] = at_least(CellPolynomial(*pieces), need[index])
    return proved


@dataclass(frozen=True, eq=False)
class Level:
    """`lowest(q, rows)`: a certified bound (n,) of some goal on cells `rows` (n,) where the model's
    function is at least q (n,), which does not decrease in q; `best`: the model's own minimum."""

    lowest: Callable[[Array, Array], Array]
    model: QuadraticLowerModel
    best: Minimum

    def reached(self, lower: PerCell, enough: float) -> PerCell:
        """Bounds `lower` (B,) of the goal, raised where sub-boxes prove what is enough.

        The least q that is enough is sought between what is proved and what the polynomial attains
        (false position, a little beyond); any q would be valid.
        """
        xp, best, model = namespace(lower), self.best, self.model
        attained = given(model.at(best.point) * xp.exp(-model.rate * xp.sum(best.point**2, axis=1)))
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
            middle = given(low + share * (top - low))
            bound = self.lowest(middle, rows)
            good = bound >= enough
            low, below = xp.where(good, low, middle), xp.where(good, below, bound)
            top, above = xp.where(good, middle, top), xp.where(good, bound, above)
        level, asked = xp.zeros_like(lower), xp.zeros_like(known)
        level[rows], asked[rows] = top, True
        proved = stays_above(model, level, asked)[rows]
        raised = 1.0 * lower
        raised[rows] = xp.where(proved, xp.maximum(lower[rows], above), lower[rows])
        return raised
