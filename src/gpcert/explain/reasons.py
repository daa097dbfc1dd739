"""Minimal reasons: sets of features that prove a decision, or that alone can change it, found by
deletion in blocks, with their records and certificates.

Proofs: docs/mathematics.md, statement 15.3.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import Any, Unpack

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.api.certify import certify_region
from gpcert.api.options import DecisionOptions, SearchSettings, read_x, verb
from gpcert.api.questions import read_decision
from gpcert.api.regions import RegionSpecification
from gpcert.api.running import Line, progress_line
from gpcert.certificates import Certificate, Interval, Status
from gpcert.certificates.record import COST, RecordTable, Searched, cells_of
from gpcert.certificates.schema import like
from gpcert.certificates.text import TextTable, region_text
from gpcert.errors import InputError
from gpcert.explain.arguments import (
    feature_labels,
    importance_by_gradient,
    listed_names,
    read_order,
    region_around,
    with_free,
)
from gpcert.model.committee import Model
from gpcert.plots.explanations import plot_kept_features, plot_kept_pixels
from gpcert.regions import Region
from gpcert.search import Budget, StopReason
from gpcert.utils.optional_imports import Axes, DataFrame, optional
from gpcert.utils.processes import deadline


@dataclass(frozen=True)
class Step:
    """One certificate, with the features `free` free and all others fixed at x."""

    free: tuple[int, ...]
    status: Status
    margin: Interval
    decision: Any
    rule: str
    reason: StopReason
    boxes: int
    seconds: float


@dataclass(frozen=True, eq=False, repr=False)
class Reason(Searched, kind="reason"):
    """A sufficient or contrastive reason; see `gpcert.explain.sufficient` and `contrastive`.

    `what` is "sufficient" or "contrastive", `features` the set; `undecided` are its features that
    may be superfluous (their step ended without a verdict, or was interrupted); `movable` are all
    free features of the region; `counterexample` is the point of a contrastive reason with the
    other decision; `steps` are all certificates. `reason` is DECIDED, or why the first step without
    a verdict ended; `unit` is the unit of the steps' margins.
    """

    what: str
    x: np.ndarray | None
    decision: Any
    features: tuple[int, ...]
    feature_names: tuple[str, ...]
    undecided: tuple[int, ...]
    movable: tuple[int, ...]
    counterexample: np.ndarray | None
    steps: tuple[Step, ...]
    rule: str
    region: dict[str, Any]
    unit: str = ""

    @property
    def minimal(self) -> bool:
        """Whether it is proved that no feature of the set can be left out."""
        return self.found and not self.undecided

    @property
    def found(self) -> bool:
        """Whether there is a reason. A region with a single decision has no contrastive reason;
        there is no sufficient reason if the decision at x, the first step, is not proved.
        """
        if self.what == "contrastive":
            return self.counterexample is not None
        return self.steps[0].status is Status.ROBUST

    def to_frame(self) -> DataFrame:
        """One row per step."""
        names = "status margin boxes seconds"
        rows = [{"free": len(step.free), **cells_of(step, names)} for step in self.steps]
        return optional("pandas", "to_frame").DataFrame(rows)

    def plot(self, ax: Axes | None = None, *, shape: tuple[int, int] | None = None) -> Axes:
        """Draw the image of this shape with the pixels of the reason marked; without a shape, all
        movable features with those of the reason marked. Returns the Axes."""
        if shape is None:
            return ReasonTable((self,), labels=("",)).plot(ax)
        title = f"{len(self.features)} pixels {'prove' if self.what == 'sufficient' else 'flip'}"
        title += "" if self.decision is None else f" {self.decision}"
        title = title if self.found else "no reason found"
        if self.undecided:
            title += f"\n(dotted: {len(self.undecided)} possibly superfluous)"
        image = self.x if self.counterexample is None else self.counterexample
        weak = self.undecided
        return plot_kept_pixels(ax, image, self.features, shape, title=title, weak=weak)

    def __repr__(self) -> str:
        tail = "" if not self.undecided else f", {len(self.undecided)} undecided"
        return f"Reason({self.what}, {len(self.features)} of {len(self.movable)} features{tail})"

    def shown(self) -> TextTable:
        minimal = "proved: no feature can be left out"
        if self.undecided:
            minimal = f"{len(self.undecided)} of them may be superfluous (undecided)"
        rows = {
            f"{self.what} reason": self._summary(),
            "minimal": minimal if self.found else "",
            "rule": self.rule,
            "region": region_text(self.region),
            "cost": f"{len(self.steps)} certificates, {self.boxes} boxes, {self.seconds:.3g} s",
        }
        return TextTable("", (), [(name, text) for name, text in rows.items() if text])

    def _summary(self) -> str:
        if not self.found:
            only = self.steps[-1]
            if only.status is Status.ROBUST:
                return "none: all points of the region have one decision (proved)"
            return f"none known: {only.reason.value}"
        what = "fixed at x, prove" if self.what == "sufficient" else "changed alone, flip"
        return f"{listed_names(self.feature_names)}: {what} the decision {self.decision}"

    def check(self) -> None:
        super().check()
        if self.what not in {"sufficient", "contrastive"} or self.x is None:
            raise InputError(f"what: expected sufficient or contrastive, and x, got {self.what!r}")
        inside = set(self.features) <= set(self.movable) <= set(range(len(self.x)))
        if not inside or len(self.feature_names) != len(self.features) or not self.steps:
            raise InputError("features: expected movable features with names, and some steps")


@dataclass(frozen=True, eq=False, repr=False)
class ReasonTable(RecordTable[Reason], kind="reasons"):
    """Reasons of several points."""

    def cells(self, row: Reason) -> dict[str, Any]:
        return {
            **cells_of(row, "what decision found"),
            "features": " ".join(row.feature_names),
            "count": len(row.features),
            "undecided": len(row.undecided),
            "steps": len(row.steps),
            **cells_of(row, COST),
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw one row per point, one column per feature, with those of the reason marked; returns
        the Axes."""
        names: dict[int, str] = {}
        for row in self:
            names |= {j: f"x{j}" for j in row.movable if j not in names}
            names |= dict(zip(row.features, row.feature_names, strict=True))
        places = sorted(names)
        marks = [
            [(j in row.movable) + (j in row.features) + (j in row.undecided) for j in places]
            for row in self
        ]
        kinds = {row.what for row in self}
        title = f"{kinds.pop()} reason" if len(kinds) == 1 else "reasons"
        return plot_kept_features(
            ax, np.array(marks), self.labels, [names[j] for j in places], title=title
        )


Answer = bool | None
"""Whether the property holds; None if undecided."""


@dataclass
class MinimalSubset:
    """`kept` has the property; it is proved not to have it without any one item of `needed`.

    For the other kept items this is `undecided`: kept = needed + undecided.
    """

    kept: list[int]
    needed: list[int] = field(default_factory=list)
    undecided: list[int] = field(default_factory=list)


def minimal_subset(order: Sequence[int], holds: Callable[[list[int]], Answer]) -> MinimalSubset:
    """A minimal subset with a property that `order` is known to have.

    `holds` must be monotone: if it is true for a set, it is true for every superset. Blocks are
    removed as a whole, and halved if that fails (a dichotomic search), in the sequence of `order`:
    items that are likely to be superfluous should come first.

    Minimality: an item is needed once `kept - {item}` is proved not to have the property. The final
    set is a subset of that `kept`, so without the item it does not have the property either.

    >>> subset = minimal_subset([3, 1, 0, 2], lambda s: {0, 2} <= set(s))
    >>> sorted(subset.kept), subset.undecided
    ([0, 2], [])
    """
    subset = MinimalSubset(list(order))
    blocks = [list(order)]
    while blocks:
        block = blocks.pop()
        if not block:
            continue
        out = set(block)
        without = [item for item in subset.kept if item not in out]
        answer = holds(without)
        if answer is True:
            subset.kept = without
        elif len(block) == 1:
            (subset.needed if answer is False else subset.undecided).append(block[0])
        else:
            middle = len(block) // 2
            blocks += [block[middle:], block[:middle]]  # the first half is taken next
    return subset


STEP_SHARE = 1.0 / 12.0
"""Fraction of the whole time that one step may take, as an undecided step could take all of it."""

STEP_BOXES = 32
"""Default number of boxes of one step with more than MANY_FEATURES free features: splitting boxes
in many dimensions gains little."""

MANY_FEATURES = 20


@verb
def sufficient(
    model: Any,
    x: Any,
    radius: Any = None,
    *,
    region: Region | None = None,
    order: Any = None,
    **options: Unpack[DecisionOptions],
) -> Reason:
    """A subset-minimal set of features which, fixed at x, proves the decision.

    The decision is the one at x for all values of the other features in the region, as proved by
    the certificate of the last step. Features are freed in blocks, the least important first (by
    gradient, or as in `order`, most important first); blocks that fail are halved. Minimal: for
    each feature of the reason a counter-example with that feature free as well is known, except
    for those in `Reason.undecided`, for which the budget of a step was used up.

    Parameters: the region (`radius` or `relative`, `norm`, `features`, `domain`, `scale`, or
    `region=`, a Box or a Ball around x), the decision (`threshold`, `quantity`, `output`, `beta`,
    `class_weight`, `delta`, `output_norm`) and the effort as in `certify`. The time of `budget` (60
    seconds by default) is that of the whole call, of which one step may take a twelfth; its boxes
    are those of one step (by default 32 if more than 20 features are free). After that, or Ctrl-C,
    the remaining features are undecided. If the decision at x is not proved, `Reason.found` is
    False, and `reason` says whether x lies within rounding of the decision boundary or the budget
    was used up.

    Example
    -------
    >>> import gpcert
    >>> from gpcert import explain
    >>> from gpcert.kernels import SquaredExponential
    >>> p = gpcert.Posterior(SquaredExponential([1.0, 50.0]), [[0.0, 0.0]], [1.0])
    >>> explain.sufficient(p, [0.0, 0.0], 2.0, threshold=0.5).features
    (0,)
    """
    with progress_line(options.get("progress")) as line:
        search = _Search(model, x, RegionSpecification.read(options, radius, region), options, line)
        items = search.ordered(order)
        if search.status([]) is not Status.ROBUST:
            return search.reason("sufficient", MinimalSubset([], [], list(items)), items)

        def holds(fixed: list[int]) -> Answer:
            fixed_set = set(fixed)
            return search.proved(Status.ROBUST, [j for j in items if j not in fixed_set])

        return search.reason("sufficient", minimal_subset(items, holds), items)


@verb
def contrastive(
    model: Any,
    x: Any,
    radius: Any = None,
    *,
    region: Region | None = None,
    order: Any = None,
    **options: Unpack[DecisionOptions],
) -> Reason:
    """A subset-minimal set of features whose change alone flips the decision.

    `Reason.counterexample` differs from x in these features only and has another decision. Minimal:
    for each of them it is proved that the others alone cannot flip the decision in the region,
    except for those in `Reason.undecided`. If no point of the region with another decision is known
    (proved, or undecided), `Reason.found` is False. Arguments as in `sufficient`, 60 seconds by
    default.

    Example
    -------
    >>> import gpcert
    >>> from gpcert import explain
    >>> from gpcert.kernels import SquaredExponential
    >>> p = gpcert.Posterior(SquaredExponential([1.0, 50.0]), [[0.0, 0.0]], [1.0])
    >>> reason = explain.contrastive(p, [0.0, 0.0], 2.0, threshold=0.5)
    >>> reason.features, bool(abs(reason.counterexample[0]) > 1.0)
    ((0,), True)
    """
    with progress_line(options.get("progress")) as line:
        search = _Search(model, x, RegionSpecification.read(options, radius, region), options, line)
        items = search.ordered(order)
        verdict = search.status(items)
        if verdict is not Status.NOT_ROBUST:
            nothing = MinimalSubset([], [], [] if verdict is Status.ROBUST else list(items))
            return search.reason("contrastive", nothing, items)
        # features that the first counter-example does not change are not needed
        changed, _ = search.known[-1]
        start = [j for j in items if j in changed]
        subset = minimal_subset(start, lambda moved: search.proved(Status.NOT_ROBUST, moved))
        return search.reason("contrastive", subset, items)


class _Search:
    """Certificates with chosen features free; known counter-examples are reused."""

    def __init__(
        self,
        model: Any,
        x: Any,
        specification: RegionSpecification,
        options: Mapping[str, Any],
        line: Line,
    ) -> None:
        self.started = time.perf_counter()
        self.model: Model = as_posterior(model)
        self.x = read_x(self.model, x, "ask for one point at a time")
        self.region = region_around(self.model, self.x, specification)
        self.decision, self.settings = (
            read_decision(options, self.model),
            SearchSettings.read(options),
        )
        self.line = line
        self.end = min(self.settings.budget.ends(time.perf_counter()), deadline())
        self.ended: StopReason | None = None  # by Ctrl-C or time: no further step starts
        self.steps: list[Step] = []
        self.known: list[tuple[frozenset[int], Certificate]] = []

    def ordered(self, order: Any) -> list[int]:
        """The movable features, the least important first."""
        if order is None:
            ranking = importance_by_gradient(self.model, self.x, self.region).tolist()
        else:
            ranking = read_order("order", order, self.model)
        rank = {j: k for k, j in enumerate(ranking)}
        return sorted(self.region.free.tolist(), key=lambda j: -rank.get(j, len(ranking)))

    def status(self, free: list[int]) -> Status:
        """The verdict with these features free; a known counter-example that moves no others
        refutes."""
        free_set = frozenset(free)
        for moved, _ in self.known:
            if moved <= free_set:
                return Status.NOT_ROBUST
        if self.ended is None and self.steps and time.perf_counter() >= self.end:
            self.ended = StopReason.TIME
        if self.ended is not None:
            return Status.UNKNOWN
        certificate = self._ask(with_free(self.region, self.x, free))
        if certificate.reason is StopReason.INTERRUPTED:
            self.ended = StopReason.INTERRUPTED
        self.steps.append(like(Step, certificate, free=tuple(sorted(free))))
        self.last = certificate
        self.line.show(f"{len(self.steps)} certificates, {len(free)} features free in the last")
        if certificate.counterexample is not None:
            moved = frozenset(np.flatnonzero(certificate.counterexample != self.x).tolist())
            self.known.append((moved, certificate))
        return certificate.status

    def _ask(self, part: Region) -> Certificate:
        """A certificate within a share of the time; the first step always starts."""
        seconds, boxes, memory = astuple(self.settings.budget)
        if seconds is not None:
            seconds = min(seconds * STEP_SHARE, max(self.end - time.perf_counter(), 1e-6))
        if boxes is None and len(part.free) > MANY_FEATURES:
            boxes = STEP_BOXES
        settings = replace(self.settings, budget=Budget(seconds, boxes, memory))
        return certify_region(self.model, self.x, part, self.decision, settings)

    def proved(self, expected: Status, free: list[int]) -> Answer:
        """Whether the verdict with these features free is the expected one; None if undecided."""
        status = self.status(free)
        return None if status is Status.UNKNOWN else status is expected

    def reason(self, kind: str, subset: MinimalSubset, items: list[int]) -> Reason:
        """The record of the result."""
        names = feature_labels(self.model.feature_names, self.model.dim)
        chosen = tuple(sorted(subset.kept))
        reason = StopReason.DECIDED
        if self.ended is StopReason.INTERRUPTED or (self.ended and subset.undecided):
            reason = self.ended
        elif subset.undecided or self.steps[0].status is Status.UNKNOWN:
            reason = next(step.reason for step in self.steps if step.status is Status.UNKNOWN)
        flipped = None
        if kind == "contrastive" and chosen:
            flipped = next(c for moved, c in self.known if moved <= frozenset(chosen))
        return Reason(
            what=kind,
            x=self.x,
            decision=self.steps[0].decision,
            features=chosen,
            feature_names=tuple(names[j] for j in chosen),
            undecided=tuple(sorted(subset.undecided)),
            movable=tuple(sorted(items)),
            counterexample=None if flipped is None else flipped.counterexample,
            steps=tuple(self.steps),
            reason=reason,
            boxes=sum(step.boxes for step in self.steps),
            seconds=time.perf_counter() - self.started,
            rule=self.last.rule,
            region=self.region.describe(),
            unit=self.last.unit,
            method=self.last.method,
            model=self.last.model,
        )
