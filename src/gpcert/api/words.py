"""Words that a verb does not have: an error of ours that names the right one."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import ParamSpec, TypeVar

from gpcert.errors import UnknownArgumentError

__all__ = ["verb"]

P = ParamSpec("P")
R = TypeVar("R")

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
    """The function, whose unknown keywords raise an `UnknownArgumentError`.

    >>> @verb
    ... def ask(model, *, rtol=0.01): ...
    >>> ask(None, tol=0.1)
    Traceback (most recent call last):
    ...
    gpcert.errors.UnknownArgumentError: ask has no tol=; the accuracy of a radius is relative: rtol=
    """
    known = frozenset(inspect.signature(function).parameters)

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for word in kwargs:
            if word not in known:
                raise UnknownArgumentError(_instead(function.__name__, word, known))
        return function(*args, **kwargs)

    return checked


def _instead(name: str, word: str, known: frozenset[str]) -> str:
    reasons = [reason for other, reason in INSTEAD.get(word, ()) if other in known]
    if not reasons:
        near = difflib.get_close_matches(word, sorted(known), n=1)
        reasons = [f"did you mean {near[0]}=?" if near else f"it has {', '.join(sorted(known))}"]
    return f"{name} has no {word}=; " + ", or ".join(reasons)
