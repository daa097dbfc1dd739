"""What an adapter hands over: the posterior, and the library's own predictions beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gpcert.committee import Model

__all__ = ["Conversion", "LibraryPrediction"]


@dataclass(frozen=True, eq=False)
class LibraryPrediction:
    """What the library itself says at n points; None where it does not say.

    `mean` and `variance` have shape (n, m) like those of `Posterior.predict`; `probability` (n,)
    is that of the second class. Of a committee: `probability` (n, members) is each member's own,
    `classes` (n, m) the probabilities of the classes, `decision` (n,) the index of the class.
    """

    mean: np.ndarray | None = None
    variance: np.ndarray | None = None
    probability: np.ndarray | None = None
    classes: np.ndarray | None = None
    decision: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Conversion:
    """A posterior, or a committee of them, and the function X (n, d) -> `LibraryPrediction` of the
    model it came from.

    Both take X in the units of the user: scalings in front of the model are folded into both.
    """

    posterior: Model
    predict: Callable[[np.ndarray], LibraryPrediction]
