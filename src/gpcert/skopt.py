"""scikit-optimize's `expected_minimum` with a proof: the minimum of the surrogate's mean over the
whole space, not the best of some local searches.

    from gpcert.skopt import expected_minimum

    x, value = expected_minimum(result)      # as skopt's; `certified_minimum` returns the record

Needs scikit-optimize (`pip install scikit-optimize`).
"""

from __future__ import annotations

import copy
from typing import Any

from sklearn.gaussian_process import GaussianProcessRegressor, kernels

from gpcert.api import minimize
from gpcert.certificates import Optimum
from gpcert.errors import InputError


def expected_minimum(
    res: Any, n_random_starts: int | None = None, random_state: Any = None, **options: Any
) -> tuple[list[Any], float]:
    """The point (in the space's own units) with the least mean of the last surrogate, and that
    mean, as `skopt.expected_minimum`; there are no random starts."""
    del n_random_starts
    best = certified_minimum(res, random_state=random_state, **options)
    if best.x is None:
        raise InputError("expected_minimum: no point was evaluated before the budget ended")
    return list(res.space.inverse_transform(best.x[None])[0]), best.value


def certified_minimum(res: Any, **options: Any) -> Optimum:
    """The record of `gpcert.minimize` for the mean of the last surrogate, in the coordinates that
    the surrogate sees (`res.space.transform`); options as there."""
    for dimension in res.space.dimensions:
        if type(dimension).__name__ != "Real":
            raise InputError(
                "expected_minimum: expected dimensions of numbers (skopt's Real), got "
                f"{type(dimension).__name__} {dimension.name or ''}; fit on real dimensions, or "
                "use skopt.expected_minimum"
            )
    if not res.models:
        raise InputError(
            "expected_minimum: expected a result with models, got none; run gp_minimize with "
            "n_calls above n_initial_points"
        )
    bounds = [tuple(map(float, pair)) for pair in res.space.transformed_bounds]
    return minimize(_plain(res.models[-1]), bounds, "mean", **options)


def _plain(model: Any) -> GaussianProcessRegressor:
    """scikit-learn's own regressor with what skopt's has fitted: its mean is the same function."""
    if not isinstance(model, GaussianProcessRegressor):
        raise InputError(
            f"expected_minimum: expected a Gaussian process, got {type(model).__name__}; use "
            "base_estimator='GP'"
        )
    plain = GaussianProcessRegressor()
    plain.__dict__.update(copy.copy(model.__dict__))
    plain.__dict__["kernel_"] = _kernel(model.kernel_, float(getattr(model, "noise_", None) or 0.0))
    return plain


def _kernel(kernel: Any, noise: float) -> Any:
    """A kernel of skopt's, which adds gradients to scikit-learn's, as the one it extends; the noise
    that skopt has taken out after the fit is put back, as the factor was computed with it."""
    name = type(kernel).__name__
    counterpart = getattr(kernels, name, None)
    if counterpart is None or not isinstance(kernel, counterpart):
        raise InputError(f"expected_minimum: expected a kernel of scikit-learn's, got {name}")
    if name == "WhiteKernel":
        return kernels.WhiteKernel(max(noise, float(kernel.noise_level)))
    parts = kernel.get_params(deep=False)
    return counterpart(
        **{k: _kernel(v, noise) if isinstance(v, kernels.Kernel) else v for k, v in parts.items()}
    )
