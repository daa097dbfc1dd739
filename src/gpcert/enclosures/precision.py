"""y = S k for batches of kernel rows, with a bound on the error of y."""

from __future__ import annotations

from dataclasses import dataclass

from gpcert.arrays import Array, Backend, namespace
from gpcert.kernels import LocalKernel
from gpcert.posterior import Posterior
from gpcert.rounding import gamma, up

__all__ = ["LocalPrecision"]

ACCEPTABLE_ERROR = 1e-6
"""Relative to the prior variance, for the worst kernel row: above it the product with S is replaced
by two with its factor. A choice of speed only; both errors are bounded and added."""


@dataclass(frozen=True, eq=False)
class LocalPrecision:
    """`S = A^T A` on a backend: one product with S where that is accurate enough, else A, A^T.

    `size` bounds `|| |A| ||_2`, so that `|| |A| x || <= size ||x||` and
    `|| |S| x || <= size^2 ||x||`.
    """

    factor: Array
    precision: Array | None
    size: float

    @staticmethod
    def build(
        posterior: Posterior, index: int, variance: float, backend: Backend
    ) -> LocalPrecision:
        """Choose the form by its worst error over all kernel rows (|k| <= variance sqrt N)."""
        A = posterior.factor[index]
        r, N = A.shape
        size = posterior.factor_sizes[index]
        worst = gamma(N + r) * size**2 * variance * N
        S = backend.asarray(posterior.precisions[index]) if worst <= ACCEPTABLE_ERROR else None
        return LocalPrecision(backend.asarray(A), S, size)

    def apply(self, local: LocalKernel, K: Array) -> tuple[Array, Array, Array, Array]:
        """`y = S k` (B, N), a bound (B,) of ||error of y||, `k.y` (B,), and the error of that.

        Reason: with `|dk|` the error of k, `||dy|| <= size^2 (gamma ||k|| + ||dk||)` for a product
        with S (whose own entries carry gamma(r)); for q = A k, `||dq|| <= size (gamma ||k|| +
        ||dk||)`, `||dy|| <= size (||dq|| + gamma (||q|| + ||dq||))` and
        `|d(q.q)| <= 2 ||q|| ||dq|| + ||dq||^2 + gamma ||q||^2`.
        """
        xp = namespace(K)
        r, N = self.factor.shape
        sizes2, errors2 = local.squared_sizes(K)
        k_norm, k_error = xp.sqrt(sizes2[:, 0]), xp.sqrt(errors2[:, 0])
        spread = up(gamma(N + r + 8) * k_norm + k_error, 8)
        if self.precision is not None:
            y = K @ self.precision
            y_error = up(self.size**2 * spread, 8)
            explained = xp.sum(K * y, axis=1)
            size = xp.sum(xp.abs(K * y), axis=1)
            # k.y: the error of y, the error of k against the true y, and the summation
            explained_error = y_error * (k_norm + k_error) + k_error * xp.sqrt(xp.sum(y**2, axis=1))
            return y, y_error, explained, up(explained_error + gamma(N + 4) * size, N + 16)
        q = K @ self.factor.T
        q_error = up(self.size * spread, 8)
        explained = xp.sum(q**2, axis=1)
        q_norm = xp.sqrt(explained)
        y = q @ self.factor
        y_error = up(self.size * (q_error + gamma(r + 4) * (q_norm + q_error)), 8)
        explained_error = q_error * (2.0 * q_norm + q_error) + gamma(r + 4) * explained
        return y, y_error, explained, up(explained_error, r + 16)

    def derivative_covariance(
        self, local: LocalKernel, K: Array, scaled: Array
    ) -> tuple[Array, Array]:
        """`G = s^2 I - Q Q^T`, Q = D k A^T: covariance (B, f, f) of the posterior's derivatives.

        Also (B,) e with `|d^T (fl(G) - G) d| <= e |d|^2`: `||dQ^T d|| <= size (gamma + error of
        k) ||k m|| |d|` as for q in `apply`, and `||Q^T d|| <= |Q|_F |d|`. Costs f times `apply`.
        """
        xp = namespace(K)
        r, N = self.factor.shape
        B, f = scaled.shape
        # one large product for all cells and features, not one small product a cell
        rows = xp.reshape(local.derivatives(K, scaled), (B * f, N))
        Q = xp.reshape(rows @ self.factor.T, (B, f, r))
        identity = xp.eye(Q.shape[1], dtype=K.dtype, device=K.device)
        square = Q @ xp.matrix_transpose(Q)
        square = 0.5 * (square + xp.matrix_transpose(square))  # exactly symmetric
        G = local.variance * identity - square
        sizes2, errors2 = local.squared_sizes(K)
        spread = gamma(N + 16) * xp.sqrt(sizes2[:, 1]) + xp.sqrt(errors2[:, 1])
        dQ = up(self.size * spread, 8)
        # |Q|_F^2 is the trace of Q Q^T, which carries r roundings
        size = xp.sqrt(xp.sum(xp.linalg.diagonal(square), axis=1)) * (1.0 + gamma(r + 8))
        error = dQ * (2.0 * size + dQ) + gamma(r + 8) * (size**2 + local.variance)
        return G, up(error, r + 16)
