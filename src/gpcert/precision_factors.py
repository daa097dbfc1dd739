"""The precision S = A^T A - C^T C of a posterior: its factors, read, found and rounded.

Factors are stored, not S itself: a sum of squares keeps its sign in floating point.

Proofs: docs/mathematics.md, statements 1.6 and 16.9.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.linalg

from gpcert.arrays import finite_array
from gpcert.errors import InputError
from gpcert.spectral import symmetric_eigh
from gpcert.triangular import Inverse, is_triangular

MOST_ROWS = 100
"""Rows of a factor for each number it multiplies: m N rows express every S there is."""


class Factored:
    """What has `factor` A and `negative_factor` C, each (m, r, N), or (1, r, N) where shared."""

    factor: Any
    negative_factor: Any

    def factors_of(self, output: int) -> tuple[np.ndarray, np.ndarray]:
        """A_c and C_c, shapes (r, N) and (r', N)."""
        both = (self.factor, self.negative_factor)
        first, second = (factor[output if len(factor) > 1 else 0] for factor in both)
        return first, second

    @cached_property
    def triangular(self) -> tuple[bool, ...]:
        """Which A are lower triangular: looked at once."""
        return tuple(map(is_triangular, self.factor))

    def is_triangular(self, output: int) -> bool:
        """Whether A_c is."""
        return self.triangular[output if len(self.factor) > 1 else 0]

    @property
    def precision_count(self) -> int:
        """1 where all outputs share their precision, else the number of outputs."""
        return max(len(self.factor), len(self.negative_factor))


def factored_precision(
    precision: Any, gram: Callable[[], np.ndarray]
) -> tuple[np.ndarray, np.ndarray | None]:
    """A and C of a symmetric S; C is None where S is positive but for rounding.

    `gram` gives K_ZZ, which only an indefinite S needs (see `split_precision`).
    """
    S = finite_array("precision", precision, ndim=2)
    if S.shape[0] != S.shape[1]:
        raise InputError(f"precision: expected a square matrix, got shape {S.shape}")
    size = float(np.abs(S).max(initial=0.0))
    asymmetry = float(np.abs(S - S.T).max(initial=0.0))
    if asymmetry > 1e-10 * size:
        raise InputError(
            f"precision: expected a symmetric matrix, got |S - S^T| up to {asymmetry:.3g}; "
            "pass (S + S.T) / 2 if that is what you mean"
        )
    S = S / 2 + S.T / 2
    eigenvalues, vectors = symmetric_eigh(S, "precision")
    if eigenvalues[0] >= -1e-10 * max(size, eigenvalues[-1]):
        factor = np.sqrt(np.maximum(eigenvalues, 0.0))[:, None] * vectors.T
        return factor, None
    return split_precision(S, gram())


def split_precision(S: np.ndarray, K: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A and C with `S = A^T A - C^T C` up to rounding.

    With K = L L^T and `L^T S L = U diag(e) U^T`: rows `sqrt|e_j| u_j^T L^-1`. Then A K A^T and
    C K C^T are diagonal, and C takes nothing back that A gives. If K has no Cholesky factor, the
    eigenvectors of S itself serve (L = I).
    """
    try:
        L = scipy.linalg.cholesky(K, lower=True)
    except (np.linalg.LinAlgError, ValueError):  # not positive definite, or not finite
        L = np.eye(len(K))
    eigenvalues, U = symmetric_eigh(L.T @ S @ L, "precision")
    rows = scipy.linalg.solve_triangular(L, np.sqrt(np.abs(eigenvalues)) * U, lower=True, trans=1)
    return rows.T[eigenvalues > 0], rows.T[eigenvalues < 0]


def checked_factor(name: str, factor: Any, m: int, N: int) -> np.ndarray:
    """A factor as (1 or m, r, N), of no rows where there is none."""
    if factor is None:
        return np.zeros((1, 0, N))
    A = factor.matrix if isinstance(factor, Inverse) else factor
    if not (isinstance(factor, Inverse) and np.isfinite(A).all() and not A.flags.writeable):
        A = finite_array(name, A)  # a copy, which nobody else changes
    if A.ndim == 2:
        A = A[None]
    if A.ndim != 3 or A.shape[0] not in {1, m} or A.shape[2] != N:
        raise InputError(f"{name}: expected shape (r, {N}) or ({m}, r, {N}), got {A.shape}")
    if A.shape[1] > MOST_ROWS * m * N:
        raise InputError(
            f"{name}: expected at most {MOST_ROWS * m * N} rows, got {A.shape[1]}; the triangular "
            "factor of its QR decomposition has the same S"
        )
    return A


def read_factors(posterior: Any, m: int, N: int) -> dict[str, Any]:
    """`factor`, `negative_factor` and `inverse` of a posterior of m outputs and N points, by name.

    The inverse is kept if it is that of this factor, bit by bit: what is proved of another matrix
    is of no use. Coupled outputs round their factors afterwards.
    """
    given = posterior.factor
    inverse = given if isinstance(given, Inverse) else posterior.inverse
    names = ("factor", "negative_factor")
    found: dict[str, Any] = {n: checked_factor(n, getattr(posterior, n), m, N) for n in names}
    A = found["factor"]
    if inverse is None or len(A) != 1 or posterior.coupled:
        return found | {"inverse": None}
    same = A.base is inverse.matrix or np.array_equal(A[0], inverse.matrix)
    return found | {"inverse": replace(inverse, matrix=A[0]) if same else None}
