"""How far a parallel EP sweep moves its sites."""

from __future__ import annotations

import numpy as np

_SMALLEST_DAMPING = 1.0 / 16.0


class Mixing:
    """Next sites from current ones and their targets: a step, damped where things got worse.

    >>> mixing = Mixing()
    >>> mixing.next(np.zeros(1), np.ones(1), mismatch=1.0).tolist()
    [1.0]
    >>> mixing.next(np.zeros(1), np.ones(1), mismatch=2.0).tolist()
    [0.5]
    """

    def __init__(self) -> None:
        self.damping = 1.0
        self.mismatch = np.inf

    def next(self, sites: np.ndarray, target: np.ndarray, mismatch: float) -> np.ndarray:
        """`sites + damping (target - sites)`; both have precisions >= 0, so has the result."""
        if mismatch > self.mismatch:
            self.damping = max(0.5 * self.damping, _SMALLEST_DAMPING)
        else:
            self.damping = min(1.2 * self.damping, 1.0)
        self.mismatch = mismatch
        return sites + self.damping * (target - sites)
