"""Answers that are probabilities or means over random inputs, with their pavings; Sobol' indices:
what each random input explains of the variance of a mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpcert.certificates.record import Searched
from gpcert.certificates.text import (
    Interval,
    TextTable,
    above,
    below,
    cost_text,
    interval_text,
    region_text,
)
from gpcert.errors import InputError
from gpcert.utils.optional_imports import DataFrame, optional

OPEN, INSIDE, OUTSIDE = 0, 1, 2
"""Of a cell: the event holds in a part of it that is bounded, in the whole cell, or nowhere."""


POSITIVE = ("std", "variance", "probability", "ei", "pi")
"""Quantities that are never negative."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class AtRandomInputs(Searched):
    """`lower <= value <= upper`, proved, for a number that a quantity of the model has when its
    inputs are random.

    `laws` says each input's distribution, or its number. The box `region` holds all inputs but
    those of probability `outside` at most, which count as whatever is worse.
    """

    lower: float
    upper: float
    quantity: str
    output: Any
    laws: tuple[str, ...]
    region: dict[str, Any]
    outside: float
    converged: bool
    meaning: str = ""
    beta: float | None = None
    features: tuple[str, ...] = ()

    @property
    def about(self) -> tuple[str, str]:
        """What the value is called, and of what it is."""
        raise NotImplementedError

    @property
    def least(self) -> float:
        """The least value of the quantity."""
        return 0.0 if self.quantity in POSITIVE else -math.inf

    def shown(self) -> TextTable:
        name, text = self.about
        rows = {
            name: text,
            "proved": f"between {below(self.lower)} and {above(self.upper)}",
            "inputs": "; ".join(self.laws[:6]) + ("; ..." * (len(self.laws) > 6)),
            "outside": f"at most {above(self.outside)} of the region",
            "region": region_text(self.region),
            "search": self.reason.value,
            "cost": cost_text(self),
        }
        return TextTable("", (), list(rows.items()))

    def check(self) -> None:
        super().check()
        if not self.least <= self.lower <= self.upper:
            raise InputError(f"lower and upper: expected {self.least:g} <= lower <= upper")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FailureProbability(
    AtRandomInputs,
    kind="failure_probability",
    told="lower upper side threshold quantity output reason",
):
    """`lower <= P <= upper`, proved, for the probability P that a quantity of the model lies below
    (`side`) a `threshold` when the inputs are random.

    `laws`, `region` and `outside` as in `AtRandomInputs`. `cells` (n, 2, d) are the corners of the
    paving, `status` (n,) says whether the event holds in all of a cell (1), in none of it (2) or in
    a part (0), and `mass` (n,) is about the cell's probability; all empty unless `paving=True` asks
    for them.
    """

    side: str
    threshold: float
    cells: np.ndarray = field(default_factory=lambda: np.empty((0, 2, 0)))
    status: np.ndarray = field(default_factory=lambda: np.empty(0))
    mass: np.ndarray = field(default_factory=lambda: np.empty(0))

    @property
    def width(self) -> float:
        """`(upper - lower) / lower`, infinite where lower is 0."""
        return (self.upper - self.lower) / self.lower if self.lower > 0 else math.inf

    def inputs(self) -> list[np.ndarray]:
        return [self.cells] if self.cells.size else []

    @property
    def least(self) -> float:
        """That of a probability."""
        return 0.0

    @property
    def about(self) -> tuple[str, str]:
        sign = "<" if self.side == "below" else ">"
        return "probability", f"that {self.meaning or self.quantity} {sign} {self.threshold:g}"

    def check(self) -> None:
        super().check()
        if not self.upper <= 1:
            raise InputError("lower and upper: expected 0 <= lower <= upper <= 1")
        if self.side not in {"below", "above"}:
            raise InputError(f"side: expected 'below' or 'above', got {self.side!r}")
        if not len(self.cells) == len(self.status) == len(self.mass):
            raise InputError("cells, status and mass: expected as many of each")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Expectation(AtRandomInputs, kind="expectation", told="lower upper quantity output reason"):
    """`lower <= E <= upper`, proved, for the mean E of a quantity of the model when the inputs are
    random; see `AtRandomInputs`."""

    best_f: float | None = None

    @property
    def about(self) -> tuple[str, str]:
        return "expectation", f"of the {self.meaning or self.quantity}"


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Quantile(AtRandomInputs, kind="quantile", told="lower upper level quantity output reason"):
    """`lower <= q <= upper`, proved, for the quantile q of a quantity at random inputs: the least
    number with P[quantity <= q] >= `level`; see `AtRandomInputs`."""

    level: float

    @property
    def about(self) -> tuple[str, str]:
        return "quantile", f"at {self.level:g} of the {self.meaning or self.quantity}"

    def check(self) -> None:
        super().check()
        if not 0 < self.level < 1:
            raise InputError(f"level: expected a number between 0 and 1, got {self.level!r}")


@dataclass(frozen=True, eq=False, repr=False)
class SobolIndices(Searched, kind="sobol_indices", told="features variance converged reason"):
    """Proved bounds of the first and total Sobol' indices of a model's mean.

    `first` and `total` (f, 2) are lower and upper bounds of the indices of `features`, the inputs
    that are random; `variance` and `mean` bound those of the model's mean, in its units squared
    and in its units. `boxes` counts the sums of Gaussians that the kernel was replaced by. `laws`,
    `region` and `outside` are as in `AtRandomInputs`.
    """

    features: tuple[str, ...]
    first: np.ndarray
    total: np.ndarray
    variance: Interval
    mean: Interval
    tol: float
    converged: bool
    output: Any
    laws: tuple[str, ...]
    region: dict[str, Any]
    outside: float

    def inputs(self) -> list[np.ndarray]:
        return []

    def shown(self) -> TextTable:
        rows = [
            (name, *(f"{below(low)} to {above(high)}" for low, high in (first, total)))
            for name, first, total in zip(
                self.features, self.first.tolist(), self.total.tolist(), strict=True
            )
        ]
        title = f"variance in {interval_text(self.variance)}; {self.reason.value}"
        return TextTable(title, ("feature", "first", "total"), rows)

    def to_frame(self) -> DataFrame:
        """A row for each random input."""
        columns = {
            "feature": list(self.features),
            "first lower": self.first[:, 0],
            "first upper": self.first[:, 1],
            "total lower": self.total[:, 0],
            "total upper": self.total[:, 1],
        }
        return optional("pandas", "to_frame").DataFrame(columns)

    def check(self) -> None:
        super().check()
        shape = (len(self.features), 2)
        for name in ("first", "total"):
            ends = getattr(self, name)
            if ends.shape != shape or not np.all((ends[:, 0] >= 0) & (ends[:, 1] <= 1)):
                raise InputError(f"{name}: expected two numbers in [0, 1] for each feature")
            if np.any(ends[:, 0] > ends[:, 1]):
                raise InputError(f"{name}: expected lower <= upper")
        if not 0 <= self.variance.lower <= self.variance.upper:
            raise InputError("variance: expected 0 <= lower <= upper")
