"""The paper's programs by solvers (HiGHS for linear ones, Clarabel for the quadratic one), or in
closed form.

Proofs: docs/mathematics.md, statement 12.8.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gpcert.arrays import Array, namespace, to_numpy
from gpcert.deadline import checkpoint
from gpcert.enclosures.paper.linear_programs import CellPrograms
from gpcert.enclosures.paper.quadratic_program import solve_quadratic
from gpcert.enclosures.paper.relaxation import Relaxation
from gpcert.enclosures.paper.safe_dual import Multipliers
from gpcert.enclosures.paper.square_form import SquareForm


@dataclass(eq=False)
class SolverPrograms:
    """Multipliers from solvers, cell by cell on the host; a failure gives none for that cell."""

    relaxation: Relaxation

    @cached_property
    def _cells(self) -> list[CellPrograms]:
        """One linear model a cell: only its objective changes (warm starts)."""
        return [CellPrograms(self.relaxation, b) for b in range(len(self.relaxation))]

    def linear(self, c: Array) -> Multipliers | None:
        """Multipliers (B, M, N) of `min c.r`."""
        relaxation = self.relaxation
        xp = namespace(relaxation.low)
        host = to_numpy(c)
        B, N = len(relaxation), host.shape[-1]
        rows = np.broadcast_to(host, (B, *host.shape[-2:]))
        under, over = np.zeros((2, B, rows.shape[1], N))
        for b, program in enumerate(self._cells):
            for m in range(rows.shape[1]):
                checkpoint()
                found = program.minimise(rows[b, m])
                if found is not None:
                    under[b, m], over[b, m] = found
        device = relaxation.low.device
        return Multipliers(xp.asarray(under, device=device), xp.asarray(over, device=device))

    def quadratic(self, form: SquareForm, c: Array) -> tuple[Array, Multipliers | None]:
        """A r at the minimum of `|A r|^2 + c.r`, and multipliers (B, 1, N)."""
        relaxation = self.relaxation
        xp = namespace(relaxation.low)
        A, host = to_numpy(form.factor), to_numpy(c)
        B, N = host.shape
        center = to_numpy(relaxation.center)
        p = center @ A.T
        under, over = np.zeros((2, B, 1, N))
        for b, program in enumerate(self._cells):
            checkpoint()
            found = solve_quadratic(program.system, A, host[b])
            if found is not None:
                r, (under[b, 0], over[b, 0]) = found
                p[b] = A @ r
        device = relaxation.low.device
        multipliers = Multipliers(xp.asarray(under, device=device), xp.asarray(over, device=device))
        return xp.asarray(p, device=device), multipliers


@dataclass(eq=False)
class ClosedForms:
    """Multipliers by the objective's signs, tangents at k(c): no solver.

    Eigenvector ranges by the mean bound applied to +-u_j (the paper's U, one matrix product for all
    of them), chords, and the tangent plane of the convex form at k(c): each a relaxation of the
    program that it stands for, as its multipliers are only one choice.
    """

    relaxation: Relaxation

    def linear(self, c: Array) -> Multipliers | None:
        """Nothing better than the signs."""
        del c
        return None

    def quadratic(self, form: SquareForm, c: Array) -> tuple[Array, Multipliers | None]:
        """Nothing better than the tangent at the centre."""
        del c
        return self.relaxation.center @ form.factor.T, None
