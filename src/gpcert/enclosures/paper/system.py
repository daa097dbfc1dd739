"""The constraints of one cell as a sparse matrix, for the solvers.

Variables (w, r): K lifted coordinates and N kernel values. Rows, all `>= lower`:

    r_i - U_i.w >= under_i,     -r_i + O_i.w >= -over_i,     tangents of the squares and arcs.

The last rows stand for the curved set of w; they need no rigour, as `safe_dual` uses the set itself
and only the multipliers of the first 2N rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from gpcert.arrays import to_numpy
from gpcert.enclosures.paper.relaxation import Relaxation

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
