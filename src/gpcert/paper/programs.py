"""The paper's programs over one cell, by solvers or in closed form: where multipliers come from.

Variables (w, r): K lifted coordinates and N kernel values. Rows, all `>= lower`:

    r_i - U_i.w >= under_i,     -r_i + O_i.w >= -over_i,     tangents of the squares and arcs.

The last rows stand for the curved set of w; they need no rigour, as `dual_bound` uses the set
itself and only the multipliers of the first 2N rows. Linear programs go to HiGHS: one model, its
objective changed, warm-started; the convex one of Proposition "variance upper" to Clarabel.

Proofs: docs/mathematics.md, statements 12.6 and 12.8.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp

from gpcert.numerics.arrays import Array, PerCellAndPoint, namespace, to_numpy
from gpcert.paper.relaxation import Multipliers, Relaxation
from gpcert.paper.variance import ClosedForms, SquareForm
from gpcert.utils.optional_imports import optional
from gpcert.utils.processes import checkpoint

TANGENTS = (-1.0, -0.5, 0.0, 0.5, 1.0)
"""Where tangents of e^2 and of the arcs are taken, relative to the half-width."""


PRIMAL_SIMPLEX = 4
"""HiGHS' number of it: after a change of objective the last basis stays primal feasible."""

Pair = tuple[np.ndarray, np.ndarray]
"""Multipliers (y, z) of one cell, each (N,)."""


@dataclass(frozen=True, eq=False)
class CellProgram:
    """One cell's `matrix v >= lower`, `low <= v <= high`: N rows of planes under r come first, then
    N over it. Whatever the solvers return, `dual_bound` makes a bound of it; None where they have
    nothing to say, and `iterations` stops them early."""

    matrix: sp.csc_matrix
    lower: np.ndarray
    low: np.ndarray
    high: np.ndarray
    lifted: int
    """K: the first variables are the lifted coordinates, the others the kernel values."""

    @staticmethod
    def of(relaxation: Relaxation, b: int) -> CellProgram:
        """That of cell b."""
        under, over = relaxation.under, relaxation.over
        below, above = (to_numpy(planes.slopes)[b] for planes in (under, over))
        a, o = (to_numpy(planes.intercept)[b] for planes in (under, over))
        N, K = below.shape
        identity = sp.identity(N, format="csr")
        blocks = [
            sp.hstack([sp.csr_matrix(-below), identity]),
            sp.hstack([sp.csr_matrix(above), -identity]),
        ]
        low_r, high_r = (to_numpy(part)[b] for part in (relaxation.low, relaxation.high))
        # a plane that is not known is replaced by the interval
        a = np.where(to_numpy(under.usable)[b], a, low_r)
        o = np.where(to_numpy(over.usable)[b], o, high_r)
        low_w, high_w, rows, lower = _lifted_rows(relaxation, b)
        blocks.append(sp.hstack([rows, sp.csr_matrix((len(lower), N))]))
        return CellProgram(
            sp.csc_matrix(sp.vstack(blocks)),
            np.concatenate([a, -o, lower]),
            np.concatenate([low_w, low_r]),
            np.concatenate([high_w, high_r]),
            K,
        )

    @property
    def points(self) -> int:
        """N."""
        return len(self.low) - self.lifted

    @cached_property
    def _sound(self) -> bool:
        """Whether the solvers can be asked at all: everything is finite."""
        parts = (self.lower, self.low, self.high, self.matrix.data)
        return all(bool(np.all(np.isfinite(part))) for part in parts)

    @cached_property
    def _linear_model(self) -> Any:
        """HiGHS' model, of which only the objective changes (warm starts)."""
        highspy = optional("highspy", "variance_bound='solver' (not 'analytic')")
        lp: Any = highspy.HighsLp()
        rows, columns = len(self.lower), len(self.low)
        lp.num_col_, lp.num_row_ = columns, rows
        lp.col_cost_ = np.zeros(columns)
        lp.col_lower_, lp.col_upper_ = self.low, self.high
        lp.row_lower_, lp.row_upper_ = self.lower, np.full(rows, highspy.kHighsInf)
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_ = self.matrix.indptr
        lp.a_matrix_.index_ = self.matrix.indices
        lp.a_matrix_.value_ = self.matrix.data
        model: Any = highspy.Highs()
        for name, value in (
            ("output_flag", False),
            ("threads", 1),
            ("presolve", "off"),
            ("solver", "simplex"),
            ("simplex_strategy", PRIMAL_SIMPLEX),
        ):
            model.setOptionValue(name, value)
        model.passModel(lp)
        return model

    def minimise(self, c: Annotated[np.ndarray, "N"], iterations: int | None = None) -> Pair | None:
        """Multipliers of `min c.r`."""
        if not (self._sound and np.all(np.isfinite(c))):
            return None
        model, N, K = self._linear_model, self.points, self.lifted
        columns = np.arange(K, K + N, dtype=np.int32)
        model.changeColsCost(N, columns, np.ascontiguousarray(c, dtype=np.float64))
        if iterations is not None:
            model.setOptionValue("simplex_iteration_limit", iterations)
        with contextlib.suppress(RuntimeError):
            model.run()
        dual = np.asarray(model.getSolution().row_dual, dtype=np.float64)
        return None if len(dual) < 2 * N else _planes_part(dual, N)

    def minimise_square(
        self,
        A: Annotated[np.ndarray, "r N"],
        c: Annotated[np.ndarray, "N"],
        iterations: int | None = None,
    ) -> tuple[np.ndarray, Pair] | None:
        """About where `|A r|^2 + c.r` is least, r (N,), and multipliers.

        Clarabel solves `min x^T P x / 2 + q.x` with `G x + s = h`, s >= 0; here
        `G v = -matrix v <= -lower` and the box.
        """
        if not (self._sound and np.all(np.isfinite(c)) and np.all(np.isfinite(A))):
            return None
        clarabel = optional("clarabel", "variance_bound='solver' (not 'analytic')")
        K, N = self.lifted, self.points
        quadratic = sp.block_diag([sp.csc_matrix((K, K)), sp.csc_matrix(np.triu(2.0 * (A.T @ A)))])
        identity = sp.identity(K + N, format="csc")
        G = sp.csc_matrix(sp.vstack([-self.matrix, identity, -identity]))
        h = np.concatenate([-self.lower, self.high, -self.low])
        q = np.concatenate([np.zeros(K), c])
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        if iterations is not None:
            settings.max_iter = iterations
        cones = [clarabel.NonnegativeConeT(len(h))]
        solver = clarabel.DefaultSolver(sp.csc_matrix(quadratic), q, G, h, cones, settings)
        solution = solver.solve()
        r = np.asarray(solution.x)[K:]
        return (r, _planes_part(np.asarray(solution.z), N)) if np.all(np.isfinite(r)) else None


def _planes_part(dual: np.ndarray, N: int) -> Pair:
    """The multipliers of the planes among all."""
    return np.maximum(dual[:N], 0.0), np.maximum(dual[N : 2 * N], 0.0)


def _lifted_rows(
    relaxation: Relaxation, b: int
) -> tuple[np.ndarray, np.ndarray, sp.csr_matrix, np.ndarray]:
    """Box of w, and `rows w >= lower`."""
    lifted = relaxation.lifted
    half, spread = to_numpy(lifted.half)[b], to_numpy(lifted.spreads)[b]
    least, most = to_numpy(lifted.least)[b], to_numpy(lifted.most)[b]
    P, R, K = len(half), len(spread), lifted.columns
    angle = np.minimum(spread, np.pi)
    side = np.where(spread < 0.5 * np.pi, np.sin(np.minimum(angle, 0.5 * np.pi)), 1.0)
    low = np.concatenate([-half, np.zeros(P), np.cos(angle), -side, least])
    high = np.concatenate([half, half**2, np.ones(R), side, most])
    at, turn = np.outer(TANGENTS, half), np.outer(TANGENTS, angle)
    lower = np.concatenate([-at * at, -np.ones_like(turn)], axis=1)  # e^2 >= 2 t e - t^2, and arcs
    numbers = np.arange(lower.size).reshape(lower.shape)
    rows = np.concatenate([*[numbers[:, :P]] * 2, *[numbers[:, P:]] * 2], axis=1)
    columns = np.concatenate([P + np.arange(P), np.arange(P), 2 * P + np.arange(2 * R)])
    values = np.concatenate([np.ones_like(at), -2.0 * at, -np.cos(turn), -np.sin(turn)], axis=1)
    places = (rows.ravel(), np.tile(columns, len(TANGENTS)))
    return low, high, sp.csr_matrix((values.ravel(), places), (lower.size, K)), lower.ravel()


@dataclass(eq=False)
class SolverPrograms(ClosedForms):
    """Multipliers from solvers, cell by cell on the host; a failure gives none for that cell."""

    @cached_property
    def _cells(self) -> list[CellProgram]:
        return [CellProgram.of(self.relaxation, b) for b in range(len(self.relaxation))]

    def linear(self, c: Annotated[Array, "... N"]) -> Multipliers | None:
        """Multipliers (B, M, N) of `min c.r`."""
        host = to_numpy(c)
        rows = np.broadcast_to(host, (len(self.relaxation), *host.shape[-2:]))
        both = np.zeros((2, *rows.shape))
        for b, program in enumerate(self._cells):
            for m in range(rows.shape[1]):
                checkpoint()
                solution = program.minimise(rows[b, m])
                if solution is not None:
                    both[:, b, m] = solution
        return Multipliers(*self._on_device(both[0], both[1]))

    def quadratic(self, form: SquareForm, c: PerCellAndPoint) -> tuple[Array, Multipliers | None]:
        """A r at the minimum of `|A r|^2 + c.r`, and multipliers (B, 1, N)."""
        A, host = to_numpy(form.factor), to_numpy(c)
        p = to_numpy(self.relaxation.center) @ A.T
        both = np.zeros((2, len(host), 1, host.shape[1]))
        for b, program in enumerate(self._cells):
            checkpoint()
            solution = program.minimise_square(A, host[b])
            if solution is not None:
                r, both[:, b, 0] = solution
                p[b] = A @ r
        p, under, over = self._on_device(p, both[0], both[1])
        return p, Multipliers(under, over)

    def _on_device(self, *arrays: np.ndarray) -> list[Array]:
        low = self.relaxation.low
        return [namespace(low).asarray(array, device=low.device) for array in arrays]
