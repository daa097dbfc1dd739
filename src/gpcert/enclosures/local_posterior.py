"""A posterior seen from inside one region, ready to be enclosed over batches of cells.

Proofs: docs/mathematics.md, statement 1.2.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import wraps
from math import isinf
from typing import Annotated, Any, TypeVar, cast

import numpy as np

from gpcert.enclosures.lower_model import QuadraticLowerModel
from gpcert.enclosures.mean import CellTrend, LocalTrend, MeanEnclosure, Units, mean_enclosure
from gpcert.enclosures.precision import LocalPrecision, Precision
from gpcert.enclosures.residual import ResidualPrecision
from gpcert.enclosures.square import OperatorBounds
from gpcert.enclosures.stacked import ClassPrecisions, StackedVariances
from gpcert.enclosures.variance import (
    VarianceEnclosure,
    VarianceOptions,
    center_value,
    variance_enclosure,
)
from gpcert.kernels import LocalKernel
from gpcert.kernels.expansions.base import (
    Combination,
    Expansion,
    FirstOrderModels,
    LinearModel,
    Restrictable,
    SliceNorms,
)
from gpcert.kernels.slope import SlopeKernel
from gpcert.model.committee import Model
from gpcert.model.differences import PairUnits
from gpcert.model.posterior import Posterior
from gpcert.model.unit_form import UnitForm
from gpcert.numerics.arrays import Array, Backend, PerCell, PerCellAndClass, namespace
from gpcert.numerics.rounding import down, gamma, up, up_float
from gpcert.paper.lines import lines_bound
from gpcert.regions import Cells, Region
from gpcert.regions.cells import widths_as_units
from gpcert.regions.image import Image
from gpcert.utils.processes import checkpoint

Asked = TypeVar("Asked", bound=Callable[..., Any])

Term = tuple[int, int]
"""An output and the sign that it is taken with."""

CHEAP_WORK = 2.0e8
"""Multiplications up to which the derivative covariance is always worth its time (about 10 ms)."""

FELT_ROUNDING = 5e-3
"""Part of the smallest variance at the points that rounding and the factor's distance from the
training noise may cost together on either side."""

FEW = 0.75
"""Part of the points below which an output is bounded with those alone that it gives a weight."""

MAX_SECOND_FEATURES = 3
"""Up to here the covariance of second derivatives is tried: f (f+1)/2 products with the factor."""


class Memo:
    """Answers that are computed once: of a region those of a `LocalPosterior`, of a batch those of
    an `Evaluation`. Each is a function of what its holder was made from, whoever asks first."""

    def __init__(self) -> None:
        self._answers: dict[Hashable, Any] = {}

    def once(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        """The answer to `key`; it must not refer to the holder, which would outlive its use."""
        if key not in self._answers:
            checkpoint()
            self._answers[key] = compute()
        return self._answers[key]

    def knows(self, *key: Hashable) -> bool:
        """Whether that has been asked for."""
        return key in self._answers


def remembered(method: Asked) -> Asked:
    """A method of a class with `once`, computed once for each of its arguments; its name is the
    first part of the key."""

    @wraps(method)
    def once(self: Any, *args: Hashable) -> Any:
        return self.once((method.__name__, *args), lambda: method(self, *args))

    return cast("Asked", once)


@dataclass(frozen=True, eq=False)
class LocalPosterior:
    """Everything that does not change from cell to cell, on the backend.

    Kernel, weights, norms and precisions are in unit form; `Units` go to the outputs' own.
    """

    posterior: Posterior
    unit: UnitForm
    kernel: LocalKernel
    weights: tuple[Array, ...]
    precisions: tuple[Precision, ...] | ClassPrecisions | None
    operator: OperatorBounds
    image: Image | None = None
    """Linear features in front of the kernel, on this region: its inputs are then those."""
    trend: LocalTrend | None = None
    """The linear trends of the means on this region."""
    sliced: bool = False
    """Whether the region fixes features, so that its functions may be shorter than on the whole."""
    one_batch: bool = False
    """Whether the kernel is that of the cells of one batch, in their order (see `SectionModel`)."""
    memo: Memo = field(default_factory=Memo, init=False)

    @staticmethod
    def build(
        posterior: Posterior, region: Region, backend: Backend, variance: bool
    ) -> LocalPosterior:
        """Bind to a region; `variance=False` where only the mean is asked for (much cheaper)."""
        checkpoint()
        unit = posterior.unit
        _ = unit.mean_scale  # an error where predictions leave float64
        image, seen = None, region
        if posterior.features is not None:
            image = Image.of(posterior.features, region, widths_as_units(region), backend)
            seen = image.region
        kernel = unit.kernel.localize(posterior.points, seen, backend)
        precisions, operator = None, OperatorBounds(0.0, 1.0)
        if variance:
            _ = unit.variance_scale
            residual = by_residuals(unit)
            operator = (
                OperatorBounds(0.0, 1.0) if residual else OperatorBounds(unit.excess, unit.gain)
            )
            count = range(unit.precision_count)
            if isinstance(unit, PairUnits):
                precisions = ClassPrecisions.build(unit, backend)
            elif residual:
                precisions = tuple(ResidualPrecision.build(unit, c, backend) for c in count)
            else:
                build = LocalPrecision.build
                precisions = tuple(build(unit, c, kernel.variance, backend) for c in count)
        return LocalPosterior(
            posterior=posterior,
            unit=unit,
            kernel=kernel,
            weights=tuple(backend.asarray(t) for t in unit.weights),
            precisions=precisions,
            operator=operator,
            image=image,
            trend=LocalTrend.of(posterior, seen, backend),
            sliced=bool(len(seen.fixed) and len(seen.free)),
        )

    def norm(self, output: int) -> float:
        """Upper bound of the RKHS norm of g_c on the region: that over all features, known once and
        for all, or that of the slice of a region that fixes some."""
        whole = float(self.unit.norms[output])
        kernel, weights = self.kernel, self.unit.weights[output]
        if not self.sliced or not isinstance(kernel, SliceNorms):
            return whole
        norm = self.memo.once(("norm", output), lambda: kernel.slice_norm(weights))
        return whole if norm is None else min(whole, norm)

    def mean_units(self, output: int, expansion: Expansion) -> Units:
        """`mu = offset + mean_scale g`; with a trend, its value at the centres in the offset."""
        trend = self.cell_trend(expansion, output)
        shift = float(self.posterior.offset[output]) if trend is None else trend.shift
        return Units(shift, self.unit.mean_scale[output])

    def cell_trend(self, expansion: Expansion, output: int) -> CellTrend | None:
        """The linear trend in g_c on the cells; None where the posterior has none."""
        return None if self.trend is None else self.trend.on(expansion.geometry, output)

    def variance_units(self, output: int) -> Units:
        """`variance = noise + variance_scale max(v, 0)`."""
        noise = float(self.posterior.noise[output])
        return Units(noise, self.unit.variance_scale[output], noise)

    @property
    def output_dip(self) -> float:
        """Every latent variance, in its output's units, is at least minus this (see `dip`)."""
        return self.operator.excess * self.kernel.variance * max(self.unit.variance_scale)

    def curved(self, cells: Cells) -> Cells:
        """What increasing functions in front of the model make of cells."""
        return cells if self.image is None else self.image.curved(cells)

    def expand(self, cells: Cells) -> Expansion:
        """Kernel values at the cells' centres."""
        return self.kernel.expand(cells if self.image is None else self.image.cells(cells))

    def mean(self, expansion: Expansion, output: int, pointwise: bool) -> MeanEnclosure:
        """Enclosures of g_c in unit form; `pointwise`: also try bounds point by point."""
        kernel, seen, weights = self._seen_by(output, expansion)
        units = Units(float(self.posterior.offset[output]), self.unit.mean_scale[output])
        enclosure = mean_enclosure(kernel, seen, weights, self.norm(output), pointwise, units)
        trend = self.cell_trend(expansion, output)
        return enclosure if trend is None else enclosure.with_trend(trend)

    def linear_models(
        self, expansion: Expansion, outputs: Sequence[int]
    ) -> list[LinearModel] | None:
        """The first order of k' t'_c alone, where it is cheap; see `FirstOrderModels`."""
        if not isinstance(self.kernel, FirstOrderModels):
            return None
        together = {}
        for c in outputs:
            kernel, seen, weights = self._seen_by(c, expansion)
            norm = self.norm(c)
            functions = together.setdefault(id(kernel), (kernel, seen, []))[2]
            functions.append((c, Combination(weights, up_float(norm * norm, 1))))
        models: dict[int, LinearModel] = {}
        for kernel, seen, functions in together.values():
            found = kernel.linear_models(seen, [function for _, function in functions])
            if found is None:
                return None
            models |= {c: model for (c, _), model in zip(functions, found, strict=True)}
        return [models[c] for c in outputs]

    def first_order(
        self, expansion: Expansion, model: LinearModel, term: Term
    ) -> QuadraticLowerModel:
        """Of `sign g_c` for `term` = (c, sign), from the `linear_models`."""
        output, sign = term
        geometry = expansion.geometry
        lost = up(model.remainder + model.errors[:, 0] + geometry.rho * model.errors[:, 1], 6)
        coefficients = (sign * model.value, sign * model.gradient, None)
        lower = QuadraticLowerModel.of(geometry, coefficients, lost, self.kernel.weight_rate)
        trend = self.cell_trend(expansion, output)
        return lower if trend is None else trend.added(lower, sign)

    def mean_centers(
        self, expansion: Expansion, outputs: Sequence[int]
    ) -> tuple[PerCellAndClass, PerCellAndClass]:
        """(B, K): g_c at the centres and their errors, of one output or of all: a product with the
        weights, where `mean` would also take slopes and curvatures."""
        xp = namespace(expansion.geometry.rho2)
        if len(outputs) == 1:
            kernel, seen, weights = self._seen_by(outputs[0], expansion)
            weights = weights[None]
        else:
            kernel, seen, weights = self.kernel, expansion, xp.stack(self.weights)
        values, errors = kernel.center_values(seen, weights)
        shift = kernel.center_shift(seen)
        if shift is not None:
            norms = [self.norm(c) for c in outputs]
            moved = shift[:, None] * xp.asarray(norms, dtype=xp.float64, device=shift.device)
            errors = up(errors + moved, 3)
        return values, errors

    def center_range(
        self, expansion: Expansion, outputs: Sequence[int]
    ) -> tuple[PerCellAndClass, PerCellAndClass]:
        """Certified range (B, K) of the means at the centres, in the outputs' units."""
        values, errors = self.mean_centers(expansion, outputs)
        xp = namespace(values)
        shift, scale = (
            xp.asarray([float(each[c]) for c in outputs], dtype=xp.float64, device=values.device)
            for each in (self.posterior.offset, self.unit.mean_scale)
        )
        if self.trend is not None:
            trends = [self.trend.on(expansion.geometry, c) for c in outputs]
            shift = xp.stack([trend.shift for trend in trends], axis=1)
            errors = up(errors + xp.stack([trend.center_error for trend in trends], axis=1), 1)
        return Units(shift, scale).range(down(values - errors, 2), up(values + errors, 2))

    def variance_center(self, expansion: Expansion, output: int) -> tuple[PerCell, PerCell]:
        """(B,): about max(v_c, 0) at the centres, in unit form, and its error."""
        precision = self.precision_on(output, expansion)
        center = precision.center(self.kernel, expansion, self._center_points(expansion))
        explained = (center.explained, center.rest, up(center.error + center.missed, 1))
        return self._variance_center(expansion, explained, precision.distance)

    def _seen_by(self, output: int, expansion: Expansion) -> tuple[LocalKernel, Expansion, Array]:
        """Kernel, expansion and weights of an output without the points that it gives no weight:
        support vector machines of several classes use few of their points for each pair."""
        weights = self.weights[output]
        kernel = self.kernel
        if len(self.weights) == 1 or self.one_batch or not isinstance(kernel, Restrictable):
            return kernel, expansion, weights

        def compute() -> tuple[LocalKernel | None, Array]:
            (index,) = namespace(weights).nonzero(weights)
            few = 0 < len(index) <= FEW * len(weights)
            return (kernel.restricted_to(index) if few else None), index

        part: LocalKernel | None
        part, index = self.memo.once(("part", output), compute)
        if not isinstance(part, Restrictable):
            return kernel, expansion, weights
        return part, part.restricted_expansion(expansion, index), weights[index]

    def lines_mean(self, expansion: Expansion, output: int, sign: int) -> PerCell | None:
        """The paper's lower bound of `sign * g_c` over every cell, lines and trend together; None
        where the kernel has no lines."""
        if expansion.geometry.cells.choice is not None:
            return None
        kernel, seen, weights = self._seen_by(output, expansion)
        trend = self.cell_trend(expansion, output)
        slope = None if trend is None else sign * trend.gradient
        lower = lines_bound(kernel, seen, sign * weights, slope)
        return lower if lower is None or trend is None else down(lower - trend.error, 1)

    def variance(
        self, expansion: Expansion, output: int, options: VarianceOptions
    ) -> VarianceEnclosure:
        """Enclosures of v_c in unit form."""
        precision, units = self.precision_on(output, expansion), self.variance_units(output)
        how = (precision, self.operator, options, units)
        return variance_enclosure(self.kernel, expansion, *how, self._center_points(expansion))

    def _center_points(self, expansion: Expansion) -> np.ndarray | None:
        """The centres (B, d) as the kernel sees them; None where it is not that of the points."""
        cells = expansion.geometry.cells
        return None if self.one_batch else cells.points_full(cells.center)

    @property
    def stacks(self) -> bool:
        """Whether the variances of all outputs are made together."""
        return isinstance(self.precisions, ClassPrecisions)

    def variances(
        self, cells: Cells, expansion: Expansion, options: VarianceOptions
    ) -> StackedVariances:
        """Of all outputs; `stacks` only."""
        assert isinstance(self.precisions, ClassPrecisions)
        xp, B, count = namespace(expansion.K), len(cells), len(self.posterior.weights)
        index = xp.asarray(np.tile(np.arange(B), count), device=cells.lower.device)
        copies = self.expand(cells.take(index)).copied(count)
        precision = self.precisions.on(expansion, range(count))
        units = tuple(self.variance_units(j) for j in range(count))
        shifts = np.repeat([float(each.shift) for each in units], B)
        common = Units(xp.asarray(shifts, device=expansion.K.device), units[0].factor)
        whole = variance_enclosure(self.kernel, copies, precision, self.operator, options, common)
        return StackedVariances(whole, expansion, units)

    def variance_centers(
        self, expansion: Expansion
    ) -> tuple[Annotated[Array, "J B"], Annotated[Array, "J B"]]:
        """(J, B): `variance_center` of all outputs; `stacks` only."""
        assert isinstance(self.precisions, ClassPrecisions)
        count = len(self.posterior.weights)
        xp = namespace(expansion.K)
        explained = self.precisions.on(expansion, range(count)).explained(self.kernel)
        first, second = (xp.reshape(part, (count, -1)) for part in explained)
        return self._variance_center(expansion, (first, 0.0, second), 0.0)

    def _variance_center(
        self, expansion: Expansion, explained: tuple[Array, Array | float, Array], distance: float
    ) -> tuple[Array, Array]:
        """About max(v, 0) and its error from `k.S k` and its error."""
        value, error, prior, prior_error = center_value(
            self.kernel, expansion, explained, self.operator
        )
        apart = distance * (prior + prior_error) + self.operator.excess * self.kernel.variance
        return value, up(error + apart, 4)

    def variance_options(
        self, expansion: Expansion, output: int, optional: bool, wants: Callable[[str], bool]
    ) -> VarianceOptions:
        """Which bounds of v_c are worth their time; `wants` says what has paid before."""
        cells, features = expansion.geometry.half.shape
        work = cells * features * len(self.posterior.points) ** 2
        derivatives = optional and (work <= CHEAP_WORK or wants("derivatives"))
        # the weights S k have no small sum of sizes where the kernel is smooth: seldom a gain there
        pointwise = wants("pointwise variance")
        precision = self.precision_on(output, expansion)
        second = optional and precision.has_forms and 0 < features <= MAX_SECOND_FEATURES
        few = work * (features + 3) // 2 <= CHEAP_WORK
        pairs = second and not few and derivatives
        return VarianceOptions(derivatives, second and few, pointwise, pairs)

    def precision_on(self, output: int, expansion: Expansion) -> Precision:
        """S of an output, on these cells."""
        assert self.precisions is not None, "built with variance=False"
        if isinstance(self.precisions, ClassPrecisions):
            return self.precisions.on(expansion, [output])
        return self.precisions[output if len(self.precisions) > 1 else 0]


def by_residuals(unit: UnitForm) -> bool:
    """Whether the variances are bounded by weights and residuals: where the noise is known, and the
    stored factor is too far from it, or rounds too much, for the smallest variances. That is a
    choice of speed: the factor's products cost less."""
    if unit.training_noise is None:
        return False
    products = gamma(2 * len(unit.points)) * unit.trace
    roundings = [products * size * size for size, _ in unit.factor_sizes]
    allowed = [FELT_ROUNDING * variance for variance in unit.smallest_variances]
    # distances are expensive: not where rounding decides
    if any(error > most for error, most in zip(roundings, allowed, strict=True)):
        return True
    # a factor that nothing is known of is infinitely far
    both = zip(roundings, unit.distances, allowed, strict=True)
    return any(isinf(distance) or error + distance > most for error, distance, most in both)


def _has_variance(member: Posterior) -> bool:
    return not isinstance(member.kernel, SlopeKernel)


LocalModel = LocalPosterior | tuple[LocalPosterior, ...]
"""One, or several over the same region (`gpcert.model.committee`)."""


def local_model(model: Model, region: Region, backend: Backend, variance: bool) -> LocalModel:
    """The model bound to a region, member by member; means by themselves have no variance."""
    parts = tuple(
        LocalPosterior.build(member, region, backend, variance and _has_variance(member))
        for member in model.members
    )
    return parts[0] if isinstance(model, Posterior) else parts
