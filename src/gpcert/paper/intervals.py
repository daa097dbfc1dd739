"""The paper's propositions: intervals of mean and variance of a batch of cells, and the bounds of
quantities that they give.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from gpcert.enclosures.evaluation import Evaluation
from gpcert.enclosures.local_posterior import LocalPosterior, remembered
from gpcert.enclosures.polynomials import Minimum
from gpcert.errors import InputError
from gpcert.kernels.expansions.taylor import LocalTaylor
from gpcert.kernels.expansions.taylor_terms import TaylorExpansion
from gpcert.kernels.nodes.base import LocalNode
from gpcert.numerics.arrays import Array, Backend, PerCell, namespace
from gpcert.numerics.rounding import down
from gpcert.paper.relaxation import relax
from gpcert.paper.variance import (
    ClosedForms,
    SquareForm,
    best_linear,
    least_difference,
    variance_interval,
)
from gpcert.quantities import Compound, OutputQuantity, Quantity
from gpcert.regions.cells import Frame
from gpcert.regions.scaled import ScaledCells
from gpcert.utils.processes import checkpoint

LARGEST_CHUNK = 4.0e6
"""Slopes (cells x points x lifted coordinates) held at once."""


class Side(NamedTuple):
    """A bound (B,) and displacements (B, f) of the features, in user units, where it may lie."""

    bound: Array
    shift: Array


@dataclass(frozen=True, eq=False)
class CellIntervals:
    """Intervals of mean and variance over each cell of a batch, which its evaluation remembers."""

    evaluation: Evaluation
    kind: type[ClosedForms]

    def once(self, key: Hashable, compute: Callable[[], Any]) -> Any:
        """An answer of the batch that depends on how programs are bounded."""
        return self.evaluation.once((self.kind, key), compute)

    @property
    def local(self) -> LocalPosterior:
        """What does not change from batch to batch."""
        return self.evaluation.local

    @property
    def tree(self) -> tuple[LocalNode, Frame]:
        """That of the kernel, and its coordinates; it does not change from batch to batch."""
        local, cells = self.local, self.evaluation.cells

        def compute() -> tuple[LocalNode, Frame]:
            if isinstance(local.kernel, LocalTaylor):
                return local.kernel.node, local.kernel.frame
            unit, place = local.unit, cells.lower
            on_host = isinstance(place, np.ndarray)
            backend = Backend() if on_host else Backend("torch", str(place.device))
            lengths = unit.kernel.typical_lengths(unit.points.shape[1])
            frame = Frame.of(cells.region, lengths, backend)
            return unit.kernel.node(unit.points, frame), frame

        return local.memo.once("paper", compute)

    @property
    @remembered
    def programs(self) -> list[ClosedForms]:
        """Those of the cells' relaxations, in chunks that fit into memory."""
        expansion, cells = self.evaluation.expansion, self.evaluation.cells
        N, f = expansion.K.shape[1], cells.lower.shape[1]
        rows = max(1, int(LARGEST_CHUNK / (N * (2 * f + 2))))
        (node, frame), chunks = self.tree, []
        whole = None
        if len(cells) <= rows and isinstance(expansion, TaylorExpansion):
            whole = expansion.batch
        for start in range(0, len(cells), rows):
            checkpoint()
            part = cells.take(np.arange(start, min(start + rows, len(cells))))
            geometry = ScaledCells.in_frame(part, frame)
            chunks.append(self.kind(relax(whole or node.at(geometry), geometry)))
        return chunks

    @remembered
    def mean(self, output: int, sign: int) -> Side:
        """Lower bound of `sign g`: Proposition "mean bound" (with U exact); a trend is one more
        linear function of the displacements, minimised together with the lines."""
        weights = sign * self.local.weights[output][None, :]
        slope, trend = None, self.local.cell_trend(self.evaluation.expansion, output)
        relaxations = [program.relaxation for program in self.programs]
        if self.local.posterior.mean_function is not None:
            raise InputError("method='paper': not available with a mean_function; use 'taylor'")
        if self.local.trend is not None:  # exact: frame units are powers of two
            slope = sign * self.local.trend.slopes[output] * relaxations[0].lifted.unit
        minima = [best_linear(ClosedForms(part), weights, slope) for part in relaxations]
        side = self._side(minima)
        lower = side.bound[:, 0]
        lower = lower if trend is None else down(lower - trend.error, 1)
        return Side(lower, side.shift[:, 0])

    @remembered
    def variance(self, output: int) -> tuple[Side, Side]:
        """Certified range of max(v, 0): Propositions "variance lower" and "variance upper"."""
        A, C = self._forms(output)
        expansion = self.evaluation.expansion
        loss, least = (
            self._side([least_difference(program, *forms) for program in self.programs])
            for forms in ((C, A), (A, C))
        )
        prior = self.local.kernel.variance_range(expansion)
        index = output if self.local.unit.precision_count > 1 else 0
        how = (self.local.operator.gain, self.local.unit.distances[index])
        low, high = variance_interval(prior, least.bound, loss.bound, *how)
        return Side(low, loss.shift), Side(high, least.shift)

    def _forms(self, output: int) -> tuple[SquareForm, SquareForm]:
        """|A r|^2 and |C r|^2."""
        unit, backend, variance = self.local.unit, self.tree[1].backend, self.local.kernel.variance
        index = output if unit.precision_count > 1 else 0

        def compute() -> tuple[SquareForm, ...]:
            return tuple(SquareForm.build(F, variance, backend) for F in unit.factors_of(index))

        return self.local.memo.once(("square forms", index), compute)

    def _side(self, minima: list[Minimum]) -> Side:
        """Those of all chunks, from frame units to the user's."""
        xp = namespace(minima[0].lower)
        point = xp.concat([part.point for part in minima], axis=0)
        lower = xp.concat([part.lower for part in minima], axis=0)
        return Side(lower, point * self.programs[0].relaxation.lifted.unit)


@singledispatch
def bounded(
    quantity: Quantity, kind: type[ClosedForms], evaluation: Evaluation
) -> tuple[PerCell, list[Side]]:
    """Lower bound (B,) of the quantity, and the extremal points it came from."""
    raise InputError(
        f"method: the paper's method has no bound for {type(quantity).__name__}; use "
        "method='taylor'"
    )


@bounded.register
def _output(
    quantity: OutputQuantity, kind: type[ClosedForms], evaluation: Evaluation
) -> tuple[Array, list[Side]]:
    """The monotone propositions: worst mean, worst variance of the range, whichever G looks at.

    The line of slope 0 through the least mean is exactly that, and so is the band's worst end.
    """
    member, c = evaluation.output(quantity.output)
    intervals, local, sign = CellIntervals(member, kind), member.local, quantity.sign
    rho2 = member.expansion.geometry.rho2
    q = zero = v_low = v_high = namespace(rho2).zeros_like(rho2)
    sides: list[Side] = []
    if quantity.by_mean:  # Proposition "mean bound"
        units = local.mean_units(c, member.expansion).signed(sign)
        q = units.below(intervals.mean(c, sign).bound)
        sides += [intervals.mean(c, s) for s in (sign, -sign)]
    if quantity.by_variance:
        low, high = intervals.variance(c)
        v_low, v_high = local.variance_units(c).range(low.bound, high.bound)
        sides += [low, high] if quantity.by_mean or sign > 0 else [high, low]
    return quantity.lowest(q, zero, v_low, v_high), sides


@bounded.register
def _compound(
    quantity: Compound, kind: type[ClosedForms], evaluation: Evaluation
) -> tuple[Array, list[Side]]:
    """From the parts' intervals: Section "bounds for regression" for deviations."""
    low, high, sides = [], [], []
    for part in quantity.parts:
        for each, sign, ends in ((part, 1, low), (part.negative, -1, high)):
            lower, extremal = _output(each, kind, evaluation)
            ends.append(sign * lower)
            sides.append(extremal[0])
    return quantity.lowest(low, high), sides
