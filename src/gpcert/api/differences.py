"""`difference_range`: by how much a mean changes when its inputs do, over a region.

Proofs: docs/mathematics.md, statements 19.9 and 19.10.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.api.accuracy import USUAL, Accuracy, spreads
from gpcert.api.domain import domain_of
from gpcert.api.options import SearchOptions, SearchSettings, verb
from gpcert.api.range_questions import RangeQuestion
from gpcert.api.ranges import RangeGoals
from gpcert.api.regions import labels_by_number
from gpcert.api.running import progress_line, ranges_text
from gpcert.api.slopes import label_of, meaning_of, of_means, output_number
from gpcert.certificates import Interval, PredictionRange
from gpcert.errors import InputError
from gpcert.inputs.tabular import coded
from gpcert.model.changes import Change, Move, change_by_maps, change_by_moves
from gpcert.model.multi_output import Outputs
from gpcert.numerics.arrays import finite_array
from gpcert.numerics.rounding import add_down, add_up
from gpcert.quantities import Mean, Quantity, WeightedMeans
from gpcert.regions import Box, LinearMap, Region
from gpcert.search import Progress, StopReason, solve
from gpcert.search.problem import Tolerance


@verb
def difference_range(
    model: Any,
    bounds: Any,
    change: Any,
    *,
    output: Any = None,
    fixed: Mapping[Any, Any] | None = None,
    tol: float | None = None,
    rtol: float | None = None,
    **options: Unpack[SearchOptions],
) -> PredictionRange:
    """Proved bounds of how much the mean changes when its inputs do, over a region.

    Parameters
    ----------
    model, bounds, fixed, output : as in `slope_ranges`.
    change : `{"sex": (0, 1)}`, the mean at x with "sex" set to 1 less that with "sex" set to 0
        (of categories their labels); `{"age": 5.0}`, the mean at x with "age" moved by 5 less that
        at x; several features at once; or two `gpcert.regions.LinearMap`s T and T' of the inputs:
        the mean at T'x less that at Tx. What is set does not depend on the region: of a box its
        sides there do not matter, any other region must hold it fixed. Moved points may leave the
        region.
    tol, rtol : as in `prediction_range`; by default within 0.01 standard deviations of the model's
        means at its own points.
    budget, ... : as in `prediction_range`.

    The difference is bounded as one function: it is the sharper the more alike both means are.

    Example
    -------
    >>> import gpcert
    >>> from gpcert.kernels import SquaredExponential
    >>> bump = gpcert.Posterior(SquaredExponential(1.0), points=[[0.0, 0.0]], weights=[1.0])
    >>> found = gpcert.difference_range(bump, [(-1.0, 1.0), 0.0], {1: (0.0, 1.0)}, tol=1e-3)
    >>> found.minimum.lower <= float(np.exp(-0.5)) - 1.0 <= found.minimum.upper
    True
    """
    start, posterior = time.perf_counter(), of_means(as_posterior(model))
    index = output_number(posterior, output)
    region = domain_of(posterior, bounds, fixed)
    asked = ReadChange.of(posterior, change, region)
    settings, accuracy = SearchSettings.read(options), Accuracy.read(tol, rtol)
    usual = Tolerance(USUAL * spreads(posterior)[index])
    changed = asked.change(posterior, index)
    meaning = f"change of {meaning_of(posterior, index)} {asked.told}"
    about = {"output": label_of(posterior, output), "model": posterior.fingerprint}
    if changed is None:
        return _constant(asked.region, meaning, settings, start, about)
    goals = change_goals(changed, meaning)
    with progress_line(options.get("progress")) as line:
        progress = Progress(start, lambda state: line.show(ranges_text(state)))
        stop: dict[str, Any] = {"progress": progress}
        stop["tol"] = accuracy.tolerance() if accuracy.given else usual
        result = solve(settings.problem(changed.model, asked.region, goals.quantities, **stop))
    (row,) = goals.records(result, asked.region, settings)
    ends = {
        "minimum": widened(row.minimum, changed.error),
        "maximum": widened(row.maximum, changed.error),
    }
    return replace(row, **ends, **about)


def change_goals(change: Change, meaning: str) -> RangeGoals:
    """Both signs of a change, as goals of one search."""

    def asked(_: int, sign: int) -> Quantity:
        if change.joint:
            return Mean(0, sign)
        return WeightedMeans((float(sign), -float(sign)))

    about = (change.model, "difference", (None,), asked, (meaning,), ("difference",))
    return RangeGoals(RangeQuestion(*about), [asked(0, 1), asked(0, -1)], [(0, {1: 0, -1: 1})])


def widened(ends: Interval, error: float) -> Interval:
    """Both ends moved outwards."""
    return Interval(float(add_down(ends.lower, -error)), float(add_up(ends.upper, error)))


def _constant(
    region: Region, meaning: str, settings: SearchSettings, start: float, about: dict[str, Any]
) -> PredictionRange:
    """What does not change at all."""
    zero = Interval(0.0, 0.0)
    return PredictionRange(
        zero, zero, region.center, region.center, True, "difference", region=region.describe(),
        meaning=meaning, nominal=0.0, reason=StopReason.CONVERGED, boxes=0,
        seconds=time.perf_counter() - start, method=settings.method.name, **about,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class ReadChange:
    """A change of inputs, as it was read: two moves or two maps, the region in which all that is
    set is held, and the change in words."""

    parts: tuple[Any, Any]
    region: Region
    told: str

    @staticmethod
    def of(model: Outputs, change: Any, region: Region) -> ReadChange:
        """From a verb's argument."""
        if isinstance(change, Mapping):
            return _moves(model, change, region)
        pair = isinstance(change, Sequence) and len(change) == 2
        if not (pair and all(isinstance(each, LinearMap) for each in change)):
            raise InputError(
                "change: expected {feature: (from, to)}, {feature: step} or two "
                f"gpcert.regions.LinearMap, got {change!r}"
            )
        for each in change:
            if each.levels or each.matrix.shape != (model.dim, model.dim):
                raise InputError(
                    f"change: expected maps of {model.dim} inputs to as many, got a matrix of "
                    f"shape {each.matrix.shape}" + " with levels" * bool(each.levels)
                )
        return ReadChange((change[0], change[1]), region, "between two affine maps of the inputs")

    def change(self, model: Outputs, index: int) -> Change | None:
        """What of an output's mean it makes; None where nothing changes."""
        posterior, c = model.output(index)
        if isinstance(self.parts[0], LinearMap):
            return change_by_maps(posterior, c, self.parts)
        return change_by_moves(posterior, c, self.parts, self.region.center)


def _moves(model: Outputs, change: Mapping[Any, Any], region: Region) -> ReadChange:
    if not change:
        raise InputError("change: expected one feature or more, got none")
    before, after, steps, told = {}, {}, {}, []
    for j, label in labels_by_number(model, "change", change).items():
        value, name = change[label], repr(label)
        if j in model.levels or (not isinstance(value, str) and np.ndim(value) == 1):
            before[j], after[j] = read_values(model, "change", j, value, 2)
            told.append(f"as {name} goes from {value[0]!r} to {value[1]!r}")
        else:
            steps[j] = float(finite_array(f"change of {name}", value, ndim=0))
            told.append(f"as {name} changes by {steps[j]:g}")
    parts = Move(before), Move(after, steps)
    return ReadChange(parts, held_at(region, before), " and ".join(told))


def read_values(
    model: Outputs, name: str, j: int, values: Any, count: int | None = None
) -> list[float]:
    """Different values of a feature, categories by their numbers."""
    several = not isinstance(values, str) and np.ndim(values) == 1
    wanted = "two or more" if count is None else f"{count}"
    names = model.feature_names
    told = f"feature {j}" if names is None else repr(names[j])
    numbers: list[float] = []
    for value in list(values) if several else ():
        row: list[Any] = [0.0] * model.dim
        row[j] = value
        levels = {j: model.levels[j]} if j in model.levels else {}
        read = coded(name, row, levels, names)[j]
        numbers.append(float(finite_array(f"{name} of {told}", read, ndim=0)))
    if len(set(numbers)) < max(2, len(numbers)) or len(numbers) != (count or len(numbers)):
        raise InputError(f"{name}: expected {wanted} different values of {told}, got {values!r}")
    return numbers


def held_at(region: Region, values: Mapping[int, float]) -> Region:
    """The region with the features that a change sets held: of a box at these values."""
    moving = [j for j in values if region.lower[j] < region.upper[j]]
    if not isinstance(region, Box):
        if moving:
            raise InputError(
                f"change: it sets feature {moving[0]}, which the region moves; hold it fixed in "
                f"the {type(region).__name__}"
            )
        return region
    ends = np.stack([region.lower, region.upper])
    for j, value in values.items():
        ends[:, j] = value
    return Box(*ends)
