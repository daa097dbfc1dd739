"""The term `<Psi - e0, P (Psi - e0)>` of the variance, between two quadratic forms.

Psi - e0 = D d + r with `||r||` at most the kernel's `first_tail`, P the posterior covariance
operator, -kappa I <= P <= gain I.

Proofs: docs/mathematics.md, statements 6.2, 6.3 and 6.5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpcert.arrays import Array, PerCell, PerCellMatrix, namespace
from gpcert.enclosures.enclosure import reach
from gpcert.enclosures.precision import Precision
from gpcert.kernels.expansions.base import Expansion, LocalKernel, QuadraticForm
from gpcert.kernels.expansions.geometry import Geometry
from gpcert.rounding import gamma, nonnegative, up
from gpcert.unit_form import UnitForm

SMALLEST_RATIO = 1e-6
"""Keeps 1/eta and 1/(1 - theta) finite where the remainder vanishes; any positive value will do."""


@dataclass(frozen=True)
class OperatorBounds:
    """`-excess I <= P <= gain I` for P = I - Phi S Phi*, the posterior covariance operator.

    An exact posterior has excess 0 and gain 1. Both are proved (`UnitForm.excess`, `.gain`): the
    excess covers the rounding of a stored factor, the gain an indefinite S (Statement 1.3).
    """

    excess: float
    gain: float

    @staticmethod
    def of(unit: UnitForm) -> OperatorBounds:
        """The bounds that the posterior proves once."""
        return OperatorBounds(unit.excess, unit.gain)

    @property
    def norm(self) -> float:
        """Upper bound of |P|."""
        return max(self.gain, self.excess)

    @property
    def shifted(self) -> float:
        """Upper bound of P + excess I, which is positive; rounded up."""
        return (self.gain + self.excess) * (1.0 + 2.0**-50)


@dataclass(frozen=True, eq=False)
class Square:
    """`d^T below d - below_error <= term <= d^T above d + above_error` on every cell."""

    below: PerCellMatrix
    below_error: PerCell
    above: PerCellMatrix
    above_error: PerCell

    def better(self, other: Square, geometry: Geometry) -> tuple[Square, bool]:
        """Per cell and side, the form that leaves less room (both are valid); and whether the
        other one was taken anywhere."""
        xp = namespace(self.below_error)

        def room(matrix: Array) -> Array:
            return reach(matrix, geometry)

        # a lower form is worth about half of what it can reach
        upper = room(other.above) + other.above_error < room(self.above) + self.above_error
        lower = 0.5 * room(other.below) - other.below_error
        lower = lower > 0.5 * room(self.below) - self.below_error
        best = Square(
            xp.where(lower[:, None, None], other.below, self.below),
            xp.where(lower, other.below_error, self.below_error),
            xp.where(upper[:, None, None], other.above, self.above),
            xp.where(upper, other.above_error, self.above_error),
        )
        return best, bool(xp.any(lower | upper))


def prior_square(step: QuadraticForm, geometry: Geometry, operator: OperatorBounds) -> Square:
    """`-kappa step <= term <= gain step`, step >= ||Psi - e0||^2, as -kappa I <= P <= gain I."""
    excess, gain = operator.excess, operator.gain
    rounding = up(gamma(8) * step.reach(geometry), 4)  # of adding it to another matrix
    below_error = up(excess * (step.error + rounding), 2)
    above_error = up(gain * (step.error + rounding), 4)
    return Square(-excess * step.matrix, below_error, gain * step.matrix, above_error)


def posterior_square(
    local: LocalKernel,
    expansion: Expansion,
    precision: Precision,
    step: QuadraticForm,
    operator: OperatorBounds,
) -> Square:
    """With G = D* (P + kappa I) D, R^2 = (gain + kappa) ||r||^2, for any eta > 0, 0 <= theta < 1:

        theta d^T G d - theta/(1-theta) R^2 - kappa step <= term
                                        <= (1 + eta) d^T G d + (1 + 1/eta) R^2.

    Reason: P + kappa I >= 0 defines a seminorm, and `2 <a, b> >= -(1-theta)|a|^2 - |b|^2/(1-theta)`
    (Young). eta = R/g and theta = 1 - R/g, g the largest |D d| on the cell, are the best choices at
    the far end: (g + R)^2 and (g - R)^2.
    """
    xp = namespace(expansion.K)
    geometry, excess = expansion.geometry, operator.excess
    form = precision.derivative_covariance(local, expansion)
    prior = local.derivative_covariance(expansion)
    known = xp.isfinite(form.error)  # then the prior's error is finite, too
    zero = xp.zeros_like(form.error)
    spectral = xp.where(known, form.error, zero) + excess * xp.where(known, prior.error, zero)
    G = form.matrix + excess * prior.matrix
    terms = QuadraticForm(xp.abs(form.matrix) + excess * xp.abs(prior.matrix), zero)
    # of d^T G d, either side; the sum above may cancel
    G_error = up(spectral * geometry.rho2 + gamma(4) * terms.reach(geometry), 4)
    R = up(operator.shifted**0.5 * local.first_tail(expansion), 8)
    usable = xp.isfinite(R) & known
    safe = xp.where(usable, R, xp.zeros_like(R))
    g = xp.sqrt(reach(G, geometry))
    ratio = safe / xp.where(g > 0, g, xp.ones_like(g))
    eta = xp.maximum(ratio, xp.full_like(ratio, SMALLEST_RATIO))
    above_error = up(safe * safe * (1.0 + 1.0 / eta) + (1.0 + eta) * G_error, 8)
    theta = nonnegative(1.0 - eta)
    below_error = up(theta / (1.0 - theta) * (safe * safe) + theta * G_error, 8)
    below_error = up(below_error + excess * step.reach(geometry), 4)
    infinite = xp.full_like(R, math.inf)
    rounding = up(gamma(16) * g * g, 4)
    return Square(
        theta[:, None, None] * G,
        xp.where(usable, below_error + rounding, infinite),
        (1.0 + eta)[:, None, None] * G,
        xp.where(usable, above_error + rounding * (1.0 + eta), infinite),
    )
