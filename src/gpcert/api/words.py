"""The words that the verbs share, each with one type and one default, and the error for others.

A verb takes them as `**words: Unpack[...]`: type checkers and editors know every key, and `verb`
spreads them into the signature that `help` shows.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import math
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ParamSpec, TypedDict, TypeVar

from gpcert.api.arguments import BudgetLike, Means
from gpcert.api.methods import Method, MethodName, VarianceBound
from gpcert.arrays import Backend
from gpcert.errors import UnknownArgumentError

P = ParamSpec("P")
R = TypeVar("R")


class BallWords(TypedDict, total=False):
    """The shape of the balls around points; see `gpcert.certify`."""

    norm: float | str
    features: Any
    domain: Any
    scale: Any


class RuleWords(TypedDict, total=False):
    """What is decided; see `gpcert.certify`."""

    threshold: float | None
    class_weight: Mapping[Any, float] | Sequence[float] | None
    delta: float | None
    output_norm: float | str


class SearchWords(TypedDict, total=False):
    """What a search may cost, and how it is done; see `gpcert.prediction_range`."""

    budget: BudgetLike
    backend: str | Backend
    random_state: int | None
    method: MethodName
    variance_bound: VarianceBound | None
    progress: bool | None


class TableWords(SearchWords, total=False):
    """Of many points; see `gpcert.certify_many`."""

    n_jobs: int | None


class AttackWords(BallWords, RuleWords, total=False):
    """Of verbs that decide and do not search."""


class RangeWords(BallWords, SearchWords, total=False):
    """Of verbs that search around one point."""


class RangeTableWords(BallWords, TableWords, total=False):
    """Of verbs that search around many points."""


class DecisionWords(AttackWords, SearchWords, total=False):
    """Of verbs that decide and search around one point."""


class DecisionTableWords(AttackWords, TableWords, total=False):
    """Of verbs that decide and search around many points."""


DEFAULTS: Mapping[str, Any] = {
    "norm": math.inf,
    "output_norm": math.inf,
    "backend": "numpy",
    "random_state": 0,
    "method": "taylor",
}
"""Defaults of the shared words; None of those that are not listed."""

INSTEAD: Mapping[str, tuple[tuple[str, str], ...]] = {
    "tol": (("rtol", "the accuracy of a radius is relative: rtol="),),
    "rtol": (("tol", "the accuracy of a range is absolute: tol="),),
    "variance": (
        ("variance_bound", "how method='paper' bounds its variance is variance_bound="),
        ("quantity", "for a range of the variance say quantity='variance'"),
    ),
    "radii": (("radius", "it has one radius for all points: radius="),),
    "radius": (("radii", "it has a list of radii: radii="), ("max_radius", "the largest radius "
               "that is tried is max_radius=")),
    "seconds": (("budget", "a number of seconds is budget="),),
    "boxes": (("budget", "say budget=gpcert.Budget(boxes=...)"),),
    "seed": (("random_state", "the seed is random_state="),),
    "jobs": (("n_jobs", "the number of processes is n_jobs="),),
}  # fmt: skip
"""Words of other verbs and of the command line: the word that a verb has instead, and a reason."""


def verb(function: Callable[P, R]) -> Callable[P, R]:
    """The function with its shared words filled in; unknown ones raise an `UnknownArgumentError`.

    >>> @verb
    ... def ask(model, *, rtol=0.01): ...
    >>> ask(None, tol=0.1)
    Traceback (most recent call last):
    ...
    gpcert.errors.UnknownArgumentError: ask has no tol=; the accuracy of a radius is relative: rtol=
    """
    own = dict(inspect.signature(function).parameters)
    words = own.pop("words", None)
    shared = {} if words is None else _parameters(typing.get_type_hints(function)["words"])
    defaults = {name: parameter.default for name, parameter in shared.items()}
    known = frozenset({**own, **shared})

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for word in kwargs:
            if word not in known:
                raise UnknownArgumentError(_instead(function.__name__, word, known))
        for word, default in defaults.items():
            kwargs.setdefault(word, default)
        return function(*args, **kwargs)

    result = inspect.signature(function).return_annotation
    checked.__dict__["__signature__"] = inspect.Signature(
        [*own.values(), *shared.values()], return_annotation=result
    )
    return checked


def _parameters(unpacked: Any) -> dict[str, inspect.Parameter]:
    """One parameter for each key of `Unpack[...]`, with its default."""
    (words,) = typing.get_args(unpacked)
    return {
        name: inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=DEFAULTS.get(name), annotation=kind
        )
        for name, kind in typing.get_type_hints(words).items()
    }


def search_words(words: Mapping[str, Any], *more: str) -> dict[str, Any]:
    """How a search is done, read once and ready for another verb, and `more` words as they are."""
    method, means = Method.read(words), Means.read(words)
    return {
        "budget": means.budget,
        "backend": means.backend,
        "random_state": means.random_state,
        "method": method.name,
        "variance_bound": words["variance_bound"],
        **{name: words[name] for name in more},
    }


def rule_words(words: Mapping[str, Any]) -> dict[str, Any]:
    """What is decided, for another verb."""
    return {name: words[name] for name in RuleWords.__annotations__}


def _instead(name: str, word: str, known: frozenset[str]) -> str:
    reasons = [reason for other, reason in INSTEAD.get(word, ()) if other in known]
    if not reasons:
        near = difflib.get_close_matches(word, sorted(known), n=1)
        reasons = [f"did you mean {near[0]}=?" if near else f"it has {', '.join(sorted(known))}"]
    return f"{name} has no {word}=; " + ", or ".join(reasons)
