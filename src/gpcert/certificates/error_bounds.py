"""How many standard deviations the truth can be from a mean, and what that rests on."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpcert.certificates.io import Record
from gpcert.certificates.text import TextTable
from gpcert.errors import InputError


@dataclass(frozen=True, eq=False, repr=False)
class ErrorBound(Record, kind="error_bound", told="beta rule delta"):
    """`|f(x) - mean(x)| <= beta std(x)` for every x at once, for the unknown functions f of all
    outputs, under the `assumptions`.

    `betas`, an entry for each output; `beta` is the largest of them, for verbs that take one.
    `delta` is the probability with which it may fail, 0 where it cannot. `information` holds upper
    bounds of `log det(I + K / noise)` of each output.
    """

    beta: float
    betas: tuple[float, ...]
    rule: str
    delta: float
    norm_bound: tuple[float, ...]
    noise_bound: tuple[float, ...]
    information: tuple[float, ...]
    assumptions: tuple[str, ...]
    models: tuple[str, ...]

    def __float__(self) -> float:
        return self.beta

    def shown(self) -> TextTable:
        rows = {"beta": f"{self.beta:.6g}", "rule": self.rule}
        rows["may fail"] = f"with probability {self.delta:g}" if self.delta else "never"
        rows |= {f"assumed {k + 1}": each for k, each in enumerate(self.assumptions)}
        return TextTable("", (), list(rows.items()))

    def check(self) -> None:
        super().check()
        sizes = {len(self.betas), len(self.norm_bound), len(self.noise_bound)}
        if sizes != {len(self.information)} or not self.betas:
            raise InputError("betas: expected a number for each output")
        numbers = (*self.betas, *self.norm_bound, *self.noise_bound, *self.information)
        if not all(0 <= each < math.inf for each in numbers) or not 0 <= self.delta < 1:
            raise InputError("expected finite numbers >= 0, and a probability below 1")
        if self.beta != max(self.betas):
            raise InputError("beta: expected the largest of betas")
