"""Weights out of few directions, for covariances of derivatives.

Where the noise is small beside the kernel only where its eigenvalues are few, weights `w = V x`
with as many columns V do nearly as well as any others: J and the residual of such weights are forms
in x, and a row costs two products with V in the place of two with K. Any matrix V of floats is
valid.

Proofs: docs/mathematics.md, statement 6.14.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import numpy as np
from scipy.linalg import get_lapack_funcs

from gpcert.enclosures.precision import Degree, ExplainedForms
from gpcert.enclosures.split_gram import SplitGram
from gpcert.numerics.arrays import Array, Backend, PerRow, namespace, row_products, to_numpy
from gpcert.numerics.rounding import gamma, root, up

(pstrf,) = get_lapack_funcs(("pstrf",), dtype=np.float64)
"""Cholesky's factorisation with pivots."""

FEW = 0.25
"""Part of the points that the columns may be: beyond, products with K cost little more."""

PIVOTS = 1e-4
"""Of the noise, what is left of the kernel at any point: J may be larger by a few times that part
of itself."""


LARGEST_ROOT = 1e50
"""Of 1 / noise: there, nothing leaves float64."""


class Met(NamedTuple):
    """What is known of the centre's residual r (B, N), each (B,): entries off by at most
    `rounding`, a vector of length `error` and roundings of r (its length is `far`) and of Sigma w
    (`noisy` is |Sigma^1/2 w|)."""

    residual: Array
    rounding: PerRow
    error: PerRow
    far: PerRow
    noisy: PerRow


@dataclass(frozen=True, eq=False)
class WeightBasis:
    """V (N, m), `C = (K + Sigma) V`, `B = V^T C`, and a diagonal that about inverts B.

    By columns, lengths: `sizes` of V, `noisy` of Sigma^1/2 V, `image_sizes` of C, `image_errors` of
    its errors; `form_sizes`, `form_errors`: of each entry of B.
    """

    directions: Annotated[Array, "N m"]
    image: Annotated[Array, "m N"]
    form: Annotated[Array, "m m"]
    inverse: Annotated[Array, "m"]
    sizes: Annotated[Array, "m"]
    noisy: Annotated[Array, "m"]
    image_sizes: Annotated[Array, "m"]
    image_errors: Annotated[Array, "m"]
    form_sizes: Annotated[Array, "m m"]
    form_errors: Annotated[Array, "m m"]
    roots: Annotated[Array, "N"]
    largest_root: float

    @staticmethod
    def directions_of(
        K: Annotated[np.ndarray, "N N"], roots: Annotated[np.ndarray, "N"]
    ) -> Annotated[np.ndarray, "N m"] | None:
        """Of the largest eigenvalues of `Sigma^-1/2 K Sigma^-1/2`, from a Cholesky factorisation
        with pivots; None where they are too many."""
        N, most = len(K), int(FEW * len(K))
        scaled = roots[:, None] * K * roots
        if roots.max() > LARGEST_ROOT or not np.all(np.isfinite(scaled)):
            return None
        lower, pivots, rank, info = pstrf(scaled, tol=PIVOTS, lower=1)
        if info < 0 or not 0 < rank <= most:
            return None
        factor = np.zeros((N, rank))
        factor[pivots - 1] = np.tril(lower)[:, :rank]
        return roots[:, None] * np.linalg.svd(factor, full_matrices=False)[0]

    def solved(self, rows: Annotated[Array, "n N"]) -> Array:
        """About `(K + Sigma)^-1` times the rows."""
        turned = namespace(rows).matrix_transpose(self.directions)
        return ((rows @ self.directions) * self.inverse) @ turned

    @staticmethod
    def of(
        directions: Annotated[np.ndarray, "N m"],
        gram: SplitGram,
        gram_error: float,
        noise: Annotated[np.ndarray, "N"],
        roots: Annotated[np.ndarray, "N"],
        backend: Backend,
    ) -> WeightBasis:
        """Of any directions, zero where there is no observation, as is the noise; `gram_error` is
        the largest error of an entry of K."""
        rows = np.ascontiguousarray(directions.T)
        N, place = len(directions), backend.asarray
        one = up(np.sum(np.abs(rows), axis=1), N + 2)
        first, rest, error = map(_host, gram.times(place(rows), place(one)))
        C = first + (rest + noise * rows)
        # of an entry of each column: its own roundings are at most four, of three parts
        rounding = gamma(8) * (np.abs(C) + np.abs(first) + noise * np.abs(rows)).max(axis=1)
        off = up(error + gram_error * one + rounding, 8)
        whole, more, form_errors = map(_host, gram.dots(place(rows[None]), place(C[None])))
        whole, more, form_errors = whole[0], np.broadcast_to(more, whole.shape)[0], form_errors[0]
        form = whole + more
        form_errors = up(form_errors + one[:, None] * off + gamma(8) * np.abs(form), 8)
        # B is symmetric: of both entries the one that is known better
        better = form_errors <= form_errors.T
        form = np.where(better, form, form.T)
        form_errors = np.where(better, form_errors, form_errors.T)
        diagonal = np.diag(form)
        numbers = (
            rows.T,
            C,
            form,
            np.where(diagonal > 0, 1.0 / np.where(diagonal > 0, diagonal, 1.0), 0.0),
            _lengths(rows),
            _lengths(np.sqrt(noise) * rows),
            _lengths(C),
            up(np.sqrt(N) * off, 4),
            np.abs(form),
            form_errors,
            roots,
        )
        placed: Any = [*map(place, numbers), float(roots.max())]
        return WeightBasis(*placed)

    def forms(
        self, rows: Annotated[Array, "B c N"], degrees: Sequence[Degree], center: Met
    ) -> ExplainedForms:
        """See `Precision.explained_forms`: `x_a.y_b + y_a.x_b - x_a.B x_b`, y = V^T k."""
        xp, (B, c, N), m = namespace(rows), rows.shape, self.inverse.shape[0]
        flat = xp.reshape(rows, (B * c, N))
        Y = flat @ self.directions
        X = Y * self.inverse
        X = xp.where(xp.isfinite(X), X, xp.zeros_like(X))
        R = X @ self.image - flat
        R = R * self.roots
        left = xp.reshape(_lengths(R), (B, c, 1))
        Y, X, Z = (xp.reshape(part, (B, c, m)) for part in (Y, X, X @ self.form))
        first, turned = X @ xp.matrix_transpose(Y), xp.matrix_transpose(X)
        explained = (first + xp.matrix_transpose(first)) - Z @ turned
        met = X @ (center.residual @ self.directions)[:, :, None]
        known, crossed = [], []
        for degree in degrees:
            x, y, lengths, beside = (
                _joined(part[:, degree.rows], degree.often) for part in (X, Y, left, met)
            )
            known.append((x, y, *self._errors(degree, x, lengths[:, 0], N)))
            entries = N**0.5 * center.rounding + center.error + gamma(N + m + 32) * center.far
            off = entries * (x @ self.sizes) + gamma(8) * center.noisy * (x @ self.noisy)
            crossed.append(up(beside[:, 0] + off, m + 24))
        errors, missed = {}, {}
        for b, (x, y, dx, error, miss) in enumerate(known):
            for a, (p, q, dp, other, gap) in enumerate(known[: b + 1]):
                # of the sums that make an entry, by the sizes of their terms
                size = xp.sum(p * y + q * x + (p @ self.form_sizes) * x, axis=1)
                off = xp.sum((p @ self.form_errors) * x, axis=1) + dp * error + dx * other
                errors[a, b] = up(off + gamma(2 * m + 16) * size, 2 * m + 16)
                missed[a, b] = up(miss * gap, 1)
        matrix = 0.5 * (explained + xp.matrix_transpose(explained))
        return ExplainedForms(matrix, errors, missed, crossed)

    def _errors(
        self, degree: Degree, x: Annotated[Array, "B m"], left: PerRow, N: int
    ) -> tuple[PerRow, PerRow, PerRow]:
        """Of the rows of a degree, for all unit vectors: `sum_j |x_j| |V_j|`, the length of the
        error of k that a column meets, and `|Sigma^-1/2 r|`."""
        size = degree.size + degree.error
        rounding = x @ self.image_errors + gamma(x.shape[1] + 4) * (x @ self.image_sizes)
        rounding = rounding + gamma(2) * size + degree.error
        miss = up(left + self.largest_root * rounding, x.shape[1] + 16)
        return x @ self.sizes, gamma(N + 2) * size + degree.error, miss


def _host(part: Any) -> np.ndarray:
    return np.asarray(part) if isinstance(part, float) else to_numpy(part)


def _lengths(rows: Array) -> Array:
    """At least that of each."""
    return up(root(row_products(rows, rows)), rows.shape[-1] + 16)


def _joined(rows: Annotated[Array, "B c m"], often: Array) -> Annotated[Array, "B m"]:
    """At least what sums of the rows by unit vectors come to, entry by entry."""
    total = namespace(rows).sum(often[:, None] * rows * rows, axis=1)
    return up(root(total), rows.shape[1] + 16)
