"""`worst_case`: the certified worst prediction of a regression over a region."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.analyses.arguments import work_words
from gpcert.analyses.worst_case_table import WorstCase, WorstCaseTable
from gpcert.api import prediction_range_many
from gpcert.api.arguments import BudgetLike, read_tolerance
from gpcert.api.methods import MethodName, VarianceBound
from gpcert.api.questions import range_question
from gpcert.api.regions import Where
from gpcert.api.words import verb
from gpcert.arrays import Backend, finite_array
from gpcert.certificates import Interval, PredictionRange
from gpcert.committee import Committee
from gpcert.errors import InputError
from gpcert.frames import labels_of
from gpcert.regions import Region
from gpcert.rounding import down, up

__all__ = ["worst_case"]


@verb
def worst_case(
    model: Any,
    X: Any,
    radius: Any = None,
    *,
    region: Region | Sequence[Region] | None = None,
    beta: float = 2.0,
    norm: float | str = np.inf,
    features: Any = None,
    domain: Any = None,
    scale: Any = None,
    output: int | None = None,
    tol: float = 0.01,
    budget: BudgetLike = None,
    backend: str | Backend = "numpy",
    random_state: int | None = 0,
    method: MethodName = "taylor",
    variance_bound: VarianceBound | None = None,
    n_jobs: int = 1,
    progress: bool | None = None,
) -> WorstCaseTable:
    """Bounds on a regression's least and greatest mean around each point, and a credible band.

    The band contains `mean +- beta std` at every point of the region. It is made of the ends of the
    mean and of the variance, bounded apart: valid, and wider than it need be where the two are
    largest at different points.

    Parameters
    ----------
    radius, norm, features, domain, scale : the regions are balls around the rows of X, as in
        `certify`; `region` instead is one region that contains all of them, or one each.
    beta : how many standard deviations the band reaches; 2 by default.
    output : the number of the target, if there are several.
    tol : of the mean, absolute; the variance is bounded to within `tol` squared or `tol`, the less.
    budget : of one range, 60 seconds by default. Others as in `prediction_range_many`.

    Example
    -------
    >>> import gpcert
    >>> from gpcert.kernels import SquaredExponential
    >>> bump = gpcert.Posterior(SquaredExponential(1.0), [[0.0]], [1.0], factor=[[1.0]])
    >>> (row,) = gpcert.worst_case(bump, [[0.0]], radius=1.0, tol=1e-3)
    >>> row.minimum.lower <= float(np.exp(-0.5)) <= row.minimum.upper
    True
    >>> row.band.lower <= float(np.exp(-0.5) - 2 * np.sqrt(1 - np.exp(-1.0)))
    True
    """
    posterior = as_posterior(model)
    if isinstance(posterior, Committee) or posterior.likelihood.classifies:
        raise InputError(
            "worst_case: expected a regression model, got a classifier; use robustness or "
            "prediction_range_many"
        )
    reach = float(finite_array("beta", beta, ndim=0))
    if reach < 0:
        raise InputError(f"beta: expected a number >= 0, got {beta!r}")
    points = posterior.check_inputs(X)
    where = Where(radius, norm, features, domain, scale, region)
    regions = where.around_each(posterior, points)
    tol = read_tolerance(tol)
    target = range_question(posterior, "mean").index(output)
    effort = {**work_words(budget, backend, random_state, method, variance_bound), "output": target}
    effort |= {"n_jobs": n_jobs, "progress": progress}
    if not len(points):
        return WorstCaseTable(())
    means = prediction_range_many(posterior, regions, quantity="mean", tol=tol, **effort)
    spreads = prediction_range_many(
        posterior,
        regions,
        quantity="variance",
        sides="maximum",
        tol=min(tol, tol * tol),
        **effort,
    )
    plain = posterior.predict(points)[0]
    variances = dict(zip(spreads.labels, spreads, strict=True))
    rows, labels = [], []
    for k, mean in zip(means.labels, means, strict=True):
        if k in variances:
            labels.append(k)
            value = float(plain[k, target])
            rows.append(_row(value, points[k], mean, variances[k], reach))
    complete = means.complete and spreads.complete
    return WorstCaseTable(tuple(rows), complete, labels_of(X, labels))


def _row(
    value: float, x: np.ndarray, mean: PredictionRange, variance: PredictionRange, beta: float
) -> WorstCase:
    return WorstCase(
        mean=value,
        minimum=mean.minimum,
        maximum=mean.maximum,
        argmin=mean.argmin,
        argmax=mean.argmax,
        band=band_of(mean, variance.maximum.upper, beta),
        beta=beta,
        x=x,
        output=mean.output,
        reason=mean.reason,
        boxes=mean.boxes + variance.boxes,
        seconds=mean.seconds + variance.seconds,
        region=mean.region,
        method=mean.method,
        model=mean.model,
    )


def band_of(mean: PredictionRange, variance: float, beta: float) -> Interval:
    """`[min mean - beta sqrt(V), max mean + beta sqrt(V)]`, V an upper bound of the variance.

    At every point x of the region `mean(x) >= min mean` and `std(x) <= sqrt(V)`, so the band holds
    `mean(x) -+ beta std(x)`. The root and the product round once each, the sum once more.
    """
    # a band of no standard deviations needs no bound of them, and has perhaps none
    reach = float(up(beta * math.sqrt(max(variance, 0.0)), 3)) if beta > 0 else 0.0
    return Interval(
        float(down(mean.minimum.lower - reach, 1)), float(up(mean.maximum.upper + reach, 1))
    )
