"""What an attack found: one row per point, as a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gpcert.certificates import Record
from gpcert.certificates.table import RecordTable
from gpcert.plots.attacks import plot_attacks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Attack", "AttackTable"]


@dataclass(frozen=True, eq=False, repr=False)
class Attack(Record):
    """The worst point that an attack found around x, in plain floating point: it proves nothing.

    `before` and `after` are the `quantity` at x and at `point`; `margin` is the decision's own at
    `point`, and `success` says that it is negative: the computed decision is another one.
    `confirmed` says that this is proved by certified bounds at the two points (then `point`
    refutes robustness). `distance` is that from x, in the region's norm (of several radii: in their
    units; of a box: the largest change of a feature).
    """

    kind: ClassVar[str] = "attack"
    told: ClassVar[tuple[str, ...]] = ("decision", "new_decision", "before", "after", "confirmed")

    x: np.ndarray | None
    point: np.ndarray | None
    before: float
    after: float
    margin: float
    success: bool
    confirmed: bool
    distance: float
    decision: Any
    new_decision: Any
    quantity: str
    method: str
    region: dict[str, Any]
    model: str = ""

    def plot(self, ax: Axes | None = None) -> Axes:
        """The value before and after; returns the Axes."""
        return AttackTable((self,)).plot(ax)


@dataclass(frozen=True, eq=False, repr=False)
class AttackTable(RecordTable[Attack]):
    """Attacks on the rows of X."""

    kind: ClassVar[str] = "attacks"
    row_kind: ClassVar[type[Record]] = Attack

    @property
    def points(self) -> np.ndarray:
        """(n, d) the points found."""
        return np.stack([np.asarray(row.point) for row in self])

    @property
    def success(self) -> np.ndarray:
        """(n,) whether the computed decision changes."""
        return np.array([row.success for row in self], dtype=bool)

    @property
    def confirmed(self) -> np.ndarray:
        """(n,) whether that is proved."""
        return np.array([row.confirmed for row in self], dtype=bool)

    @staticmethod
    def cells(row: Attack) -> dict[str, Any]:
        """Decisions, values before and after, success, distance."""
        return {
            "decision": row.decision,
            "new_decision": row.new_decision,
            "quantity": row.quantity,
            "before": row.before,
            "after": row.after,
            "margin": row.margin,
            "success": row.success,
            "confirmed": row.confirmed,
            "distance": row.distance,
            "method": row.method,
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """Every point's value before and after; returns the Axes."""
        before, after = (np.array([getattr(row, name) for row in self]) for name in ENDS)
        quantity = self[0].quantity if len(self) else ""
        return plot_attacks(ax, before, after, self.success, quantity)

    def __repr__(self) -> str:
        method = self[0].method if len(self) else "none"
        return (
            f"AttackTable({len(self)} points, {int(self.success.sum())} successes, "
            f"{int(self.confirmed.sum())} confirmed, method={method!r})"
        )


ENDS = ("before", "after")
