"""The linear relaxation of a batch of cells, r_i = k(x, z_i) between planes in lifted coordinates,
and a proved bound of it from any multipliers: no solver need be trusted.

    low_i <= r_i <= high_i,    under_i + U_i.w <= r_i <= over_i + O_i.w,    w in the lifted box.

These are the constraints of the paper's Propositions "variance upper" and "variance lower" with
the slack variables phi eliminated (see `lifted`). So for all multipliers y, z >= 0 (Neumaier &
Shcherbina 2004, "Safe bounds in linear and mixed-integer linear programming", Math. Program. 99),

    c.r >= sum_i min over [low_i, high_i] of (c_i - y_i + z_i) r_i
           + y.under - z.over + min over w of (U^T y - O^T z).w.

Every variable has a box, so that is a number for whatever multipliers; good ones make it the
program's optimum. The minimum over w is that over the curved set itself.

Proofs: docs/mathematics.md, statements 12.5, 12.6 and 12.10.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, NamedTuple

import numpy as np

from gpcert.enclosures.polynomials import Minimum
from gpcert.kernels.nodes.base import NodeBatch
from gpcert.kernels.sizes import signed_times
from gpcert.numerics.arrays import Array, PerCellAndPoint, namespace
from gpcert.numerics.rounding import TINY, gamma, given, nonnegative, up
from gpcert.paper.lifted import LiftedBox, LiftedCarrier, finite_or_none, lift
from gpcert.paper.lines.carriers import Affine, AffineRelaxation, Carrier
from gpcert.paper.lines.registry import affine_relaxation
from gpcert.regions import Cells
from gpcert.regions.scaled import ScaledCells


@dataclass(frozen=True, eq=False)
class Planes:
    """`intercept_i + slopes_i.w` (B, N), (B, N, K); nothing is said where `usable` is false."""

    intercept: Array
    slopes: Array
    usable: Array

    @cached_property
    def _columns(self) -> Array:
        """(B, N, 2K + 2): slopes and intercepts, and their sizes."""
        xp, ends = namespace(self.slopes), self.intercept[:, :, None]
        return xp.concat([self.slopes, ends, xp.abs(self.slopes), xp.abs(ends)], axis=2)

    def summed(self, y: Annotated[Array, "... N"]) -> tuple[Array, Array]:
        """(B, M, K + 1) each: `sum_i y_i` times slopes and intercept, and times their sizes, for y
        (M, N) or (B, M, N); of the same y for all cells by one product, not a narrow one a cell."""
        xp, columns = namespace(y), self._columns
        B, N, width = columns.shape
        if y.ndim == 2:
            wide = xp.reshape(xp.permute_dims(columns, (1, 0, 2)), (N, B * width))
            sums = xp.permute_dims(xp.reshape(y @ wide, (-1, B, width)), (1, 0, 2))
        else:
            sums = y @ columns
        return sums[..., : width // 2], sums[..., width // 2 :]


@dataclass(frozen=True, eq=False)
class Relaxation:
    """See the module; `center` (B, N) is k(c, Z) in plain floating point, a good place to start."""

    low: Array
    high: Array
    under: Planes
    over: Planes
    lifted: LiftedBox
    center: Array

    def __len__(self) -> int:
        return int(self.low.shape[0])

    @property
    def sizes(self) -> PerCellAndPoint:
        """(B, N): upper bounds of |r_i|."""
        xp = namespace(self.low)
        return xp.maximum(xp.abs(self.low), xp.abs(self.high))


def relax(batch: NodeBatch, geometry: ScaledCells) -> Relaxation:
    """Relax a kernel's functions on the cells."""
    lines = affine_relaxation(batch)
    slopes = (*lines.under.slopes, *lines.over.slopes)
    carriers: dict[int, Carrier] = {id(carrier): carrier for carrier, _ in slopes}
    lifted = {key: lift(carrier) for key, carrier in carriers.items()}
    box, places = _box(list(lifted.items()), geometry, geometry.cells)
    shape = lines.low.shape
    parts = {key: (each, _placed(each, places[key], box, shape)) for key, each in lifted.items()}
    under = _planes(lines.under, parts, box, 1.0)
    over = _planes(lines.over, parts, box, -1.0)
    low, high = _tightened(lines, under, over, box)
    return Relaxation(low, high, under, over, box, batch.value)


def _box(
    lifted: Sequence[tuple[int, LiftedCarrier]], geometry: ScaledCells, cells: Cells
) -> tuple[LiftedBox, dict[int, np.ndarray]]:
    """The lifted coordinates of all carriers, the features' displacements first; and the numbers of
    each carrier's among those of its kind."""
    xp, none = namespace(geometry.half), geometry.half[:, :0]
    ranges: dict[str, list[tuple[Array, ...]]] = {
        "parabola": [(geometry.half,)],
        "angle": [(none,)],
        "factor": [(none, none)],
    }
    places = {}
    for key, each in lifted:
        parts_of_kind, places[key] = ranges[each.kind], each.columns
        if each.columns is None:
            first = sum(parts[0].shape[1] for parts in parts_of_kind)
            places[key] = np.arange(first, first + each.slopes[0].shape[2])
            parts_of_kind.append(each.ranges)
    half, spreads, least, most = (
        xp.concat(list(part), axis=1)
        for kind in ranges.values()
        for part in zip(*kind, strict=True)
    )
    return LiftedBox(half, spreads, least, most, cells, geometry.unit), places


def _placed(each: LiftedCarrier, place: np.ndarray, box: LiftedBox, shape: tuple) -> Array:
    """(B, N, K): the carrier's slopes in their columns."""
    xp = namespace(box.half)
    P, R = box.half.shape[1], box.spreads.shape[1]
    placed = xp.zeros((*shape, box.columns), dtype=xp.float64, device=box.half.device)
    starts = {"parabola": (0, P), "angle": (2 * P, 2 * P + R), "factor": (2 * P + 2 * R,)}
    for start, slopes in zip(starts[each.kind], each.slopes, strict=True):
        placed[:, :, xp.asarray(start + place, device=box.half.device)] = slopes
    return placed


@np.errstate(over="ignore", invalid="ignore", under="ignore")
def _planes(
    affine: Affine, parts: dict[int, tuple[LiftedCarrier, Array]], box: LiftedBox, side: float
) -> Planes:
    """Carriers replaced by their linear forms; everything that this rounds goes outwards.

    `slope phi = slope (constant + G.w)` up to `|slope| error`; products and sums of m carriers
    round at most m + 4 times numbers of size `|slope| (|constant| + |G|.|w|)`, and may underflow.
    """
    xp = namespace(box.half)
    total, size = affine.intercept, xp.abs(affine.intercept)
    lost = xp.zeros_like(total)
    planes = xp.zeros((*total.shape, box.columns), dtype=xp.float64, device=box.half.device)
    roundings = len(affine.slopes) + 4
    floor = TINY * (1.0 + xp.sum(box.sizes, axis=1))[:, None]
    for carrier, slope in affine.slopes:
        each, G = parts[id(carrier)]
        used, zero = slope != 0, xp.zeros_like(slope)
        constant = xp.where(used, slope * xp.where(used, each.constant, zero), zero)
        reach = (xp.abs(G) @ box.sizes[:, :, None])[:, :, 0]
        off = each.error + gamma(roundings + box.columns) * (xp.abs(each.constant) + reach)
        total, size = total + constant, size + xp.abs(constant)
        lost = lost + xp.where(used, xp.abs(slope) * up(off, 8) + floor, zero)
        planes = planes + xp.where(used[:, :, None], slope[:, :, None] * G, xp.zeros_like(G))
    lost = up(lost + gamma(roundings) * size, roundings + 8)
    total = total - side * lost
    usable = xp.isfinite(total) & xp.all(xp.isfinite(planes), axis=2)
    return Planes(
        xp.where(usable, total, xp.zeros_like(total)),
        given(xp.where(usable[:, :, None], planes, xp.zeros_like(planes))),  # see `lost`
        usable,
    )


def _tightened(
    lines: AffineRelaxation, under: Planes, over: Planes, box: LiftedBox
) -> tuple[Array, Array]:
    """The better of the interval of k and the range of its planes."""
    xp = namespace(lines.low)
    zero = xp.zeros_like(under.slopes)
    least = under.intercept + box.minimum(under.slopes, zero)
    most = over.intercept - box.minimum(-over.slopes, zero)
    least = least - up(gamma(2) * (xp.abs(under.intercept) + xp.abs(least)), 4)
    most = most + up(gamma(2) * (xp.abs(over.intercept) + xp.abs(most)), 4)
    low = xp.where(under.usable & (least > lines.low), least, lines.low)
    high = xp.where(over.usable & (most < lines.high), most, lines.high)
    return low, high


LARGEST_MULTIPLIER = 1e100
"""Larger multipliers, infinite ones and NaN become zero: they bound nothing useful."""


class Multipliers(NamedTuple):
    """y and z of the module, (M, N) or (B, M, N)."""

    under: Array
    over: Array


def sign_multipliers(c: Annotated[Array, "... N"]) -> Multipliers:
    """The paper's mean bound: the plane under r_i where c_i > 0, the one over it where c_i < 0."""
    return Multipliers(nonnegative(c), nonnegative(-c))


@np.errstate(over="ignore", invalid="ignore", under="ignore")
def dual_bound(
    relaxation: Relaxation,
    c: Array,
    multipliers: Multipliers,
    slope: Annotated[Array, "f"] | None = None,
) -> Minimum:
    """Certified lower bounds (B, M) of `c.r + slope.e` over each cell, c (M, N) or (B, M, N).

    `slope` (f,), exact but for underflow, meets the displacements e of the features, which are
    among w; None for none. Rounding: sums over i are dot products of N terms, counted by their
    size; a coefficient of w that is off costs it times |w_k|, one of r times |r_i|.
    """
    xp = namespace(relaxation.low)
    under, over, N = relaxation.under, relaxation.over, c.shape[-1]
    y, z = _allowed(multipliers.under, under), _allowed(multipliers.over, over)
    (below, below_sizes), (above, above_sizes) = under.summed(y), over.summed(z)
    sums, magnitudes = below - above, below_sizes + above_sizes
    coefficients, sizes = sums[..., :-1], magnitudes[..., :-1]
    if slope is not None:
        f = relaxation.lifted.features
        trend = xp.zeros_like(coefficients[:, :1])
        trend[:, 0, :f] = slope
        coefficients, sizes = coefficients + trend, sizes + xp.abs(trend)
    errors = up(gamma(2 * N + 4) * sizes, 2 * N + 8) + TINY * N
    total, size = sums[..., -1], magnitudes[..., -1]
    least = relaxation.lifted.minimum(coefficients, errors)
    rest, rest_size = _box_part(relaxation, c, y, z)
    total = total + least + rest
    size = size + xp.abs(least) + rest_size
    total = total - (up(gamma(2 * N + 8) * size, 2 * N + 8) + TINY * N)
    return Minimum(finite_or_none(total), relaxation.lifted.minimiser(coefficients))


def interval_bound(relaxation: Relaxation, c: Array) -> Annotated[Array, "B M"]:
    """(B, M): `sum_i min(c_i low_i, c_i high_i)`, the bound of multipliers zero."""
    xp = namespace(c)
    low, high, N = relaxation.low, relaxation.high, c.shape[-1]
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        if bool(xp.all(xp.isfinite(low) & xp.isfinite(high))):  # two products, no array (B, M, N)
            falls, rises = nonnegative(c), nonnegative(-c)
            total = _dot(falls, low) - _dot(rises, high)
            size = _dot(falls, xp.abs(low)) + _dot(rises, xp.abs(high))
        else:
            zero = xp.zeros_like(c)
            total, size = _box_part(relaxation, c, zero, zero)
        return finite_or_none(total - (up(gamma(N + 8) * size, N + 8) + TINY * N))


def _allowed(multipliers: Array, planes: Planes) -> Array:
    """Multipliers projected to what is allowed; zero where no plane is known."""
    xp = namespace(multipliers)
    good = (multipliers > 0) & (multipliers <= LARGEST_MULTIPLIER)
    if not bool(xp.all(planes.usable)):
        good = good & planes.usable[:, None, :]
    return given(xp.where(good, multipliers, xp.zeros_like(multipliers)))  # any are valid


def _dot(y: Array, intercept: Array) -> Array:
    """(B, M): `sum_i y_i a_i`."""
    return (y @ intercept[:, :, None])[..., 0]


def _box_part(relaxation: Relaxation, c: Array, y: Array, z: Array) -> tuple[Array, Array]:
    """`sum_i min rho_i r_i` for `rho = c - y + z`, less what rho is off, and the terms' size.

    rho is exactly zero where one multiplier is |c_i| and the other 0; else it is off by at most
    `gamma(3) (|c| + y + z)`.
    """
    xp = namespace(c)
    # of a difference of floats and of a sum with it: zero is exact where both are
    step = c - y
    rho = step + z
    exact = ((step == 0) & (z == 0)) | ((y == 0) & (c == -z)) | ((y == 0) & (z == 0))
    if bool(xp.all(exact & (rho == 0))):
        flat = xp.zeros_like(relaxation.low[:, :1] + xp.sum(c, axis=-1))
        return flat, flat
    off = gamma(3) * (xp.abs(c) + y + z)
    off = xp.where(exact, xp.zeros_like(off), up(off, 4))
    low, high = relaxation.low[:, None, :], relaxation.high[:, None, :]
    terms = signed_times(rho, xp.where(rho > 0, low, high))
    lost = signed_times(off, relaxation.sizes[:, None, :])
    total = xp.sum(terms, axis=-1) - up(xp.sum(lost, axis=-1), c.shape[-1] + 8)
    return total, xp.sum(xp.abs(terms) + lost, axis=-1)
