"""Triangular matrices: their inverses, what these leave, and products with a third of the work.

`triangular_inverse` and `square` are plain floating point, for training. An `Inverse` is proved: it
carries a bound of what it leaves, found while it is computed and from nothing but the rounding of
matrix products; LAPACK only suggests inverses of small blocks.

Proofs: docs/mathematics.md, statement 1.10.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import get_lapack_funcs

from gpcert.numerics.rounding import TINY, gamma, given, scaled, up, up_float
from gpcert.utils.processes import checkpoint

trtri, lauum = get_lapack_funcs(("trtri", "lauum"), dtype=np.float64)
"""Inverse of a triangular matrix; product of one with its transpose."""

SIDE = 256
"""Of blocks of matrices: intermediate results stay in the caches, and what is zero is left out."""

DIAGONAL = 64
"""Of blocks on the diagonal that are looked through for zeros."""

STRIP = 512
"""Rows of an inverse that are multiplied at once with those found before."""

PIECE = 256
"""Columns of those that are taken together, with the zeros of their triangle."""

GRAIN = 32
"""Rows of an inverse that are found at once: what is proved of them is worse by the condition of so
small a block of the diagonal."""


def blocks(N: int, side: int | None = None) -> list[slice]:
    """0, ..., N - 1 in pieces of `SIDE`, or of another length."""
    step = SIDE if side is None else side
    return [slice(start, min(start + step, N)) for start in range(0, N, step)]


def is_triangular(A: np.ndarray) -> bool:
    """Whether A is a square matrix with nothing above its diagonal and no zero on it."""
    if not (A.shape[0] == A.shape[1] > 0 and np.diag(A).all()):
        return False
    pieces = blocks(len(A), DIAGONAL)
    return not any(A[b, b.stop :].any() or np.triu(A[b, b], 1).any() for b in pieces)


def largest_entry(M: np.ndarray) -> float:
    """The largest `|M_ij|`, without another matrix; NaN where one is."""
    return float(np.maximum(M.max(initial=0.0), -M.min(initial=0.0)))


def triangular_inverse(L: np.ndarray) -> np.ndarray:
    """`L^-1` of a lower triangular matrix in plain floating point; a `LinAlgError` if singular.

    What stands above the diagonal of L is not read.
    """
    flipped = not L.flags.f_contiguous
    inverse, info = trtri(L.T if flipped else L, lower=not flipped)
    if info != 0:
        raise np.linalg.LinAlgError(f"singular triangular factor at row {info}")
    inverse = inverse.T if flipped else inverse
    return inverse if is_triangular(inverse) else np.tril(inverse)  # LAPACK leaves it there


def square(A: np.ndarray) -> np.ndarray:
    """`A^T A` in floating point, every entry a sum of len(A) products in some order; a third of the
    work where A is triangular."""
    if not is_triangular(A):
        return A.T @ A
    product, info = lauum(A.T)  # U U^T of U = A^T, on and above the diagonal
    if info != 0:
        return A.T @ A
    for block in blocks(len(product)):
        product[block, : block.start] = product[: block.start, block].T
        upper = np.triu(product[block, block])
        product[block, block] = upper + np.triu(upper, 1).T
    return product


@dataclass(frozen=True, eq=False)
class Inverse:
    """Lower triangular matrices A (`matrix`) and L (`root`) with `|A L - I|_2 <= residual`, proved.

    Made by `of` and `with_matrix`, which prove the residual; who writes one by hand vouches for it.
    It may be infinite, where nothing is proved. The arrays can only be read.
    """

    matrix: np.ndarray
    root: np.ndarray
    residual: float

    @staticmethod
    def of(L: np.ndarray, *, owned: bool = False) -> Inverse:
        """A of a given L; a `LinAlgError` if singular. What stands above the diagonal of L is not
        read, and L is copied, unless it is lower triangular and nobody else's."""
        root = L if owned and is_triangular(L) else np.tril(L)
        A = np.zeros(root.shape)
        pair = _checked(A, root, _right_inverse(root.T, A.T, lower=False))
        A.setflags(write=False)
        return pair

    @staticmethod
    def with_matrix(A: np.ndarray) -> Inverse:
        """L of a given lower triangular A; residual inf where there is none."""
        L = np.zeros(A.shape)
        try:
            return _checked(A, L, _right_inverse(A, L, lower=True))
        except np.linalg.LinAlgError:
            return Inverse(A, L, math.inf)

    def scaled(self, exponent: int) -> Inverse:
        """`2^e A` and `2^-e L`; nothing is proved of them where an entry leaves float64."""
        if exponent == 0:
            return self
        with np.errstate(over="ignore", under="ignore"):
            A, L = scaled(self.matrix, exponent), scaled(self.root, -exponent)
            same = np.array_equal(scaled(A, -exponent), self.matrix)
            same = same and np.array_equal(scaled(L, exponent), self.root)
        return Inverse(A, L, self.residual if same else math.inf)


def _checked(A: np.ndarray, L: np.ndarray, residual: float) -> Inverse:
    """With what the sums over many columns lose: `gamma(N) |A| |L|` in norm (Statement 1.10)."""
    N = len(A)
    with np.errstate(over="ignore", invalid="ignore"):
        bound = up_float(residual + gamma(N + 4) * product_size(A, L), 8)
    L.setflags(write=False)
    return Inverse(A, L, bound if math.isfinite(bound) else math.inf)


def product_size(A: np.ndarray, L: np.ndarray) -> float:
    """Upper bound of `|| |A| |L| ||_2` for lower triangular matrices.

    Reason: a spectral norm is at most the root of the largest row sum times the largest column sum.
    """
    N = len(A)
    rows_L, columns_A = np.zeros(N), np.zeros(N)
    for b in blocks(N):
        rows_L[b] = np.abs(L[b, : b.stop]).sum(axis=1)
        columns_A[: b.stop] += np.abs(A[b, : b.stop]).sum(axis=0)
    largest_row, columns = 0.0, np.zeros(N)
    for b in blocks(N):
        sums = np.abs(A[b, : b.stop]) @ rows_L[: b.stop]
        largest_row = max(largest_row, float(sums.max()))
        columns[: b.stop] += columns_A[b] @ np.abs(L[b, : b.stop])
    return math.sqrt(up_float(largest_row * float(columns.max()), 4 * N + 8))


def _right_inverse(T: np.ndarray, X: np.ndarray, *, lower: bool) -> float:
    """Fill X, zero so far, with about `T^-1`; a bound of `|T X - I|_2` but for `gamma(N) |T| |X|`.

    Grain i of X (a few rows) is `-D P` beside the diagonal block D: D is about `T_ii^-1`, P the
    product of what is left of (in an upper triangle: right of) T_ii with the rows found before
    (Statement 1.10); the roundings of P are those that the caller adds.
    """
    N, beside = len(T), 0.0
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        left, lost = _block_inverses(T, X, lower=lower)
        for strip in blocks(N, STRIP) if lower else reversed(blocks(N, STRIP)):
            checkpoint()
            known = slice(0, strip.start) if lower else slice(strip.stop, N)
            P = _with_known(T, X, strip, known, lower=lower)
            beside += _filled(T, X, strip, P, lost, lower=lower)
        # what underflows in a product meets entries of T once more, at most
        rest = N * N * TINY * (1.0 + largest_entry(T))
        return up_float(left + math.sqrt(up_float(beside, 2 * N)) + rest, 8)


def _filled(
    T: np.ndarray,
    X: np.ndarray,
    rows: slice,
    P: np.ndarray,
    lost: dict[int, float],
    *,
    lower: bool,
) -> float:
    """Fill rows of X beside their diagonal block from P, what they are multiplied with of the rows
    found before; the sum over their grains of the squares of what that leaves.

    By halves, so that most is a product of large matrices: the second half meets the first one.
    """
    earlier = slice(0, rows.start) if lower else slice(rows.stop, len(T))
    size = rows.stop - rows.start
    if size <= GRAIN:
        np.matmul(-X[rows, rows], P, out=X[rows, earlier])
        length = math.sqrt(up_float(float(np.vdot(P, P)), P.size) + TINY)
        return up_float(lost[rows.start] * length, 8) ** 2
    middle = rows.start + (size + 2 * GRAIN - 1) // (2 * GRAIN) * GRAIN  # a border of grains
    parts = (slice(rows.start, middle), slice(middle, rows.stop))
    first, second = parts if lower else parts[::-1]
    total = _filled(T, X, first, P[_within(first, rows)], lost, lower=lower)
    then = slice(0, first.stop) if lower else slice(first.start, len(T))
    Q = T[second, first] @ X[first, then]
    Q[:, _within(earlier, then)] += P[_within(second, rows)]
    return total + _filled(T, X, second, Q, lost, lower=lower)


def _within(part: slice, whole: slice) -> slice:
    """The part as it lies in the whole."""
    return slice(part.start - whole.start, part.stop - whole.start)


def _with_known(
    T: np.ndarray, X: np.ndarray, rows: slice, known: slice, *, lower: bool
) -> np.ndarray:
    """`T[rows, known] X[known, known]`, without most of what is zero."""
    P = np.empty((rows.stop - rows.start, known.stop - known.start))
    for piece in blocks(P.shape[1], PIECE):
        columns = slice(known.start + piece.start, known.start + piece.stop)
        inner = slice(columns.start, known.stop) if lower else slice(known.start, columns.stop)
        np.matmul(T[rows, inner], X[inner, columns], out=P[:, piece])
    return P


def _block_inverses(T: np.ndarray, X: np.ndarray, *, lower: bool) -> tuple[float, dict[int, float]]:
    """Fill in the diagonal blocks D of X, about the inverses of those of T; upper bounds of all
    `|T_ii D - I|_2`, and of that and of what T_ii makes of the rounding of a product with D,
    relative to what D is multiplied with, by the start of the block."""
    strips = (range(s.start, s.stop, GRAIN) for s in blocks(len(T), STRIP))
    grains = [slice(i, min(i + GRAIN, s.stop)) for s in strips for i in s]
    largest, lost = 0.0, {}
    for size in {g.stop - g.start for g in grains}:  # blocks of one size are multiplied together
        alike = [g for g in grains if g.stop - g.start == size]
        each, D = np.stack([T[g, g] for g in alike]), np.empty((len(alike), size, size))
        for block, entries in zip(each, D, strict=True):
            inverse, info = trtri(block, lower=lower)
            if info != 0:
                raise np.linalg.LinAlgError(f"singular triangular factor at row {info}")
            entries[:] = np.tril(inverse) if lower else np.triu(inverse)
        rounded = gamma(size + 4) * _lengths(np.abs(each) @ np.abs(D))
        rest = each @ D
        rest[:, np.arange(size), np.arange(size)] -= 1.0
        left = up(_lengths(given(rest)) + rounded, 8)
        largest = float(np.maximum(largest, left.max()))  # NaN stays
        for g, entries, total in zip(alike, D, up(left + rounded, 8).tolist(), strict=True):
            X[g, g] = entries
            lost[g.start] = total
    return largest, lost


def _lengths(M: np.ndarray) -> np.ndarray:
    """Upper bounds of the Frobenius norms of matrices whose squares do not leave float64 (else
    inf) and whose entries carry one rounding more than their size allows for."""
    size = M.shape[1] * M.shape[2]
    squares = np.einsum("bij,bij->b", M, M)
    return up(np.sqrt(up(squares, size + sum(M.shape[1:])) + TINY), 4)
