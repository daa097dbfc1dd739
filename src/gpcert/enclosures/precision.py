"""y = S k for batches of kernel rows, with a bound on the error of y.

Proofs: docs/mathematics.md, statements 6.3 and 6.7.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from array_api_compat import device, is_numpy_namespace
from scipy.linalg import get_blas_funcs

from gpcert.kernels.expansions.base import Expansion, LocalKernel, QuadraticForm
from gpcert.model.unit_form import UnitForm
from gpcert.numerics.arrays import (
    Array,
    Backend,
    Inputs,
    PerCell,
    PerCellMatrix,
    fused,
    namespace,
    row_products,
)
from gpcert.numerics.rounding import gamma, root, up, up_float
from gpcert.numerics.triangular import is_triangular
from gpcert.regions.scaled import Stretch
from gpcert.utils.processes import checkpoint

ACCEPTABLE_ERROR = 1e-6
"""Relative to the prior variance, for the worst kernel row: above it the product with S is replaced
by two with its factor. A choice of speed only; both errors are bounded and added."""

CACHE_NUMBERS = 2**18
"""Numbers (2 MB) that a processor keeps near: larger pieces of work wait for the memory."""

NEAR_NUMBERS = 2**20
"""Numbers (8 MB) that it keeps less near: BLAS reads them in pieces of its own."""

(trmm,) = get_blas_funcs(("trmm",), dtype=np.float64)
"""Product with a triangular matrix."""

STRIP = 128
"""Rows of a triangular factor that are multiplied at once."""


class Explained(NamedTuple):
    """`value` A k (B, r), a bound (B,) of the length of its error, `|A k|^2`, and its error."""

    value: Array
    error: Array
    square: Array
    square_error: Array

    @property
    def length(self) -> PerCell:
        """Upper bound of the length of `value`."""
        return up(root(self.square), self.value.shape[1] + 8)


class CenterVariance(NamedTuple):
    """What the variance at the centres is made of, for float weights y (B, N), exact as they stand,
    and `p = k(., c) - sum_i y_i k(., z_i)`.

    `explained + rest` (B,): k.S k, and its error, but for `missed`: it may be larger by so much. At
    least `|p - P e0|` in the kernel's space is `deviation`; |p|^2 is at most `J(y) - noisy`, J(y)
    that of 6.12, 0 where that is not known. `residual`: what `Precision.derivatives` needs of the
    same weights, None where their errors are deviations alone.
    """

    weights: Array
    deviation: PerCell
    explained: PerCell
    error: PerCell
    missed: PerCell
    noisy: PerCell
    residual: Any = None
    rest: PerCell | float = 0.0


class Degree(NamedTuple):
    """Rows of one degree in d among all rows of a cell; how often each of them counts in a sum over
    all tuples of features; for unit vectors, the lengths of their sums and of the errors of
    these."""

    rows: slice
    often: Array
    size: PerCell
    error: PerCell


class ExplainedForms(NamedTuple):
    """`k_a.S k_b` (B, c, c) of all pairs of rows of a cell, symmetric, and by pairs of degrees i <=
    j, for sums by unit vectors, what that errs by (B,), and by how much it may be larger besides.

    `crossed`: by degree, what weights for the rows make of the residual at the centre: with these,
    not `2 <P e0, Psi - e0>` but the same of p and twice that is part of an upper bound (Statement
    6.13). None where only the deviation is known.
    """

    matrix: Array
    errors: dict[tuple[int, int], Array]
    missed: dict[tuple[int, int], Array]
    crossed: list[Array] | None = None


class DerivativeCovariance(NamedTuple):
    """G (B, f, f), the covariance of the posterior's derivatives at the centres; it may be smaller
    by `missed` (B,) besides. `crossed` as in `ExplainedForms`."""

    form: QuadraticForm
    missed: PerCell
    crossed: PerCell | None = None


class Precision(ABC):
    """S of one output, or of several whose cells stand one after the other (`stacked`)."""

    distance: float = 0.0
    """eta: `|k.S k - k.S' k| <= eta k(x, x)`, S that of the model, S' the one that all bounds here
    are of; see `UnitForm.distances`."""

    stretches: ClassVar[bool] = False
    """Whether errors are smaller for a `Stretch`: not where norms of all rows bound them."""

    @property
    def has_forms(self) -> bool:
        """Whether `explained_forms` may be asked."""
        return False

    @abstractmethod
    def center(
        self, local: LocalKernel, expansion: Expansion, points: Inputs | None = None
    ) -> CenterVariance:
        """The variance at the centres, and weights that attain it; `points` (B, d): the centres as
        the kernel sees them, where its values there may be asked for anew, and more accurate."""

    @abstractmethod
    def derivative_covariance(
        self,
        local: LocalKernel,
        expansion: Expansion,
        center: CenterVariance,
        stretch: Stretch | None = None,
    ) -> DerivativeCovariance:
        """The covariance of the posterior's derivatives at the centres; with a stretch, which is
        for precisions that say so, what it errs by meets |e|."""

    def explained_forms(
        self,
        rows: Annotated[Array, "B c N"],
        degrees: Sequence[Degree],
        center: CenterVariance,
        cells: slice = slice(None),
        reach2: float = math.inf,
    ) -> ExplainedForms:
        """`k_a.S k_b` of rows that are inner products of the points' features with derivatives of
        the feature map at the centre, of some of the cells of `center`. `reach2` is the largest
        squared displacement that errors will meet: small ones ask for less accuracy."""
        raise NotImplementedError(
            f"{type(self).__name__}: not for {rows} {degrees} {center[:0]} {reach2}"
        )


def through_factor(rows: Annotated[Array, "n N"], factor: Array, triangular: bool) -> Array:
    """`A^T A k` (n, N) for rows k, by BLAS without what is zero."""
    if triangular and isinstance(rows, np.ndarray):
        # columns of the transpose, as they lie in memory; the rows may be the kernel's own
        Q = trmm(1.0, factor.T, rows.T, lower=0, trans_a=1)
        return trmm(1.0, factor.T, Q, lower=0, overwrite_b=1).T
    return (rows @ factor.T) @ factor


@dataclass(frozen=True, eq=False)
class LocalPrecision(Precision):
    """`S = A^T A - C^T C` on a backend: one product with S where that is accurate enough, else
    with the factors, one after the other.

    `size` bounds `|| |A| ||_2`, so that `|| |A| x || <= size ||x||` and, with the same of C,
    `|| |S| x || <= (size^2 + negative.size^2) ||x||`.
    """

    factor: Array
    precision: Array | None
    size: float
    root_trace: float
    """At least the root of the trace of K_ZZ: no function `sum_i y_i k(., z_i)` has a larger norm
    than that times |y|."""
    image: float
    """The same of functions `sum_i (A^T q)_i k(., z_i)` and |q|."""
    negative: LocalPrecision | None = None
    """C in the place of A, where there is one."""
    triangular: bool = False
    """Whether A has nothing above its diagonal."""
    distance: float = 0.0

    @staticmethod
    def build(unit: UnitForm, index: int, variance: float, backend: Backend) -> LocalPrecision:
        """Choose the form by its worst error over all kernel rows (|k| <= variance sqrt N).

        `A K A^T <= (1 + kappa) I` and `C K C^T <= gain I` bound the images (Statement 1.3).
        """
        checkpoint()
        A, C = unit.factors_of(index)
        size, other = unit.factor_sizes[index]
        N = A.shape[1]
        worst = gamma(N + len(A) + len(C)) * (size * size + other * other) * variance * N
        S = backend.asarray(unit.precisions[index]) if worst <= ACCEPTABLE_ERROR else None
        trace = unit.root_trace
        images = (up_float((1.0 + unit.excess) ** 0.5, 4), up_float(unit.gain**0.5, 4))
        negative = None
        if len(C):
            negative = LocalPrecision(backend.asarray(C), None, other, trace, images[1])
        return LocalPrecision(
            backend.asarray(A),
            S,
            size,
            trace,
            images[0],
            negative,
            unit.is_triangular(index),
            unit.distances[index],
        )

    @staticmethod
    def of_factor(
        A: Annotated[np.ndarray, "r N"], size: float, root_trace: float, backend: Backend
    ) -> LocalPrecision:
        """`S = A^T A` by its factor alone."""
        image = up_float(size * root_trace, 1)
        factor = backend.asarray(A)
        return LocalPrecision(factor, None, size, root_trace, image, None, is_triangular(A))

    def center(
        self, local: LocalKernel, expansion: Expansion, points: Inputs | None = None
    ) -> CenterVariance:
        """See `Precision`.

        Reason (Statement 6.7): with dk the error of k, `||dy|| <= size^2 (gamma ||k|| + ||dk||)`
        for a product with S; for q = A k, `||dq|| <= size (gamma ||k|| + ||dk||)`, and y is
        `A^T (q + dq)` up to `gamma size (||q|| + ||dq||)`.
        """
        if self.precision is not None:
            return self._by_precision(self.precision, local, expansion)
        first = self._by_factor(local, expansion)
        if self.negative is None:
            return first
        other = self.negative._by_factor(local, expansion)
        xp = namespace(first.explained)
        length = root(xp.sum(first.weights**2, axis=1)) + root(xp.sum(other.weights**2, axis=1))
        rounded = gamma(first.weights.shape[1] + 8) * self.root_trace * length
        error = first.error + other.error + gamma(2) * (first.explained + other.explained)
        return CenterVariance(
            first.weights - other.weights,
            up(first.deviation + other.deviation + rounded, 8),
            first.explained - other.explained,
            up(error, 8),
            first.missed,
            first.noisy,
        )

    def _by_precision(self, S: Array, local: LocalKernel, expansion: Expansion) -> CenterVariance:
        K = expansion.K
        r, N = self.factor.shape
        size2 = self.size * self.size
        if self.negative is not None:
            r += self.negative.factor.shape[0]
            size2 += self.negative.size * self.negative.size
        k_norm, k_error = local.row_sizes(expansion, 0)
        spread = up(gamma(N + r + 8) * k_norm + k_error, 8)
        y = K @ S
        y_error = up(size2 * spread, 8)
        product, length = _products(K, y)
        # k.y: the error of y, the error of k against the true y, and the summation, of terms whose
        # sizes have at most the sum |k| |y|
        error = y_error * (k_norm + k_error) + k_error * length
        error = up(error + gamma(N + 4) * k_norm * length, N + 16)
        zero = 0.0 * length
        return CenterVariance(y, up(self.root_trace * y_error, 1), product, error, zero, zero)

    def _by_factor(self, local: LocalKernel, expansion: Expansion) -> CenterVariance:
        q, q_error, product, error = self.explained(local, expansion)
        r, q_norm = len(self.factor), root(product)
        y = q @ self.factor
        rounded = self.size * gamma(r + 4) * (q_norm * (1.0 + gamma(r + 8)) + q_error)
        deviation = up(self.image * q_error + self.root_trace * rounded, 8)
        zero = 0.0 * product
        return CenterVariance(y, deviation, product, error, zero, zero)

    def explained(self, local: LocalKernel, expansion: Expansion) -> Explained:
        """`q = A k`, by the factor."""
        xp = namespace(expansion.K)
        r, N = self.factor.shape
        k_norm, k_error = local.row_sizes(expansion, 0)
        spread = up(gamma(N + r + 8) * k_norm + k_error, 8)
        q = expansion.K @ self.factor.T
        q_error = up(self.size * spread, 8)
        product = xp.sum(q**2, axis=1)
        q_norm = root(product)
        error = q_error * (2.0 * q_norm + q_error) + gamma(r + 4) * product
        return Explained(q, q_error, product, up(error, r + 16))

    def derivative_covariance(
        self,
        local: LocalKernel,
        expansion: Expansion,
        center: CenterVariance,
        stretch: Stretch | None = None,
    ) -> DerivativeCovariance:
        """`G = G0 - Q Q^T (+ Q' Q'^T)`, Q = D k A^T: covariance (B, f, f) of the derivatives.

        G0 is the prior's, Q' = D k C^T. `error` e has `|d^T (fl(G) - G) d| <= e |d|^2`:
        `||dQ^T d|| <= size (gamma ||D k|| + error of D k) |d|` as for q in `apply`, and
        `||Q^T d|| <= |Q|_F |d|`. Costs f times `center`.
        """
        xp = namespace(expansion.K)
        prior = local.derivative_covariance(expansion)
        spread = root(xp.sum(prior.matrix**2, axis=(1, 2)))
        square, error = self.derivative_square(local, expansion)
        matrix = prior.matrix - square
        if self.negative is not None:
            other, other_error = self.negative.derivative_square(local, expansion)
            matrix, error = matrix + other, error + other_error
            spread = spread + root(xp.sum(other**2, axis=(1, 2)))
        spread = spread + root(xp.sum(square**2, axis=(1, 2)))
        form = QuadraticForm(matrix, up(error + gamma(8) * spread + prior.error, 8))
        return DerivativeCovariance(form, 0.0 * center.error)

    @property
    def has_forms(self) -> bool:
        """Of `S = A^T A` alone."""
        return self.negative is None

    def explained_forms(
        self,
        rows: Annotated[Array, "B c N"],
        degrees: Sequence[Degree],
        center: CenterVariance,
        cells: slice = slice(None),
        reach2: float = math.inf,
    ) -> ExplainedForms:
        """See `Precision`: of products q = A k that err by `size (gamma |k| + |dk|)`."""
        assert self.negative is None, "the covariance of several degrees needs S = A^T A"
        xp, (B, c, N), r = namespace(rows), rows.shape, self.factor.shape[0]
        q = xp.reshape(xp.reshape(rows, (B * c, N)) @ self.factor.T, (B, c, r))
        squares = xp.sum(q * q, axis=2)
        lost, sizes = [], []
        for part, often, size, error in degrees:
            lost.append(up(self.size * (gamma(N + 8) * size + error), 8))
            length = root(xp.sum(often * squares[:, part], axis=1))
            sizes.append(length * (1.0 + gamma(r * c + 8)))
        errors = {}
        for b in range(len(degrees)):
            for a in range(b + 1):
                off = lost[a] * sizes[b] + lost[b] * sizes[a] + lost[a] * lost[b]
                errors[a, b] = up(off + gamma(r + 16) * sizes[a] * sizes[b], r + 16)
        explained = q @ xp.matrix_transpose(q)
        none = {pair: 0.0 * error for pair, error in errors.items()}
        return ExplainedForms(0.5 * (explained + xp.matrix_transpose(explained)), errors, none)

    def _square(self, rows: Array) -> Array:
        """`Q Q^T` (B, f, f) for Q = rows A^T, rows (B, f, N); of a triangular A only with what is
        not zero, so in half the time: by BLAS, or strip by strip."""
        xp = namespace(rows)
        B, f, N = rows.shape
        r = len(self.factor)
        flat = xp.reshape(rows, (B * f, N))
        if self.triangular and isinstance(flat, np.ndarray):
            # Q^T = A rows^T, as they lie in memory; not in place: the rows may be the kernel's own
            Q = trmm(1.0, self.factor.T, flat.T, lower=0, trans_a=1).T
            Q = Q.reshape(B, f, r)
            return Q @ xp.matrix_transpose(Q)
        total = xp.zeros((B, f, f), dtype=rows.dtype, device=device(rows))
        for start in range(0, r, STRIP if self.triangular else max(1, r)):
            end = min(start + STRIP, r) if self.triangular else r
            width = end if self.triangular else N
            Q = xp.reshape(flat[:, :width] @ self.factor[start:end, :width].T, (B, f, end - start))
            total += Q @ xp.matrix_transpose(Q)
        return total

    def derivative_square(
        self, local: LocalKernel, expansion: Expansion
    ) -> tuple[PerCellMatrix, PerCell]:
        """`Q Q^T` and its error, infinite where the derivatives' is.

        Of a tall factor, as that of coupled classes, `D k S (D k)^T`: fewer products. With j the
        Frobenius norm of the computed D k and e that of its error, two products and the entries of
        S err by at most `gamma size^2 j^2`, and D k itself by `size^2 e (2 j + e)`.
        """
        xp = namespace(expansion.K)
        r, N = self.factor.shape
        B, f = expansion.geometry.half.shape
        norm, norm_error = local.row_sizes(expansion, 1)
        known = xp.isfinite(norm) & xp.isfinite(norm_error)
        norm, norm_error = (xp.where(known, x, xp.zeros_like(x)) for x in (norm, norm_error))
        if self.precision is not None and self.negative is None and r > N:
            rows = local.derivatives(expansion)
            turned = xp.reshape(xp.reshape(rows, (B * f, N)) @ self.precision, (B, f, N))
            square = turned @ xp.matrix_transpose(rows)
            whole = norm + norm_error
            error = gamma(2 * N + r + 32) * whole * whole + norm_error * (2.0 * whole + norm_error)
            error = up(self.size * self.size * error, 16)
        else:
            # one product for many cells and features, not a small one per cell; on a CPU of as many
            # as its caches hold
            most = max(1, NEAR_NUMBERS // max(1, f * N)) if is_numpy_namespace(xp) else max(1, B)
            parts = local.derivative_parts(expansion, most)
            square = xp.concat([self._square(part) for part in parts], axis=0)
            dQ = up(self.size * (gamma(N + 16) * norm + norm_error), 8)
            # |Q|_F^2 is the trace of Q Q^T, which carries r roundings
            size = root(xp.sum(xp.linalg.diagonal(square), axis=1)) * (1.0 + gamma(r + 8))
            error = up(dQ * (2.0 * size + dQ) + gamma(r + 8) * size**2, r + 16)
        square = 0.5 * (square + xp.matrix_transpose(square))  # exactly symmetric
        return square, xp.where(known, error, xp.full_like(error, math.inf))


@fused
def _products(K: Array, y: Array) -> tuple[Array, Array]:
    """`k.y` and `|y|`, row by row."""
    return row_products(K, y), root(row_products(y, y))
