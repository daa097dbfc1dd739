"""Sobol' indices: what each random input explains of the variance of a mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpcert.certificates.record import Searched
from gpcert.certificates.text import Interval, TextTable, above, below, interval_text
from gpcert.errors import InputError
from gpcert.utils.optional_imports import DataFrame, optional


@dataclass(frozen=True, eq=False, repr=False)
class SobolIndices(Searched, kind="sobol_indices", told="features variance converged reason"):
    """Proved bounds of the first and total Sobol' indices of a model's mean.

    `first` and `total` (f, 2) are lower and upper bounds of the indices of `features`, the inputs
    that are random; `variance` and `mean` bound those of the model's mean, in its units squared
    and in its units. `boxes` counts the sums of Gaussians that the kernel was replaced by. `laws`,
    `region` and `outside` are as in `FailureProbability`.
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
