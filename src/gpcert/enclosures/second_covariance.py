"""Posterior covariance of the first two degrees of a weighted expansion, for few features.

Proofs: docs/mathematics.md, statement 6.4.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpcert.arrays import Array, namespace
from gpcert.enclosures.precision import LocalPrecision
from gpcert.kernels.expansions.base import SecondDegree
from gpcert.rounding import gamma, root, up


@dataclass(frozen=True, eq=False)
class SecondCovariance:
    """Posterior covariance of the parts of degree one and two, D d and E(d), of omega phi at c.

    `<D d, P D d> = d^T first d`, `2 <D d, P E(d)> = sum mixed_jkl d_j d_k d_l` and
    `<E(d), P E(d)> = sum second_jklm d_j d_k d_l d_m`, each up to its error times |d|^2, 3, 4.
    """

    first: Array
    first_error: Array
    mixed: Array
    mixed_error: Array
    second: Array
    second_error: Array


def second_covariance(precision: LocalPrecision, degrees: SecondDegree, f: int) -> SecondCovariance:
    """For f features, with Q, T the products of A with `k u_j` and `k u_j u_k`:

        first = s^2 I - Q Q^T,  mixed_jkl = -sym(Q_j.T_kl),
        second_jklm = s^2 (1_jl 1_km + 1_jm 1_kl) / 4 - T_jk.T_lm / 4.

    Reason: P = I - Phi A^T A Phi*, `Phi* E(d) = k_i (u_i.d)^2 / 2`, degrees one and two are
    orthogonal and `|E(d)|^2 = s^2 |d|^4 / 2`. The errors: those of Q and T
    (`_product_error`), and `||Q^T d|| <= |Q|_F |d|`, `||T^T (d d)|| <= |T|_F |d|^2`.
    """
    rows = degrees.rows
    xp = namespace(rows)
    A, s2 = precision.factor, degrees.variance
    r = A.shape[0]
    B, count, N = rows.shape
    products = xp.reshape(rows, (B * count, N)) @ A.T
    products = xp.reshape(products, (B, count, r))
    places = xp.asarray(f + _places(f), device=rows.device)
    Q, T = products[:, :f], products[:, places]
    one = xp.eye(f, dtype=A.dtype, device=A.device)
    square = Q @ xp.matrix_transpose(Q)
    first = s2 * one - 0.5 * (square + xp.matrix_transpose(square))  # exactly symmetric
    mixed = xp.reshape(Q @ xp.matrix_transpose(T), (B, f, f, f))
    turned = xp.permute_dims(mixed, (0, 2, 1, 3)), xp.permute_dims(mixed, (0, 3, 2, 1))
    mixed = -(mixed + turned[0] + turned[1]) / 3.0
    prior = one[:, None, :, None] * one[None, :, None, :]
    prior = 0.25 * s2 * (prior + one[:, None, None, :] * one[None, :, :, None])
    second = prior[None] - 0.25 * xp.reshape(T @ xp.matrix_transpose(T), (B, f, f, f, f))
    dQ, dT = (_product_error(precision, degrees, degree) for degree in (1, 2))
    size1 = root(xp.sum(Q**2, axis=(1, 2))) * (1.0 + gamma(r * f + 8))
    size2 = root(xp.sum(T**2, axis=(1, 2))) * (1.0 + gamma(r * f * f + 8))
    dot = gamma(r + 16)
    first_error = dQ * (2.0 * size1 + dQ) + dot * (size1**2 + s2)
    mixed_error = dQ * size2 + dT * size1 + dQ * dT + dot * size1 * size2
    second_error = dT * (2.0 * size2 + dT) + dot * (size2**2 + f * s2)
    return SecondCovariance(
        first,
        up(first_error, r + 16),
        mixed,
        up(mixed_error, r + 16),
        second,
        up(second_error, r + 16),
    )


def _product_error(precision: LocalPrecision, degrees: SecondDegree, degree: int) -> Array:
    """(B,) e: the product of A with `k_i (u_i.d)^degree` errs by at most e |d|^degree."""
    xp, N = namespace(degrees.rows), degrees.rows.shape[2]
    # each further factor u_i.d carries fewer than 16 roundings of size |z_i| + |c|
    spread = gamma(N + 16 * degree) * xp.sqrt(degrees.squared_sizes[:, degree])
    return up(precision.size * (spread + xp.sqrt(degrees.squared_errors[:, degree])), 8)


def _places(f: int) -> np.ndarray:
    """(f^2,): where each pair (j, k) stands among the pairs j <= k in lexicographic order.

    >>> _places(2).tolist()
    [0, 1, 1, 2]
    """
    table = np.zeros((f, f), dtype=int)
    j, k = np.triu_indices(f)
    table[j, k] = table[k, j] = np.arange(len(j))
    return table.reshape(-1)
