"""How far the posterior covariance operator can be from a projection.

Proofs: docs/mathematics.md, statement 1.3.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpcert.unit_form import UnitForm

__all__ = ["OperatorBounds"]


@dataclass(frozen=True)
class OperatorBounds:
    """`-excess I <= P <= gain I` for P = I - Phi S Phi*, the posterior covariance operator.

    An exact posterior has excess 0 and gain 1. Both are proved (`UnitForm.excess`, `.gain`): the
    excess covers the rounding of a stored factor, the gain an indefinite S.
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
