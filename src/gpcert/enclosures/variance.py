"""Second-order enclosure of the latent variance v = k(x, x) - k(x, Z) S k(Z, x) over cells.

With P = I - Phi S Phi* (the posterior covariance operator, -kappa I <= P <= gain I) and
Psi(d) = omega(d) phi(c+d) = e0 + D d + ..., the weighted variance is

    omega^2 v = <Psi, P Psi> = <e0, P e0> + 2 <e0, P (Psi - e0)> + <Psi - e0, P (Psi - e0)>.

The middle term is a combination of kernel functions with weights -S k(c), expanded exactly like a
mean, with the remainder 2 nu tail_2. The last term is the `Square` of square.py.

Proofs: docs/mathematics.md, statements 6.1 and 6.6.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

from gpcert.enclosures.lower_model import QuadraticLowerModel
from gpcert.enclosures.mean import TwoSided, Units
from gpcert.enclosures.polynomials import CubicTerm
from gpcert.enclosures.precision import Precision
from gpcert.enclosures.square import (
    OperatorBounds,
    pairs_that_count,
    posterior_square,
    prior_square,
    second_square,
)
from gpcert.kernels.expansions.base import (
    Combination,
    Expansion,
    LocalKernel,
    OrthogonalDegrees,
    reach,
)
from gpcert.kernels.expansions.exponentials import growth_chord
from gpcert.numerics.arrays import Array, Index, Inputs, PerCell, PerRow, fused, namespace
from gpcert.numerics.rounding import down, gamma, nonnegative, up
from gpcert.regions.scaled import ScaledCells


@dataclass(frozen=True, eq=False)
class VarianceEnclosure(TwoSided):
    """The variance v of one output; what is predicted is max(v, 0)."""

    local: LocalKernel
    expansion: Expansion
    operator: OperatorBounds
    spread: PerCell
    """How far the prior alone lets v vary on each cell; says where better bounds may pay."""

    lost: PerCell
    """How far v may be on each cell from the variance v' of the precision that bounds are formed
    with; see `Precision.distance`. The models count it; `center_error` and `center_rise` do not."""

    center_rise: PerCell
    """By how much v' may be above `center` there; `center_error` both ways."""

    middle: Array
    """(B,): bound of `|omega^2 v' - v'(c) - gradient.d - <Psi - e0, P (Psi - e0)>|` per cell."""

    derivatives_used: bool = False
    derivatives_gained: bool = False
    """Whether the posterior's derivative covariance was the better one on any cell."""

    pointwise_gained: bool = False
    """Whether the point-by-point remainder was the smaller one on any cell."""

    known_range: tuple[Array, Array] | None = None
    """The range, where it is known from other models of the same variance."""

    @property
    def dip(self) -> float:
        """`v >= -dip` is proved: the stored factor is rounded (Statement 1.3)."""
        return self.operator.excess * self.local.variance

    @property
    def largest(self) -> float:
        """About the largest variance anywhere, for the rounding of coefficients."""
        return self.operator.gain * self.local.variance

    @property
    def at_center(self) -> tuple[PerCell, PerCell]:
        """Certified range (B,) of max(v, 0) at the centres alone."""
        error, rise = self.center_error + self.lost, self.center_rise + self.lost
        low, high = down(self.center - up(error, 1), 2), up(self.center + up(rise, 1), 2)
        return nonnegative(low), nonnegative(high)

    def plain(self, geometry: ScaledCells) -> VarianceEnclosure:
        """See `TwoSided`; the range stays the one of the models with their weight."""
        return replace(super().plain(geometry), known_range=self.range)

    def times(self, coefficient: PerRow, rows: Index | None = None) -> QuadraticLowerModel:
        """Of `coefficient max(v, 0)`, with the mean's weight; on some of the cells.

        `max(v, 0) <= v + dip` counts where the coefficient is negative, with the weight.
        """
        rises, below, above, least = coefficient > 0, self.below, self.above, self.range[0]
        if rows is not None:
            below, above, least = below.take(rows), above.take(rows), least[rows]
        chosen = below.where(rises, above)
        chosen = chosen.lighter(0.5 * chosen.rate, rises, least, self.dip)
        scaled = chosen.scaled(abs(coefficient))
        return scaled.lowered(up(nonnegative(-coefficient) * self.dip * scaled.heaviest, 2))

    @cached_property
    def range(self) -> tuple[PerCell, PerCell]:
        """Certified `low <= max(v, 0) <= high` on every cell: the best of three.

        The quadratic models; `0 <= max(v, 0) <= gain k(x, x)`; and the order-0 form
        `sqrt(v + kappa k(x, x))`, the length of phi(x) in the seminorm of P + kappa I, within
        `sqrt(gain + kappa) R0` of its value at the centre. For k(x, x) <= s2 on the cell.
        """
        if self.known_range is not None:
            return self.known_range
        xp = namespace(self.center)
        local, expansion, operator = self.local, self.expansion, self.operator
        s2 = local.largest_variance(expansion)
        low, least = self.below.both_least(self.above)
        high = -least
        excess = operator.excess
        shift = up(excess * s2, 1)
        moved = up(local.remainder(expansion, 0) * operator.shifted**0.5, 8)
        prior, prior_error = local.center_variance(expansion)
        # differences may cancel: their rounding is counted by the size of the terms
        center, error = self.center, up(self.center_error + excess * prior_error, 2)
        rounding = gamma(8) * (xp.abs(center) + error + shift)
        root_low = down(xp.sqrt(nonnegative(center - error + excess * prior - rounding)), 2)
        rise = up(self.center_rise + excess * prior_error, 2)
        root_high = up(xp.sqrt(nonnegative(center + rise + excess * prior + rounding)), 2)
        nearer, farther = nonnegative(root_low - moved) ** 2, (root_high + moved) ** 2
        # at x: v + kappa k(x, x) lies between the squares; kappa k(x, x) between 0 and `shift`
        less = shift + self.lost
        below = nearer - less - gamma(16) * (nearer + less)
        low = xp.maximum(nonnegative(_or(low, 0.0)), _or(below, 0.0))
        farther = farther + self.lost
        high = xp.minimum(_or(high, math.inf), _or(farther + gamma(16) * farther, math.inf))
        high = xp.minimum(nonnegative(high), up(operator.gain * s2, 1) if operator.gain > 1 else s2)
        return nonnegative(low), high


@dataclass(frozen=True)
class VarianceOptions:
    """Which bounds that may not pay are computed."""

    derivatives: bool
    second: bool
    pointwise: bool
    pairs: bool = False
    """Whether the second degree is tried for the pairs of features where it counts, in the place
    of the first degree alone."""


def center_value(
    local: LocalKernel,
    expansion: Expansion,
    explained: tuple[Array, Array | float, Array],
    operator: OperatorBounds,
) -> tuple[Array, Array, PerCell, PerCell]:
    """v' at the centres from `k.S' k`, two parts, and its error, (B,) or (J, B); its error, the
    prior variance and its error. S' is the precision that bounds are formed with
    (`Precision.distance`)."""
    xp, (whole, rest, explained_error) = namespace(expansion.K), explained
    prior, prior_error = local.center_variance(expansion)
    value = (prior - whole) - rest
    # differences round in parts of themselves
    error0 = up(explained_error + prior_error + gamma(4) * (xp.abs(value) + abs(rest)), 8)
    shift = local.center_shift(expansion)
    if shift is not None:
        size = operator.norm * 2.0 * xp.sqrt(prior + prior_error)  # |P| |p + q| |p - q|
        if operator.excess == 0.0:  # lengths |P^1/2 p| of points differ by |P^1/2 (p - q)|
            root = xp.sqrt(nonnegative(value + error0)) * operator.norm**0.5
            size = xp.minimum(size, up(2.0 * root, 4))
        error0 = up(error0 + shift * (size + operator.norm * shift), 12)
    return value, error0, prior, prior_error


def variance_enclosure(
    local: LocalKernel,
    expansion: Expansion,
    precision: Precision,
    operator: OperatorBounds,
    options: VarianceOptions,
    units: Units,
    points: Inputs | None = None,
) -> VarianceEnclosure:
    """Lower models of v and -v with weight rate `2 * local.weight_rate`.

    `p = k(., c) - sum_i y_i k(., z_i)` for the float weights y is modelled like a mean. It is of
    squared norm `|P e0|^2 <= |P| (v(c) + 2 kappa k(c, c))`, or of J(y) less the part of the noise,
    and P e0 is so near that `2 <P e0 - p, Psi - e0>` is at most twice the deviation times the step.
    `points`: see `Precision.center`.
    """
    xp, geometry = namespace(expansion.K), expansion.geometry
    center = precision.center(local, expansion, points)
    explained = (center.explained, center.rest, center.error)
    value, error0, prior, prior_error = center_value(local, expansion, explained, operator)
    whole = nonnegative(value + error0) + 2.0 * operator.excess * (prior + prior_error)
    whole = nonnegative(up(operator.norm * whole, 4) - center.noisy)
    squared_norm = up((up(xp.sqrt(whole), 2) + center.deviation) ** 2, 4)
    combination = Combination(center.weights, squared_norm, True)
    model = local.model(expansion, combination, options.pointwise)
    gradient, hessian = model.gradient, model.hessian
    step = local.squared_step(expansion)
    spread = step.reach(geometry)
    rounding = error0 + 2.0 * model.slope_rounding(geometry)
    # adding the square to the Hessian rounds every entry; the square counts its own size itself
    bend = gamma(8) * reach(hessian, geometry)
    rounding = up(rounding + bend, 8)
    rate = 2.0 * local.weight_rate
    lost = precision.distance * local.largest_variance(expansion)
    error = rounding
    if precision.distance > 0.0:
        error = up(error + lost * (1.0 + geometry.rho2 * growth_chord(rate, geometry.rho2)), 8)
    square, gained = prior_square(step, geometry, operator, center), False
    second = None
    if isinstance(local, OrthogonalDegrees):
        pairs = pairs_that_count(geometry, value, local.variance) if options.pairs else ()
        if options.second or pairs:
            second = local.second_degree(expansion, None if options.second else pairs)
    if options.derivatives and (options.second or second is None):
        by_slopes = posterior_square(local, expansion, precision, step, operator, center)
        square, gained = square.better(by_slopes, geometry)
    if second is not None:
        finer = second_square(second, geometry, precision, step, operator, center)
        square, gained_more = square.better(finer, geometry)
        gained = gained or gained_more
    below, above = _doubled_sums(hessian, square.below, square.above)
    below_error = up(2.0 * model.below + error + square.below_error + center.missed, 4)
    above_error = up(2.0 * model.above + error + square.above_error, 4)
    sides = ((model.below, 1), (model.above, -1))
    cubics = [CubicTerm.of(model.cubic, left, sign) for left, sign in sides]
    middle = reach(hessian, geometry) + 2.0 * xp.maximum(model.below, model.above)
    middle = middle + 2.0 * center.deviation * xp.sqrt(spread) + center.missed
    two = xp.full_like(value, 2.0)
    cubics = [None if cubic is None else cubic.scaled(two) for cubic in cubics]
    return VarianceEnclosure(
        QuadraticLowerModel.of(
            geometry, (value, 2.0 * gradient, below), below_error, rate, cubics[0]
        ),
        QuadraticLowerModel.of(
            geometry, (-value, -2.0 * gradient, above), above_error, rate, cubics[1]
        ),
        value,
        up(error0 + center.missed, 1),
        units,
        local,
        expansion,
        operator,
        spread,
        lost,
        error0,
        up(middle + rounding, hessian.shape[-1] ** 2 + 8),
        options.derivatives,
        gained,
        model.gained,
    )


@fused
def _doubled_sums(hessian: Array, below: Array, above: Array) -> tuple[Array, Array]:
    return 2.0 * (hessian + below), -2.0 * (hessian + above)


def _or(bound: Array, trivial: float) -> Array:
    """The bound, or a trivial one where an overflow left nothing (NaN)."""
    xp = namespace(bound)
    return xp.where(xp.isnan(bound), xp.full_like(bound, trivial), bound)
