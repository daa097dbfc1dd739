"""`failure_probability`: how probable it is that a quantity lies below a threshold when the inputs
are random.

Proofs: docs/mathematics.md, statement 22.4.
"""

from __future__ import annotations

import time
from typing import Any, Literal, get_args

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.api.accuracy import Accuracy
from gpcert.api.engine import Method
from gpcert.api.input_laws import ReadInputs, read_inputs
from gpcert.api.options import (
    BudgetLike,
    QuantityLike,
    QuantityRequest,
    one_of,
    read_budget,
    read_flag,
    verb,
)
from gpcert.api.questions import range_question
from gpcert.api.running import progress_line, ranges_text
from gpcert.certificates.probability import FailureProbability
from gpcert.errors import InputError
from gpcert.numerics.arrays import Backend, backend_from_name, finite_array
from gpcert.numerics.rounding import add_up
from gpcert.search import Progress, StopReason
from gpcert.search.partition import PartitionResult, partition
from gpcert.search.probability import BelowThreshold, cell_masses, cell_status

SideName = Literal["below", "above"]

USUAL, NEGLIGIBLE = 0.01, 1e-12
"""By default probabilities are known to a hundredth of themselves, or to so little."""


@verb
def failure_probability(
    model: Any,
    inputs: Any,
    threshold: float,
    *,
    side: SideName = "below",
    quantity: QuantityLike = "mean",
    beta: float | None = None,
    output: Any = None,
    tol: float | None = None,
    rtol: float | None = None,
    paving: bool = False,
    budget: BudgetLike = None,
    backend: str | Backend = "numpy",
    progress: bool | None = None,
) -> FailureProbability:
    """Proved bounds of the probability that a quantity of the model lies below a threshold when the
    inputs are random and independent.

    Parameters
    ----------
    model : a `Posterior`, or a fitted model that an adapter converts.
    inputs : a distribution for each feature, in order or `{name: distribution}`: frozen ones of
        `scipy.stats` (norm, uniform, lognorm, expon, triang, logistic, gumbel_r, gumbel_l,
        weibull_min, weibull_max, truncnorm, halfnorm) or of OpenTURNS, whose joint distributions
        of independent inputs are taken whole; a number keeps a feature fixed.
    threshold : a number in the quantity's units.
    side : "below" asks for P[quantity < threshold], "above" for P[quantity > threshold].
    quantity, beta, output : as in `prediction_range`; "mean" by default, which converges fastest.
        "ucb" below a threshold is less probable than "lcb": together they say how much the model's
        own uncertainty matters.
    tol, rtol : the search ends once `upper - lower` is at most `tol`, or `rtol` times `lower`; of
        the two the one that is not given is 0. By default within 1 %, or 1e-12.
    paving : keep the cells, which `plot` draws.
    budget : seconds, or a `Budget`; 60 seconds by default.
    backend : "numpy", "torch", "torch:cuda" or, for long work, "torch:cuda:compiled".
    progress : show the bounds so far; by default only on a terminal.

    Ctrl-C ends the search and returns the bounds so far.

    Example
    -------
    >>> import gpcert
    >>> from scipy.stats import norm
    >>> from gpcert.kernels import SquaredExponential
    >>> bump = gpcert.Posterior(SquaredExponential(1.0), points=[[0.0]], weights=[1.0])
    >>> far = gpcert.failure_probability(bump, [norm(0, 1)], float(np.exp(-2.0)))  # where |x| > 2
    >>> far.lower <= 2 * norm.sf(2.0) <= far.upper <= 1.01 * far.lower
    True
    """
    start, posterior = time.perf_counter(), as_posterior(model)
    below = one_of("side", side, get_args(SideName)) == "below"
    level = float(finite_array("threshold", threshold, ndim=0))
    given = read_inputs(posterior, inputs)
    if isinstance(quantity, str) and quantity == "band":
        raise InputError("quantity: a band has two ends; ask for 'lcb' or 'ucb'")
    question = range_question(posterior, QuantityRequest(quantity, beta))
    index = question.index(output)
    sign = 1 if below != (question.two and index == 0) else -1
    asked = [question.asked(index, sign), question.asked(index, -sign)]
    if question.two and index == 0:
        level = float(1.0 - level)
    accuracy = Accuracy.read(tol, rtol)
    wanted = accuracy if accuracy.given else Accuracy(NEGLIGIBLE, USUAL)
    with progress_line(read_flag("progress", progress)) as line:
        problem = BelowThreshold(
            question.model,
            given.region,
            given.law,
            Method().goals(asked, 0, question.model),
            sign * level,
            backend_from_name(backend),
        ).problem(
            lambda low, high: (
                high + given.outside - low <= max(wanted.tol or 0.0, (wanted.rtol or 0.0) * low)
            ),
            read_budget(budget),
            Progress(start, lambda state: line.show(ranges_text(state))),
            bool(read_flag("paving", paving)),
        )
        result = partition(problem)
    return FailureProbability(
        lower=max(0.0, result.lower),
        upper=min(
            1.0, float(add_up(np.float64(min(result.upper, 1.0)), np.float64(given.outside)))
        ),
        side=side,
        threshold=float(threshold),
        quantity=question.quantity,
        output=question.labels[index],
        laws=given.told,
        region=given.region.describe(),
        outside=given.outside,
        converged=result.reason is StopReason.CONVERGED,
        meaning=question.meanings[index],
        beta=question.beta,
        features=tuple(posterior.feature_names or ()),
        **_paving(result, given),
        reason=result.reason,
        boxes=result.boxes,
        seconds=result.seconds,
        model=posterior.fingerprint,
    )


def _paving(result: PartitionResult, given: ReadInputs) -> dict[str, Any]:
    """Corners, status and mass of all cells, if they were recorded."""
    if result.decided is None:
        return {}
    parts, region = (result.open, result.decided), given.region
    low, high, data = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("low", "high", "data")
    )
    corners = np.tile(region.center, (len(low), 2, 1))
    corners[:, 0, region.free], corners[:, 1, region.free] = low, high
    status = cell_status(data).astype(float)
    return {"cells": corners, "status": status, "mass": cell_masses(data)}
