"""What the analyses are asked: regions, decisions and effort, read once and handed on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

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
    "Work",
    "check_radii",
    "class_labels",
    "is_several",
    "one_point",
    "regions_of",
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
        return Decision(threshold, self.class_weight, delta, check_norm(self.output_norm))

    def rule(self, method: MethodName = "taylor") -> RuleOptions:
        """For a certificate."""
        return RuleOptions(
            self.threshold, self.class_weight, self.delta, self.output_norm, Method(method)
        )

    def words(self) -> dict[str, Any]:
        """For a verb."""
        return {
            "threshold": self.threshold,
            "class_weight": self.class_weight,
            "delta": self.delta,
            "output_norm": self.output_norm,
        }


@dataclass(frozen=True)
class Work:
    """The effort words of a verb; see `gpcert.prediction_range`."""

    budget: Budget | None = None
    backend: str | Backend = "numpy"
    random_state: int | None = 0
    method: MethodName = "taylor"

    def words(self) -> dict[str, Any]:
        """For a verb."""
        return {
            "budget": self.budget,
            "backend": self.backend,
            "random_state": self.random_state,
            "method": self.method,
        }


def regions_of(
    points: np.ndarray, radius: Any, region: Region | None, shape: dict[str, Any]
) -> list[Region]:
    """A ball around each point, or the one region for all, which must contain them."""
    if (radius is None) == (region is None):
        raise InputError("expected exactly one of radius= and region=")
    if region is None:
        return [Ball(x, radius, **shape) for x in points]
    if not isinstance(region, Region):
        raise InputError(f"region: expected a gpcert.Box or gpcert.Ball, got {region!r}")
    outside = np.flatnonzero(~np.atleast_1d(region.contains(points)))
    if outside.size:
        raise InputError(
            f"X: expected points of the region, got row {int(outside[0])} outside it "
            f"({outside.size} rows in all); its decision is what is judged"
        )
    return [region] * len(points)


def one_point(model: Model, x: Any) -> np.ndarray:
    """x as (d,)."""
    point = finite_array("x", x)
    if point.shape != (model.dim,):
        raise InputError(f"x: expected one point of {model.dim} features, got shape {point.shape}")
    return point


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
