"""`attack` and `predict_gradient`: search for counter-examples, without proof."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Unpack, get_args

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.api.certify import certify_rule
from gpcert.api.options import AttackOptions, SearchSettings, one_of, read_seed, verb
from gpcert.api.questions import read_decision
from gpcert.api.radius import ONE_BOX
from gpcert.api.regions import RegionSpecification
from gpcert.api.rules import decision_candidates, decision_rule
from gpcert.api.running import read_flag
from gpcert.attacks import (
    AttackName,
    Decision,
    Effort,
    Neighbourhoods,
    attack_points,
    decision_margins,
    prediction_and_gradient,
)
from gpcert.certificates import Record, Status
from gpcert.certificates.record import RecordTable
from gpcert.errors import InputError
from gpcert.inputs.tabular import labels_of
from gpcert.model.committee import Model
from gpcert.numerics.rounding import norm as norm_of
from gpcert.plots.curves import plot_attacks
from gpcert.regions import Ball, Region
from gpcert.utils.optional_imports import Axes


@dataclass(frozen=True, eq=False, repr=False)
class Attack(Record, kind="attack", told="decision new_decision before after confirmed"):
    """The worst point that an attack found around x, in plain floating point: it proves nothing.

    `before` and `after` are the `quantity` at x and at `point`; `margin` is the margin of the
    decision at `point`, and `success` says that it is negative: the computed decision changes.
    `confirmed` says that certified bounds at the two points prove this (then `point` refutes
    robustness). `distance` is the distance from x in the region's norm (in units of the radii if
    there are several; for a box the largest change of a feature).
    """

    x: np.ndarray | None
    point: np.ndarray | None
    before: float
    after: float
    margin: float
    success: bool
    confirmed: bool
    distance: float
    decision: Any
    new_decision: Any
    quantity: str
    method: str
    region: dict[str, Any]
    model: str = ""

    def plot(self, ax: Axes | None = None) -> Axes:
        return AttackTable((self,)).plot(ax)


@dataclass(frozen=True, eq=False, repr=False)
class AttackTable(
    RecordTable[Attack],
    kind="attacks",
    columns="decision new_decision quantity before after margin success confirmed distance method",
    counted="points",
):
    """Attacks on the rows of X."""

    @property
    def points(self) -> np.ndarray:
        """(n, d) the worst points."""
        return np.stack([np.asarray(row.point) for row in self])

    @property
    def success(self) -> np.ndarray:
        """(n,) whether the computed decision changes."""
        return np.array([row.success for row in self], dtype=bool)

    @property
    def confirmed(self) -> np.ndarray:
        """(n,) whether the change is proved."""
        return np.array([row.confirmed for row in self], dtype=bool)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the value of every point before and after; returns the Axes."""
        before, after = np.array([row.before for row in self]), [row.after for row in self]
        quantity = self[0].quantity if len(self) else ""
        return plot_attacks(ax, before, np.array(after), self.success, quantity)

    @property
    def summary(self) -> str:
        method = self[0].method if len(self) else "none"
        return f"{self.success.sum()} successes, {self.confirmed.sum()} confirmed, {method=}"


@verb
def attack(
    model: Any,
    X: Any,
    radius: Any = None,
    *,
    method: AttackName = "best",
    region: Region | Sequence[Region] | None = None,
    restarts: int = 3,
    iterations: int = 40,
    confirm: bool = True,
    random_state: int | None = 0,
    **options: Unpack[AttackOptions],
) -> AttackTable:
    """Search for points around each row of X at which the decision is different.

    An attack runs in plain floating point and proves nothing; in particular, a failure is no proof
    of robustness. After a success, `confirm` (default) computes certified bounds at the two points,
    which is cheap: only a confirmed point is a proved counter-example (column `confirmed`).

    Parameters
    ----------
    model : a `Posterior`, or a fitted model that an adapter converts.
    X : points (n, d), also a data frame; all are attacked in one batch.
    radius, relative, norm, features, domain, scale : the balls around the points, as in
        `certify_many`.
    region : instead of `radius`: one region that contains all points, or one region per point.
    method : "gpfgs", one step along the gradient of the latent mean (Grosse et al. 2017; its sign
        in l_inf balls), the paper's baseline; "gpfgs_probability", along the gradient of the
        prediction; "pgd", projected gradient from both, from x and from random points; "square",
        random search without gradients, after the Square attack; "best" of all.
    threshold, quantity, output, beta, class_weight, delta, output_norm : the decision, as in
        `certify`; a regression needs `delta` or `threshold`.
    restarts, iterations : random starts of "pgd", and steps from each start; "square" makes ten
        times as many proposals.
    random_state : seed; the same seed gives the same points.

    Example
    -------
    >>> import gpcert
    >>> from gpcert.kernels import SquaredExponential
    >>> p = gpcert.Posterior(SquaredExponential(1.0), points=[[0.0], [3.0]], weights=[1.0, -1.0])
    >>> table = gpcert.attack(p, [[0.0], [1.4]], radius=0.5, threshold=0.0)
    >>> [(row.success, row.confirmed) for row in table]
    [(False, False), (True, True)]
    >>> table[1].point.round(3).tolist(), round(table[1].after, 3)
    ([1.9], -0.382)
    """
    posterior = as_posterior(model)
    points = posterior.check_inputs(X)
    decision = read_decision(options, posterior)
    method = one_of("method", method, get_args(AttackName))
    regions = RegionSpecification.read(options, radius, region).around_each(posterior, points, X)
    effort, seed = Effort(restarts, iterations), read_seed(random_state)
    _refuse_unused(method, {"restarts": restarts, "iterations": iterations, "random_state": seed})
    confirmed = bool(read_flag("confirm", confirm))
    if not len(points):
        return AttackTable(())
    _ = decision_candidates(posterior, points[0], decision).guess  # refuses what `certify` does
    table = attack_regions(posterior, points, regions, decision, method, effort, confirmed, seed)
    return replace(table, labels=labels_of(X, range(len(points))))


USES: Mapping[str, tuple[str, ...]] = {
    "gpfgs": (),
    "gpfgs_probability": (),
    "pgd": ("restarts", "iterations", "random_state"),
    "square": ("iterations", "random_state"),
    "best": ("restarts", "iterations", "random_state"),
}
"""Options that each method uses."""


def _refuse_unused(method: AttackName, values: Mapping[str, Any]) -> None:
    """An `InputError` for an option that the method does not use."""
    defaults = {"restarts": Effort().restarts, "iterations": Effort().iterations, "random_state": 0}
    for name, value in values.items():
        if name not in USES[method] and value != defaults[name]:
            others = ", ".join(repr(other) for other in USES if name in USES[other])
            raise InputError(
                f"{name}: has no effect on method={method!r}; leave it out, or choose one of "
                f"{others}"
            )


def attack_regions(
    model: Model,
    points: np.ndarray,
    regions: Sequence[Region],
    decision: Decision,
    method: AttackName,
    effort: Effort,
    confirm: bool,
    random_state: int | None,
) -> AttackTable:
    """`attack` after its arguments have been read: one region per point."""
    margins = decision_margins(model, points, decision)
    places = Neighbourhoods.of(regions)
    ends = attack_points(margins, places, points, method, effort, random_state)
    # rounding may have moved a point just outside its region
    ends = np.stack([region.project(x) for region, x in zip(regions, ends, strict=True)])
    rows = np.arange(len(points))
    with np.errstate(all="ignore"):  # huge latent functions overflow
        before, after = margins.displayed(points, rows), margins.displayed(ends, rows)
        margin = margins.margin(ends, rows)
        old, new = margins.decided(points), margins.decided(ends)
    results = []
    for k, region in enumerate(regions):
        success = bool(margin[k] < 0)
        confirmed = success and confirm and confirmed_at(model, points[k], ends[k], decision)
        results.append(
            Attack(
                x=points[k],
                point=ends[k],
                before=float(before[k]),
                after=float(after[k]),
                margin=float(margin[k]),
                success=success,
                confirmed=confirmed,
                distance=_distance(region, points[k], ends[k]),
                decision=old[k],
                new_decision=new[k],
                quantity=margins.quantity,
                method=method,
                region=region.describe(),
                model=model.fingerprint,
            )
        )
    return AttackTable(tuple(results))


def confirmed_at(model: Model, x: np.ndarray, point: np.ndarray, decision: Decision) -> bool:
    """Whether certified bounds prove that the decision at `point` differs from the one at x.

    The decision at x is proved as well, because the computed one may be wrong near a tie; its
    margin must be proved negative on the cell of width 0 at `point`.
    """
    rule = decision_rule(model, x, decision)
    place, settings = Ball(point, 0.0), SearchSettings(ONE_BOX)
    return rule.decided and certify_rule(place, rule, settings).status is Status.NOT_ROBUST


@verb
def predict_gradient(
    model: Any, X: Any, quantity: Literal["probability", "mean"] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Predictions (n, m) and their gradients (n, m, d) at X (n, d), in plain floating point.

    The predictions that the decision depends on: the probability of the second of two classes
    (m = 1), the probabilities of all classes, the means of a regression, or the scores of a
    one-vs-one committee (votes have no gradient: the gradients are those of the confidences).
    `quantity="mean"`: the latent means.

    Example
    -------
    >>> import gpcert
    >>> from gpcert.kernels import SquaredExponential
    >>> p = gpcert.Posterior(SquaredExponential(1.0), points=[[0.0, 0.0]], weights=[1.0])
    >>> value, gradient = gpcert.predict_gradient(p, [[1.0, 0.0]])
    >>> value.round(4).tolist(), gradient.round(4).tolist()
    ([[0.6065]], [[[-0.6065, 0.0]]])
    """
    posterior = as_posterior(model)
    kind = one_of("quantity", quantity, (None, "probability", "mean"))
    return prediction_and_gradient(posterior, posterior.check_inputs(X), kind)


def _distance(region: Region, x: np.ndarray, point: np.ndarray) -> float:
    moved, p = point - x, region.norm if isinstance(region, Ball) else np.inf
    if isinstance(region, Ball) and np.ndim(region.radius):
        unit = np.asarray(region.radius)
        moved = np.divide(moved, unit, out=np.zeros_like(moved), where=unit > 0)
    return float(norm_of(moved, p))
