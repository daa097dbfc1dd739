"""The record of `pixel_budget`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gpcert.certificates import Record
from gpcert.certificates.shown import Shown
from gpcert.certificates.table import RecordTable
from gpcert.certificates.text import table_shown
from gpcert.errors import InputError
from gpcert.extras import optional
from gpcert.plots.pixels import plot_gaps
from gpcert.search import StopReason

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["PixelBudget", "PixelBudgetTable"]


@dataclass(frozen=True, eq=False, repr=False)
class PixelBudget(Record):
    """`lower <= smallest gap <= upper` per beta (B,), attained at `points` (B, d).

    `least_beta` is the smallest number of pixels, in the order of `ranking`, for which an image of
    another decision is known (`adversarial`), None if there is none; up to `safe_beta` it is proved
    that there is none (None: of no beta asked for). After Ctrl-C, `betas` are those reached.
    """

    kind: ClassVar[str] = "pixel_budget"

    x: np.ndarray | None
    decision: Any
    ranked_by: str
    ranking: tuple[int, ...]
    betas: tuple[int, ...]
    lower: np.ndarray
    upper: np.ndarray
    points: np.ndarray
    least_beta: int | None
    safe_beta: int | None
    adversarial: np.ndarray | None
    reason: StopReason
    boxes: int
    seconds: float
    region: dict[str, Any]
    method: str = "taylor"
    model: str = ""

    def to_frame(self) -> pd.DataFrame:
        """One row per beta."""
        return optional("pandas", "to_frame").DataFrame(self._columns())

    def _columns(self) -> dict[str, Any]:
        return {"beta": self.betas, "gap_lower": self.lower, "gap_upper": self.upper}

    def plot(self, ax: Axes | None = None) -> Axes:
        """The gap against the number of pixels; returns the Axes."""
        return plot_gaps(ax, [(self.ranked_by, self.betas, self.lower, self.upper)])

    def shown(self) -> Shown:
        """The gap per beta, rounded outwards."""
        columns = self._columns()
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        return table_shown(repr(self), rows, True)

    def __repr__(self) -> str:
        least = "none flips" if self.least_beta is None else f"{self.least_beta} pixels flip"
        return f"PixelBudget({self.ranked_by}, {len(self.betas)} betas, {least} {self.decision})"

    def inputs(self) -> list[np.ndarray]:
        """x, the points and the adversarial image."""
        given = (self.x, self.points, self.adversarial)
        return [each for each in given if each is not None]

    def check(self) -> None:
        """Bounds and points of every beta, the lower ones not above the upper ones."""
        super().check()
        count = len(self.betas)
        if self.x is None or self.points.shape != (count, len(self.x)):
            raise InputError("points: expected a point for every beta")
        if not self.lower.shape == self.upper.shape == (count,):
            raise InputError("lower, upper: expected a number for every beta")
        if not np.all(self.lower <= self.upper):
            raise InputError("gaps: expected lower <= upper")


@dataclass(frozen=True, eq=False, repr=False)
class PixelBudgetTable(RecordTable[PixelBudget]):
    """Pixel budgets of several points."""

    kind: ClassVar[str] = "pixel_budgets"
    row_kind: ClassVar[type[Record]] = PixelBudget

    @staticmethod
    def cells(row: PixelBudget) -> dict[str, Any]:
        """How few pixels flip the decision, how many are proved not to, cost."""
        return {
            "decision": row.decision,
            "ranked_by": row.ranked_by,
            "least_beta": row.least_beta,
            "safe_beta": row.safe_beta,
            "gap_lower": float(row.lower[-1]),
            "gap_upper": float(row.upper[-1]),
            "boxes": row.boxes,
            "seconds": row.seconds,
            "reason": row.reason.name,
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """The gaps of all points; returns the Axes."""
        pairs = zip(self.labels, self, strict=True)
        rows = [(f"{label}: {r.ranked_by}", r.betas, r.lower, r.upper) for label, r in pairs]
        return plot_gaps(ax, rows)
