"""What the analyses are asked: regions, decisions and effort, read once and handed on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpcert.api.arguments import (
    BudgetLike,
    read_backend,
    read_budget,
    read_class_weight,
    read_seed,
)
from gpcert.api.methods import Method, MethodName, VarianceBound
from gpcert.api.rules import RuleOptions
from gpcert.arrays import Backend, finite_array
from gpcert.attacks import Decision
from gpcert.committee import Committee, Model
from gpcert.errors import InputError
from gpcert.likelihoods import ClassLikelihood
from gpcert.regions.arguments import check_norm

__all__ = [
    "Ask",
    "check_radii",
    "class_labels",
    "is_several",
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

    def rule(
        self, method: MethodName = "taylor", variance_bound: VarianceBound | None = None
    ) -> RuleOptions:
        """For a certificate."""
        costs = read_class_weight(self.class_weight)
        size = check_norm(self.output_norm, "output_norm")
        return RuleOptions(self.threshold, costs, self.delta, size, Method(method, variance_bound))

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
    variance_bound: VarianceBound | None,
) -> dict[str, Any]:
    """The effort words of a verb, read once: a random generator gives one seed for all points."""
    _ = Method(method, variance_bound)  # refuses unknown names
    return {
        "budget": read_budget(budget),
        "backend": read_backend(backend),
        "random_state": read_seed(random_state),
        "method": method,
        "variance_bound": variance_bound,
    }


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
