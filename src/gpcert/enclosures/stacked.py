"""The variances of all pairs of many coupled classes as one batch: the cells, once for every pair.

What is computed for J pairs one by one is the same arithmetic on J times as many rows, which stand
one pair after the other. A pair (k, l) has
`S = A_k^T A_k + A_l^T A_l - (C_l - C_k)^T (C_l - C_k)`: with `u_c = A_c^T A_c k`, `w_c = C_c k` and
`z_cd = C_c^T w_d`, `S k = u_k + u_l - z_ll + z_lk + z_kl - z_kk`. So m classes need 2 m products
with an N x N matrix, whatever the number of pairs.

Proofs: docs/mathematics.md, statements 1.6 and 6.9.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

from gpcert.enclosures.lower_model import QuadraticLowerModel
from gpcert.enclosures.mean import Units
from gpcert.enclosures.precision import (
    CACHE_NUMBERS,
    CenterVariance,
    DerivativeCovariance,
    Explained,
    LocalPrecision,
    Precision,
)
from gpcert.enclosures.variance import VarianceEnclosure
from gpcert.kernels.expansions.base import Expansion, LocalKernel, QuadraticForm
from gpcert.model.differences import PairUnits
from gpcert.numerics.arrays import Array, Backend, Inputs, PerRow, namespace
from gpcert.numerics.rounding import gamma, root, up
from gpcert.regions.scaled import Stretch
from gpcert.utils.processes import checkpoint


@dataclass(frozen=True, eq=False)
class ClassPrecisions:
    """A_c and C_c of all classes on a backend, and the pairs that are made of them."""

    diagonal: tuple[LocalPrecision, ...]
    coupling: tuple[LocalPrecision, ...]
    pairs: tuple[tuple[int, int], ...]

    @staticmethod
    def build(unit: PairUnits, backend: Backend) -> ClassPrecisions:
        """From the factors in units of the pairs' kernel."""
        diagonal, coupling = [], []
        for c, (a, b) in enumerate(zip(*unit.class_sizes, strict=True)):
            checkpoint()
            trace = unit.root_trace
            diagonal.append(LocalPrecision.of_factor(unit.diagonal[c], a, trace, backend))
            coupling.append(LocalPrecision.of_factor(unit.coupling[c], b, trace, backend))
        return ClassPrecisions(tuple(diagonal), tuple(coupling), unit.pairs)

    def on(self, expansion: Expansion, pairs: Sequence[int]) -> PairPrecision:
        """Of some pairs, on one batch of cells."""
        return PairPrecision(self, expansion, tuple(self.pairs[j] for j in pairs))


@dataclass(frozen=True, eq=False)
class PairPrecision(Precision):
    """Several pairs on the cells of `base`: their rows stand one pair after the other."""

    classes: ClassPrecisions
    base: Expansion
    pairs: tuple[tuple[int, int], ...]

    @cached_property
    def _used(self) -> tuple[int, ...]:
        return tuple(sorted({c for pair in self.pairs for c in pair}))

    def center(
        self, local: LocalKernel, expansion: Expansion, points: Inputs | None = None
    ) -> CenterVariance:
        """`y = S k` and `k.y` of every pair, with their errors.

        Reason: those of `LocalPrecision.center` for each of the products, and of the sums of six
        terms by the terms' lengths; `|w_l - w_k|^2` from the difference of the vectors.
        """
        xp, N = namespace(self.base.K), self.base.K.shape[1]
        diagonal = {c: self.classes.diagonal[c].center(local, self.base) for c in self._used}
        w = {c: self.classes.coupling[c].explained(local, self.base) for c in self._used}
        crossed = self._crossed(w)
        centers = []
        for k, j in self.pairs:
            parts = [
                diagonal[k].weights,
                diagonal[j].weights,
                -crossed[j, j][0],
                crossed[j, k][0],
                crossed[k, j][0],
            ]
            parts.append(-crossed[k, k][0])
            y: Array = sum(parts[1:], parts[0])
            error = sum(crossed[a, b][1] for a in (k, j) for b in (k, j))
            size = sum(root(xp.sum(part * part, axis=1)) for part in parts)
            error = self.classes.diagonal[k].root_trace * up(error + gamma(16) * size, N + 16)
            deviation = up(diagonal[k].deviation + diagonal[j].deviation + error, 4)
            explained = _joined(diagonal[k][2:4], diagonal[j][2:4], w[k], w[j])
            centers.append((y, deviation, *explained, 0.0 * deviation, 0.0 * deviation))
        return CenterVariance(
            *(xp.concat(list(part), axis=0) for part in zip(*centers, strict=True))
        )

    def explained(self, local: LocalKernel) -> tuple[PerRow, PerRow]:
        """`k.S k` (pairs B,) and its error, without y."""
        xp = namespace(self.base.K)
        diagonal = {c: self.classes.diagonal[c].explained(local, self.base) for c in self._used}
        w = {c: self.classes.coupling[c].explained(local, self.base) for c in self._used}
        parts = [_joined(diagonal[k][2:], diagonal[j][2:], w[k], w[j]) for k, j in self.pairs]
        first, second = zip(*parts, strict=True)
        return xp.concat(list(first), axis=0), xp.concat(list(second), axis=0)

    def _crossed(self, w: dict[int, Explained]) -> dict[tuple[int, int], tuple[Array, Array]]:
        """`C_c^T w_d` (B, N) for all classes c and d, and bounds (B,) of the errors."""
        xp, B = namespace(self.base.K), self.base.K.shape[0]
        stacked = xp.concat([w[d].value for d in self._used], axis=0)
        products = {}
        for c in self._used:
            checkpoint()
            C = self.classes.coupling[c]
            z, r = stacked @ C.factor, C.factor.shape[0]
            for number, d in enumerate(self._used):
                error = C.size * (w[d].error + gamma(r + 4) * (w[d].length + w[d].error))
                products[c, d] = z[number * B : (number + 1) * B], up(error, 8)
        return products

    def derivative_covariance(
        self,
        local: LocalKernel,
        expansion: Expansion,
        center: CenterVariance,
        stretch: Stretch | None = None,
    ) -> DerivativeCovariance:
        """`G0 - Q_k Q_k^T - Q_l Q_l^T + (W_l - W_k) (W_l - W_k)^T`, `Q_c = D k A_c^T` and
        `W_c = D k C_c^T`; errors as those of `LocalPrecision.derivative_covariance`."""
        xp, base = namespace(self.base.K), self.base
        prior = local.derivative_covariance(base)
        norm, norm_error = local.row_sizes(base, 1)
        known = xp.isfinite(norm) & xp.isfinite(norm_error)
        norm, norm_error = (xp.where(known, x, xp.zeros_like(x)) for x in (norm, norm_error))
        squares = {c: self.classes.diagonal[c].derivative_square(local, base) for c in self._used}
        added = self._added(local)
        prior_size = _length(prior.matrix)
        matrices, errors = [], []
        for number, (k, j) in enumerate(self.pairs):
            a, b = self.classes.coupling[k], self.classes.coupling[j]
            r, N = a.factor.shape
            both, size = added[number]
            (first, first_error), (second, second_error) = squares[k], squares[j]
            off = (a.size + b.size) * (gamma(N + 16) * norm + norm_error)
            off = up(off + gamma(4) * size, 8)
            length = root(xp.sum(xp.linalg.diagonal(both), axis=1)) * (1.0 + gamma(r + 8))
            error = off * (2.0 * length + off) + gamma(r + 8) * length**2
            spread = prior_size + _length(first) + _length(second) + _length(both)
            error = error + first_error + second_error + gamma(16) * spread + prior.error
            matrices.append(prior.matrix - first - second + both)
            errors.append(xp.where(known, up(error, r + 32), xp.full_like(error, math.inf)))
        form = QuadraticForm(xp.concat(matrices, axis=0), xp.concat(errors, axis=0))
        return DerivativeCovariance(form, 0.0 * center.error)

    def _added(self, local: LocalKernel) -> list[tuple[Array, Array]]:
        """For every pair `(W_l - W_k) (W_l - W_k)^T` (B, f, f), exactly symmetric, and the sum (B,)
        of the Frobenius norms of W_k and W_l."""
        xp, base = namespace(self.base.K), self.base
        f, N = base.geometry.half.shape[1], base.K.shape[1]
        parts: list[list[tuple[Array, Array]]] = [[] for _ in self.pairs]
        for part in local.derivative_parts(base, max(1, CACHE_NUMBERS // max(1, f * N))):
            checkpoint()
            rows = xp.reshape(part, (len(part) * f, N))
            products = {c: rows @ self.classes.coupling[c].factor.T for c in self._used}
            W = {c: xp.reshape(P, (len(part), f, P.shape[1])) for c, P in products.items()}
            sizes = {c: _length(W[c]) for c in self._used}
            for number, (k, j) in enumerate(self.pairs):
                step = W[j] - W[k]
                square = step @ xp.matrix_transpose(step)
                square = 0.5 * (square + xp.matrix_transpose(square))
                parts[number].append((square, sizes[j] + sizes[k]))
        return [
            tuple(xp.concat(list(each), axis=0) for each in zip(*part, strict=True))
            for part in parts
        ]


def _joined(
    first: tuple[Array, Array], second: tuple[Array, Array], before: Explained, after: Explained
) -> tuple[Array, Array]:
    """`|A_k k|^2 + |A_l k|^2 - |w_l - w_k|^2` and its error, from both squares and theirs."""
    xp = namespace(after.value)
    step = after.value - before.value
    added = xp.sum(step * step, axis=1)
    off = up(before.error + after.error + gamma(4) * (before.length + after.length), 4)
    length, r = root(added), step.shape[1]
    error = first[1] + second[1] + off * (2.0 * length + off)
    error = error + gamma(r + 8) * added + gamma(4) * (first[0] + second[0])
    return first[0] + second[0] - added, up(error, r + 16)


def _length(matrix: Array) -> Array:
    """(B,) Frobenius norms, rounded up."""
    xp = namespace(matrix)
    return up(root(xp.sum(matrix * matrix, axis=(1, 2))), matrix.shape[1] * matrix.shape[2] + 8)


@dataclass(frozen=True, eq=False)
class StackedVariances:
    """`whole` has the rows of all outputs on the cells of `base`; `units` are each output's."""

    whole: VarianceEnclosure
    base: Expansion
    units: tuple[Units, ...]

    def rows(self, output: int) -> slice:
        """Where an output's cells stand."""
        B = self.base.K.shape[0]
        return slice(output * B, (output + 1) * B)

    def part(self, output: int) -> VarianceEnclosure:
        """That of one output."""
        rows, whole = self.rows(output), self.whole
        low, high = whole.range
        sides = (self._part(side, rows) for side in (whole.below, whole.above))
        return replace(
            whole,
            below=next(sides),
            above=next(sides),
            center=whole.center[rows],
            center_error=whole.center_error[rows],
            center_rise=whole.center_rise[rows],
            lost=whole.lost[rows],
            units=self.units[output],
            expansion=self.base,
            spread=whole.spread[rows],
            middle=whole.middle[rows],
            known_range=(low[rows], high[rows]),
        )

    def _part(self, side: QuadraticLowerModel, rows: slice) -> QuadraticLowerModel:
        parts = (side.value, side.gradient, side.matrix, side.error, side.size)
        value, gradient, hessian, error, size = (part[rows] for part in parts)
        return QuadraticLowerModel(
            self.base.geometry, value, gradient, hessian, error, side.rate, size
        )

    def sum(self, coefficients: Annotated[Array, "B J"]) -> tuple[QuadraticLowerModel, Array]:
        """Of `sum_j coefficients_j max(v_j, 0)`, coefficients (B, J), with the mean's weight; and
        about its value at the centres."""
        xp = namespace(coefficients)
        B, J = coefficients.shape
        each = xp.reshape(coefficients.T, (J * B,))
        weighted = self.whole.times(each)

        def added(values: Array) -> Array:
            return xp.sum(xp.reshape(values, (J, B, *values.shape[1:])), axis=0)

        size = up(added(weighted.size), J)
        error = up(added(weighted.error) + gamma(J) * size, J + 4)
        value, gradient, hessian = map(added, (weighted.value, weighted.gradient, weighted.matrix))
        total = QuadraticLowerModel(
            self.base.geometry, value, gradient, hessian, error, weighted.rate, size
        )
        return total, added(each * self.whole.center)
