"""The boxes that still matter, and the bounds of all that were ever set aside."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gpcert.arrays import Backend
from gpcert.regions import Cells, Region

__all__ = ["Frontier"]


@dataclass(eq=False)
class Frontier:
    """Open boxes on the host: corners (n, f), a lower bound (n, G) and a split axis (n, G) a goal.

    Invariant: for every goal g and every x of the region,
    `goal_g(x) >= min(settled[g], min over open boxes lower[:, g])`.
    """

    region: Region
    corners_low: np.ndarray
    corners_high: np.ndarray
    lower: np.ndarray
    axes: np.ndarray
    settled: np.ndarray

    @staticmethod
    def empty(region: Region, goals: int) -> Frontier:
        """No boxes and nothing settled."""
        f = len(region.free)
        return Frontier(
            region,
            np.empty((0, f)),
            np.empty((0, f)),
            np.empty((0, goals)),
            np.empty((0, goals), dtype=np.int64),
            np.full(goals, np.inf),
        )

    def __len__(self) -> int:
        return len(self.lower)

    @property
    def bytes(self) -> float:
        """Memory held by the open boxes."""
        return float(
            self.corners_low.nbytes
            + self.corners_high.nbytes
            + self.lower.nbytes
            + self.axes.nbytes
        )

    def bounds(self) -> np.ndarray:
        """(G,) the proved lower bound of every goal over the whole region."""
        return np.minimum(self.settled, self.lower.min(axis=0, initial=np.inf))

    def cells(self, index: np.ndarray, backend: Backend) -> Cells:
        """Some of the boxes as cells on the backend."""
        low, high = self.corners_low[index], self.corners_high[index]
        return Cells(self.region, backend.asarray(low), backend.asarray(high))

    def splittable(self) -> np.ndarray:
        """(n,) mask: some axis has a float strictly inside."""
        middle = 0.5 * self.corners_low + 0.5 * self.corners_high
        return np.any((middle > self.corners_low) & (middle < self.corners_high), axis=1)

    def keep(self, mask: np.ndarray) -> None:
        """Set the other boxes aside: their bounds stay in `settled`."""
        if mask.all():
            return
        self.settled = np.minimum(self.settled, self.lower[~mask].min(axis=0, initial=np.inf))
        self._select(mask)

    def replace(
        self,
        index: np.ndarray,
        children: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    ) -> None:
        """Put children (corners low, high, lower bounds, axes) in the place of their parents.

        The children must cover their parents; done in one step, so that an interrupt between two
        batches always finds a frontier that covers the region.
        """
        mask = np.ones(len(self), dtype=bool)
        mask[index] = False
        low, high, lower, axes = children
        merged = (
            np.concatenate([self.corners_low[mask], low]),
            np.concatenate([self.corners_high[mask], high]),
            np.concatenate([self.lower[mask], lower]),
            np.concatenate([self.axes[mask], axes]),
        )
        self.corners_low, self.corners_high, self.lower, self.axes = merged

    def _select(self, mask: np.ndarray) -> None:
        self.corners_low = self.corners_low[mask]
        self.corners_high = self.corners_high[mask]
        self.lower = self.lower[mask]
        self.axes = self.axes[mask]
