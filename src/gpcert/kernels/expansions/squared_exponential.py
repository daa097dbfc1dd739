"""The squared exponential inside a region: batched second-order expansions, rounding included.

With `u_i = z_i - c` (scaled) and `k_i = k(c, z_i)`, completing the square gives the identity

    exp(|d|^2/2) k(c+d, z_i) = k_i exp(u_i.d),

so a mean `f = sum t_i k(., z_i)`, weighted by `omega = exp(|d|^2/2)`, is a plain sum of
exponentials of linear functions. In the RKHS this is an orthonormal expansion: the functions
`e_a(c+d) = s exp(-|d|^2/2) d^a / sqrt(a!)` (a a multi-index) are an orthonormal basis (Steinwart,
Hush & Scovel 2006, Thm 3.7, with real coordinates), hence the part of `omega phi(c+d)` of degree
above n is orthogonal to all derivatives of phi at c up to order n and has length

    tail_n(|d|^2) = s sqrt( sum_{k>n} |d|^{2k} / k! ).

Proofs: docs/mathematics.md, statements 4.1, 4.2, 4.3 and 6.2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

import numpy as np

from gpcert.kernels.expansions.base import (
    Combination,
    Expansion,
    FirstOrderModels,
    FunctionModel,
    LinearModel,
    LocalKernel,
    OrthogonalDegrees,
    QuadraticForm,
    QuadraticForms,
    Restrictable,
    SecondDegree,
    SliceNorms,
    finite_product,
)
from gpcert.kernels.expansions.exponentials import (
    HigherTerms,
    exponential_remainder,
    growth_chord,
    length_below,
)
from gpcert.kernels.expansions.squared_exponential_forms import form_polynomial, monotone_signs
from gpcert.kernels.expansions.squared_exponential_table import (
    MAX_CUBIC_FEATURES,
    SquaredExponentialTable,
)
from gpcert.numerics.arrays import (
    Array,
    Derivatives,
    PerCell,
    PerOrder,
    fused,
    namespace,
    row_products,
)
from gpcert.numerics.rounding import gamma, nonnegative, root, up
from gpcert.regions import Cells
from gpcert.regions.image import ImageCells
from gpcert.regions.scaled import ScaledCells


@dataclass(frozen=True, eq=False)
class WeightedExpansion(Expansion):
    """`scaled` (B, f): the centres; `distances` (B, N): their squared distances from the points."""

    geometry: ScaledCells
    K: Annotated[Array, "B N"]
    scaled: Annotated[Array, "B f"]
    distances: Annotated[Array, "B N"]
    table: SquaredExponentialTable
    fixed: Array
    """(N,) or (B, N): squared distances in the fixed features."""
    copies: int = 1
    """How often the same cells are repeated, one batch of them after the other."""

    def copied(self, count: int) -> WeightedExpansion:
        """The same, with its copies known."""
        return replace(self, copies=count)

    @cached_property
    def squared_sizes(self) -> tuple[PerOrder, PerOrder]:
        """The table's, of K: several bounds ask for them."""
        return self.table.squared_sizes(self.K)


@dataclass(frozen=True, eq=False)
class LocalSquaredExponential(
    SquaredExponentialTable,
    LocalKernel[WeightedExpansion],
    FirstOrderModels,
    OrthogonalDegrees,
    QuadraticForms,
    Restrictable,
    SliceNorms,
):
    """The table, as the enclosures ask for it."""

    form_polynomial = form_polynomial  # pyright: ignore[reportAssignmentType]
    monotone_signs = monotone_signs  # pyright: ignore[reportAssignmentType]

    def expand(self, cells: Cells) -> WeightedExpansion:
        scaled = self.scaled_centers(cells.center)
        fixed = self.fixed_distances if self.held is None else self.held.at(cells)
        distances, K = self.values(scaled, fixed)
        return WeightedExpansion(self.geometry(cells), K, scaled, distances, self, fixed)

    def model(
        self, expansion: WeightedExpansion, combination: Combination, pointwise: bool
    ) -> FunctionModel:
        """`omega f = f(c) + grad.d + d^T H d/2 + e` with |e| below the better of two remainders.

        Global: `|e| <= sqrt(B^2 - |P f|^2) tail_2(rho2)`, B the RKHS norm of f and P the projection
        on phi(c) and its derivatives up to order 2: Cauchy-Schwarz, and the tail is orthogonal to
        them. Point by point: see `exponential_remainder`. Statements 4.3 and 4.6.
        """
        xp = namespace(expansion.K)
        geometry = expansion.geometry
        coefficients, errors, cubic_rounding = self._coefficients(expansion, combination)
        moments = self.moments_and_cubes(coefficients, expansion.scaled)
        zeroth, gradient, hessian = moments[0]
        # omega k(., c) = s^2 exactly: the function at the centre itself is the constant
        value = zeroth + self.variance if combination.with_center else zeroth
        known = self.known_squared_norm(
            xp.abs(value) - errors[:, 0],
            length_below(gradient, 1) - errors[:, 1],
            length_below(hessian, 2) - errors[:, 2],
        )
        drift = None
        if combination.slack is not None:
            drift = up(combination.slack * xp.sqrt(expansion.squared_sizes[0][:, 2]), 8)
        box = (geometry.half, geometry.rho)
        higher = self.higher_terms(
            coefficients, expansion.scaled, moments, box, cubic_rounding, drift, expansion.copies
        )
        remainder = self._tail_bound(geometry, combination.squared_norm, known, higher)
        cubic = None
        if higher is not None and higher.cubic is not None:
            tail = self._tail_beyond(geometry, combination.squared_norm, known, higher)
            cubic = replace(higher.cubic, rest=up(higher.cubic.rest + tail, 2))
        below = above = remainder
        gained = False
        if pointwise and not combination.with_center:
            t, error = combination.weights, self.relative_error
            underflow = self.floor * float(xp.sum(xp.abs(t)))
            where = (expansion.distances, expansion.fixed, self.variance * t)
            below, above = (
                side + underflow for side in exponential_remainder(*where, error, geometry.rho)
            )
            gained = bool(xp.any((below < remainder) | (above < remainder)))
            below, above = xp.minimum(below, remainder), xp.minimum(above, remainder)
        norm = xp.sqrt(combination.squared_norm + 0.0 * value)
        linear = up(norm * self.remainder(expansion, 1), 4)
        return FunctionModel(value, gradient, hessian, errors, below, above, linear, gained, cubic)

    def linear_models(
        self, expansion: WeightedExpansion, functions: Sequence[Combination]
    ) -> list[LinearModel] | None:
        """One by one."""
        models = [self._linear_model(expansion, function) for function in functions]
        known = [model for model in models if model is not None]
        return known if len(known) == len(models) else None

    def _linear_model(
        self, expansion: WeightedExpansion, combination: Combination
    ) -> LinearModel | None:
        """`omega f = f(c) + grad.d + e`, for few cells of many features, without a Hessian.

        Degrees 2 to 6 from the points' Gram matrix (`gram_terms`), or, if that is less,
        Cauchy-Schwarz for all of them: N^2 + N f operations per cell instead of N f^2.
        """
        if expansion.scaled.shape[1] <= MAX_CUBIC_FEATURES:
            return None
        xp = namespace(expansion.K)
        geometry = expansion.geometry
        coefficients, errors, _ = self._coefficients(expansion, combination)
        none = xp.zeros_like(coefficients[:, :1]) + xp.zeros_like(expansion.scaled[0, :5])
        box = (geometry.half, geometry.rho)
        higher = self.gram_degrees(coefficients, expansion.scaled, box, 2, none, 1)
        if higher is None:
            return None
        value, gradient = self._table.first_moments(coefficients, expansion.scaled)
        errors = errors[:, :2]
        known = self.known_squared_norm(
            xp.abs(value) - errors[:, 0],
            length_below(gradient, 1) - errors[:, 1],
            xp.zeros_like(value),
        )
        remainder = self._tail_bound(geometry, combination.squared_norm, known, higher, 1)
        return LinearModel(value, gradient, errors, remainder)

    def restricted_to(self, index: Annotated[Array, "i"]) -> LocalSquaredExponential:
        """The same table of some of the points: functions that use no others lose nothing."""
        fields = ("points", "point_norms", "fixed_distances", "relative_error")
        held = None if self.held is None else self.held.restricted(index)
        return replace(self, **{name: getattr(self, name)[index] for name in fields}, held=held)

    def restricted_expansion(
        self, expansion: WeightedExpansion, index: Annotated[Array, "i"]
    ) -> WeightedExpansion:
        K, distances = expansion.K[:, index], expansion.distances[:, index]
        fixed = expansion.fixed[..., index]
        return replace(expansion, K=K, distances=distances, table=self, fixed=fixed)

    def center_values(
        self, expansion: WeightedExpansion, weights: Annotated[Array, "m N"]
    ) -> tuple[Annotated[Array, "B m"], Annotated[Array, "B m"]]:
        """All functions by one matrix product; errors as `terms` has them at degree 0."""
        K, sizes = expansion.K, abs(weights)
        N, f = self.points.shape[-2:]
        terms = K * (gamma(N + 2 * f + 32) + self.relative_error)
        lost = self.floor * namespace(K).sum(sizes, axis=1)
        return K @ weights.T, up(terms @ sizes.T + lost, N + 8)

    def _coefficients(
        self, expansion: WeightedExpansion, combination: Combination
    ) -> tuple[Array, Array, Array]:
        """`k_i t_i` (B, N); errors (B, 3) of their moments: rounding, underflow, and the errors of
        the weights themselves; and (B,) the rounding of third moments.

        Where the weights are inexact, by Cauchy-Schwarz: the errors of `terms` are at most |t|
        times the root of a squared size, of which their own errors cost as much.
        """
        xp, K, weights = namespace(expansion.K), expansion.K, combination.weights
        N = K.shape[1]
        if combination.slack is None:
            coefficients, rounding = self.terms(K, combination.signed)
            underflow = self.floor * xp.sum(xp.abs(xp.reshape(weights, (-1, N))), axis=1)
            terms = xp.sum(xp.abs(coefficients), axis=1) if combination.with_center else 0.0
            errors, third = rounding[:, :3], rounding[:, 3]
        else:
            coefficients, squares = _products_and_squares(K, weights, combination.with_center)
            length = up(root(squares), N + 8)
            sizes, wrong = (up(xp.sqrt(part), 2) for part in expansion.squared_sizes)
            eta = gamma(N + 2 * self.points.shape[-1] + 136)
            errors = up(length[:, None] * (eta * sizes + wrong), 8)
            third = up(errors[:, 2] * self._largest_extent, 2)
            underflow = up(self.floor * N**0.5 * length, 4)
            terms = length * sizes[:, 0]
            errors = errors + up(combination.slack[:, None] * sizes, 8)
        errors = errors + underflow[:, None]
        if combination.with_center:
            last = up(gamma(4) * (self.variance + terms), 8)
            errors = errors + xp.stack([last, 0.0 * last, 0.0 * last], axis=1)
        return coefficients, errors, third

    def _tail_bound(
        self,
        geometry: ScaledCells,
        squared_norm: float | Array,
        known: Array,
        higher: HigherTerms | None,
        degree: int = 2,
    ) -> Array:
        """Bound of all terms beyond `degree`, for a function of the given squared norm.

        Known degrees are bounded one by one; the rest, orthogonal to them, has squared norm at most
        `squared_norm - known - higher.known / s^2` and meets a tail of length `tail_order`.
        """
        xp = namespace(known)
        plain = finite_product(
            xp.sqrt(nonnegative((squared_norm - known) + gamma(8) * squared_norm)),
            self.tail(degree, geometry.rho2),
        )
        if higher is None:
            return plain
        beyond = self._tail_beyond(geometry, squared_norm, known, higher)
        return xp.minimum(plain, up(higher.size + beyond, 4))

    def _tail_beyond(
        self, geometry: ScaledCells, squared_norm: float | Array, known: Array, higher: HigherTerms
    ) -> Array:
        """Bound of the terms beyond the known degrees, see `_tail_bound`."""
        left = squared_norm - known - higher.known / self.variance
        rest = namespace(known).sqrt(nonnegative(left + gamma(16) * squared_norm))
        return finite_product(rest, self.tail(higher.order, geometry.rho2))

    def center_variance(self, expansion: WeightedExpansion) -> tuple[PerCell, PerCell]:
        xp = namespace(expansion.K)
        zero = xp.zeros_like(expansion.geometry.rho2)
        return zero + self.variance, zero

    def largest_variance(self, expansion: WeightedExpansion) -> PerCell:
        return self.center_variance(expansion)[0]

    def variance_range(self, expansion: WeightedExpansion) -> tuple[PerCell, PerCell]:
        value, _ = self.center_variance(expansion)
        return value, value

    def row_sizes(self, expansion: WeightedExpansion, order: int) -> tuple[PerCell, PerCell]:
        """Roots of `squared_sizes`; differences z - c round 16 times at most."""
        xp = namespace(expansion.K)
        size, error = (up(xp.sqrt(part[:, order]), 2) for part in expansion.squared_sizes)
        return size, up(error + gamma(16) * size, 4) if order else error

    def derivative_covariance(self, expansion: WeightedExpansion) -> QuadraticForm:
        """`s^2 I`, exactly: the derivatives are orthogonal."""
        half, rho2 = expansion.geometry.half, expansion.geometry.rho2
        zero = namespace(rho2).zeros_like(rho2)
        return QuadraticForm(_multiples_of_identity(zero + self.variance, half), zero)

    def squared_step(self, expansion: WeightedExpansion) -> QuadraticForm:
        """`||Psi - e0||^2 = s^2 (omega^2 - 1) <= s^2 chord |d|^2`, chord of the growing weight."""
        geometry = expansion.geometry
        chord = growth_chord(2.0 * self.weight_rate, geometry.rho2)
        matrix = _multiples_of_identity(up(self.variance * chord, 2), geometry.half)
        return QuadraticForm(matrix, namespace(chord).zeros_like(chord))

    def remainder(self, expansion: WeightedExpansion, order: int) -> PerCell:
        rho2 = expansion.geometry.rho2
        return self.zeroth_remainder(rho2) if order == 0 else self.first_remainder(rho2)

    def step_length(self, cells: ImageCells) -> PerCell:
        """R0 at the offsets' scaled length."""
        xp = namespace(cells.center)
        offset = cells.offset + 0.0 * cells.center
        rho2 = up(xp.sum((offset * self.inverse_length) ** 2, axis=1), offset.shape[1] + 12)
        return self.zeroth_remainder(rho2)

    def first_tail(self, expansion: WeightedExpansion) -> PerCell:
        return self.tail(1, expansion.geometry.rho2)

    def derivatives(self, expansion: WeightedExpansion) -> Derivatives:
        """`k_i (z_ij - c_j)`."""
        return _times_offsets(expansion.K, self._columns, expansion.scaled)

    def derivative_parts(self, expansion: WeightedExpansion, cells: int) -> Iterator[Derivatives]:
        columns = self._columns
        for start in range(0, len(expansion.K), cells):
            part = slice(start, start + cells)
            rows = columns[part] if columns.ndim > 2 else columns
            yield _times_offsets(expansion.K[part], rows, expansion.scaled[part])

    @cached_property
    def _columns(self) -> Array:
        """(..., f, N): the points' features in rows of their own, as what is formed from them lies
        in memory; a transposed view would hand its own order down, and every product would copy."""
        xp, f = namespace(self.points), self.points.shape[-1]
        rows = [self.points[..., j] for j in range(f)]
        return xp.stack(rows, axis=-2) if rows else xp.matrix_transpose(self.points)

    def second_degree(
        self, expansion: WeightedExpansion, pairs: tuple[int, ...] | None = None
    ) -> SecondDegree:
        """`D_j` and `E` have the products `k_i u_ij` and `k_i (u_i.d)^2 / 2`, u = z - c.

        The term of d_j d_k has the squared length `s^2 (d_j d_k)^2 / 2`, twice that for j < k.
        """
        xp = namespace(expansion.K)
        rows = [self.derivatives(expansion), self.second_derivatives(expansion, pairs)]
        tail = self.tail(2, expansion.geometry.rho2)
        if pairs is not None:
            tail = up(xp.sqrt(tail * tail + self._left_out(expansion, pairs)), 4)
        sizes, errors = expansion.squared_sizes
        return SecondDegree(xp.concat(rows, axis=1), sizes, errors, tail, self.variance, pairs)

    def _left_out(self, expansion: WeightedExpansion, pairs: tuple[int, ...]) -> PerCell:
        """Upper bound (B,) of the squared length of the second degree's terms but for some."""
        half = expansion.geometry.half
        first, second = np.triu_indices(half.shape[1])
        total = 0.0 * expansion.geometry.rho2
        for place, (j, k) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
            if place not in pairs:
                total = total + (0.5 if j == k else 1.0) * (half[:, j] * half[:, k]) ** 2
        return up(self.variance * total, len(first) + 8)

    def second_derivatives(
        self, expansion: WeightedExpansion, pairs: tuple[int, ...] | None = None
    ) -> Annotated[Array, "B pairs N"]:
        """(B, f (f+1)/2, N): `k_i (z_ij - c_j) (z_ik - c_k)`, j <= k in lexicographic order; or
        only some of these `pairs`."""
        xp = namespace(expansion.K)
        u = self._columns - expansion.scaled[:, :, None]
        places = np.triu_indices(expansion.scaled.shape[1])
        if pairs is not None:
            chosen = np.asarray(pairs, dtype=int)
            places = (places[0][chosen], places[1][chosen])
        j, k = (xp.asarray(index, device=expansion.K.device) for index in places)
        return expansion.K[:, None, :] * u[:, j] * u[:, k]


@fused
def _multiples_of_identity(amount: Array, half: Array) -> Array:
    """(B, f, f) for cells of half-widths (B, f)."""
    identity = namespace(half).eye(half.shape[1], dtype=half.dtype, device=half.device)
    return amount[:, None, None] * identity


@fused
def _products_and_squares(K: Array, weights: Array, opposite: bool) -> tuple[Array, Array]:
    """`k_i t_i` (B, N), or `-k_i t_i`, and |t|^2."""
    rows = namespace(K).reshape(weights, (-1, K.shape[1]))
    return (-(K * weights) if opposite else K * weights), row_products(rows, rows)


@fused
def _times_offsets(K: Array, columns: Array, scaled: Array) -> Array:
    """(B, f, N): `k_i (z_ij - c_j)`."""
    if isinstance(K, np.ndarray):  # in one place, row after row
        products = np.empty((*scaled.shape, K.shape[1]))
        np.subtract(columns, scaled[:, :, None], out=products)
        return np.multiply(products, K[:, None, :], out=products)
    return K[:, None, :] * (columns - scaled[:, :, None])
