"""What users pass to the verbs, read in one place: a checked value, or an `InputError`.

Every error says what was expected and got, and what to do. Names of features are understood here,
where the model that knows them is at hand; regions only know numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpcert.arrays import Backend, backend_from_name, finite_array, number_array
from gpcert.committee import Model
from gpcert.errors import InputError
from gpcert.frames import read_point
from gpcert.regions import Ball, Region
from gpcert.regions.arguments import check_features
from gpcert.search import Budget

__all__ = [
    "BudgetLike",
    "ball_options",
    "chosen_region",
    "one_of",
    "read_backend",
    "read_beta",
    "read_budget",
    "read_class_weight",
    "read_flag",
    "read_jobs",
    "read_radius",
    "read_region",
    "read_seed",
    "read_tolerance",
    "read_x",
]

BudgetLike = Budget | float | None
"""A budget, or its number of seconds."""


def read_x(model: Model, x: Any, several: str) -> np.ndarray:
    """One point (d,), in the model's order of features; `several` says what takes more points."""
    return read_point("x", x, model.dim, model.feature_names, several)


def chosen_region(
    model: Model, x: np.ndarray, radius: Any, region: Any, options: Mapping[str, Any]
) -> Region:
    """The ball around x, or the region that was given instead."""
    if (radius is None) == (region is None):
        got = "neither" if radius is None else "both"
        raise InputError(f"expected exactly one of radius= and region=, got {got}")
    if region is None:
        return Ball(x, read_radius(model, radius), **options)
    found = read_region(model, region)
    if not bool(found.contains(x)):
        raise InputError(
            "x: expected a point of the region; the decision at x is what is certified"
        )
    return found


def read_region(model: Model, region: Any) -> Region:
    """A region with as many features as the model."""
    if not isinstance(region, Region):
        raise InputError(f"region: expected a gpcert.Box or gpcert.Ball, got {region!r}")
    if region.dim != model.dim:
        raise InputError(f"region: expected {model.dim} features, got {region.dim}")
    return region


def ball_options(model: Model, norm: Any, features: Any, domain: Any) -> dict[str, Any]:
    """`norm`, `features` and `domain` of a ball around any point, names replaced by numbers."""
    return {
        "norm": norm,
        "features": _features(model, features),
        "domain": _domain(model, domain),
    }


def read_radius(model: Model, radius: Any) -> Any:
    """A number, or an array (d,) from one number per feature or from `{name: number}`.

    Features that a mapping leaves out are fixed, and so are those with 0.
    """
    radii = _mapping(radius)
    if radii is None:
        return radius
    values = np.zeros(model.dim)
    for label, value in radii.items():
        j = _feature(model, "radius", label)
        values[j] = float(finite_array(f"radius of {label!r}", value, ndim=0))
    return values


def _features(model: Model, features: Any) -> np.ndarray | None:
    """Numbers of the features that may move, from names, numbers or a mask."""
    if features is None:
        return None
    if isinstance(features, str):
        features = [features]
    if np.ma.is_masked(features) or isinstance(features, Mapping):
        raise InputError(
            f"features: expected names or numbers of features, or a mask, got {features!r}; radii "
            "by name are given as radius="
        )
    try:
        labels = list(features)
    except TypeError as error:
        raise InputError(
            f"features: expected names or numbers of features, or a mask, got {features!r}"
        ) from error
    if any(isinstance(label, str) for label in labels):
        labels = [_feature(model, "features", label) for label in labels]
    return check_features(labels, model.dim)


def _domain(model: Model, domain: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """The ends (d,), (d,) of the valid inputs, from `(low, high)` or `{name: (low, high)}`."""
    if domain is None:
        return None
    named = _mapping(domain)
    if named is not None:
        ends = np.tile([[-math.inf], [math.inf]], model.dim)
        for label, pair in named.items():
            j = _feature(model, "domain", label)
            ends[:, j] = _pair(f"domain of {label!r}", pair, ())
        return ends[0], ends[1]
    return _pair("domain", domain, (model.dim,))


def _pair(name: str, pair: Any, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """(low, high) of so many numbers each."""
    try:
        low, high = (np.array(np.broadcast_to(number_array(name, end), shape)) for end in pair)
    except (TypeError, ValueError) as error:
        shaped = f"numbers or arrays of shape {shape}" if shape else "two numbers"
        raise InputError(
            f"{name}: expected (low, high), {shaped}, got {pair!r}; {error}"
        ) from error
    if np.any(low > high):
        raise InputError(f"{name}: expected low <= high, got {pair!r}")
    return low, high


def _mapping(value: Any) -> Mapping[Any, Any] | None:
    """A mapping by feature: one itself, or a series of a data frame with names; else None."""
    if isinstance(value, Mapping):
        return value
    if hasattr(value, "iloc") and hasattr(value, "index") and not hasattr(value, "columns"):
        labels = list(value.index)
        if any(isinstance(label, str) for label in labels):
            return dict(zip(labels, value.tolist(), strict=True))
    return None


def _feature(model: Model, name: str, label: Any) -> int:
    """The number of a feature, from its name or its number."""
    names = model.feature_names
    if isinstance(label, str):
        if names is None:
            raise InputError(
                f"{name}: expected numbers of features, got the name {label!r}; the model was "
                "fitted without names (fit it on a data frame to use them)"
            )
        if label not in names:
            raise InputError(f"{name}: expected names out of {list(names)}, got {label!r}")
        return names.index(label)
    whole = isinstance(label, int | np.integer) and not isinstance(label, bool)
    if not whole or not 0 <= label < model.dim:
        raise InputError(
            f"{name}: expected names or numbers 0 to {model.dim - 1} of features, got {label!r}"
        )
    return int(label)


def read_budget(budget: Any, default: Budget | None = None) -> Budget:
    """A budget; a number is one of seconds, None the default.

    >>> read_budget(5).seconds, read_budget(None).seconds
    (5.0, 60.0)
    """
    if budget is None:
        return default or Budget()
    if isinstance(budget, Budget):
        return budget
    try:
        return Budget(seconds=budget)
    except InputError as error:
        raise InputError(
            "budget: expected a positive number of seconds or a gpcert.Budget(seconds, boxes, "
            f"memory), got {budget!r}"
        ) from error


def read_tolerance(tol: Any, below: float = math.inf) -> float:
    """A finite number >= 0, below a limit."""
    value = float(finite_array("tol", tol, ndim=0))
    if not 0 <= value < below:
        wanted = "a number >= 0" if below == math.inf else f"a number in [0, {below:g})"
        raise InputError(f"tol: expected {wanted}, got {tol!r}")
    return value


DEFAULT_BETA = 2.0
"""Standard deviations of a band: about 95 % of a Gaussian lie within two."""


def read_beta(beta: Any, quantity: str | None) -> float | None:
    """How many standard deviations a band reaches; None for any other quantity.

    >>> read_beta(None, "band"), read_beta(3, "band"), read_beta(None, "mean")
    (2.0, 3.0, None)
    """
    if quantity != "band":
        if beta is not None:
            raise InputError(f"beta: belongs to quantity='band', got quantity={quantity!r}")
        return None
    value = DEFAULT_BETA if beta is None else float(finite_array("beta", beta, ndim=0))
    if value < 0:
        raise InputError(f"beta: expected a number of standard deviations >= 0, got {beta!r}")
    return value


def read_backend(backend: Any) -> Backend:
    """The backend, from its name."""
    return backend_from_name(backend)


def read_seed(random_state: Any) -> int | None:
    """A seed: a whole number >= 0 or None; a generator of NumPy's gives one, and moves on.

    >>> read_seed(np.random.default_rng(0)) == read_seed(np.random.default_rng(0))
    True
    """
    if random_state is None:
        return None
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**32))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    whole = isinstance(random_state, int | np.integer) and not isinstance(random_state, bool)
    if not whole or random_state < 0:
        raise InputError(
            "random_state: expected a whole number >= 0, None, or a random generator of NumPy's, "
            f"got {random_state!r}"
        )
    return int(random_state)


def read_class_weight(class_weight: Any) -> Mapping[Any, float] | Sequence[float] | None:
    """Weights by label, or a list of them in the classes' order."""
    if class_weight is None or isinstance(class_weight, Mapping):
        return class_weight
    wanted = "class_weight: expected {label: weight}, or weights in the order of the classes, got "
    if isinstance(class_weight, str):
        hint = (
            "'balanced' is computed from training labels, which the model no longer has; pass "
            "sklearn.utils.class_weight.compute_class_weight('balanced', classes=..., y=...)"
        )
        raise InputError(
            f"{wanted}{class_weight!r}" + ("; " + hint if class_weight == "balanced" else "")
        )
    if isinstance(class_weight, set | frozenset):
        raise InputError(f"{wanted}{class_weight!r}, which has no order")
    try:
        return finite_array("class_weight", class_weight, ndim=1).tolist()
    except InputError as error:
        raise InputError(f"{wanted}{class_weight!r} ({error})") from error


def read_flag(name: str, value: Any) -> bool | None:
    """True, False or None."""
    if value is None or isinstance(value, bool | np.bool_):
        return None if value is None else bool(value)
    raise InputError(f"{name}: expected True, False or None, got {value!r}")


def read_jobs(n_jobs: Any) -> int:
    """A number of processes as joblib counts them: not 0, negative ones leave some out."""
    whole = isinstance(n_jobs, int | np.integer) and not isinstance(n_jobs, bool)
    if not whole or n_jobs == 0:
        raise InputError(
            f"n_jobs: expected a whole number of processes, or -1 for all, got {n_jobs!r}"
        )
    return int(n_jobs)


def one_of(name: str, value: Any, allowed: Sequence[str | None]) -> Any:
    """The value, if it is one of those allowed."""
    if not (value is None or isinstance(value, str)) or value not in allowed:
        words = ", ".join(repr(each) for each in allowed if each is not None)
        raise InputError(f"{name}: expected one of {words}, got {value!r}")
    return value
