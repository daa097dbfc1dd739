"""The slope `D_u v` of a latent variance along a direction u, over cells, for stationary kernels.

With T = Phi S Phi*, P = I - T, psi = D_u phi and centres c, `v = k(0) - <phi, T phi>`, so that
`D_u v = -2 t` with t(x) = <T phi(x), psi(x)>. For float weights w, y of norms that are known,

    t(x) = <Phi w, psi(x)> + <Phi y, phi(x) - phi(c)> - <P (phi(x) - phi(c)), psi(x) - psi(c)> + e,

where e is what w and y miss `S k(c)` and `S D_u k(c)` by: two means with weights that belong to the
cell, each with the quadratic model of a mean, and a product of two steps.

Proofs: docs/mathematics.md, statement 19.13.
"""

from __future__ import annotations

from gpcert.enclosures.local_posterior import LocalPosterior
from gpcert.enclosures.mean import MeanEnclosure, TwoSided, Units, mean_enclosure
from gpcert.enclosures.precision import CenterVariance
from gpcert.kernels.expansions.base import Expansion, finite_product
from gpcert.numerics.arrays import PerCell, namespace
from gpcert.numerics.rounding import up
from gpcert.regions.scaled import ScaledCells

Bound = tuple[LocalPosterior, Expansion]
"""A posterior in a region, and its kernel at the centres of cells."""


def variance_slope(
    base: Bound, slope: Bound, output: int, geometry: ScaledCells, pointwise: bool
) -> TwoSided:
    """`D_u V_c` of the variance V_c of an output of `base`, in its units, where v > 0; `slope` is
    the model of `D_u mu`, with `D_u k` in the place of k. In the coordinates of `geometry`."""
    (local, expansion), (other, other_expansion) = base, slope
    precision = local.precision_on(output, expansion)
    first = precision.center(local.kernel, expansion)
    second = precision.center(other.kernel, other_expansion)
    xp, operator = namespace(expansion.K), local.operator
    length = up(xp.sqrt(local.kernel.largest_variance(expansion)), 2)
    steepness = up(xp.sqrt(other.kernel.largest_variance(other_expansion)), 2)
    explained = max(1.0 + operator.excess, operator.gain)  # at least |T|
    by_slope = _mean(other, other_expansion, first, explained * length, pointwise)
    by_value = _mean(local, expansion, second, explained * steepness, pointwise)
    step, turn = local.kernel.remainder(expansion, 0), other.kernel.remainder(other_expansion, 0)
    missed = finite_product(first.deviation, steepness) + precision.distance * length * steepness
    crossed = operator.norm * finite_product(step, turn) + finite_product(second.deviation, step)
    at_center = 0.0 * missed
    pairs = (local.kernel, expansion), (other.kernel, other_expansion)
    shifts = [kernel.center_shift(each) for kernel, each in pairs]
    if shifts[0] is not None and shifts[1] is not None:
        far = second.deviation + explained * steepness + operator.norm * shifts[1]
        at_center = finite_product(far, shifts[0])
    at_center = up(2.0 * (missed + at_center), 16)
    lost = up(2.0 * (missed + crossed + by_value.center_error), 16)
    plain = [each.plain(geometry) for each in (by_slope, by_value)]
    constant = 2.0 * by_value.center
    sides = []
    for sign in (1, -1):
        both = [each.side(-sign).scaled(2.0) for each in plain]
        sides.append((both[0] + both[1].shifted(sign * constant)).lowered(lost))
    center_error = up(2.0 * by_slope.center_error + at_center, 4)
    scale = float(other.posterior.scale[0]) / float(local.posterior.scale[output])  # a power of two
    units = Units(0.0, local.unit.variance_scale[output] * scale)
    return TwoSided(sides[0], sides[1], -2.0 * by_slope.center, center_error, units)


def _mean(
    local: LocalPosterior,
    expansion: Expansion,
    center: CenterVariance,
    norm: PerCell,
    pointwise: bool,
) -> MeanEnclosure:
    """The function with the weights of each cell, of that norm but for their deviation; weighted
    expansions know no remainders point by point of such weights."""
    norm, plain = up(norm + center.deviation, 8), local.kernel.weight_rate == 0.0
    return mean_enclosure(local.kernel, expansion, center.weights, norm, pointwise and plain)
