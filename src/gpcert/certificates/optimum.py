"""The answers of an optimisation: a point with its certified value and a proved bound of the
optimum; how much better than an observed point any point can be."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpcert.certificates.record import Searched
from gpcert.certificates.text import DIGITS, TextTable, above, below, cost_text, region_text
from gpcert.errors import InputError

SIDES = ("maximum", "minimum")


@dataclass(frozen=True, eq=False, repr=False)
class Optimum(
    Searched, kind="optimum", told="side value bound gap x quantity output converged reason"
):
    """The largest (`side` "maximum") or the smallest value of a quantity over a domain.

    For a maximum: `quantity(x) >= value`, proved, at the point `x` of the domain, and
    `quantity <= bound`, proved, at every point of it; so the optimum lies in `[value, bound]`, and
    no point is better than x by more than the `gap`. For a minimum with the signs turned. `x` is
    None, and `value` infinite, where the search ended before it knew a value.

    `kept` (n, 2, d) are boxes, lower and upper corners, outside of which no point of the domain is
    as good as `value` (asked for by `keep="all"`; else empty). `features` are the names of the
    inputs, if the model knows them. `beta` and `best_f` are those of the quantity, None if it has
    none.
    """

    side: str
    x: np.ndarray | None
    value: float
    bound: float
    quantity: str
    output: Any
    region: dict[str, Any]
    converged: bool
    meaning: str = ""
    beta: float | None = None
    best_f: float | None = None
    features: tuple[str, ...] = ()
    kept: np.ndarray = field(default_factory=lambda: np.empty((0, 2, 0)))

    @property
    def gap(self) -> float:
        """How far the optimum can be from `value`, rounded up."""
        return float(np.nextafter(abs(self.bound - self.value), np.inf))

    @property
    def point(self) -> dict[str, float]:
        """x by the names of the features; an error if they are not known."""
        if not self.features or self.x is None:
            why = "no point is known" if self.x is None else "the model was fitted without names"
            raise InputError(f"point: {why}; use x")
        return dict(zip(self.features, self.x.tolist(), strict=True))

    def inputs(self) -> list[np.ndarray]:
        return [point for point in (self.x, self.kept) if point is not None and point.size]

    def shown(self) -> TextTable:
        best, worst = (below, above) if self.side == "maximum" else (above, below)
        relation = ("at least", "at most") if self.side == "maximum" else ("at most", "at least")
        rows = {
            self.side: f"of the {self.meaning or self.quantity}",
            "x": "not known" if self.x is None else _point_text(self.x, self.features),
            "value": f"{relation[0]} {best(self.value)} at x, proved",
            "bound": f"{relation[1]} {worst(self.bound)} in the whole domain, proved",
            "gap": f"{above(self.gap)}",
            "region": region_text(self.region),
            "search": self.reason.value,
            "cost": cost_text(self),
        }
        if len(self.kept):
            rows["kept"] = f"{len(self.kept)} boxes that may hold an optimum"
        return TextTable("", (), list(rows.items()))

    def check(self) -> None:
        super().check()
        if self.side not in SIDES:
            raise InputError(f"side: expected one of {SIDES}, got {self.side!r}")
        low, high = (self.value, self.bound)[:: 1 if self.side == "maximum" else -1]
        if not low <= high:
            raise InputError("value and bound: expected the bound on the other side of the value")


@dataclass(frozen=True, eq=False, repr=False)
class RegretBound(Searched, kind="regret_bound", told="bound side x domain observed beta reason"):
    """How much better than the best observed point the model says that any point can be.

    For a maximisation `bound >= max UCB over the domain - max LCB over the observed points`, where
    UCB and LCB are `mean +- beta std`: `domain` is a proved upper bound of the first, `observed` a
    proved lower bound of the second, which the observed point `x` attains. For a minimisation with
    the signs turned. It is a statement about this model: about the true function only where that
    lies between the model's LCB and UCB at every point.
    """

    bound: float
    side: str
    x: np.ndarray
    domain: float
    observed: float
    beta: float
    output: Any
    region: dict[str, Any]
    converged: bool
    features: tuple[str, ...] = ()

    def inputs(self) -> list[np.ndarray]:
        return [self.x]

    def shown(self) -> TextTable:
        first, second = ("ucb", "lcb") if self.side == "maximum" else ("lcb", "ucb")
        rows = {
            "regret": f"at most {above(self.bound)}, by this model with beta {self.beta:g}",
            "domain": f"{self.side} of the {first}: {self.domain:.{DIGITS}g}, proved",
            "observed": f"best {second}: {self.observed:.{DIGITS}g}, proved, at x",
            "x": _point_text(self.x, self.features),
            "region": region_text(self.region),
            "search": self.reason.value,
            "cost": cost_text(self),
        }
        return TextTable("", (), list(rows.items()))


def _point_text(x: np.ndarray, names: tuple[str, ...]) -> str:
    """At most six coordinates, by name if there are names."""
    labels = names or tuple(f"x{j}" for j in range(len(x)))
    parts = [f"{name}={value:.{DIGITS}g}" for name, value in zip(labels, x, strict=True)]
    return ", ".join(parts[:6]) + (", ..." if len(parts) > 6 else "")
