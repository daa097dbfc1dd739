"""`certified_accuracy`: the share of a test set that is right and proved robust."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Unpack

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.api import certified_radius_many
from gpcert.api.compared import read_decision
from gpcert.api.options import AccuracyOptions, read_radii, search_options, verb
from gpcert.api.regions import RegionSpecification
from gpcert.api.rules import decision_rule
from gpcert.attacks import Decision, decision_margins
from gpcert.certificates import Radius
from gpcert.certificates.record import COST, BoundTable, Searched
from gpcert.certificates.schema import ADDED, like
from gpcert.certificates.text import above, below, in_unit, percent
from gpcert.errors import InputError
from gpcert.inputs.tabular import labels_of
from gpcert.model.committee import Committee, Model
from gpcert.model.multi_output import Outputs
from gpcert.numerics.arrays import finite_array
from gpcert.numerics.rounding import norm as norm_of
from gpcert.plots.curves import plot_accuracy, step_radii
from gpcert.regions.shapes import check_norm
from gpcert.search import StopReason
from gpcert.utils.optional_imports import Axes, DataFrame, optional


@dataclass(frozen=True, eq=False, repr=False)
class TestPoint(Searched, kind="accuracy_point", told="label decision right lower upper norm"):
    """One test point: whether its decision is `right`, and if so between which radii it breaks.

    Proved robust up to `lower`; a counter-example lies at distance `upper` (infinite if none is
    known). Points that are wrong have 0 for both. `scale` is the unit of the radii, if any, and
    `radius_unit` what it is called.
    """

    __test__: ClassVar[bool] = False

    label: Any
    decision: Any
    right: bool
    lower: float
    upper: float
    norm: float
    scale: np.ndarray | None = field(default=None, metadata=ADDED)
    radius_unit: str = field(default="", metadata=ADDED)

    def check(self) -> None:
        super().check()
        if not 0 <= self.lower <= self.upper:
            raise InputError("expected 0 <= lower <= upper")


@dataclass(frozen=True, eq=False, repr=False)
class CertifiedAccuracy(
    BoundTable[TestPoint],
    kind="certified_accuracy",
    columns=f"label decision right lower upper norm {COST}",
    counted="points",
):
    """Test points, and `radii` at which their shares are reported.

    `complete` says whether all points were reached, `converged` whether every radius that was
    sought is known to within the tolerance.
    """

    radii: tuple[float, ...] = ()

    @property
    def accuracy(self) -> float:
        """Share of the points that are right, whatever their robustness; 0 of no points."""
        return float(np.mean([row.right for row in self])) if len(self) else 0.0

    def certified(self, radii: Any = None) -> np.ndarray:
        """Shares of the points that are right and proved robust at the radii.

        A point whose proved radius is 0 is not proved at all, not even for the radius 0.
        """
        r = self._radii(radii)
        found = np.array([(row.right, row.lower) for row in self]).reshape(-1, 2)
        proved = (found[:, :1] > 0) & (found[:, 1:] > 0) & (found[:, 1:] >= r)
        return proved.mean(axis=0) if len(self) else 0.0 * r

    def attacked(self, radii: Any = None) -> np.ndarray:
        """Shares of the points that are right and for which no counter-example is known within the
        radii: the truth lies between `certified` and this."""
        r = self._radii(radii)
        found = np.array([(row.right, row.upper) for row in self]).reshape(-1, 2)
        return ((found[:, :1] > 0) & (found[:, 1:] > r)).mean(axis=0) if len(self) else 0.0 * r

    def curve(self, radii: Any = None) -> DataFrame:
        """Radius, certified share, attacked share."""
        pandas = optional("pandas", "curve")
        shares = {"certified": self.certified(radii), "attacked": self.attacked(radii)}
        return pandas.DataFrame({"radius": self._radii(radii), **shares})

    def plot(self, ax: Axes | None = None, *, label: str = "") -> Axes:
        """Both curves over the radius, the band between them shaded; returns the Axes."""
        if not len(self):
            raise InputError("plot: expected at least one point, got an empty table")
        finite = [row.upper for row in self if row.right and np.isfinite(row.upper)]
        steps = [0.0, *self.radii, *finite, *(row.lower for row in self if row.right)]
        end = max(self.radii) if self.radii else max(steps)
        fine = step_radii(steps, end)
        shares = (self.certified(fine), self.attacked(fine))
        return plot_accuracy(ax, fine, *shares, label=label, unit=in_unit(self))

    def _radii(self, radii: Any) -> np.ndarray:
        chosen = self.radii if radii is None else radii
        return np.atleast_1d(np.asarray(chosen, dtype=np.float64))

    @property
    def summary(self) -> str:
        return self.shares(6)

    def shares(self, most: int | None = None) -> str:
        """In words, how many of the points are right, and right and robust at the first so many
        radii (None: at all)."""
        n = len(self)
        if not n:
            return ""
        rows = zip(self.radii[:most], self.certified()[:most], self.attacked()[:most], strict=True)
        each = (
            f"{r:g}: {percent(low, n, below)} to {percent(high, n, above)}" for r, low, high in rows
        )
        robust = f"right and robust at radius{in_unit(self)} {'; '.join(each)}"
        return f"{percent(self.accuracy, n)} right; {robust}"


@verb
def certified_accuracy(
    model: Any,
    X: Any,
    y: Any,
    radii: Any,
    *,
    rtol: float = 0.01,
    **words: Unpack[AccuracyOptions],
) -> CertifiedAccuracy:
    """Share of the test points that are right and proved robust, as a function of the radius.

    The robustness radius of every point that is right is bracketed once (`certified_radius_many`),
    which gives both curves at all radii: right and proved (`certified`), and right and not known to
    break (`attacked`). The true share lies between them: a point of a classifier counts as wrong
    only where that is proved.

    Parameters
    ----------
    X, y : test points and their labels. In regression a point is right where its mean is within
        `delta` of y (in `output_norm`), in plain floating point; None for y counts all points as
        right.
    radii : where the curves are reported; the largest ends the search (radii beyond need another
        run), other values between may be asked of the result, `result.curve(radii)`.
    norm, features, domain, scale, threshold, class_weight, delta, output_norm : as in `certify`.
    rtol : relative accuracy of the radii; budget : of one point, 60 seconds by default.
    backend, random_state, method, variance_bound, n_jobs, progress : as in `certify_many`. Ctrl-C
        returns the points finished so far, `complete=False`; shares are then those of these points.

    Example
    -------
    >>> import gpcert
    >>> from gpcert.kernels import SquaredExponential
    >>> from gpcert.likelihoods import Probit
    >>> p = gpcert.Posterior(SquaredExponential(1.0), points=[[0.0], [3.0]], weights=[1.0, -1.0],
    ...                      likelihood=Probit(), classes=("no", "yes"))
    >>> X, y = [[0.0], [1.0], [3.0], [2.5]], ["yes", "yes", "no", "yes"]
    >>> found = gpcert.certified_accuracy(p, X, y, radii=[0.0, 0.4, 1.0, 2.0])
    >>> found.certified().tolist(), found.attacked().tolist()
    ([0.75, 0.75, 0.5, 0.0], [0.75, 0.75, 0.5, 0.0])
    """
    posterior = as_posterior(model)
    points = posterior.check_inputs(X)
    options = read_decision(words, posterior)
    grid = read_radii(radii)
    decided = decision_margins(posterior, points, options).decided(points)
    labels, right = _right(posterior, points, y, decided, options)
    effort = {**words, **search_options(words)}
    searched = right
    if not _regressor(posterior):
        searched = ~_proved_wrong(posterior, points, labels, right, options)
    rows = np.flatnonzero(searched)
    largest = float(grid[-1]) if grid[-1] > 0 else None
    table = certified_radius_many(posterior, points[rows], max_radius=largest, rtol=rtol, **effort)
    nothing = {"reason": StopReason.CONVERGED, "boxes": 0, "seconds": 0.0}
    about = {**nothing, "method": effort["method"], "model": posterior.fingerprint}
    shape = RegionSpecification.read(words).shape(posterior)
    about |= {"scale": shape.unit, "radius_unit": shape.unit_name}
    blank = TestPoint(None, None, False, 0.0, 0.0, check_norm(effort["norm"]), **about)
    pairs = zip(labels, decided, strict=True)
    wrong = [replace(blank, label=label, decision=decision) for label, decision in pairs]
    found = {int(k): wrong[k] for k in np.flatnonzero(~searched)}
    for row, item in zip(table.labels, table, strict=True):
        found[int(rows[row])] = _point(wrong[rows[row]], item)
    order = sorted(found)
    names, done = labels_of(X, order), tuple(found[k] for k in order)
    return CertifiedAccuracy(done, table.complete, names, tuple(grid.tolist()))


def _point(blank: TestPoint, item: Radius) -> TestPoint:
    """The record of a point whose radius was bracketed.

    The bracket is of the decision that was proved at x. If that is not the label after all, the
    point is wrong; if none was proved, the bracket is `[0, inf]`, and the point counts as right in
    the upper curve only.
    """
    decision = blank.decision if item.decision is None else item.decision
    right = item.decision is None or bool(item.decision == blank.label)
    ends = {} if right else {"lower": 0.0, "upper": 0.0}
    return like(TestPoint, item, label=blank.label, decision=decision, right=right, **ends)


def _proved_wrong(
    model: Model, points: np.ndarray, labels: list[Any], right: np.ndarray, options: Decision
) -> np.ndarray:
    """(n,) whether the decision is proved to be another than the label.

    Only where plain floating point says so is it asked; elsewhere the search for the radius proves
    the decision. Near a tie, where nothing is proved, a point is not called wrong.
    """
    wrong = np.zeros(len(points), dtype=bool)
    for k in np.flatnonzero(~right):
        rule = decision_rule(model, points[k], options)
        wrong[k] = rule.decided and bool(rule.decision != labels[k])
    return wrong


def _regressor(model: Model) -> Outputs | None:
    return None if isinstance(model, Committee) or model.likelihood.classifies else model


def _right(
    model: Model, points: np.ndarray, y: Any, decided: list[Any], options: Decision
) -> tuple[list[Any], np.ndarray]:
    """Labels as plain numbers or text, and which computed decisions agree with them."""
    n = len(points)
    regressor = _regressor(model)
    if y is None and regressor is not None:
        return [None] * n, np.ones(n, dtype=bool)
    given = _one_each(y, n)
    if regressor is None:
        labels = [value.item() if isinstance(value, np.generic) else value for value in given]
        for label in labels:
            single = isinstance(label, Hashable) and not getattr(label, "ndim", 0)
            if not (single and label in model.labels):
                raise InputError(f"y: expected labels among {list(model.labels)}, got {label!r}")
        return labels, np.array([a == b for a, b in zip(labels, decided, strict=True)], dtype=bool)
    delta = options.delta
    if delta is None:
        raise InputError(
            "y: a regression's point is right where its mean is within delta= of y; got no delta "
            "(pass y=None to count all points as right)"
        )
    targets = finite_array("y", y)
    targets = targets.reshape(n, -1) if targets.size else targets
    mean = regressor.predict(points)[0]
    if targets.shape != mean.shape:
        raise InputError(f"y: expected shape {mean.shape}, got {targets.shape}")
    single = targets[:, 0].tolist() if targets.shape[1] == 1 else [None] * n
    return single, norm_of(mean - targets, options.output_norm) <= delta


def _one_each(y: Any, n: int) -> list[Any]:
    """The labels as a list, one for each point."""
    wanted = f"y: expected one label for each of {n} points, got "
    if y is None or isinstance(y, str | bytes | Mapping | set | frozenset):
        raise InputError(wanted + repr(y))
    try:
        found = list(y)
    except TypeError as error:
        raise InputError(wanted + repr(y)) from error
    if len(found) != n:
        raise InputError(f"{wanted}{len(found)}")
    return found
