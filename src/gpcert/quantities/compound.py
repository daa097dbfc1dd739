"""Quantities of several others, each of one output: H(y_1, ..., y_k)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from gpcert.arrays import PerCell, PerRow, namespace
from gpcert.quantities.output import OutputQuantity, Quantity

Ends = Sequence[PerCell]
"""Ends of the ranges of a compound's parts, each perhaps computed when it is looked at."""

Values = Annotated[np.ndarray, "n k"]
"""A row of numbers, one for each part, at every point."""


class Compound(Quantity, ABC):
    """`H(y_1, ..., y_k)` of several quantities y_p of one output each, its `parts`."""

    parts: tuple[OutputQuantity, ...]
    """The y_p; the negative of each is that of the other sign."""

    level: float | None = None
    """The value of a part that matters most to H, if there is one: bounds are best near it."""

    @property
    def by_variance(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Whether any part does."""
        return any(part.by_variance for part in self.parts)

    # proved

    @abstractmethod
    def lowest(self, low: Ends, high: Ends) -> PerCell:
        """Certified lower bound (B,) of H for all `low_p <= y_p <= high_p`."""

    @abstractmethod
    def highest(self, low: Ends, high: Ends) -> PerCell:
        """Certified upper bound (B,) of H for all of them."""

    # in plain floating point

    @abstractmethod
    def value(self, y: Values) -> PerRow:
        """H (n,) of rows y (n, k)."""

    @abstractmethod
    def slopes(self, y: Values) -> Values:
        """A (sub)gradient (n, k)."""

    def pulled(self, low: Ends, high: Ends) -> tuple[PerCell, PerCell]:
        """(B,): the part that H's least value hangs on most, and whether it is large there; says
        where to look. By default from the slopes in the middle."""
        xp = namespace(low[0])
        least, most = xp.stack(list(low), axis=1), xp.stack(list(high), axis=1)
        slope: Any = self.slopes(0.5 * (least + most))
        part = xp.argmax(xp.abs(slope) * (most - least), axis=1)
        return part, slope[xp.arange(len(part), device=part.device), part] < 0
