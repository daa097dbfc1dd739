"""Smallest reasons: sets of features that prove a decision, or that alone can change it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.api import certify
from gpcert.certificates import Certificate, Status
from gpcert.committee import Model
from gpcert.errors import InputError
from gpcert.explain.arguments import feature_indices, one_point
from gpcert.explain.gradients import importance_by_gradient
from gpcert.explain.reason_record import Reason, Step
from gpcert.explain.record import named
from gpcert.explain.slices import movable, region_around, with_free
from gpcert.explain.subsets import Answer, MinimalSubset, minimal_subset
from gpcert.regions import Region
from gpcert.search import Budget, StopReason

__all__ = ["contrastive", "sufficient"]

STEP_SECONDS, STEP_BOXES = 5.0, 32
"""Default budget of one step; that of boxes where more than MANY_FEATURES are free: splitting boxes
of many features gains next to nothing, and an undecided step would take all of its time."""

MANY_FEATURES = 20


def sufficient(
    model: Any,
    x: Any,
    radius: Any = None,
    *,
    region: Region | None = None,
    norm: float | str = np.inf,
    features: Any = None,
    domain: Any = None,
    threshold: float | None = None,
    class_weight: Mapping[Any, float] | Sequence[float] | None = None,
    delta: float | None = None,
    order: Any = None,
    budget: Budget | None = None,
    random_state: int | None = 0,
) -> Reason:
    """A subset-minimal set of features which, kept as they are at x, proves the decision.

    Whatever the other features do in the region, the decision is the one at x: the last step's
    certificate says so. Features are let go in blocks, the least important first (by gradient, or
    as in `order`, most important first), blocks that fail are halved. Minimal: for each feature of
    the reason a counter-example that lets it go as well is known, but for those in
    `Reason.undecided`, where the budget of a step ended first.

    Parameters: the region (`radius`, `norm`, `features`, `domain`, or `region=`, a Box or a Ball
    around x) and the decision (`threshold`, `class_weight`, `delta`) as in `certify`; `budget` is
    that of one step (by default 5 s, and 32 boxes where more than 20 features are free).

    Example
    -------
    >>> import gpcert
    >>> from gpcert import explain
    >>> from gpcert.kernels import SquaredExponential
    >>> p = gpcert.Posterior(SquaredExponential([1.0, 50.0]), [[0.0, 0.0]], [1.0])
    >>> explain.sufficient(p, [0.0, 0.0], 2.0, threshold=0.5).features
    (0,)
    """
    search = _search(
        model,
        x,
        radius,
        region,
        (norm, features, domain),
        budget,
        random_state,
        threshold=threshold,
        class_weight=class_weight,
        delta=delta,
    )
    items = search.ordered(order)
    if search.status([]) is not Status.ROBUST:
        raise InputError(
            "x: the decision at x itself is not proved (it lies within rounding of its boundary), "
            "so no set of features can prove it"
        )

    def holds(kept: list[int]) -> Answer:
        stay = set(kept)
        status = search.status([j for j in items if j not in stay])
        return {Status.ROBUST: True, Status.NOT_ROBUST: False, Status.UNKNOWN: None}[status]

    return search.reason("sufficient", minimal_subset(items, holds), items)


def contrastive(
    model: Any,
    x: Any,
    radius: Any = None,
    *,
    region: Region | None = None,
    norm: float | str = np.inf,
    features: Any = None,
    domain: Any = None,
    threshold: float | None = None,
    class_weight: Mapping[Any, float] | Sequence[float] | None = None,
    delta: float | None = None,
    order: Any = None,
    budget: Budget | None = None,
    random_state: int | None = 0,
) -> Reason:
    """A subset-minimal set of features whose change alone flips the decision, and how.

    `Reason.counterexample` differs from x in these features only and is decided otherwise. Minimal:
    for each of them it is proved that the others alone cannot flip the decision in the region, but
    for those in `Reason.undecided`. Where the region holds no other decision at all (proved, or not
    decided) `Reason.found` is False. Arguments as in `sufficient`.

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
    search = _search(
        model,
        x,
        radius,
        region,
        (norm, features, domain),
        budget,
        random_state,
        threshold=threshold,
        class_weight=class_weight,
        delta=delta,
    )
    items = search.ordered(order)
    whole = search.status(items)
    if whole is not Status.NOT_ROBUST:
        nothing = MinimalSubset([], [], [] if whole is Status.ROBUST else list(items))
        return search.reason("contrastive", nothing, items)
    # what the first counter-example does not change is not needed; the rest is tried
    changed = search.changed()

    def holds(moved: list[int]) -> Answer:
        status = search.status(moved)
        return {Status.ROBUST: False, Status.NOT_ROBUST: True, Status.UNKNOWN: None}[status]

    start = [j for j in items if j in changed]
    found = minimal_subset(start, holds)
    return search.reason("contrastive", found, items)


@dataclass(eq=False)
class _Search:
    """Certificates with chosen features free; counter-examples are remembered."""

    model: Model
    x: np.ndarray
    region: Region
    ask: Callable[[Region], Certificate]
    steps: list[Step] = field(default_factory=list)
    known: list[tuple[frozenset[int], Certificate]] = field(default_factory=list)
    started: float = field(default_factory=time.perf_counter)

    def ordered(self, order: Any) -> list[int]:
        """The movable features, the least important first."""
        free = movable(self.region)
        if order is None:
            order = importance_by_gradient(self.model, self.x, self.region)
        given = [int(j) for j in np.asarray(order)]
        if len(set(given)) != len(given) or any(not 0 <= j < self.model.dim for j in given):
            raise InputError(f"order: expected distinct features of 0..{self.model.dim - 1}")
        rank = {j: k for k, j in enumerate(given)}
        return sorted((int(j) for j in free), key=lambda j: -rank.get(j, len(given)))

    def status(self, free: list[int]) -> Status:
        """The verdict with these features free; a known counter-example among them settles it."""
        wanted = frozenset(free)
        for moved, _ in self.known:
            if moved <= wanted:
                return Status.NOT_ROBUST
        certificate = self.ask(with_free(self.region, self.x, free))
        if certificate.reason is StopReason.INTERRUPTED:
            raise KeyboardInterrupt
        self.steps.append(Step.of(free, certificate))
        if certificate.counterexample is not None:
            moved = frozenset(int(j) for j in np.flatnonzero(certificate.counterexample != self.x))
            self.known.append((moved, certificate))
        return certificate.status

    def changed(self) -> frozenset[int]:
        """What the last counter-example changed."""
        return self.known[-1][0]

    def reason(self, kind: str, found: MinimalSubset, items: list[int]) -> Reason:
        """The record of what was found."""
        names = named(self.model.feature_names, self.model.dim)
        chosen = tuple(sorted(found.kept))
        flipped = None
        if kind == "contrastive" and chosen:
            flipped = next(c for moved, c in self.known if moved <= frozenset(chosen))
        return Reason(
            reason=kind,
            x=self.x,
            decision=self.steps[-1].decision,
            features=chosen,
            feature_names=tuple(names[j] for j in chosen),
            undecided=tuple(sorted(found.undecided)),
            movable=tuple(sorted(items)),
            counterexample=None if flipped is None else flipped.counterexample,
            steps=tuple(self.steps),
            region=self.region.describe(),
            rule=self.steps[-1].rule,
            seconds=time.perf_counter() - self.started,
        )


def _search(
    model: Any,
    x: Any,
    radius: Any,
    region: Region | None,
    shape: tuple[float | str, Any, Any],
    budget: Budget | None,
    random_state: int | None,
    **decision: Any,
) -> _Search:
    posterior = as_posterior(model)
    point = one_point(posterior, x)
    norm, features, domain = shape
    chosen = None if features is None else feature_indices(posterior, features)
    options = {"norm": norm, "features": chosen, "domain": domain}
    found = region_around(point, radius, region, options)

    def ask(part: Region) -> Certificate:
        most = STEP_BOXES if len(part.free) > MANY_FEATURES else None
        limits = budget or Budget(seconds=STEP_SECONDS, boxes=most)
        return certify(
            posterior, point, region=part, budget=limits, random_state=random_state, **decision
        )

    return _Search(posterior, point, found, ask)
