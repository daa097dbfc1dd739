"""What a search for radii is asked, and the records of what it finds.

Proofs: docs/mathematics.md, statement 14.5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gpcert.api.options import SearchSettings, read_tolerance
from gpcert.api.questions import read_decision
from gpcert.api.regions import RegionSpecification, Shape
from gpcert.api.rules import Rule
from gpcert.attacks import Decision
from gpcert.certificates import Radius
from gpcert.errors import InputError
from gpcert.model.committee import Model
from gpcert.numerics.arrays import finite_array
from gpcert.numerics.rounding import norm_upper
from gpcert.search import StopReason


class Bracket(NamedTuple):
    """Proved up to `lower`; a counter-example at distance `upper`, infinite if none is known."""

    lower: float
    upper: float
    counterexample: np.ndarray | None
    boxes: int = 0
    """What it cost."""


@dataclass(frozen=True, eq=False)
class RadiusQuestion:
    """What is asked of every point: `max_radius`, if one was given, and the other options."""

    shape: Shape
    options: Decision
    max_radius: float | None
    rtol: float
    settings: SearchSettings
    places: np.ndarray
    """The model's points (N, d), whose spread is a length for attacks."""

    @staticmethod
    def read(
        options: Mapping[str, Any], posterior: Model, max_radius: Any, rtol: Any
    ) -> RadiusQuestion:
        """From the options of a verb."""
        shape = RegionSpecification.read(options).shape(posterior)
        decision = read_decision(options, posterior)
        tol = read_tolerance(rtol, below=1.0, name="rtol")
        most = None if max_radius is None else float(finite_array("max_radius", max_radius, ndim=0))
        if most is not None and most <= 0:
            raise InputError(f"max_radius: expected a positive number, got {max_radius!r}")
        settings = SearchSettings.read(options)
        return RadiusQuestion(shape, decision, most, tol, settings, posterior.places)

    def largest(self, posterior: Model, x: np.ndarray) -> float:
        """The radius at which the search for a counter-example ends, in units of the scale."""
        if self.max_radius is not None:
            return self.max_radius
        unit = np.ones_like(x) if self.shape.unit is None else self.shape.unit
        moves = unit > 0
        if self.shape.domain is not None:
            low, high = self.shape.domain
            reach = np.maximum(np.abs(x - low), np.abs(high - x))[moves] / unit[moves]
            if np.all(np.isfinite(reach)):
                return float(reach.sum())  # the l_1 distance is the largest of all norms
        spread = np.abs(posterior.places - x).max(axis=0)[moves] / unit[moves]
        return 16.0 * max(float(spread.sum()), 1.0)


def radius_of(
    rule: Rule, question: RadiusQuestion, bracket: Bracket, reason: StopReason, seconds: float
) -> Radius:
    """The record of what was found around the rule's point."""
    shape = question.shape
    return Radius(
        lower=bracket.lower,
        upper=bracket.upper,
        counterexample=bracket.counterexample,
        decision=rule.decision,
        norm=shape.norm,
        rule=rule.text,
        region=shape.ball(rule.x, bracket.lower).describe(),
        unit=rule.unit.value,
        scale=shape.unit,
        radius_unit=shape.unit_name,
        reason=reason,
        boxes=bracket.boxes,
        seconds=seconds,
        method=question.settings.method.name,
        model=rule.fingerprint,
    )


def distance_of(shape: Shape, x: np.ndarray, point: np.ndarray) -> float:
    """How far the point is from x at most, in units of the scale.

    The difference rounds once per coordinate, and so does a quotient, which a step up keeps from
    underflowing; the norm is rounded up. Features whose unit is 0 have not moved.
    """
    moved = np.abs(point - x)
    if shape.unit is None:
        return float(norm_upper(moved, shape.norm, roundings=2))
    unit, free = shape.unit, (shape.unit > 0) & (moved > 0)
    with np.errstate(over="ignore", under="ignore"):
        parts = np.divide(moved, unit, out=np.zeros_like(moved), where=free)
    parts[free] = np.nextafter(parts[free], np.inf)
    return float(norm_upper(parts, shape.norm, roundings=6))
