"""Means and variances of all outputs on a batch of cells, in coordinates that they share, and one
quadratic model of a sum of them.

Proofs: docs/mathematics.md, statement 5.5.
"""

from __future__ import annotations

from typing import Annotated

from gpcert.enclosures.evaluation import Evaluation
from gpcert.enclosures.lower_model import QuadraticLowerModel
from gpcert.enclosures.mean import MeanEnclosure, Units
from gpcert.enclosures.stacked import StackedVariances
from gpcert.enclosures.variance import VarianceEnclosure
from gpcert.model.class_layout import ClassLayout
from gpcert.numerics.arrays import Array, PerCell, PerCellAndFeature, namespace
from gpcert.numerics.rounding import gamma, up
from gpcert.regions.scaled import ScaledCells


class LatentOutputs:
    """The outputs that a layout numbers: those of one posterior, or one of each of several.

    One posterior has its own coordinates and weight. Outputs with kernels of their own meet without
    weights in the cells' units (`plain_geometry`, Statement 5.4).
    """

    def __init__(self, evaluation: Evaluation) -> None:
        self.evaluation = evaluation
        self.cells, self.once = evaluation.cells, evaluation.once

    @property
    def together(self) -> bool:
        """Whether all outputs have one kernel."""
        return len(self.evaluation.members) == 1

    @property
    def geometry(self) -> ScaledCells:
        """The cells in the coordinates of all enclosures."""
        if self.together:
            return self.evaluation.expansion.geometry
        return self.once("geometry", self.evaluation.shared_geometry)

    def mean(self, output: int) -> MeanEnclosure:
        """Enclosures of g_j and -g_j."""
        member, c = self.evaluation.output(output)
        if self.together:
            return member.mean(c)
        return self.once(("plain mean", output), lambda: member.mean(c).plain(self.geometry))

    def variance(self, output: int) -> VarianceEnclosure:
        """Enclosures of v_j and -v_j."""
        member, c = self.evaluation.output(output)
        if self.together:
            return member.variance(c)
        return self.once(
            ("plain variance", output), lambda: member.variance(c).plain(self.geometry)
        )

    def mean_at_center(self, output: int) -> tuple[PerCell, PerCell, Units]:
        """g_j at the centres, its error, and the units; without the enclosure at single points."""
        member, c = self.evaluation.output(output)
        trend = member.local.trend is not None  # whose shift belongs to a batch
        if member.knows("mean", c) or trend or not self.together:
            mean = self.mean(output)
            return mean.center, mean.center_error, mean.units
        both = member.once(("center", c), lambda: member.local.mean_centers(member.expansion, [c]))
        value, error = (part[:, 0] for part in both)
        return value, error, member.local.mean_units(c, member.expansion)

    def variance_at_center(self, output: int) -> tuple[PerCell, PerCell, Units]:
        """The same for max(v_j, 0)."""
        member, c = self.evaluation.output(output)
        if member.knows("variances") or member.knows("variance", c) or not self.together:
            variance = self.variance(output)
            error = up(variance.center_error + variance.lost + variance.dip, 2)
            return variance.center, error, variance.units
        local = member.local
        if local.stacks:
            both = member.once("center variances", lambda: local.variance_centers(member.expansion))
            value, error = (part[c] for part in both)
        else:
            value, error = member.once(
                ("center variance", c), lambda: local.variance_center(member.expansion, c)
            )
        return value, error, local.variance_units(c)

    @property
    def variances(self) -> StackedVariances | None:
        """All of them, where they are made together."""
        return self.evaluation.variances if self.together else None

    def mean_units(self, output: int) -> Units:
        """From g_j to the output's mean."""
        member, c = self.evaluation.output(output)
        return member.local.mean_units(c, member.expansion)

    def variance_units(self, output: int) -> Units:
        """From v_j to the output's variance."""
        member, c = self.evaluation.output(output)
        return member.local.variance_units(c)

    def largest_on_cells(self, output: int) -> PerCell:
        """About an upper bound (B,) of |g_j| on every cell: norm times length of the features."""
        member, c = self.evaluation.output(output)
        local = member.local
        largest = local.kernel.largest_variance(member.expansion)
        return local.norm(c) * namespace(largest).sqrt(largest) + _reach(member, c)

    def largest(self, output: int) -> PerCell | float:
        """About the largest |g_j| anywhere, for the rounding of coefficients."""
        member, c = self.evaluation.output(output)
        local = member.local
        whole = local.norm(c) * (local.operator.gain * local.kernel.variance) ** 0.5
        return whole + _reach(member, c)

    def dip(self, output: int) -> float:
        """The output's latent variance, in its units, is at least minus this."""
        member, _ = self.evaluation.output(output)
        return member.local.output_dip

    def split_scores(self) -> PerCellAndFeature:
        """(B, f): what halving each axis gains; the sum over the kernels."""
        members = map(self.evaluation.member, range(len(self.evaluation.members)))
        scores = [member.expansion.geometry.split_scores() for member in members]
        return sum(scores[1:], scores[0])


def _reach(member: Evaluation, output: int) -> Array | float:
    """What a linear trend adds to |g| on every cell at most."""
    trend = member.local.cell_trend(member.expansion, output)
    return 0.0 if trend is None else trend.reach


def sum_model(
    latent: LatentOutputs,
    layout: ClassLayout,
    p: Annotated[Array, "B n"],
    q: Annotated[Array, "B J"],
) -> tuple[QuadraticLowerModel, Array]:
    """Of `sum_k p_k d_k + sum_j q_j y_j / 2`, and its value at the cells' centres.

    p (B, n) and q (B, J). The constant parts (offsets and noise) are left out of both, so that
    their difference bounds the change from the centre. Coefficients in canonical units carry a few
    roundings; the caller counts them by the outputs' reach.
    """
    means: dict[int, Array] = {}
    for k in range(1, layout.classes):
        for j, c in layout.pair(0, k):
            term = c * p[:, k - 1]
            means[j] = means[j] + term if j in means else term
    stacked = latent.variances
    if stacked is not None:
        first, first_value = _summed(latent, means, {})
        factors = [float(units.factor) for units in stacked.units]
        factor = namespace(q).asarray(factors, dtype=q.dtype, device=q.device)
        second, second_value = stacked.sum(0.5 * q * factor)
        return first + second, first_value + second_value
    half = [0.5 * q[:, j] for j in range(layout.outputs)]
    return _summed(latent, means, dict(enumerate(half)))


def pair_model(
    latent: LatentOutputs,
    layout: ClassLayout,
    pair: tuple[int, int],
    beta: PerCell | None = None,
    factor: float = 1.0,
) -> tuple[QuadraticLowerModel, PerCell]:
    """Of `factor q - beta D`, q and D mean and variance of `f_l - f_k` for `pair` = (k, l),
    without offsets and noise, and the constant (B,) that they add.

    The coefficients' rounding is taken off the constant: it acts on `|g| <= norm sqrt(s2)` (and
    what a trend reaches) and on variances of at most `gain s2`.
    """
    xp = namespace(latent.cells.lower)
    terms = layout.pair(*pair)
    constant = lost = zero = xp.zeros_like(latent.geometry.rho2)
    squares = {} if beta is None else {j: -beta * (c * c) for j, c in terms}
    model, _ = _summed(latent, {j: zero + factor * c for j, c in terms}, squares)
    for j, c in terms:
        mean = latent.mean(j).units
        offset = factor * c * mean.shift
        constant = constant + offset
        size = abs(factor * c) * mean.factor * latent.largest(j) + abs(offset)
        if beta is not None:
            variance = latent.variance(j)
            noise = variance.units.shift
            constant = constant - beta * (c * c) * noise
            spread = variance.units.factor * variance.largest + noise
            size = size + xp.abs(beta) * (c * c) * spread
        lost = lost + gamma(16 + len(terms)) * size
    return model, constant - up(lost, 16)


def _summed(
    latent: LatentOutputs, means: dict[int, Array], variances: dict[int, Array]
) -> tuple[QuadraticLowerModel, Array]:
    """Of `sum_j means_j scale_j g_j + sum_j variances_j scale_j^2 max(v_j, 0)`, and about its value
    at the centres."""
    terms = [(latent.mean(j), c) for j, c in means.items()]
    terms += [(latent.variance(j), c) for j, c in variances.items()]
    parts = [(q, c * q.units.factor) for q, c in terms]
    models = [q.times(c) for q, c in parts]
    return sum(models[1:], models[0]), sum(c * q.center for q, c in parts)
