"""Trieste's acquisition optimiser with a proof: the global maximum, not the best of local searches.

    from gpcert.trieste import certified_optimizer

    rule = EfficientGlobalOptimization(optimizer=certified_optimizer)

For models that wrap a GPflow model that gpcert takes, and for expected improvement and its
logarithm, the lower confidence bound, the predictive mean and the probability of improvement.
Needs Trieste (`pip install trieste`).
"""

from __future__ import annotations

import inspect
import math
from typing import Any

import numpy as np

from gpcert.api import maximize, minimize
from gpcert.certificates import Optimum
from gpcert.errors import InputError
from gpcert.utils.optional_imports import optional

IMPROVEMENTS = {
    "expected_improvement": ("ei", "_eta"),
    "log_expected_improvement": ("log_ei", "_eta"),
    "probability_below_threshold": ("pi", "_threshold"),
}
"""Trieste's classes, and what they are here."""

AGREEMENT = 1e-5
"""By how much, relatively, the library's value at the point may differ from ours."""


def certified_optimizer(space: Any, target_func: Any, **options: Any) -> Any:
    """A point [1, D] of the space that maximises the function, within the tolerance, by proof; an
    `AcquisitionOptimizer`. Options as in `gpcert.maximize`."""
    tensorflow: Any = optional("tensorflow", "certified_optimizer")
    best = optimize_certified(space, target_func, **options)
    if best.x is None:
        raise InputError("certified_optimizer: no point was evaluated before the budget ended")
    x = tensorflow.constant(best.x[None])
    theirs = float(np.ravel(target_func(x[:, None, :]))[0])
    ours = best.value if best.side == "maximum" else -best.value
    if not math.isclose(theirs, ours, rel_tol=AGREEMENT, abs_tol=AGREEMENT):
        raise InputError(
            f"certified_optimizer: expected the value {ours:.8g} of the function at the point, got "
            f"{theirs:.8g}: it is not the function that its class names; use Trieste's optimizer"
        )
    return x


def optimize_certified(space: Any, target_func: Any, **options: Any) -> Optimum:
    """The record of `gpcert.maximize` (of `gpcert.minimize` for the lower confidence bound)."""
    model, quantity, asked = _function(target_func)
    options.setdefault("progress", False)
    verb = minimize if quantity in ("lcb", "mean") else maximize
    gpflow_model = getattr(model, "model", None)
    if gpflow_model is None:
        raise InputError(
            "certified_optimizer: expected a model that wraps one of GPflow's, got "
            f"{type(model).__name__}; use Trieste's optimizer"
        )
    return verb(gpflow_model, _bounds(space), quantity, **asked, **options)


def _function(target_func: Any) -> tuple[Any, Any, dict[str, Any]]:
    """The model, the quantity and its arguments."""
    name = type(target_func).__name__
    if name in IMPROVEMENTS:
        quantity, best = IMPROVEMENTS[name]
        at = float(np.ravel(getattr(target_func, best))[0])
        return target_func._model, quantity, {"best_f": at, "maximize": False}
    for inner in (target_func, *_seen_by(target_func).values()):
        seen = _seen_by(inner)
        if {"model", "beta"} <= set(seen):
            beta = float(np.ravel(seen["beta"])[0])
            if beta == 0.0:
                return seen["model"], "mean", {}
            return seen["model"], "lcb", {"beta": beta}
    known = ", ".join(sorted(IMPROVEMENTS))
    raise InputError(
        f"certified_optimizer: expected {known}, a negative lower confidence bound or predictive "
        f"mean, for one point, got {name}; batches and sampled functions need Trieste's optimizer"
    )


def _seen_by(function: Any) -> dict[str, Any]:
    """What a (compiled) function refers to outside of itself."""
    plain = getattr(function, "python_function", function)
    return dict(inspect.getclosurevars(plain).nonlocals) if inspect.isfunction(plain) else {}


def _bounds(space: Any) -> np.ndarray:
    """(2, D) of a box."""
    if type(space).__name__ != "Box" or getattr(space, "constraints", ()):
        raise InputError(
            f"certified_optimizer: expected a Box without constraints, got {type(space).__name__}; "
            "call gpcert.maximize with a region, or use Trieste's optimizer"
        )
    return np.stack([np.asarray(space.lower), np.asarray(space.upper)]).astype(float)
