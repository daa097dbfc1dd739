"""The variances of all outputs of one posterior as one batch: the cells, once for every output.

What is computed for J outputs one by one is the same arithmetic on J times as many rows, which
stand one output after the other; many coupled classes have dozens of pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated

import numpy as np

from gpcert.arrays import Array, namespace
from gpcert.enclosures.enclosure import Enclosure
from gpcert.enclosures.precision import Precision
from gpcert.enclosures.square import OperatorBounds
from gpcert.enclosures.two_sided import Units
from gpcert.enclosures.variance import VarianceEnclosure, VarianceOptions, variance_enclosure
from gpcert.kernels.expansions.base import Expansion, LocalKernel
from gpcert.regions import Cells
from gpcert.rounding import gamma, up


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

    def output(self, output: int) -> VarianceEnclosure:
        """That of one output."""
        return self._outputs[output]

    @cached_property
    def _outputs(self) -> tuple[VarianceEnclosure, ...]:
        return tuple(self._output(j) for j in range(len(self.units)))

    def _output(self, output: int) -> VarianceEnclosure:
        own, whole = self.rows(output), self.whole
        low, high = whole.range
        return replace(
            whole,
            below=self._part(whole.below, own),
            above=self._part(whole.above, own),
            center=whole.center[own],
            center_error=whole.center_error[own],
            units=self.units[output],
            expansion=self.base,
            spread=whole.spread[own],
            middle=whole.middle[own],
            known_range=(low[own], high[own]),
        )

    def _part(self, side: Enclosure, own: slice) -> Enclosure:
        return Enclosure(
            self.base.geometry,
            side.value[own],
            side.gradient[own],
            side.matrix[own],
            side.error[own],
            side.rate,
            side.size[own],
        )

    def sum(self, coefficients: Annotated[Array, "B J"]) -> tuple[Enclosure, Array]:
        """Of `sum_j coefficients_j max(v_j, 0)`, coefficients (B, J), with the mean's weight; and
        about its value at the centres."""
        xp = namespace(coefficients)
        B, J = coefficients.shape
        each = xp.reshape(coefficients.T, (J * B,))
        own = self.whole.times(each)

        def added(values: Array) -> Array:
            return xp.sum(xp.reshape(values, (J, B, *values.shape[1:])), axis=0)

        size = up(added(own.size), J)
        error = up(added(own.error) + gamma(J) * size, J + 4)
        found = Enclosure(
            self.base.geometry,
            added(own.value),
            added(own.gradient),
            added(own.matrix),
            error,
            own.rate,
            size,
        )
        return found, added(each * self.whole.center)


def repeated(cells: Cells, count: int) -> Cells:
    """The cells, so many times one after the other."""
    xp = namespace(cells.lower)
    index = np.tile(np.arange(len(cells)), count)
    return cells.take(xp.asarray(index, device=cells.lower.device))


def stacked_variances(
    where: tuple[LocalKernel, Expansion, Expansion],
    precision: Precision,
    operator: OperatorBounds,
    options: VarianceOptions,
    units: tuple[Units, ...],
) -> StackedVariances:
    """From the kernel, the expansion of the repeated cells and that of the cells."""
    local, copies, base = where
    xp, B = namespace(base.K), base.K.shape[0]
    shifts = np.repeat([float(each.shift) for each in units], B)
    common = Units(xp.asarray(shifts, device=base.K.device), units[0].factor)
    whole = variance_enclosure(local, copies, precision, operator, options, common)
    return StackedVariances(whole, base, units)
