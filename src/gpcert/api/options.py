"""The options that the verbs share: each with one type and one default, read in one place into a
checked value or an `InputError`, which says what was expected and got, and what to do.

A verb takes them as `**options: Unpack[...]`: type checkers and editors know every key, and `verb`
spreads them into the signature that `help` shows. Nothing is decided here.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import math
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ParamSpec, TypedDict, TypeVar

import numpy as np

from gpcert.api.checkpoints import VERBS, kept_call
from gpcert.api.running import Method, read_flag
from gpcert.errors import InputError, UnknownArgumentError
from gpcert.inputs.tabular import read_point
from gpcert.model.committee import Model
from gpcert.numerics.arrays import Backend, backend_from_name, finite_array
from gpcert.quantities import Quantity
from gpcert.regions import Region
from gpcert.search import DEFAULT_BUDGET, Budget, Problem
from gpcert.search.checkpoints import Checkpoint
from gpcert.utils.option_names import MethodName, QuantityName, VarianceBound

P = ParamSpec("P")
R = TypeVar("R")

QuantityLike = QuantityName | Quantity
"""A quantity by its name, or any object of `gpcert.quantities` or of another package."""


class BallOptions(TypedDict, total=False):
    """The shape of the balls around points; see `gpcert.certify`."""

    norm: float | str
    features: Any
    domain: Any
    scale: Any


class NeighbourhoodOptions(BallOptions, total=False):
    """The balls around points that have one radius each; see `gpcert.certify`."""

    relative: Any


class DecisionRuleOptions(TypedDict, total=False):
    """What is decided; see `gpcert.certify`."""

    threshold: float | None
    class_weight: Mapping[Any, float] | Sequence[float] | None
    delta: float | None
    output_norm: float | str


class ComparisonOptions(TypedDict, total=False):
    """Which value is compared with the threshold; see `gpcert.certify`."""

    quantity: QuantityLike | None
    output: Any
    beta: float | None
    best_f: float | None
    maximize: bool | None


class CostOptions(TypedDict, total=False):
    """What a search may cost, and how it is done; see `gpcert.prediction_range`."""

    budget: BudgetLike
    backend: str | Backend
    random_state: int | None
    method: MethodName
    variance_bound: VarianceBound | None
    progress: bool | None


class SearchOptions(CostOptions, total=False):
    """The same of searches that a file may save; see `gpcert.prediction_range`."""

    checkpoint: str | Path | Checkpoint | None


class TableOptions(SearchOptions, total=False):
    """Of many points, see `gpcert.certify_many`, or of one long search."""

    n_jobs: int | None


class AttackOptions(NeighbourhoodOptions, DecisionRuleOptions, ComparisonOptions, total=False):
    """Of verbs that decide and do not search."""


class RangeOptions(NeighbourhoodOptions, SearchOptions, total=False):
    """Of verbs that search around one point."""


class RangeTableOptions(NeighbourhoodOptions, TableOptions, total=False):
    """Of verbs that search in several processes."""


class DecisionOptions(AttackOptions, SearchOptions, total=False):
    """Of verbs that decide and search around one point."""


class DecisionTableOptions(AttackOptions, TableOptions, total=False):
    """Of verbs that decide and search in several processes."""


class RadiusOptions(
    BallOptions, DecisionRuleOptions, ComparisonOptions, SearchOptions, total=False
):
    """Of verbs that look for a radius, around one point."""


class RadiusTableOptions(
    BallOptions, DecisionRuleOptions, ComparisonOptions, TableOptions, total=False
):
    """Of verbs that look for radii, around many points."""


class CurveOptions(BallOptions, DecisionRuleOptions, SearchOptions, total=False):
    """Of verbs that decide and say themselves what is shown, around one point."""


class AccuracyOptions(BallOptions, DecisionRuleOptions, TableOptions, total=False):
    """Of verbs that compare decisions with labels, around many points."""


DEFAULTS: Mapping[str, Any] = {
    "norm": math.inf,
    "output_norm": math.inf,
    "backend": "numpy",
    "random_state": 0,
    "method": "taylor",
}
"""Defaults of the shared options; None of those that are not listed."""

INSTEAD: Mapping[str, tuple[tuple[str, str], ...]] = {
    "tol": (("rtol", "the accuracy of a radius is relative: rtol="),),
    "variance": (
        ("variance_bound", "how method='paper' bounds its variance is variance_bound="),
        ("quantity", "for a range of the variance say quantity='variance'"),
    ),
    "radii": (("radius", "it has one radius for all points: radius="),),
    "radius": (("radii", "it has a list of radii: radii="), ("max_radius", "the largest radius "
               "that is tried is max_radius=")),
    "relative": (("scale", "a radius in parts of each value is one with scale=abs(x)"),),
    "seconds": (("budget", "a number of seconds is budget="),),
    "boxes": (("budget", "say budget=gpcert.Budget(boxes=...)"),),
    "seed": (("random_state", "the seed is random_state="),),
    "resume": (("checkpoint", "a call goes on from the file of checkpoint="),),
    "jobs": (("n_jobs", "the number of processes is n_jobs="),),
}  # fmt: skip
"""Options of other verbs and of the command line: what a verb has instead, and a reason."""


def verb(function: Callable[P, R]) -> Callable[P, R]:
    """The function with its shared options filled in; unknown ones raise an
    `UnknownArgumentError`.

    >>> @verb
    ... def ask(model, *, rtol=0.01): ...
    >>> ask(None, tol=0.1)
    Traceback (most recent call last):
    ...
    gpcert.errors.UnknownArgumentError: ask has no tol=; the accuracy of a radius is relative: rtol=
    """
    signature = inspect.signature(function)
    parameters, shared = dict(signature.parameters), {}
    for name in [name for name, each in parameters.items() if each.kind is each.VAR_KEYWORD]:
        del parameters[name]
        (keys,) = typing.get_args(typing.get_type_hints(function)[name])
        shared = typing.get_type_hints(keys)
    known = frozenset({**parameters, **shared})

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for word in kwargs:
            if word not in known:
                raise UnknownArgumentError(_instead(function.__name__, word, known))
        checkpoint = kwargs.pop("checkpoint", None)
        for word in shared:
            kwargs.setdefault(word, DEFAULTS.get(word))
        if checkpoint is None:
            return function(*args, **kwargs)
        asked = signature.bind(*args, **kwargs)
        return kept_call(checkpoint, function.__name__, asked, lambda: function(*args, **kwargs))

    for name, kind in shared.items():
        about = {"default": DEFAULTS.get(name), "annotation": kind}
        parameters[name] = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, **about)
    checked.__dict__["__signature__"] = signature.replace(parameters=list(parameters.values()))
    if "checkpoint" in known:
        VERBS[function.__name__] = checked
    return checked


def search_options(options: Mapping[str, Any], *more: str) -> dict[str, Any]:
    """How a search is done, read once and ready for another verb; `more` options as they are."""
    settings = SearchSettings.read(options)
    return {
        "budget": settings.budget,
        "backend": settings.backend,
        "random_state": settings.random_state,
        "method": settings.method.name,
        "variance_bound": options["variance_bound"],
        **{name: options[name] for name in more},
    }


def _instead(name: str, word: str, known: frozenset[str]) -> str:
    reasons = [reason for other, reason in INSTEAD.get(word, ()) if other in known]
    if not reasons:
        near = difflib.get_close_matches(word, sorted(known), n=1)
        reasons = [f"did you mean {near[0]}=?" if near else f"it has {', '.join(sorted(known))}"]
    return f"{name} has no {word}=; " + ", or ".join(reasons)


@dataclass(frozen=True)
class QuantityRequest:
    """Which quantity is asked for, None for the default one, and its parameters as they were given:
    `beta` of bounds and bands; of improvements `best_f`, and whether large values are sought."""

    quantity: QuantityLike | None = None
    beta: float | None = None
    best_f: float | None = None
    maximize: bool | None = None


BudgetLike = Budget | float | None
"""A budget, or its number of seconds."""


@dataclass(frozen=True)
class SearchSettings:
    """What a search may cost, where it runs and how it bounds: options of the verbs, read once;
    and whether a proof is wanted."""

    budget: Budget = DEFAULT_BUDGET
    backend: Backend = field(default_factory=Backend)
    random_state: int | None = 0
    method: Method = field(default_factory=Method)
    proof: bool = False
    n_jobs: int | None = 1
    """Processes of each search."""
    claim: str = "A"
    """Of a proof: "A", or "B" where what float64 gives is meant as well."""

    @staticmethod
    def read(options: Mapping[str, Any], proof: Any = False) -> SearchSettings:
        """A random generator gives one seed for all that is searched."""
        budget, backend = read_budget(options["budget"]), backend_from_name(options["backend"])
        method = Method(options["method"], options["variance_bound"])
        seed, wanted = read_seed(options["random_state"]), read_proof(proof)
        return SearchSettings(budget, backend, seed, method, wanted)

    @staticmethod
    def of_one_search(options: Mapping[str, Any], proof: Any = False) -> SearchSettings:
        """The same with `n_jobs`, which tables of many points have for themselves."""
        jobs = read_jobs(options["n_jobs"])
        both = isinstance(proof, str) and proof == "B"
        settings = SearchSettings.read(options, True if both else proof)
        return replace(settings, n_jobs=jobs, claim="B" if both else "A")

    def problem(
        self, model: Model, region: Region, quantities: Sequence[Quantity], **when: Any
    ) -> Problem:
        """What a search is asked: quantities, and `when` it may stop."""
        goals = self.method.goals(quantities, self.random_state, model)
        how = {"budget": self.budget, "backend": self.backend, "random_state": self.random_state}
        when = {"record": self.proof, "n_jobs": self.n_jobs} | when
        return Problem(model, region, goals, **how, **when)


def read_x(model: Model, x: Any, several: str) -> np.ndarray:
    """One point (d,), in the model's order of features; `several` says what takes more points."""
    return read_point("x", x, model.dim, model.feature_names, several, model.levels)


def read_budget(budget: Any) -> Budget:
    """A budget; a number is one of seconds, None the default of all verbs.

    >>> read_budget(5).seconds, read_budget(None).seconds
    (5.0, 60.0)
    """
    if budget is None:
        return DEFAULT_BUDGET
    try:
        return budget if isinstance(budget, Budget) else Budget(seconds=budget)
    except InputError as error:
        wanted = "a positive number of seconds or a gpcert.Budget(seconds, boxes, memory)"
        raise InputError(f"budget: expected {wanted}, got {budget!r}") from error


def read_tolerance(tol: Any, below: float = math.inf, name: str = "tol") -> float:
    """A finite number >= 0, below a limit."""
    value = float(finite_array(name, tol, ndim=0))
    if not 0 <= value < below:
        wanted = "a number >= 0" if below == math.inf else f"a number in [0, {below:g})"
        raise InputError(f"{name}: expected {wanted}, got {tol!r}")
    return value


def read_radii(radii: Any) -> np.ndarray:
    """Radii in growing order, each once.

    >>> read_radii([0.2, 0.1, 0.2]).tolist()
    [0.1, 0.2]
    """
    radii_read = np.unique(finite_array("radii", radii, ndim=1))
    if not len(radii_read) or radii_read[0] < 0:
        raise InputError(f"radii: expected one or more numbers >= 0, got {radii!r}")
    return radii_read


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
        wanted = "a whole number >= 0, None, or a random generator of NumPy's"
        raise InputError(f"random_state: expected {wanted}, got {random_state!r}")
    return int(random_state)


def read_class_weight(class_weight: Any) -> Mapping[Any, float] | Sequence[float] | None:
    """Weights by label, or a list of them in the classes' order."""
    if class_weight is None or isinstance(class_weight, Mapping):
        return class_weight
    wanted = "class_weight: expected {label: weight}, or weights in the order of the classes, got "
    if isinstance(class_weight, str) and class_weight == "balanced":
        raise InputError(
            f"{wanted}'balanced'; 'balanced' is computed from training labels, which the model no "
            "longer has; pass "
            "sklearn.utils.class_weight.compute_class_weight('balanced', classes=..., y=...)"
        )
    if isinstance(class_weight, str | set | frozenset):
        order = "" if isinstance(class_weight, str) else ", which has no order"
        raise InputError(f"{wanted}{class_weight!r}{order}")
    try:
        return finite_array("class_weight", class_weight, ndim=1).tolist()
    except InputError as error:
        raise InputError(f"{wanted}{class_weight!r} ({error})") from error


def read_proof(proof: Any) -> bool:
    """True, False or None; "B", of verbs that do not know such claims, is refused by name."""
    if isinstance(proof, str) and proof == "B":
        raise InputError(
            "proof: claims of kind 'B' (what float64 gives) are those of certify and "
            "prediction_range for one point; here use proof=True"
        )
    return bool(read_flag("proof", proof))


def read_jobs(n_jobs: Any) -> int | None:
    """A number of processes as joblib counts them: not 0, negative ones leave some out; None leaves
    it to `joblib.parallel_config`."""
    if n_jobs is None:
        return None
    if not isinstance(n_jobs, int | np.integer) or isinstance(n_jobs, bool) or n_jobs == 0:
        wanted = "a whole number of processes, or -1 for all"
        raise InputError(f"n_jobs: expected {wanted}, got {n_jobs!r}")
    return int(n_jobs)


def one_of(name: str, value: Any, allowed: Sequence[str | None]) -> Any:
    """The value, if it is one of those allowed."""
    if not (value is None or isinstance(value, str)) or value not in allowed:
        names = ", ".join(repr(each) for each in allowed if each is not None)
        raise InputError(f"{name}: expected one of {names}, got {value!r}")
    return value
