"""The closed-form variant of the paper's programs: no solver.

Eigenvector ranges by the mean bound applied to +-u_j (the paper's U, one matrix product for all of
them), chords, and the tangent plane of the convex form at k(c): each a relaxation of the program
that it stands for, as its multipliers are only one choice. docs/mathematics.md, statement 12.8.
"""

from __future__ import annotations

from gpcert.arrays import Array
from gpcert.enclosures.paper.relaxation import Relaxation
from gpcert.enclosures.paper.safe_dual import Multipliers
from gpcert.enclosures.paper.square_form import SquareForm


class ClosedForms:
    """Multipliers by the objective's signs, tangents at k(c): no solver."""

    def linear(self, relaxation: Relaxation, c: Array) -> Multipliers | None:
        """Nothing better than the signs."""
        del relaxation, c
        return None

    def quadratic(
        self, relaxation: Relaxation, form: SquareForm, c: Array
    ) -> tuple[Array, Multipliers | None]:
        """Nothing better than the tangent at the centre."""
        del c
        return relaxation.center @ form.factor.T, None
