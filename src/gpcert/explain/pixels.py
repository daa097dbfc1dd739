"""`pixel_budget`: the smallest number of important pixels that can change the decision.

Proofs: docs/mathematics.md, statement 15.4.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Unpack

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.api.accuracy import USUAL, Accuracy
from gpcert.api.options import RangeOptions, SearchSettings, read_x, verb
from gpcert.api.regions import RegionSpecification
from gpcert.api.rules import decision_rule
from gpcert.api.running import Line, margin_text, progress_line
from gpcert.attacks import Decision
from gpcert.certificates.record import COST, RecordTable, Searched, cells_of
from gpcert.certificates.text import TextTable, table_shown
from gpcert.errors import InputError
from gpcert.explain.arguments import region_around, with_free
from gpcert.explain.rankings import ranked_features
from gpcert.likelihoods import ScalarLikelihood
from gpcert.model.committee import Committee, Model
from gpcert.model.posterior import Posterior
from gpcert.numerics.rounding import down, up
from gpcert.plots.curves import plot_gaps
from gpcert.quantities import Probability, Quantity
from gpcert.regions import Region
from gpcert.search import Progress, SearchResult, StopReason, solve, stop_if_interrupted
from gpcert.search.problem import Tolerance
from gpcert.utils.optional_imports import Axes, DataFrame, optional


@dataclass(frozen=True, eq=False, repr=False)
class PixelBudget(Searched, kind="pixel_budget"):
    """`lower <= smallest gap <= upper` per beta (B,), attained at `points` (B, d).

    `least_beta` is the smallest number of pixels, in the order of `ranking`, for which an image
    with another decision is known (`adversarial`), or None. Up to `safe_beta` it is proved that
    there is no such image (None: this is proved for none of the betas). After Ctrl-C, `betas` are
    those that were finished. `betas` is empty if the decision at x could not be proved.
    """

    x: np.ndarray | None
    decision: Any
    ranked_by: str
    ranking: tuple[int, ...]
    betas: tuple[int, ...]
    lower: np.ndarray
    upper: np.ndarray
    points: np.ndarray
    least_beta: int | None
    safe_beta: int | None
    adversarial: np.ndarray | None
    region: dict[str, Any]

    def to_frame(self) -> DataFrame:
        """One row per beta."""
        return optional("pandas", "to_frame").DataFrame(self._columns())

    def _columns(self) -> dict[str, Any]:
        return {"beta": self.betas, "gap_lower": self.lower, "gap_upper": self.upper}

    def plot(self, ax: Axes | None = None, *, label: str = "") -> Axes:
        """Plot the gap against the number of pixels; returns the Axes. `label` is the curve's name,
        by default that of the ranking."""
        return plot_gaps(ax, [(label or self.ranked_by, self.betas, self.lower, self.upper)])

    def shown(self) -> TextTable:
        columns = self._columns()
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        return table_shown(repr(self), rows, True)

    def __repr__(self) -> str:
        least = "none flips" if self.least_beta is None else f"{self.least_beta} pixels flip"
        outcome = f"{least} {self.decision}" if self.betas else f"none known: {self.reason.value}"
        return f"PixelBudget({self.ranked_by}, {len(self.betas)} betas, {outcome})"

    def inputs(self) -> list[np.ndarray]:
        arrays = (self.x, self.points if self.betas else None, self.adversarial)
        return [each for each in arrays if each is not None]

    def check(self) -> None:
        super().check()
        count = len(self.betas)
        if self.x is None or self.points.shape != ((count, len(self.x)) if count else (0,)):
            raise InputError("points: expected a point for every beta")
        if not self.lower.shape == self.upper.shape == (count,):
            raise InputError("lower, upper: expected a number for every beta")
        if not np.all(self.lower <= self.upper):
            raise InputError("gaps: expected lower <= upper")


@dataclass(frozen=True, eq=False, repr=False)
class PixelBudgetTable(RecordTable[PixelBudget], kind="pixel_budgets"):
    """Pixel budgets of several points."""

    def cells(self, row: PixelBudget) -> dict[str, Any]:
        return {
            **cells_of(row, "decision ranked_by least_beta safe_beta"),
            "gap_lower": float(row.lower[-1]) if row.betas else None,
            "gap_upper": float(row.upper[-1]) if row.betas else None,
            **cells_of(row, COST),
        }

    def plot(self, ax: Axes | None = None) -> Axes:
        pairs = zip(self.labels, self, strict=True)
        rows = [(f"{label}: {r.ranked_by}", r.betas, r.lower, r.upper) for label, r in pairs]
        return plot_gaps(ax, rows)


@verb
def pixel_budget(
    model: Any,
    x: Any,
    betas: Sequence[int] | None = None,
    *,
    ranking: Any = "effects",
    radius: Any = None,
    region: Region | None = None,
    tol: float | None = None,
    rtol: float | None = None,
    **options: Unpack[RangeOptions],
) -> PixelBudget:
    """The gap pi_gap when the beta most important pixels take their worst values, for each beta.

    pi_gap is the smallest lead of the class decided at x, which is proved, over the other classes
    (the paper's adversarial gap; for scikit-learn's one-vs-one it is a lead in votes). Another
    class leads where it is negative. For every beta the smallest gap over the region with those
    pixels free is bounded, and the point that attains the upper bound is returned. If x lies within
    rounding of a tie, the result has no `betas`, and `reason` says why.

    Parameters
    ----------
    betas : numbers of pixels; by default 1, 2, 4, ... up to all that can move.
    ranking : "effects" (the paper's metric, proved), "lime", "gradient", "sufficient" (features of
        a sufficient reason first), or the features in order, the most important first.
    radius, relative, norm, features, domain, scale, region : the region of the pixels, as in
        `certify`.
    tol, rtol, budget : for each beta: a gap is bounded to within `tol` (0.01 by default) or `rtol`
        times its size, whichever is larger; 60 seconds by default. `least_beta` is found by
        bisection between the given betas.
    backend, random_state, method, variance_bound, progress : as in `prediction_range`. After
        Ctrl-C the finished betas are returned.

    Example
    -------
    >>> import numpy as np, gpcert
    >>> from gpcert import explain
    >>> from gpcert.kernels import SquaredExponential
    >>> from gpcert.likelihoods import Probit
    >>> p = gpcert.Posterior(SquaredExponential([1.0, 9.0]), [[0.0, 0.0], [2.0, 0.0]],
    ...                      [3.0, -3.0], likelihood=Probit())
    >>> budget = explain.pixel_budget(p, [0.5, 0.5], [1, 2], ranking="gradient", radius=1.5)
    >>> budget.least_beta, budget.ranking[0]
    (1, 0)
    """
    started = time.perf_counter()
    posterior = as_posterior(model)
    point = read_x(posterior, x, "ask for one point at a time")
    full_region = region_around(posterior, point, RegionSpecification.read(options, radius, region))
    accuracy, settings = Accuracy.read(tol, rtol), SearchSettings.read(options)
    gap, counts = _gap(posterior, point), _betas(betas, len(full_region.free))
    order = np.zeros(0, dtype=int)
    if gap.undecided is None:
        order = ranked_features(
            posterior, point, full_region, ranking, gap.label, settings.random_state
        )
    else:
        counts = []  # there is no decision to flip
    with progress_line(options.get("progress")) as line:
        search = _Search(gap, point, full_region, order, gap.tolerance(accuracy), settings, line)
        least = search.run(counts)
    rows = {beta: search.known[beta] for beta in counts if beta in search.known}
    safe = [beta for beta, row in search.known.items() if gap.lower(row) > 0]
    early = [row.reason for row in search.known.values() if row.reason is not StopReason.CONVERGED]
    return PixelBudget(
        x=point,
        decision=gap.label,
        ranked_by=ranking if isinstance(ranking, str) else "given order",
        ranking=tuple(order.tolist()),
        betas=tuple(rows),
        lower=np.array([gap.lower(row) for row in rows.values()]),
        upper=np.array([gap.upper(row) for row in rows.values()]),
        points=np.array([row.goals[0].point for row in rows.values()]),
        least_beta=least,
        safe_beta=max(safe, default=None),
        adversarial=None if least is None else search.known[least].goals[0].point,
        reason=gap.undecided or (early[-1] if early else StopReason.CONVERGED),
        boxes=sum(row.boxes for row in search.known.values()),
        seconds=time.perf_counter() - started,
        region=full_region.describe(),
        method=settings.method.name,
        model=posterior.fingerprint,
    )


@dataclass(frozen=True, eq=False)
class _Gap:
    """The gap as `factor * quantity + shift`: for two classes `2 pi - 1`, pi that of the decided
    one.

    If the decision at x is not proved, `undecided` says why, and the label is None.
    """

    model: Model
    quantity: Quantity
    label: Any
    undecided: StopReason | None
    factor: float = 1.0
    shift: float = 0.0

    def tolerance(self, accuracy: Accuracy) -> Tolerance:
        """The tolerance of the quantity, from that of the gap."""
        tol = accuracy.tol if accuracy.given else USUAL
        zeros = np.array([[-self.shift / self.factor]])
        return Tolerance((tol or 0.0) / self.factor, accuracy.rtol or 0.0, zeros)

    def lower(self, row: SearchResult) -> float:
        return float(down(self.factor * row.goals[0].lower + self.shift, 2))

    def upper(self, row: SearchResult) -> float:
        return float(up(self.factor * row.goals[0].upper + self.shift, 2))


def _gap(model: Model, x: np.ndarray) -> _Gap:
    if not isinstance(model, Committee) and not model.likelihood.classifies:
        advice = model.likelihood.advice
        raise InputError(
            f"model: expected a classifier; a regression has no decision to flip{advice}"
        )
    two = not isinstance(model, Committee) and isinstance(model.likelihood, ScalarLikelihood)
    if isinstance(model, Posterior):
        model.check_has_variance("gap between the probabilities")
    rule = decision_rule(model, x, Decision(threshold=0.5 if two else None))
    if not two:
        return _Gap(rule.model, rule.quantity, rule.decision, rule.undecided)
    assert not isinstance(model, Committee)
    assert isinstance(model.likelihood, ScalarLikelihood)
    second = rule.decision == model.labels[1]
    probability = Probability(model.likelihood, 0, 1 if second else -1)
    # second class: 2 pi - 1; first class: 1 - 2 pi
    return _Gap(model, probability, rule.decision, rule.undecided, 2.0, -1.0 if second else 1.0)


@dataclass(eq=False)
class _Search:
    gap: _Gap
    x: np.ndarray
    region: Region
    order: np.ndarray
    tol: Tolerance
    settings: SearchSettings
    line: Line
    known: dict[int, SearchResult] = field(default_factory=dict)

    def run(self, betas: Sequence[int]) -> int | None:
        """Bound the gap of all betas; returns the smallest known beta that flips the decision."""
        try:
            for beta in betas:
                self.at(beta)
            high = self._least_known()
            low = max([beta for beta in self.known if high is None or beta < high], default=-1)
            while high is not None and high - low > 1:  # bisection: regions are nested
                middle = (low + high) // 2
                low, high = (low, middle) if self.flips(middle) else (middle, high)
            return high
        except KeyboardInterrupt:
            if not self.known:
                raise
            return self._least_known()

    def _least_known(self) -> int | None:
        """The smallest number of pixels with a known adversarial image."""
        return min((beta for beta in self.known if self.flips(beta)), default=None)

    def at(self, beta: int) -> SearchResult:
        """Bounds of the smallest gap with the first beta features free."""
        if beta not in self.known:
            part = with_free(self.region, self.x, [int(j) for j in self.order[:beta]])
            progress = Progress(report=lambda s: self.line.show(f"{beta} pixels: {margin_text(s)}"))
            stop: dict[str, Any] = {"tol": self.tol, "progress": progress}
            problem = self.settings.problem(self.gap.model, part, [self.gap.quantity], **stop)
            self.known[beta] = solve(problem)
            stop_if_interrupted(self.known[beta].reason)
        return self.known[beta]

    def flips(self, beta: int) -> bool:
        """Whether a point with another decision is known."""
        return self.gap.upper(self.at(beta)) < 0


def _betas(betas: Sequence[int] | None, most: int) -> list[int]:
    if betas is None:
        powers = [2**k for k in range(most.bit_length()) if 2**k < most]
        return [*powers, most] if most else [0]
    counts = np.asarray(betas)
    if counts.ndim != 1 or counts.dtype.kind not in "iu" or np.any(counts < 0) or counts.size == 0:
        raise InputError(f"betas: expected whole numbers >= 0, got {betas!r}")
    if counts.max() > most:
        raise InputError(f"betas: expected at most {most} pixels, the number that may move")
    return sorted({int(beta) for beta in counts})
