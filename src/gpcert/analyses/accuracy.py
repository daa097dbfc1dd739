"""`certified_accuracy`: the share of a test set that is right and proved robust."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.analyses.accuracy_record import CertifiedAccuracy, TestPoint
from gpcert.analyses.arguments import Ask, Work, check_radii, class_labels
from gpcert.api import certified_radius_many
from gpcert.api.methods import MethodName
from gpcert.arrays import Backend, finite_array
from gpcert.attacks import decision_margins
from gpcert.committee import Model
from gpcert.errors import InputError
from gpcert.posterior import Posterior
from gpcert.regions.arguments import check_norm
from gpcert.search import Budget, StopReason

__all__ = ["certified_accuracy"]


def certified_accuracy(
    model: Any,
    X: Any,
    y: Any,
    radii: Any,
    *,
    norm: float | str = np.inf,
    features: Any = None,
    domain: Any = None,
    threshold: float | None = None,
    class_weight: Mapping[Any, float] | Sequence[float] | None = None,
    delta: float | None = None,
    output_norm: float | str = np.inf,
    tol: float = 0.01,
    budget: Budget | None = None,
    backend: str | Backend = "numpy",
    random_state: int | None = 0,
    method: MethodName = "taylor",
    n_jobs: int = 1,
    progress: bool | None = None,
) -> CertifiedAccuracy:
    """Share of the test points that are right and proved robust, as a function of the radius.

    The robustness radius of every point that is right is bracketed once (`certified_radius_many`),
    which gives both curves at all radii: right and proved (`certified`), and right and not known to
    break (`attacked`). The true share lies between them.

    Parameters
    ----------
    X, y : test points and their labels. In regression a point is right where its mean is within
        `delta` of y; None for y counts all points as right.
    radii : where the curves are reported; the largest ends the search (radii beyond need another
        run), other values between may be asked of the result, `result.curve(radii)`.
    norm, features, domain, threshold, class_weight, delta, output_norm : as in `certify`.
    tol : relative accuracy of the radii; budget : of one point, 10 seconds by default.
    backend, random_state, method, n_jobs, progress : as in `certify_many`. Ctrl-C returns the
        points finished so far, `complete=False`; shares are then those of these points.

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
    ask = Ask(threshold, class_weight, delta, output_norm)
    grid = check_radii(radii)
    decided = decision_margins(posterior, points, ask.plain()).decided(points)
    labels, right = _right(posterior, points, y, decided, delta)
    rows = np.flatnonzero(right)
    largest = float(grid[-1]) if grid[-1] > 0 else None
    table = certified_radius_many(
        posterior,
        points[rows],
        norm=norm,
        features=features,
        domain=domain,
        **ask.words(),
        max_radius=largest,
        tol=tol,
        n_jobs=n_jobs,
        progress=progress,
        **Work(budget, backend, random_state, method).words(),
    )
    exponent = check_norm(norm)
    found = {
        int(k): TestPoint(
            labels[k], decided[k], False, 0.0, 0.0, exponent, StopReason.CONVERGED, 0, 0.0
        )
        for k in np.flatnonzero(~right)
    }
    for number, item in zip(table.labels, table, strict=True):
        k = int(rows[number])
        # what is proved is proved of item.decision; near a tie the computed one may be another
        same = item.decision is decided[k] or item.decision == decided[k]
        found[k] = TestPoint(
            labels[k],
            decided[k],
            True,
            item.lower if same else 0.0,
            item.upper,
            item.norm,
            item.reason,
            item.boxes,
            item.seconds,
        )
    order = sorted(found)
    return CertifiedAccuracy(
        tuple(found[k] for k in order), table.complete, tuple(order), tuple(grid.tolist())
    )


def _right(
    model: Model, points: np.ndarray, y: Any, decided: list[Any], delta: float | None
) -> tuple[list[Any], np.ndarray]:
    """Labels as plain numbers or text, and which computed decisions agree with them."""
    n = len(points)
    regressor = None
    if isinstance(model, Posterior) and not model.likelihood.classifies:
        regressor = model
    if y is None and regressor is not None:
        return [None] * n, np.ones(n, dtype=bool)
    if y is None or np.shape(y)[:1] != (n,):
        got = None if y is None else f"shape {np.shape(y)}"
        raise InputError(f"y: expected one label for each of {n} points, got {got}")
    if regressor is None:
        labels = [value.item() if isinstance(value, np.generic) else value for value in y]
        known = class_labels(model)
        strange = [label for label in labels if label not in known]
        if strange:
            raise InputError(f"y: expected labels among {list(known)}, got {strange[0]!r}")
        return labels, np.array([a == b for a, b in zip(labels, decided, strict=True)])
    if delta is None:
        raise InputError(
            "y: a regression's point is right where its mean is within delta= of y; got no delta "
            "(pass y=None to count all points as right)"
        )
    targets = finite_array("y", y).reshape(n, -1)
    mean = regressor.predict(points)[0]
    if targets.shape != mean.shape:
        raise InputError(f"y: expected shape {mean.shape}, got {np.shape(y)}")
    single = targets[:, 0].tolist() if targets.shape[1] == 1 else [None] * n
    return single, np.all(np.abs(mean - targets) <= delta, axis=1)
