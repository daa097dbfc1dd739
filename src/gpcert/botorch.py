"""BoTorch's `optimize_acqf` with a proof: the same call, and the global optimum instead of the best
of some local ones.

    from gpcert.botorch import optimize_acqf

    candidate, value = optimize_acqf(acquisition, bounds=bounds, q=1)

`optimize_acqf_certified` takes the same arguments and returns the record of `gpcert.maximize`, with
the proved bound. Needs BoTorch (`pip install "gpcert[botorch]"`).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from gpcert.adapters import as_posterior
from gpcert.api import maximize, minimize
from gpcert.api.domain import domain_of
from gpcert.certificates import Optimum
from gpcert.errors import BudgetWarning, InputError
from gpcert.regions import Polytope
from gpcert.search import Budget
from gpcert.utils.option_names import QuantityName
from gpcert.utils.optional_imports import library

IGNORED = {
    "options",
    "batch_initial_conditions",
    "gen_candidates",
    "sequential",
    "ic_generator",
    "retry_on_optimization_warning",
    "return_best_only",
    "return_acq_values",
}
"""Arguments of BoTorch's function that steer its local searches: here there are none."""


class _Asked(NamedTuple):
    """The quantity that an acquisition function is, and which way: its largest value is `sign`
    times the optimum of the quantity on that side."""

    quantity: QuantityName
    sign: float
    options: dict[str, Any]


def optimize_acqf(
    acq_function: Any, bounds: Any, q: int = 1, *args: Any, **options: Any
) -> tuple[Any, Any]:
    """The candidate (1, d) with the largest acquisition value, and that value, as tensors.

    Arguments as of `botorch.optim.optimize_acqf`; those that steer local searches (`num_restarts`,
    `raw_samples`, `options`, ...) are accepted and not needed. `timeout_sec` is the budget, 60
    seconds by default; when it ends a warning says how far the candidate may be from the optimum.
    """
    torch = library("torch")
    best = optimize_acqf_certified(acq_function, bounds, q, *args, **options)
    if best.x is None:
        raise InputError(
            "optimize_acqf: no point was evaluated before timeout_sec ended; give it more seconds"
        )
    if not best.converged:
        warnings.warn(
            f"optimize_acqf: {best.reason.value}; the value is within {best.gap:.3g} of the "
            "optimum",
            BudgetWarning,
            stacklevel=2,
        )
    like = bounds if torch.is_tensor(bounds) else torch.empty(0, dtype=torch.double)
    candidate = torch.as_tensor(best.x, dtype=like.dtype, device=like.device)[None]
    with torch.no_grad():
        value = acq_function(candidate[None]).squeeze()
    return candidate, value


def optimize_acqf_certified(
    acq_function: Any,
    bounds: Any,
    q: int = 1,
    num_restarts: int | None = None,
    raw_samples: int | None = None,
    *,
    inequality_constraints: Sequence[tuple[Any, Any, float]] | None = None,
    equality_constraints: Sequence[tuple[Any, Any, float]] | None = None,
    fixed_features: Mapping[int, Any] | None = None,
    timeout_sec: float | None = None,
    tol: float | None = None,
    rtol: float | None = None,
    **options: Any,
) -> Optimum:
    """As `optimize_acqf`, but the answer is the record of `gpcert.maximize`: the point, its value
    and the proved bound, of the quantity that the acquisition function is made of (of a function
    that minimises the signs of values are those of the quantity, and its side is "minimum")."""
    del num_restarts, raw_samples
    if q != 1:
        raise InputError(
            f"q: expected 1, got {q}: the optimum of a joint batch is not certified; ask for one "
            "candidate, add it to the model (model.condition_on_observations) and ask again"
        )
    for name, value in options.items():
        if name not in IGNORED and value is not None:
            raise InputError(
                f"{name}: expected none; optimize_acqf of gpcert has bounds, linear constraints, "
                "fixed_features, timeout_sec, tol and rtol"
            )
    asked = quantity_of(acq_function)
    domain = domain_of(as_posterior(acq_function.model), bounds, fixed_features)
    rows = [_row(each, ">=") for each in inequality_constraints or ()]
    rows += [_row(each, "==") for each in equality_constraints or ()]
    region = Polytope((domain.lower, domain.upper), *rows) if rows else domain
    verb = maximize if asked.sign > 0 else minimize
    budget = None if timeout_sec is None else Budget(seconds=timeout_sec)
    how: dict[str, Any] = {"budget": budget, "tol": tol, "rtol": rtol}
    return verb(acq_function.model, region, asked.quantity, **asked.options, **how)


def _row(constraint: tuple[Any, Any, float], relation: str) -> tuple[dict[int, float], str, float]:
    """A linear constraint of BoTorch's, (indices, coefficients, right side)."""
    indices, coefficients, side = constraint
    pairs = zip(indices.tolist(), coefficients.tolist(), strict=True)
    if getattr(indices, "ndim", 1) != 1:
        raise InputError("constraints: expected those of one candidate, got some between several")
    return {int(j): float(a) for j, a in pairs}, relation, float(side)


def quantity_of(acq_function: Any) -> _Asked:
    """The quantity that an acquisition function of BoTorch is; an `InputError` for others."""
    name = type(acq_function).__name__
    analytic: Any = library("botorch.acquisition.analytic")
    kind = getattr(analytic, name, None)
    if kind is not type(acq_function) or name not in KINDS:
        known = ", ".join(KINDS)
        reason = "" if not name.startswith("q") else " (those of Monte Carlo samples are random)"
        raise InputError(
            f"acq_function: expected one of {known}, got {name}{reason}; use the analytic one for "
            "one candidate, or botorch.optim.optimize_acqf"
        )
    if acq_function.posterior_transform is not None:
        raise InputError(
            "posterior_transform: expected none, got "
            f"{type(acq_function.posterior_transform).__name__}; pass a model of the transformed "
            "outcome"
        )
    sign = 1.0 if acq_function.maximize else -1.0
    return KINDS[name](acq_function, sign)


def _bound(acq_function: Any, sign: float) -> _Asked:
    """BoTorch's beta is the square of the number of standard deviations."""
    reach = float(acq_function.beta.sqrt())
    return _Asked("ucb" if sign > 0 else "lcb", sign, {"beta": reach})


def _improvement(name: str) -> Callable[[Any, float], _Asked]:
    """An improvement over `best_f`, which is maximised whichever way the objective goes."""

    def asked(acq_function: Any, sign: float) -> _Asked:
        options = {"best_f": float(acq_function.best_f), "maximize": sign > 0}
        return _Asked(name, 1.0, options)  # pyright: ignore[reportArgumentType]

    return asked


KINDS: Mapping[str, Callable[[Any, float], _Asked]] = {
    "PosteriorMean": lambda acquisition, sign: _Asked("mean", sign, {}),
    "PosteriorStandardDeviation": lambda acquisition, sign: _Asked("std", sign, {}),
    "UpperConfidenceBound": _bound,
    "ExpectedImprovement": _improvement("ei"),
    "LogExpectedImprovement": _improvement("log_ei"),
    "ProbabilityOfImprovement": _improvement("pi"),
    "LogProbabilityOfImprovement": _improvement("log_pi"),
}
"""How each acquisition function is asked for."""
