"""What users pass to the verbs, read in one place: a checked value, or an `InputError`.

Every error says what was expected and got, and what to do. Regions: `gpcert.api.regions`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from gpcert.arrays import Backend, backend_from_name, finite_array
from gpcert.committee import Model
from gpcert.errors import InputError
from gpcert.frames import read_point
from gpcert.search import DEFAULT_BUDGET, Budget

BudgetLike = Budget | float | None
"""A budget, or its number of seconds."""


@dataclass(frozen=True)
class Means:
    """What a search may cost and where it runs: the words of the verbs, read once."""

    budget: Budget = DEFAULT_BUDGET
    backend: Backend = field(default_factory=Backend)
    random_state: int | None = 0

    @staticmethod
    def read(words: Mapping[str, Any]) -> Means:
        """A random generator gives one seed for all that is searched."""
        return Means(
            read_budget(words["budget"]),
            backend_from_name(words["backend"]),
            read_seed(words["random_state"]),
        )


def read_x(model: Model, x: Any, several: str) -> np.ndarray:
    """One point (d,), in the model's order of features; `several` says what takes more points."""
    return read_point("x", x, model.dim, model.feature_names, several)


def read_budget(budget: Any) -> Budget:
    """A budget; a number is one of seconds, None the default of all verbs.

    >>> read_budget(5).seconds, read_budget(None).seconds
    (5.0, 60.0)
    """
    if budget is None:
        return DEFAULT_BUDGET
    if isinstance(budget, Budget):
        return budget
    try:
        return Budget(seconds=budget)
    except InputError as error:
        raise InputError(
            "budget: expected a positive number of seconds or a gpcert.Budget(seconds, boxes, "
            f"memory), got {budget!r}"
        ) from error


def read_tolerance(tol: Any, below: float = math.inf, name: str = "tol") -> float:
    """A finite number >= 0, below a limit."""
    value = float(finite_array(name, tol, ndim=0))
    if not 0 <= value < below:
        wanted = "a number >= 0" if below == math.inf else f"a number in [0, {below:g})"
        raise InputError(f"{name}: expected {wanted}, got {tol!r}")
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


def read_jobs(n_jobs: Any) -> int | None:
    """A number of processes as joblib counts them: not 0, negative ones leave some out; None leaves
    it to `joblib.parallel_config`."""
    if n_jobs is None:
        return None
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
