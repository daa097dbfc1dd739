"""The paper's delta of many points, as a table that draws box plots."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gpcert.certificates import Interval, Record
from gpcert.certificates.table import RecordTable
from gpcert.errors import InputError
from gpcert.plots.boxes import plot_boxes
from gpcert.search import StopReason

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Robustness", "RobustnessTable"]


@dataclass(frozen=True, eq=False, repr=False)
class Robustness(Record):
    """`delta.lower <= max - min <= delta.upper` of a prediction over a region around x.

    The upper end is the paper's `pi_max^U - pi_min^L`, proved; the lower end is the difference of
    two attained values. `group` names the model and `setting` the radius, as given.
    """

    kind: ClassVar[str] = "robustness"
    told: ClassVar[tuple[str, ...]] = ("group", "setting", "delta", "output", "reason")

    delta: Interval
    minimum: Interval
    maximum: Interval
    group: str
    setting: str
    x: np.ndarray | None
    output: Any
    quantity: str
    reason: StopReason
    boxes: int
    seconds: float
    region: dict[str, Any]
    method: str = "taylor"
    model: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class RobustnessTable(RecordTable[Robustness]):
    """Deltas of the rows of X, for every group and setting."""

    kind: ClassVar[str] = "robustness_table"
    row_kind: ClassVar[type[Record]] = Robustness

    @staticmethod
    def cells(row: Robustness) -> dict[str, Any]:
        """Group, setting, bounds of delta, cost."""
        return {
            "group": row.group,
            "radius": row.setting,
            "delta_lower": row.delta.lower,
            "delta_upper": row.delta.upper,
            "minimum_lower": row.minimum.lower,
            "maximum_upper": row.maximum.upper,
            "output": row.output,
            "boxes": row.boxes,
            "seconds": row.seconds,
            "reason": row.reason.name,
        }

    def deltas(self, group: str | None = None, setting: str | None = None) -> np.ndarray:
        """(k,) the proved deltas of one group and setting; of all by default."""
        return np.array(
            [
                row.delta.upper
                for row in self
                if group in {None, row.group} and setting in {None, row.setting}
            ]
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """A box plot of the proved deltas for each group and radius; returns the Axes."""
        if not len(self):
            raise InputError("plot: expected at least one row, got an empty table")
        groups = list(dict.fromkeys(row.group for row in self))
        settings = list(dict.fromkeys(row.setting for row in self))
        values = {
            (group, setting): self.deltas(group, setting)
            for group in groups
            for setting in settings
        }
        what = "probability" if self[0].quantity == "probability" else self[0].quantity
        return plot_boxes(ax, values, groups, settings, label=f"delta of the {what} (proved)")

    def __repr__(self) -> str:
        groups = list(dict.fromkeys((row.group, row.setting) for row in self))
        parts = [f"{g} at {s}: median {np.median(self.deltas(g, s)):.4g}" for g, s in groups[:6]]
        return f"RobustnessTable({len(self)} rows; {'; '.join(parts)})"
