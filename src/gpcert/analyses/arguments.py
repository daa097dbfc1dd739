"""What the analyses are asked: regions, decisions and effort, read once and handed on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpcert.api.arguments import (
    BudgetLike,
    ball_options,
    read_backend,
    read_budget,
    read_class_weight,
    read_radius,
    read_region,
    read_seed,
)
from gpcert.api.methods import Method, MethodName
from gpcert.api.rules import RuleOptions
from gpcert.arrays import Backend, finite_array
from gpcert.attacks import Decision
from gpcert.committee import Committee, Model
from gpcert.errors import InputError
from gpcert.likelihoods import ClassLikelihood
from gpcert.regions import Ball, Region
from gpcert.regions.arguments import check_norm
from gpcert.search import Budget

__all__ = [
    "Ask",
    "check_radii",
    "class_labels",
    "is_several",
    "regions_of",
    "work_words",
]


@dataclass(frozen=True)
class Ask:
    """The decision words of a verb; see `gpcert.certify`."""

    threshold: float | None = None
    class_weight: Mapping[Any, float] | Sequence[float] | None = None
    delta: float | None = None
    output_norm: float | str = np.inf

    def plain(self) -> Decision:
        """For an attack."""
        threshold = self.threshold
        if threshold is not None:
            threshold = float(finite_array("threshold", threshold, ndim=0))
        delta = None if self.delta is None else float(finite_array("delta", self.delta, ndim=0))
        costs = read_class_weight(self.class_weight)
        return Decision(threshold, costs, delta, check_norm(self.output_norm, "output_norm"))

    def rule(self, method: MethodName = "taylor") -> RuleOptions:
        """For a certificate."""
        costs, size = read_class_weight(self.class_weight), check_norm(self.output_norm)
        return RuleOptions(self.threshold, costs, self.delta, size, Method(method, None))

    def words(self) -> dict[str, Any]:
        """For a verb."""
        return {
            "threshold": self.threshold,
            "class_weight": self.class_weight,
            "delta": self.delta,
            "output_norm": self.output_norm,
        }


def work_words(
    budget: BudgetLike,
    backend: str | Backend,
    random_state: Any,
    method: MethodName,
    default: Budget | None = None,
) -> dict[str, Any]:
    """The effort words of a verb, read once: a random generator gives one seed for all points."""
    return {
        "budget": read_budget(budget, default),
        "backend": read_backend(backend),
        "random_state": read_seed(random_state),
        "method": Method(method, None).name,
    }


def regions_of(
    model: Model,
    points: np.ndarray,
    radius: Any,
    region: Region | None,
    shape: tuple[Any, Any, Any],
) -> list[Region]:
    """A ball around each point, or the one region for all, which must contain them.

    `shape` is the norm, the features and the domain of the balls.
    """
    if (radius is None) == (region is None):
        got = "neither" if radius is None else "both"
        raise InputError(f"expected exactly one of radius= and region=, got {got}")
    if region is None:
        reach, around = read_radius(model, radius), ball_options(model, *shape)
        return [Ball(x, reach, **around) for x in points]
    found = read_region(model, region)
    outside = np.flatnonzero(~np.atleast_1d(found.contains(points)))
    if outside.size:
        raise InputError(
            f"X: expected points of the region, got row {int(outside[0])} outside it "
            f"({outside.size} rows in all); its decision is what is judged"
        )
    return [found] * len(points)


def check_radii(radii: Any) -> np.ndarray:
    """Radii in growing order, each once.

    >>> check_radii([0.2, 0.1, 0.2]).tolist()
    [0.1, 0.2]
    """
    found = np.unique(finite_array("radii", radii, ndim=1))
    if not len(found) or found[0] < 0:
        raise InputError(f"radii: expected one or more numbers >= 0, got {radii!r}")
    return found


def is_several(model: Model) -> bool:
    """Whether the model decides between classes by a probability of each."""
    return isinstance(model, Committee) or isinstance(model.likelihood, ClassLikelihood)


def class_labels(model: Model) -> tuple[Any, ...]:
    """The labels of a classifier's classes."""
    return model.classes if isinstance(model, Committee) else model.labels
