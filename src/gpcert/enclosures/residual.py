"""The posterior variance of an exact Gaussian process as a minimum over weights.

With M = K + Sigma, Sigma the training noise, and p = Psi - sum_i w_i k(., z_i):

    v(x) = min over w of J(w),   J(w) = |p|^2 + w.Sigma w = k(x, x) - 2 w.k(x) + w.M w,
    J(w) - v(x) = r.M^-1 r <= |Sigma^-1/2 r|^2,   r = M w - k(x).

So any float weights give an upper bound, their error enters squared, and one product more, for the
residual r, proves how near it is. Rounding is counted by the weights that were computed, which are
small where the posterior is sure; bounds from the norm of a factor of M^-1 are not.

Proofs: docs/mathematics.md, statements 6.12 and 6.13.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from array_api_compat import is_numpy_namespace

from gpcert.enclosures.precision import (
    CACHE_NUMBERS,
    NEAR_NUMBERS,
    CenterVariance,
    Degree,
    DerivativeCovariance,
    ExplainedForms,
    Precision,
    through_factor,
)
from gpcert.enclosures.split_gram import SplitGram
from gpcert.enclosures.weight_basis import Met, WeightBasis
from gpcert.kernels import Kernel
from gpcert.kernels.expansions.base import Expansion, LocalKernel, QuadraticForm
from gpcert.model.unit_form import UnitForm
from gpcert.numerics.arrays import Array, Backend, Inputs, PerRow, namespace
from gpcert.numerics.rounding import TINY, gamma, root, up, up_float
from gpcert.regions.scaled import Stretch
from gpcert.utils.processes import checkpoint

LARGEST_NOISE = 2.0**200
"""In units of the kernel: observations with more get no weight, which is a valid choice."""

REFINED = 1e11
"""`|| |A| ||^2`, about 1 / noise, from which the weights are refined once: below, their error is
far below the rounding of the result already, unless kernel values are sums of two floats."""

EXPECTED_SUM = 32.0
"""About |w|_1^2: says only when sums are to be exact."""

EXACT_SUMS = 1e-3
"""Sums are exact but for the last rounding where those in plain floats may cost a larger part of
the smallest variance at the points."""


PAIRS = 1e-2
"""Kernel values are sums of two floats where single ones may cost a larger part of that."""


WIDE_COST = 20.0
"""Over cells over which the variance changes much, sums and kernel values may cost so many times as
much as elsewhere."""

MET = ("rounding", "error", "far", "noisy")
"""Of the `Sizes` at the centres, what weights of other rows meet."""


class Weights(NamedTuple):
    """Rows w (n, N) of weights for rows k (n, N), and what is known of them, each (n,).

    `residual` (n, N): r = M w - k; `one`, `two`: the norms |w|_1, |w|_2; `noisy` |Sigma^1/2 w|;
    `left` |Sigma^-1/2 r| of the computed residual; `rounding` the largest error of an entry of the
    residual, but for that of k itself and a few roundings of entries of Sigma w and r; `plain` the
    same without errors of K.
    """

    value: Array
    residual: Array
    one: PerRow
    two: PerRow
    noisy: PerRow
    left: PerRow
    rounding: PerRow
    plain: PerRow


class Sizes(NamedTuple):
    """Bounds (B,) for all unit vectors a of `sum_j a_j w_j`, rows w_j of one degree: as `Weights`;
    `error`: the length of the error dk of their k, `rooted` that of Sigma^-1/2 dk; `far` that of
    r."""

    one: Array
    two: Array
    noisy: Array
    left: Array
    rounding: Array
    error: Array
    rooted: Array
    far: Array


MOST_KEPT_POINTS = 2000
"""Training points of models whose precisions are kept: five matrices, of 160 MB together."""

_KNOWN: WeakKeyDictionary[UnitForm, dict[Hashable, ResidualPrecision]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class ResidualPrecision(Precision):
    """`S = (K + Sigma)^-1` of one output, by weights and what they leave; see the module."""

    factor: Array
    triangular: bool
    gram: SplitGram
    gram_error: float
    """The largest error of an entry of the computed K."""
    gram_errors: Annotated[Array, "N N"] | None
    """All of them, where sums are exact and the largest is felt."""
    pairs: bool
    """Whether kernel values are sums of two floats."""
    pair_gain: float
    """About what single ones may cost, as a part of the smallest variance."""
    noise: Annotated[Array, "N"]
    """Zero where there is no observation."""
    roots: Annotated[Array, "N"]
    """At least `Sigma^-1/2`; zero where there is no observation."""
    seen: Annotated[Array, "N"]
    """1, or 0 where there is no observation."""
    steps: int
    """Of refinement."""
    plain_error: tuple[float, float]
    """About what sums in plain floats cost a variance, and what they may."""
    kernel: Kernel
    points: np.ndarray
    basis: WeightBasis | None = None
    """Where few directions of weights are about as good as all."""

    stretches: ClassVar[bool] = True

    @property
    def has_forms(self) -> bool:
        """Of every such precision."""
        return True

    @staticmethod
    def build(unit: UnitForm, index: int, backend: Backend) -> ResidualPrecision:
        """Of an output with training noise. It is kept with the model, as its matrix of covariances
        costs more than many a search over one region."""
        checkpoint()
        known = _KNOWN.setdefault(unit, {})
        if (index, backend) in known:
            return known[index, backend]
        precision = ResidualPrecision._of(unit, index, backend)
        if len(unit.points) <= MOST_KEPT_POINTS:
            known[index, backend] = precision
        return precision

    @staticmethod
    def _of(unit: UnitForm, index: int, backend: Backend) -> ResidualPrecision:
        assert unit.training_noise is not None, "asked only where it is known"
        A, noise = unit.factor[index], unit.training_noise[index]
        size = unit.factor_sizes[index][0]
        seen = noise < LARGEST_NOISE
        noise = np.where(seen, noise, 0.0)
        # none of Sigma^-1/2 of a point that counts for nothing: its entry of r meets 1 / noise
        roots = up(1.0 / np.sqrt(unit.training_noise[index]), 4)
        K, errors = unit.kernel.sharp_values(unit.points, unit.points)
        plain = gamma(len(K)) * EXPECTED_SUM * float(K.max())
        allowed = EXACT_SUMS * unit.smallest_variances[index]
        exact = plain > allowed
        smallest, low, largest = unit.smallest_variances[index], None, float(errors.max())
        pair_gain = 4.0 * EXPECTED_SUM * largest / smallest if smallest > 0.0 else math.inf
        pairs = exact and pair_gain > PAIRS
        if pairs:
            values, errors = unit.kernel.pair_values(unit.points, unit.points)
            K, low = values.high, values.low
        gram = SplitGram.of(K, exact, backend, low)
        largest = up_float(float(errors.max()) + (gram.rest_error if pairs else 0.0), 1)
        directions, basis = WeightBasis.directions_of(K, np.where(seen, roots, 0.0)), None
        if directions is not None:
            known = (gram, largest, noise, roots)
            basis = WeightBasis.of(directions, *known, backend)
        felt = exact and 4.0 * EXPECTED_SUM * largest > 0.1 * PAIRS * smallest
        return ResidualPrecision(
            backend.asarray(A),
            unit.is_triangular(index),
            gram,
            largest,
            backend.asarray(errors) if felt else None,
            pairs,
            pair_gain,
            backend.asarray(noise),
            backend.asarray(roots),
            backend.asarray(seen.astype(np.float64)),
            1 if pairs or size * size > REFINED else 0,
            (plain, allowed),
            unit.kernel,
            unit.points,
            basis,
        )

    @cached_property
    def _root_sum(self) -> float:
        """Upper bound of |Sigma^-1/2 (1, ..., 1)|."""
        xp, N = namespace(self.roots), self.roots.shape[0]
        return up_float(float(root(xp.sum(self.roots**2))), N + 8)

    @cached_property
    def _largest_root(self) -> float:
        return float(namespace(self.roots).max(self.roots))

    def weights(
        self,
        rows: Annotated[Array, "n N"],
        exact: bool = True,
        low: Array | None = None,
        few: bool = False,
    ) -> Weights:
        """About S times the rows, and the residuals of what that is; with `exact` refined, and by
        exact sums, where that is felt at the centres. Rows are `rows + low`; with `few`, directions
        that are known to do may be enough."""
        xp, N = namespace(rows), rows.shape[1]
        if few and self.basis is not None:
            W = self.basis.solved(rows)
        else:
            W = self._solved(rows)
            for _ in range(self.steps if exact else 0):
                W = W - self._solved(self._residual(W, rows, low, exact)[0])
        W = xp.where(xp.isfinite(W), W, xp.zeros_like(W))
        R, plain = self._residual(W, rows, low, exact)
        one, two, noisy, left = _weight_sizes(W, R, self.noise, self.roots, N)
        rounding = up(plain + self.gram_error * one, 2)
        return Weights(W, R * self.seen, one, two, noisy, left, rounding, plain)

    def _solved(self, rows: Array) -> Array:
        return through_factor(rows, self.factor, self.triangular) * self.seen

    def _residual(
        self, W: Array, rows: Array, low: Array | None, exact: bool
    ) -> tuple[Array, PerRow]:
        """r, and the largest error of its entries but for those of K and of the rows and a few
        roundings of entries of Sigma w and r.

        Of a plain product: `w K` is about `r + k - Sigma w`. Of exact sums: the first part less k
        is r less all that is small, so that nothing rounds at the size of k.
        """
        xp, N = namespace(W), W.shape[1]
        one = xp.sum(xp.abs(W), axis=1) * (1.0 + gamma(N))
        product, rest, error = self.gram.times(W, one, exact)
        exact = exact and self.gram.high is not None
        R = (product - rows) + ((rest if low is None else rest - low) + self.noise * W)
        largest = xp.max(xp.abs(rows), axis=1)
        own = gamma(2) * gamma(8) if exact else gamma(2)  # a low part is a rounding of its row's
        return R, up(error + own * largest + TINY, 8)

    def _sizes(self, weights: Weights, degree: Degree) -> Sizes:
        """Of the rows of a degree, for all unit vectors."""
        xp, B, N = namespace(degree.size), degree.size.shape[0], weights.value.shape[1]

        def length(each: Array) -> Array:
            each = xp.reshape(each, (B, -1))[:, degree.rows]
            return up(root(xp.sum(degree.often * each * each, axis=1)), each.shape[1] + 8)

        one, two, noisy, left, rounding = (length(part) for part in weights[2:7])
        far = length(_lengths(weights.residual) * (1.0 + gamma(2 * N)))
        rooted = degree.error * self._largest_root
        return Sizes(one, two, noisy, left, rounding, degree.error, rooted, far)

    def _residual_rounding(self, first: Sizes, second: Sizes) -> Array:
        """What `w.r'` of computed residuals may be off by, errors of the rows and rounding of the
        product apart."""
        return up(first.one * second.rounding + self._few_roundings(first, second), 8)

    def _few_roundings(self, first: Sizes, second: Sizes) -> Array:
        """Of entries of Sigma w and r, that meet w."""
        return gamma(8) * (first.noisy * second.noisy + first.two * second.far)

    def _lost(self, first: Sizes, second: Sizes) -> Array:
        """What `k.w' - w.r'` of computed rows and residuals may be off by, roundings of the
        products apart: the errors of the rows meet w and w', those of the residuals w."""
        rows = first.two * second.error + first.error * second.two
        return up(self._residual_rounding(first, second) + rows, 4)

    def _miss(self, sizes: Sizes) -> Array:
        """Upper bound of `|Sigma^-1/2 r|`, r the true residual."""
        rounding = sizes.rounding * self._root_sum + sizes.rooted
        return up(sizes.left + rounding + gamma(8) * (sizes.left + sizes.noisy), 16)

    def center(
        self, local: LocalKernel, expansion: Expansion, points: Inputs | None = None
    ) -> CenterVariance:
        """See `Precision`: `P e0 = p + Phi S r` for p = k(., c) - sum w_i k(., z_i), and
        `|Phi S r| <= |Sigma^-1/2 r| / 2`; `|p|^2 = J(w) - w.Sigma w` (Statement 6.12)."""
        xp, (B, N) = namespace(expansion.K), expansion.K.shape
        sizes = local.row_sizes(expansion, 0)
        wide = self.basis is not None and self._are_wide(expansion)
        plain, allowed = self.plain_error
        exact = plain > (WIDE_COST if wide else 1.0) * allowed
        anew = exact and self.gram.high is not None and is_numpy_namespace(xp)
        most = max(1, CACHE_NUMBERS // (2 * N)) if is_numpy_namespace(xp) else max(1, B)
        blocks = []
        for start in range(0, max(1, B), most):
            part = slice(start, start + most)
            own = points[part] if anew and points is not None else None
            lengths = sizes[0][part], sizes[1][part]
            blocks.append(self._center(expansion.K[part], lengths, own, exact, wide))
        return blocks[0] if len(blocks) == 1 else _joined(blocks)

    def _are_wide(self, expansion: Expansion) -> bool:
        """Whether the remainder of degree one is larger than the smallest standard deviations on
        every cell: what they prove is looser than weights that are nearly the best, or not."""
        rho2 = expansion.geometry.rho2
        smallest = self.plain_error[1] / EXACT_SUMS
        return bool(namespace(rho2).all(rho2 * rho2 > smallest))

    def _center(
        self,
        rows: Annotated[Array, "B N"],
        row_sizes: tuple[PerRow, PerRow],
        points: np.ndarray | None,
        exact: bool,
        wide: bool,
    ) -> CenterVariance:
        """Of a block of cells; kernel values are asked for anew where there are points."""
        xp, N, (length, error) = namespace(rows), rows.shape[1], row_sizes
        errors, low = None, None
        if points is not None:
            if self.pairs and not (wide and self.pair_gain <= WIDE_COST * PAIRS):
                values, errors = self.kernel.pair_values(points, self.points)
                rows, low = values.high, values.low
            else:
                rows, errors = self.kernel.sharp_values(points, self.points)
            error = up(_lengths(errors), N + 8)
        weights = self.weights(rows, exact, low, wide)
        sizes = self._sizes(weights, Degree(slice(0, 1), 1.0 + 0.0 * self.noise[:1], length, error))
        lost, miss = self._lost(sizes, sizes), self._miss(sizes)
        if errors is not None:
            # entry by entry: errors of the rows meet w twice, those of the residual once
            size = xp.abs(weights.value)
            gram = self.gram_error * weights.one[:, None]
            if self.gram_errors is not None:
                gram = size @ self.gram_errors + self.gram.rest_error * weights.one[:, None]
            off = up(gram + weights.plain[:, None] + errors, N + 8)
            lost = xp.sum(size * (off + errors), axis=1) + self._few_roundings(sizes, sizes)
            lost = up(lost, N + 16)
            off = up(_lengths(self.roots * off), N + 8)
            miss = up(sizes.left + off + gamma(8) * (sizes.left + sizes.noisy), 16)
        w, r = weights.value[:, None, :], weights.residual[:, None, :]
        first, more, first_error = self.gram.dots(rows[:, None, :], w, exact)
        second, less, second_error = self.gram.dots(r, w, exact)
        plain = not exact or self.gram.high is None
        rest = (more - second) - less
        rounding = gamma(8) * (xp.abs(first if plain else more + rest) + xp.abs(second))
        rounding = (rounding + first_error + second_error)[:, 0, 0]
        rest = rest[:, 0, 0]
        if low is not None:
            rest = rest + xp.sum(low * weights.value, axis=1)
            # |low| is a rounding of the rows
            rounding = rounding + gamma(2) * gamma(N + 4) * (length + error) * sizes.two
        error = up(lost + rounding + gamma(2) * xp.abs(rest), 8)
        noisy = sizes.noisy * (1.0 - gamma(16 * N + 256))  # `up` adds four for one
        missed = up(miss * miss, 1)
        first = first[:, 0, 0]
        # weights may leave float64 where the factor belongs to another model
        finite = xp.isfinite(first - rest) & xp.isfinite(error)
        first, rest = (xp.where(finite, part, xp.zeros_like(part)) for part in (first, rest))
        error = xp.where(finite, error, xp.full_like(error, math.inf))
        parts = (weights.value, 0.5 * miss, first, error, missed, noisy * noisy)
        return CenterVariance(*parts, (weights.residual, sizes), rest)

    def derivative_covariance(
        self,
        local: LocalKernel,
        expansion: Expansion,
        center: CenterVariance,
        stretch: Stretch | None = None,
    ) -> DerivativeCovariance:
        """`G0 - D k S (D k)^T` and its error, infinite where that of the derivatives is."""
        xp = namespace(expansion.K)
        N, f = expansion.K.shape[1], expansion.geometry.half.shape[1]
        size, size_error = local.row_sizes(expansion, 1)
        known = xp.isfinite(size) & xp.isfinite(size_error)
        size, size_error = (xp.where(known, x, xp.zeros_like(x)) for x in (size, size_error))
        most = max(1, NEAR_NUMBERS // max(1, f * N)) if is_numpy_namespace(xp) else len(known)
        ones, forms, start = 1.0 + 0.0 * expansion.geometry.half[0], [], 0
        reach2 = math.inf if stretch is None else stretch.largest
        for rows in local.derivative_parts(expansion, most):
            part = slice(start, start + len(rows))
            scaled = rows if stretch is None else rows * stretch.factors[part, :, None]
            degree = Degree(slice(0, f), ones, size[part], size_error[part])
            forms.append(self.explained_forms(scaled, [degree], center, part, reach2))
            start = part.stop
        explained, error, missed, crossed = (
            xp.concat(list(parts), axis=0)
            for parts in zip(
                *((e.matrix, e.errors[0, 0], e.missed[0, 0], e.crossed[0]) for e in forms),
                strict=True,
            )
        )
        if stretch is not None:
            explained = explained / (stretch.factors[:, :, None] * stretch.factors[:, None, :])
        prior = local.derivative_covariance(expansion)
        spread = root(xp.sum(prior.matrix**2, axis=(1, 2)))
        spread = spread + root(xp.sum(explained**2, axis=(1, 2)))
        error = up(error + gamma(8) * spread + prior.error, 8)
        usable = known & xp.isfinite(error) & xp.isfinite(missed)
        matrix = xp.where(usable[:, None, None], prior.matrix - explained, xp.zeros_like(explained))
        form = QuadraticForm(matrix, xp.where(usable, error, xp.full_like(error, math.inf)))
        return DerivativeCovariance(form, xp.where(usable, missed, xp.zeros_like(error)), crossed)

    def explained_forms(
        self,
        rows: Annotated[Array, "B c N"],
        degrees: Sequence[Degree],
        center: CenterVariance,
        cells: slice = slice(None),
        reach2: float = math.inf,
    ) -> ExplainedForms:
        """See `Precision`: `k.w' - w.r' = k.S k' - r.S r'`, and `|r.S r'|` is at most
        `|Sigma^-1/2 r| |Sigma^-1/2 r'|` (Statement 6.12)."""
        xp, (B, c, N) = namespace(rows), rows.shape
        if self.basis is not None:
            return self._by_basis(self.basis, rows, degrees, center, cells)
        plain, allowed = self.plain_error
        exact = plain * reach2 > allowed
        weights = self.weights(xp.reshape(rows, (B * c, N)), exact)
        W, R = (xp.reshape(part, (B, c, N)) for part in weights[:2])
        first, more, first_error = self.gram.dots(rows, W, exact)
        second, less, second_error = self.gram.dots(W, R, exact)
        first, second = first + more, second + less
        explained = first - second
        rounding = first_error + second_error + gamma(8) * (xp.abs(first) + xp.abs(second))
        sizes = [self._sizes(weights, degree) for degree in degrees]
        errors, missed = {}, {}
        for b, j in enumerate(degrees):
            for a, i in enumerate(degrees[: b + 1]):
                part = rounding[:, i.rows, j.rows] ** 2 * i.often[:, None] * j.often
                other = rounding[:, j.rows, i.rows] ** 2 * j.often[:, None] * i.often
                length = root(xp.sum(part, axis=(1, 2))) + root(xp.sum(other, axis=(1, 2)))
                lost = xp.maximum(self._lost(sizes[a], sizes[b]), self._lost(sizes[b], sizes[a]))
                errors[a, b] = up(lost + 0.5 * length, c * c + 16)
                missed[a, b] = up(self._miss(sizes[a]) * self._miss(sizes[b]), 1)
        residual, whole = center.residual
        at_center = Sizes(*(part[cells] for part in whole))
        met = (W @ residual[cells][:, :, None])[:, :, 0]
        crossed = []
        for degree, size in zip(degrees, sizes, strict=True):
            length = root(xp.sum(degree.often * met[:, degree.rows] ** 2, axis=1))
            error = self._residual_rounding(size, at_center) + size.two * at_center.error
            error = error + gamma(N + 2) * size.two * at_center.far
            crossed.append(up(length + error, c + 16))
        matrix = 0.5 * (explained + xp.matrix_transpose(explained))
        return ExplainedForms(matrix, errors, missed, crossed)

    def _by_basis(
        self,
        basis: WeightBasis,
        rows: Annotated[Array, "B c N"],
        degrees: Sequence[Degree],
        center: CenterVariance,
        cells: slice,
    ) -> ExplainedForms:
        """In blocks that a cache holds."""
        xp, (B, c, N) = namespace(rows), rows.shape
        residual, sizes = center.residual
        start, most = cells.indices(len(residual))[0], B
        if is_numpy_namespace(xp):
            most = max(1, CACHE_NUMBERS // max(1, c * N))
        blocks = []
        for i in range(0, max(1, B), max(1, most)):
            part = slice(start + i, start + min(B, i + most))
            met = Met(residual[part], *(getattr(sizes, name)[part] for name in MET))
            own = slice(i, i + most)
            each = [d._replace(size=d.size[own], error=d.error[own]) for d in degrees]
            blocks.append(basis.forms(rows[own], each, met))
        if len(blocks) == 1:
            return blocks[0]
        pairs = blocks[0].errors
        return ExplainedForms(
            xp.concat([block.matrix for block in blocks], axis=0),
            {k: xp.concat([block.errors[k] for block in blocks]) for k in pairs},
            {k: xp.concat([block.missed[k] for block in blocks]) for k in pairs},
            [
                xp.concat([block.crossed[n] for block in blocks if block.crossed is not None])
                for n in range(len(degrees))
            ],
        )


def _joined(blocks: list[CenterVariance]) -> CenterVariance:
    """One batch of cells from its blocks."""
    xp = namespace(blocks[0].weights)
    own = [(*block[:6], block.rest) for block in blocks]
    *parts, rest = (xp.concat(each, axis=0) for each in zip(*own, strict=True))
    residuals, sizes = zip(*(block.residual for block in blocks), strict=True)
    joined = Sizes._make(xp.concat(each, axis=0) for each in zip(*sizes, strict=True))
    return CenterVariance._make((*parts, (xp.concat(residuals, axis=0), joined), rest))


def _lengths(rows: Array) -> Array:
    return root(namespace(rows).sum(rows * rows, axis=-1))


def _weight_sizes(
    W: Array, R: Array, noise: Array, roots: Array, N: int
) -> tuple[Array, Array, Array, Array]:
    """|w|_1, |w|_2, |Sigma^1/2 w| and |Sigma^-1/2 r| (n,), rounded up; the third to a few
    roundings both ways."""
    xp = namespace(W)
    one = up(xp.sum(xp.abs(W), axis=1), N + 2)
    two = up(_lengths(W), N + 8)
    noisy = up(root(xp.sum(noise * W * W, axis=1)), N + 8)
    left = up(_lengths(roots * R), N + 8)
    return one, two, noisy, left
