"""`worst_case`: the certified worst prediction of a regression over a region."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.api import prediction_range_many
from gpcert.api.questions import range_question
from gpcert.api.regions import Where
from gpcert.api.words import RangeTableWords, read_tolerance, search_words, verb
from gpcert.certificates import Interval, PredictionRange
from gpcert.certificates.record import COST, RecordTable, Searched
from gpcert.certificates.schema import like
from gpcert.committee import Committee
from gpcert.errors import InputError
from gpcert.extras import Axes
from gpcert.frames import labels_of
from gpcert.plots.curves import plot_worst_cases
from gpcert.regions import Region


@dataclass(frozen=True, eq=False, repr=False)
class WorstCase(Searched, kind="worst_case", told="mean minimum maximum band beta"):
    """The least and the greatest mean over a region around x, and a band that holds everywhere.

    `minimum.lower <= min <= minimum.upper`, the latter attained at `argmin`; likewise the maximum.
    `band_minimum` bounds the least `mean - beta std` in the same way, attained at `band_argmin`,
    and `band_maximum` the greatest `mean + beta std`; std is that of the model's own latent
    variance, noise included where it has some. `mean` is the prediction at x, in plain floating
    point. `reason` is why the search for the mean ended or, if that converged, that for the band.
    """

    mean: float
    minimum: Interval
    maximum: Interval
    argmin: np.ndarray | None
    argmax: np.ndarray | None
    band_minimum: Interval
    band_maximum: Interval
    band_argmin: np.ndarray | None
    band_argmax: np.ndarray | None
    beta: float
    x: np.ndarray | None
    output: Any
    region: dict[str, Any]

    @property
    def band(self) -> Interval:
        """An interval that holds `mean +- beta std` at every point of the region."""
        return Interval(self.band_minimum.lower, self.band_maximum.upper)

    def plot(self, ax: Axes | None = None) -> Axes:
        return WorstCaseTable((self,)).plot(ax)


@dataclass(frozen=True, eq=False, repr=False)
class WorstCaseTable(
    RecordTable[WorstCase], kind="worst_cases", columns=f"mean minimum maximum band beta {COST}"
):
    """Worst cases of the rows of X."""

    def plot(self, ax: Axes | None = None) -> Axes:
        """Per point the mean, its proved range and the band; returns the Axes."""
        return plot_worst_cases(ax, self.to_frame())

    def __repr__(self) -> str:
        widest = max((row.maximum.upper - row.minimum.lower for row in self), default=0.0)
        return f"WorstCaseTable({len(self)} points, means move by at most {widest:.4g})"


@verb
def worst_case(
    model: Any,
    X: Any,
    radius: Any = None,
    *,
    region: Region | Sequence[Region] | None = None,
    beta: float = 2.0,
    output: int | None = None,
    tol: float = 0.01,
    **words: Unpack[RangeTableWords],
) -> WorstCaseTable:
    """Bounds on a regression's least and greatest mean around each point, and a credible band.

    The band contains `mean +- beta std` at every point of the region: from the least
    `mean - beta std` to the greatest `mean + beta std`, each bounded as one function.

    Parameters
    ----------
    radius, norm, features, domain, scale : the regions are balls around the rows of X, as in
        `certify`; `region` instead is one region that contains all of them, or one each.
    beta : how many standard deviations the band reaches; 2 by default.
    output : the number of the target, if there are several.
    tol : of mean and band, absolute.
    budget : of one range, 60 seconds by default. Others as in `prediction_range_many`.

    Example
    -------
    >>> import gpcert
    >>> from gpcert.kernels import SquaredExponential
    >>> bump = gpcert.Posterior(SquaredExponential(1.0), [[0.0]], [1.0], factor=[[1.0]])
    >>> (row,) = gpcert.worst_case(bump, [[0.0]], radius=1.0, tol=1e-3)
    >>> row.minimum.lower <= float(np.exp(-0.5)) <= row.minimum.upper
    True
    >>> least = float(np.exp(-0.5) - 2 * np.sqrt(1 - np.exp(-1.0)))  # at x = 1 and -1
    >>> row.band_minimum.lower <= least <= row.band_minimum.upper
    True
    """
    posterior = as_posterior(model)
    if isinstance(posterior, Committee) or posterior.likelihood.classifies:
        raise InputError(
            "worst_case: expected a regression model, got a classifier; use robustness or "
            "prediction_range_many"
        )
    points = posterior.check_inputs(X)
    regions = Where.read(words, radius, region).around_each(posterior, points)
    tol = read_tolerance(tol)
    question = range_question(posterior, "band", beta)
    target = question.index(output)
    effort = {**search_words(words, "n_jobs", "progress"), "output": target}
    if not len(points):
        return WorstCaseTable(())
    means = prediction_range_many(posterior, regions, quantity="mean", tol=tol, **effort)
    bands = prediction_range_many(
        posterior, regions, quantity="band", beta=question.beta, tol=tol, **effort
    )
    plain = posterior.predict(points)[0]
    found = dict(zip(bands.labels, bands, strict=True))
    rows, labels = [], []
    for k, mean in zip(means.labels, means, strict=True):
        if k in found:
            labels.append(k)
            rows.append(_row(float(plain[k, target]), points[k], mean, found[k]))
    complete = means.complete and bands.complete
    return WorstCaseTable(tuple(rows), complete, labels_of(X, labels))


def _row(value: float, x: np.ndarray, mean: PredictionRange, band: PredictionRange) -> WorstCase:
    ends = ("minimum", "maximum", "argmin", "argmax")
    return like(
        WorstCase,
        mean,
        mean=value,
        x=x,
        **{f"band_{name}": getattr(band, name) for name in ends},
        beta=band.beta,
        reason=band.reason if mean.converged else mean.reason,
        boxes=mean.boxes + band.boxes,
        seconds=mean.seconds + band.seconds,
    )
