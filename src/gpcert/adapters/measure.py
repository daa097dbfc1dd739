"""Does the library predict what the converted posterior predicts? Measured at sample points.

This is a guard against a wrong conversion (a changed library, a tampered or subclassed model), not
part of any proof: the certified model is the posterior, whose arrays are exact by definition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from gpcert.adapters.adapter import TOLERANCE, Conversion, LibraryPrediction
from gpcert.errors import UnsupportedModelError
from gpcert.inputs.tabular import codes_of
from gpcert.likelihoods import ClassLikelihood
from gpcert.model.committee import Committee, Model, committee_decision
from gpcert.model.multi_output import curves_of
from gpcert.utils.processes import quiet

PROBES = 200
SMALLEST_MOVE, LARGEST_MOVE = 1e-3, 1e-1
"""Probes near training points are moved by this part of the data's width in every feature."""

Predict = Callable[[np.ndarray], LibraryPrediction]
"""What a library says at points (n, d)."""


@dataclass(frozen=True)
class Agreement:
    """Largest differences between library and posterior over `points` sample points.

    `mean`: of the latent mean, as a part of the largest |mean - offset| met (each output its own).
    `variance`: of the latent variance, as a part of the prior variance; the posterior variance
    itself would be no fair unit: next to a training point all its digits are rounding.
    `probability`: of the probability of the second class, absolute; of a committee the largest
    over its members and the classes.
    `decisions`: how many points are given to another class than by `predict`, near ties left out.
    `response`: of the prediction of a target behind a link, as a part of the largest one met.
    `native`: the largest of `mean`, `variance`, `probability` and `response` for what the model
    itself returns, where it computes otherwise than in float64 by direct solves (see
    `Conversion.native`).
    None: the library does not report this quantity.
    """

    points: int
    mean: float | None = None
    variance: float | None = None
    probability: float | None = None
    decisions: int | None = None
    response: float | None = None
    native: float | None = None


def probe_points(posterior: Model, count: int = PROBES) -> np.ndarray:
    """Fixed pseudo-random points: half near training points, half uniform in their bounding box."""
    random = np.random.default_rng(0)
    Z = posterior.places
    low, high = Z.min(0), Z.max(0)
    width = np.where(high > low, high - low, 1.0)
    near = Z[random.integers(len(Z), size=count // 2)]
    # several sizes of moves: with short length-scales only the small ones stay where k is not 0
    sizes = np.geomspace(SMALLEST_MOVE, LARGEST_MOVE, len(near))[:, None]
    moved = near + sizes * width * random.standard_normal(near.shape)
    uniform = low + width * random.uniform(size=(count - len(near), posterior.dim))
    X = np.concatenate([moved, uniform])
    for j in curves_of(posterior.members[0]):  # where functions of inputs are defined
        X[:, j] = np.clip(X[:, j], low[j], high[j])
    for j, labels in posterior.levels.items():  # the nearest category
        codes = codes_of(labels)
        X[:, j] = codes[np.argmin(np.abs(X[:, j, None] - codes), axis=1)]
    return X


def check_agreement(
    posterior: Model,
    library_predict: Predict,
    points: np.ndarray | None = None,
    tolerance: float = TOLERANCE,
) -> Agreement:
    """Measure the distance, and refuse the conversion if it exceeds `tolerance` or is NaN."""
    X = probe_points(posterior) if points is None else posterior.check_inputs(points, "points")
    distance = _distance(posterior, library_predict, X)
    worst = [
        f"{name} {value:.3g}"
        for name in ("mean", "variance", "probability", "decisions", "response")
        # written so that NaN, which compares false, is refused
        if (value := getattr(distance, name)) is not None and not value <= tolerance
    ]
    if worst:
        raise UnsupportedModelError(
            f"model: expected its own predictions to agree with the converted posterior up to "
            f"{tolerance:g}, got a relative difference of {', '.join(worst)} over {len(X)} "
            "sample points; either it does not predict by the formulas of its class, or it is too "
            "ill-conditioned: fit it again, with more noise (alpha) or better scaled inputs"
        )
    return distance


def measured(conversion: Conversion) -> Agreement:
    """`check_agreement` of a conversion, and how far the model's own predictions are."""
    posterior, native = conversion.posterior, conversion.native
    checked = check_agreement(posterior, conversion.predict, tolerance=conversion.tolerance)
    if native is None:
        return checked
    distance = _distance(posterior, native, probe_points(posterior))
    parts = (distance.mean, distance.variance, distance.probability, distance.response)
    # of NumPy, here and below: the built-in `max` loses a NaN that is not the first
    return replace(checked, native=float(np.max([part for part in parts if part is not None])))


def _distance(posterior: Model, predict: Predict, X: np.ndarray) -> Agreement:
    """Of whatever the library says; of a committee, what belongs to its members is theirs."""
    with quiet():  # sklearn's of negative variances and of missing names: neither matters here
        library = predict(X)
    is_committee = isinstance(posterior, Committee)
    parts: dict[str, Any] = {}
    mean = None
    if library.variance is not None and not is_committee:
        mean, variance = posterior.predict(X)
        difference = np.abs(library.variance - variance)
        parts["variance"] = _ratio(difference, posterior.prior_variance(X))
    if library.mean is not None:
        outputs = posterior.members[0] if is_committee else posterior
        mean = outputs.mean(X) if mean is None else mean
        # the addition of the offset rounds, in both: two units in its last place are no difference
        slack = 2.0 * np.spacing(np.abs(outputs.offset))
        difference = np.maximum(np.abs(library.mean - mean).max(0) - slack, 0.0)
        parts["mean"] = _ratio(difference, np.abs(library.mean - outputs.offset).max(0))
    if library.response is not None and not is_committee:
        difference = np.abs(library.response - posterior.prediction(X)).max(0)
        parts["response"] = _ratio(difference, np.abs(library.response).max(0))
    apart = []
    if library.probability is not None:
        ours = posterior.member_probabilities(X) if is_committee else posterior.prediction(X)[:, 0]
        apart.append(library.probability - ours)
    if library.classes is not None:
        ours = posterior.probabilities(X) if is_committee else posterior.prediction(X)
        apart.append(library.classes - ours)
    if apart:
        parts["probability"] = float(np.max([np.abs(each).max() for each in apart]))
    if library.decision is not None:
        parts["decisions"] = int(_other_decisions(posterior, library.decision, X).sum())
    return Agreement(points=len(X), **parts)


def _other_decisions(posterior: Model, decision: np.ndarray, X: np.ndarray) -> np.ndarray:
    """(n,): points at which a library gives another class; near ties are left out."""
    if not isinstance(posterior, Committee):
        assert not isinstance(posterior.likelihood, ClassLikelihood), "two classes"
        mean = posterior.mean(X)[:, 0]
        near = np.abs(mean) <= TOLERANCE * np.abs(mean).max()
        return (decision != (mean > 0)) & ~near
    scores = np.sort(posterior.scores(X), axis=1)
    near = scores[:, -1] - scores[:, -2] <= TOLERANCE
    if posterior.scheme != "one_vs_rest":  # a vote turns with the sign of a latent mean
        means = np.concatenate([member.mean(X) for member in posterior.members], axis=1)
        near |= (np.abs(means) <= TOLERANCE * np.abs(means).max(0)).any(axis=1)
    return (decision != committee_decision(posterior, X)) & ~near


def _ratio(difference: np.ndarray, unit: np.ndarray) -> float:
    """Largest difference / unit, with 0/0 = 0."""
    safe = np.where(unit == 0, 1.0, unit)
    ratio = np.where(difference == 0, 0.0, np.where(unit == 0, np.inf, difference / safe))
    return float(ratio.max())
