"""The convex quadratic program of Proposition "variance upper", by Clarabel.

Proofs: docs/mathematics.md, statement 12.6.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from gpcert.enclosures.paper.system import System
from gpcert.extras import optional

Found = tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]


def solve_quadratic(
    system: System, A: np.ndarray, c: np.ndarray, iterations: int | None = None
) -> Found | None:
    """Approximate `min |A r|^2 + c.r`: r (N,) and the multipliers (y, z) of the planes.

    Clarabel solves `min x^T P x / 2 + q.x` with `G x + s = h`, s >= 0; here `G v = -matrix v <=
    -lower` and the box. Nothing that it returns is trusted: see `safe_dual`. `iterations` stops it
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
