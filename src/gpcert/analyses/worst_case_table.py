"""Worst predictions around many points, as a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gpcert.certificates import Interval, Record
from gpcert.certificates.table import RecordTable
from gpcert.plots.worst_case import plot_worst_cases
from gpcert.search import StopReason

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["WorstCase", "WorstCaseTable"]


@dataclass(frozen=True, eq=False, repr=False)
class WorstCase(Record):
    """The least and the greatest mean over a region around x, and a band that holds everywhere.

    `minimum.lower <= min <= minimum.upper`, the latter attained at `argmin`; likewise the maximum.
    `band_minimum` bounds the least `mean - beta std` in the same way, attained at `band_argmin`,
    and `band_maximum` the greatest `mean + beta std`; std is that of the model's own latent
    variance, noise included where it has some. `mean` is the prediction at x, in plain floating
    point. `reason` is why the search for the mean ended or, if that converged, that for the band.
    """

    kind: ClassVar[str] = "worst_case"
    told: ClassVar[tuple[str, ...]] = ("mean", "minimum", "maximum", "band", "beta")

    mean: float
    minimum: Interval
    maximum: Interval
    argmin: np.ndarray | None
    argmax: np.ndarray | None
    band_minimum: Interval
    band_maximum: Interval
    band_argmin: np.ndarray | None
    band_argmax: np.ndarray | None
    beta: float
    x: np.ndarray | None
    output: Any
    reason: StopReason
    boxes: int
    seconds: float
    region: dict[str, Any]
    method: str = "taylor"
    model: str = ""

    @property
    def band(self) -> Interval:
        """An interval that holds `mean +- beta std` at every point of the region."""
        return Interval(self.band_minimum.lower, self.band_maximum.upper)

    def plot(self, ax: Axes | None = None) -> Axes:
        """The mean, its proved range and the band; returns the Axes."""
        return WorstCaseTable((self,)).plot(ax)


@dataclass(frozen=True, eq=False, repr=False)
class WorstCaseTable(RecordTable[WorstCase]):
    """Worst cases of the rows of X."""

    kind: ClassVar[str] = "worst_cases"
    row_kind: ClassVar[type[Record]] = WorstCase

    @staticmethod
    def cells(row: WorstCase) -> dict[str, Any]:
        """Mean, its bounds, the band, cost."""
        return {
            "mean": row.mean,
            "minimum_lower": row.minimum.lower,
            "minimum_upper": row.minimum.upper,
            "maximum_lower": row.maximum.lower,
            "maximum_upper": row.maximum.upper,
            "band_lower": row.band.lower,
            "band_upper": row.band.upper,
            "beta": row.beta,
            "boxes": row.boxes,
            "seconds": row.seconds,
            "reason": row.reason.name,
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """Per point the mean, its proved range and the band; returns the Axes."""
        return plot_worst_cases(ax, self.to_frame())

    def __repr__(self) -> str:
        widest = max((row.maximum.upper - row.minimum.lower for row in self), default=0.0)
        return f"WorstCaseTable({len(self)} points, means move by at most {widest:.4g})"
