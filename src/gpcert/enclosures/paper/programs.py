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

from gpcert.arrays import Array, PerCellAndPoint, namespace, to_numpy
from gpcert.deadline import checkpoint
from gpcert.enclosures.paper.relaxation import Multipliers, Relaxation
from gpcert.enclosures.paper.variance import SquareForm
from gpcert.extras import optional

TANGENTS = (-1.0, -0.5, 0.0, 0.5, 1.0)
"""Where tangents of e^2 and of the arcs are taken, relative to the half-width."""


@dataclass(frozen=True, eq=False)
class System:
    """`matrix v >= lower`, `low <= v <= high`; `planes` rows come first, N under and N over."""

    matrix: sp.csc_matrix
    lower: np.ndarray
    low: np.ndarray
    high: np.ndarray
    lifted: int
    """K: the first variables are the lifted coordinates, the others the kernel values."""

    @property
    def points(self) -> int:
        """N."""
        return len(self.low) - self.lifted

    @cached_property
    def sound(self) -> bool:
        """Whether the solvers can be asked at all: everything is finite."""
        parts = (self.lower, self.low, self.high, self.matrix.data)
        return all(bool(np.all(np.isfinite(part))) for part in parts)


def cell_system(relaxation: Relaxation, b: int) -> System:
    """The constraints of cell b."""
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
    return System(
        sp.csc_matrix(sp.vstack(blocks)),
        np.concatenate([a, -o, lower]),
        np.concatenate([low_w, low_r]),
        np.concatenate([high_w, high_r]),
        K,
    )


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
    rows, columns, values, lower = [], [], [], []

    def add(entries: list[tuple[int, float]], right: float) -> None:
        for column, value in entries:
            rows.append(len(lower))
            columns.append(column)
            values.append(value)
        lower.append(right)

    for t in TANGENTS:
        for j in range(P):
            at = t * half[j]
            add([(P + j, 1.0), (j, -2.0 * at)], -at * at)  # e^2 >= 2 t e - t^2
        for j in range(R):
            at = t * angle[j]
            add([(2 * P + j, -np.cos(at)), (2 * P + R + j, -np.sin(at))], -1.0)
    matrix = sp.csr_matrix((values, (rows, columns)), shape=(len(lower), K))
    return low, high, matrix, np.asarray(lower)


PRIMAL_SIMPLEX = 4
"""HiGHS' number of it: after a change of objective the last basis stays primal feasible."""


class CellPrograms:
    """The linear model of one cell; built when first asked."""

    def __init__(self, relaxation: Relaxation, b: int) -> None:
        self.system = cell_system(relaxation, b)
        self._model: Any = None

    def minimise(
        self, c: Annotated[np.ndarray, "N"], iterations: int | None = None
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Multipliers (y, z), each (N,), of `min c.r`; None where the solver has nothing to say.

        Whatever they are, `dual_bound` makes a bound of them. `iterations` stops it early.
        """
        if not (self.system.sound and np.all(np.isfinite(c))):
            return None
        if self._model is None:
            self._model = _highs(self.system)
        model, N, K = self._model, self.system.points, self.system.lifted
        columns = np.arange(K, K + N, dtype=np.int32)
        model.changeColsCost(N, columns, np.ascontiguousarray(c, dtype=np.float64))
        if iterations is not None:
            model.setOptionValue("simplex_iteration_limit", iterations)
        with contextlib.suppress(RuntimeError):
            model.run()
        dual = np.asarray(model.getSolution().row_dual, dtype=np.float64)
        if len(dual) < 2 * N:
            return None
        return np.maximum(dual[:N], 0.0), np.maximum(dual[N : 2 * N], 0.0)


def _highs(system: System) -> Any:
    highspy = optional("highspy", "variance_bound='solver' (not 'analytic')")
    lp: Any = highspy.HighsLp()
    rows, columns = len(system.lower), len(system.low)
    lp.num_col_, lp.num_row_ = columns, rows
    lp.col_cost_ = np.zeros(columns)
    lp.col_lower_, lp.col_upper_ = system.low, system.high
    lp.row_lower_, lp.row_upper_ = system.lower, np.full(rows, highspy.kHighsInf)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = system.matrix.indptr
    lp.a_matrix_.index_ = system.matrix.indices
    lp.a_matrix_.value_ = system.matrix.data
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


Found = tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]


def solve_quadratic(
    system: System,
    A: Annotated[np.ndarray, "r N"],
    c: Annotated[np.ndarray, "N"],
    iterations: int | None = None,
) -> Found | None:
    """Approximate `min |A r|^2 + c.r`: r (N,) and the multipliers (y, z) of the planes.

    Clarabel solves `min x^T P x / 2 + q.x` with `G x + s = h`, s >= 0; here `G v = -matrix v <=
    -lower` and the box. Nothing that it returns is trusted: see `dual_bound`. `iterations` stops it
    early. None where it has nothing to say.
    """
    if not (system.sound and np.all(np.isfinite(c)) and np.all(np.isfinite(A))):
        return None
    clarabel = optional("clarabel", "variance_bound='solver' (not 'analytic')")
    K, N = system.lifted, system.points
    n = K + N
    quadratic = sp.block_diag([sp.csc_matrix((K, K)), sp.csc_matrix(np.triu(2.0 * (A.T @ A)))])
    identity = sp.identity(n, format="csc")
    G = sp.csc_matrix(sp.vstack([-system.matrix, identity, -identity]))
    h = np.concatenate([-system.lower, system.high, -system.low])
    q = np.concatenate([np.zeros(K), c])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    if iterations is not None:
        settings.max_iter = iterations
    cones = [clarabel.NonnegativeConeT(len(h))]
    solver = clarabel.DefaultSolver(sp.csc_matrix(quadratic), q, G, h, cones, settings)
    solution = solver.solve()
    v, dual = np.asarray(solution.x), np.asarray(solution.z)
    r = v[K:]
    if not np.all(np.isfinite(r)):
        return None
    return r, (np.maximum(dual[:N], 0.0), np.maximum(dual[N : 2 * N], 0.0))


@dataclass(eq=False)
class SolverPrograms:
    """Multipliers from solvers, cell by cell on the host; a failure gives none for that cell."""

    relaxation: Relaxation

    @cached_property
    def _cells(self) -> list[CellPrograms]:
        """One linear model a cell: only its objective changes (warm starts)."""
        return [CellPrograms(self.relaxation, b) for b in range(len(self.relaxation))]

    def linear(self, c: Annotated[Array, "... N"]) -> Multipliers | None:
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

    def quadratic(self, form: SquareForm, c: PerCellAndPoint) -> tuple[Array, Multipliers | None]:
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

    def linear(self, c: Annotated[Array, "... N"]) -> Multipliers | None:
        """Nothing better than the signs."""
        del c
        return None

    def quadratic(self, form: SquareForm, c: PerCellAndPoint) -> tuple[Array, Multipliers | None]:
        """Nothing better than the tangent at the centre."""
        del c
        return self.relaxation.center @ form.factor.T, None
