"""Second-order enclosure of the latent mean g = sum_i t_i k(., z_i) over cells."""

from __future__ import annotations

from dataclasses import dataclass

from gpcert.arrays import Array
from gpcert.enclosures.local_quadratic import LocalQuadratic, usable_error
from gpcert.kernels.expansions.base import Combination, Expansion, LocalKernel
from gpcert.rounding import up, up_float

__all__ = ["MeanEnclosure", "mean_enclosure"]


@dataclass(frozen=True, eq=False)
class MeanEnclosure:
    """Lower models of g and of -g on every cell, and g at the centres with its error."""

    below: LocalQuadratic
    above: LocalQuadratic
    center: Array
    center_error: Array
    linear_error: Array
    """(B,): `|g - center - gradient.d|` is at most this, rounding included."""

    pointwise_gained: bool = False
    """Whether the point-by-point remainder was the smaller one on any cell."""


def mean_enclosure(
    local: LocalKernel, expansion: Expansion, weights: Array, norm: float, pointwise: bool
) -> MeanEnclosure:
    """The kernel's model of g, a function of norm at most `norm`, with its rounding on the cell.

    The coefficients' errors meet 1, |d| and |d|^2 / 2, with |d| <= rho.
    """
    geometry = expansion.geometry
    # up: the square of a norm below 1e-154 would vanish
    model = local.model(expansion, Combination(weights, up_float(norm * norm, 1)), pointwise)
    rounding = up(model.errors[:, 0] + model.slope_rounding(geometry), 4)
    rate, shift = local.weight_rate, local.center_shift(expansion)
    lower_error = usable_error(up(model.below + rounding, 2), geometry, rate)
    upper_error = usable_error(up(model.above + rounding, 2), geometry, rate)
    return MeanEnclosure(
        LocalQuadratic(model.value, model.gradient, model.hessian, lower_error, rate),
        LocalQuadratic(-model.value, -model.gradient, -model.hessian, upper_error, rate),
        model.value,
        model.errors[:, 0] if shift is None else up(model.errors[:, 0] + norm * shift, 3),
        up(model.linear_error + rounding, 4),
        model.gained,
    )
