"""Smallest reasons: sets of features that prove a decision, or that alone can change it, found by
deletion in blocks; their record, and the certificates behind them.

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
from gpcert.api.compared import read_decision
from gpcert.api.options import DecisionOptions, SearchSettings, read_x, verb
from gpcert.api.regions import RegionSpecification
from gpcert.api.running import Line, progress_line
from gpcert.certificates import Certificate, Interval, Status
from gpcert.certificates.record import COST, RecordTable, Searched, cells_of
from gpcert.certificates.schema import like
from gpcert.certificates.text import TextTable, region_text
from gpcert.errors import InputError
from gpcert.explain.arguments import (
    importance_by_gradient,
    named,
    read_order,
    region_around,
    shown,
    with_free,
)
from gpcert.model.committee import Model
from gpcert.numerics.deadline import deadline
from gpcert.plots.explanations import plot_kept_features, plot_kept_pixels
from gpcert.regions import Region
from gpcert.search import Budget, StopReason
from gpcert.utils.optional_imports import Axes, DataFrame, optional


@dataclass(frozen=True)
class Step:
    """One certificate: these features free, all others as at x."""

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

    `what` is "sufficient" or "contrastive", `features` the set; `undecided` are those of it that
    might be superfluous (their step ended without a verdict, or Ctrl-C came first); `movable` all
    features that the region lets move; `counterexample` the flipped point of a contrastive reason;
    `steps` every certificate asked for. `reason` is DECIDED, or why the first step without a
    verdict ended, `unit` what the steps' margins are measured in.
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
        """Whether there is a reason: a region that holds one decision has no contrastive one, and
        where not even the decision at x is proved, which the first step asks, none is sufficient.
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
        """The image of this shape with the pixels of the reason marked; without a shape the
        features that the region lets move, and which of them are the reason. Returns the Axes."""
        if shape is None:
            return ReasonTable((self,), labels=("",)).plot(ax)
        title = f"{len(self.features)} pixels {'prove' if self.what == 'sufficient' else 'flip'}"
        title += "" if self.decision is None else f" {self.decision}"
        title = title if self.found else "no reason found"
        if self.undecided:
            title += f"\n(dotted: {len(self.undecided)} perhaps superfluous)"
        image = self.x if self.counterexample is None else self.counterexample
        weak = self.undecided
        return plot_kept_pixels(ax, image, self.features, shape, title=title, weak=weak)

    def __repr__(self) -> str:
        tail = "" if not self.undecided else f", {len(self.undecided)} undecided"
        return f"Reason({self.what}, {len(self.features)} of {len(self.movable)} features{tail})"

    def shown(self) -> TextTable:
        minimal = "proved: none of them can be left out"
        if self.undecided:
            minimal = f"{len(self.undecided)} of them may be superfluous (undecided)"
        rows = {
            f"{self.what} reason": self._words(),
            "minimal": minimal if self.found else "",
            "rule": self.rule,
            "region": region_text(self.region),
            "cost": f"{len(self.steps)} certificates, {self.boxes} boxes, {self.seconds:.3g} s",
        }
        return TextTable("", (), [(name, text) for name, text in rows.items() if text])

    def _words(self) -> str:
        if not self.found:
            only = self.steps[-1]
            if only.status is Status.ROBUST:
                return "none: the region holds one decision (proved)"
            return f"none known: {only.reason.value}"
        what = "kept as they are, prove" if self.what == "sufficient" else "changed alone, flip"
        return f"{shown(self.feature_names)}: {what} the decision {self.decision}"

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
        """One row per point, one column per feature: which are in its reason; returns the Axes."""
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
"""Whether the property holds; None where it was not decided."""


@dataclass
class MinimalSubset:
    """`kept`, for which the property holds; without any one of `needed` it is proved not to.

    `undecided` are the kept items for which nobody knows: kept = needed + undecided.
    """

    kept: list[int]
    needed: list[int] = field(default_factory=list)
    undecided: list[int] = field(default_factory=list)


def minimal_subset(order: Sequence[int], holds: Callable[[list[int]], Answer]) -> MinimalSubset:
    """Drop what can be dropped from `order`, for which the property is known to hold.

    `holds` must be monotone: true of a set, it is true of every larger one. Blocks are tried whole
    and halved where that fails (a dichotomic search), the first items of `order` first: put those
    first that are likeliest to be superfluous.

    Minimality: an item is kept for good when `kept - {item}` was proved not to have the property.
    The final set is a subset of that `kept`, so without the item it does not have it either.

    >>> found = minimal_subset([3, 1, 0, 2], lambda s: {0, 2} <= set(s))
    >>> sorted(found.kept), found.undecided
    ([0, 2], [])
    """
    found = MinimalSubset(list(order))
    blocks = [list(order)]
    while blocks:
        block = blocks.pop()
        if not block:
            continue
        out = set(block)
        without = [item for item in found.kept if item not in out]
        answer = holds(without)
        if answer is True:
            found.kept = without
        elif len(block) == 1:
            (found.needed if answer is False else found.undecided).append(block[0])
        else:
            middle = len(block) // 2
            blocks += [block[middle:], block[:middle]]  # the first half is taken next
    return found


STEP_SHARE = 1.0 / 12.0
"""Part of the whole time that one step may take: an undecided one would take all of it."""

STEP_BOXES = 32
"""Boxes of one step where more than MANY_FEATURES are free, unless the user says: splitting boxes
of many features gains next to nothing."""

MANY_FEATURES = 20


@verb
def sufficient(
    model: Any,
    x: Any,
    radius: Any = None,
    *,
    region: Region | None = None,
    order: Any = None,
    **words: Unpack[DecisionOptions],
) -> Reason:
    """A subset-minimal set of features which, kept as they are at x, proves the decision.

    Whatever the other features do in the region, the decision is the one at x: the last step's
    certificate says so. Features are let go in blocks, the least important first (by gradient, or
    as in `order`, most important first), blocks that fail are halved. Minimal: for each feature of
    the reason a counter-example that lets it go as well is known, but for those in
    `Reason.undecided`, where the budget of a step ended first.

    Parameters: the region (`radius` or `relative`, `norm`, `features`, `domain`, `scale`, or
    `region=`, a Box or a Ball around x), the decision (`threshold`, `quantity`, `output`, `beta`,
    `class_weight`, `delta`, `output_norm`) and the effort as in `certify`. The time of `budget` (60
    seconds by default) is that of the whole call, of which one step may take a twelfth; its boxes
    are those of one step (by default 32 where more than 20 features are free). After it, or Ctrl-C,
    all that is not known yet is undecided. Where not even the decision at x is proved
    `Reason.found` is False, and `reason` says whether that is for x, which lies within rounding of
    its boundary, or for the budget.

    Example
    -------
    >>> import gpcert
    >>> from gpcert import explain
    >>> from gpcert.kernels import SquaredExponential
    >>> p = gpcert.Posterior(SquaredExponential([1.0, 50.0]), [[0.0, 0.0]], [1.0])
    >>> explain.sufficient(p, [0.0, 0.0], 2.0, threshold=0.5).features
    (0,)
    """
    with progress_line(words.get("progress")) as line:
        search = _Search(model, x, RegionSpecification.read(words, radius, region), words, line)
        items = search.ordered(order)
        if search.status([]) is not Status.ROBUST:
            return search.reason("sufficient", MinimalSubset([], [], list(items)), items)

        def holds(kept: list[int]) -> Answer:
            stay = set(kept)
            return search.proved(Status.ROBUST, [j for j in items if j not in stay])

        return search.reason("sufficient", minimal_subset(items, holds), items)


@verb
def contrastive(
    model: Any,
    x: Any,
    radius: Any = None,
    *,
    region: Region | None = None,
    order: Any = None,
    **words: Unpack[DecisionOptions],
) -> Reason:
    """A subset-minimal set of features whose change alone flips the decision, and how.

    `Reason.counterexample` differs from x in these features only and is decided otherwise. Minimal:
    for each of them it is proved that the others alone cannot flip the decision in the region, but
    for those in `Reason.undecided`. Where the region holds no other decision at all (proved, or not
    decided) `Reason.found` is False. Arguments as in `sufficient`, 60 seconds by default.

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
    with progress_line(words.get("progress")) as line:
        search = _Search(model, x, RegionSpecification.read(words, radius, region), words, line)
        items = search.ordered(order)
        whole = search.status(items)
        if whole is not Status.NOT_ROBUST:
            nothing = MinimalSubset([], [], [] if whole is Status.ROBUST else list(items))
            return search.reason("contrastive", nothing, items)
        # what the first counter-example does not change is not needed; the rest is tried
        changed, _ = search.known[-1]
        start = [j for j in items if j in changed]
        found = minimal_subset(start, lambda moved: search.proved(Status.NOT_ROBUST, moved))
        return search.reason("contrastive", found, items)


class _Search:
    """Certificates with chosen features free; counter-examples are remembered."""

    def __init__(
        self, model: Any, x: Any, where: RegionSpecification, words: Mapping[str, Any], line: Line
    ) -> None:
        self.started = time.perf_counter()
        self.model: Model = as_posterior(model)
        self.x = read_x(self.model, x, "ask for one point at a time")
        self.region = region_around(self.model, self.x, where)
        self.decision, self.means = read_decision(words, self.model), SearchSettings.read(words)
        self.line = line
        self.end = min(self.means.budget.ends(time.perf_counter()), deadline())
        self.ended: StopReason | None = None  # by Ctrl-C or time: no other step is begun
        self.steps: list[Step] = []
        self.known: list[tuple[frozenset[int], Certificate]] = []

    def ordered(self, order: Any) -> list[int]:
        """The movable features, the least important first."""
        if order is None:
            given = importance_by_gradient(self.model, self.x, self.region).tolist()
        else:
            given = read_order("order", order, self.model)
        rank = {j: k for k, j in enumerate(given)}
        return sorted(self.region.free.tolist(), key=lambda j: -rank.get(j, len(given)))

    def status(self, free: list[int]) -> Status:
        """The verdict with these features free; a known counter-example among them settles it."""
        wanted = frozenset(free)
        for moved, _ in self.known:
            if moved <= wanted:
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
        """Within a share of the time; the first step is begun however late."""
        seconds, boxes, memory = astuple(self.means.budget)
        if seconds is not None:
            seconds = min(seconds * STEP_SHARE, max(self.end - time.perf_counter(), 1e-6))
        if boxes is None and len(part.free) > MANY_FEATURES:
            boxes = STEP_BOXES
        means = replace(self.means, budget=Budget(seconds, boxes, memory))
        return certify_region(self.model, self.x, part, self.decision, means)

    def proved(self, wanted: Status, free: list[int]) -> Answer:
        """Whether the verdict with these features free is the wanted one or the opposite."""
        status = self.status(free)
        return None if status is Status.UNKNOWN else status is wanted

    def reason(self, kind: str, found: MinimalSubset, items: list[int]) -> Reason:
        """The record of what was found."""
        names = named(self.model.feature_names, self.model.dim)
        chosen = tuple(sorted(found.kept))
        reason = StopReason.DECIDED
        if self.ended is StopReason.INTERRUPTED or (self.ended and found.undecided):
            reason = self.ended
        elif found.undecided or self.steps[0].status is Status.UNKNOWN:
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
            undecided=tuple(sorted(found.undecided)),
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
