"""`level_set`: where conditions on predictions are proved to hold, to fail, and how large that is.

Proofs: docs/mathematics.md, statements 17.1 and 21.2.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.api.domain import domain_of
from gpcert.api.options import (
    BudgetLike,
    QuantityLike,
    QuantityRequest,
    one_of,
    read_budget,
    read_proof,
    read_tolerance,
    verb,
)
from gpcert.api.questions import comparison
from gpcert.api.regions import check_held, held_by
from gpcert.api.rules import decision_candidates
from gpcert.api.running import Method, prepare, progress_line
from gpcert.attacks import Comparison, Decision
from gpcert.certificates.level_sets import LevelSet
from gpcert.certificates.proof import Proof
from gpcert.certificates.proof_questions import sets_proof, sets_question
from gpcert.errors import InputError
from gpcert.inputs.tabular import common_names
from gpcert.model.committee import Model
from gpcert.numerics.arrays import Backend, backend_from_name, finite_array
from gpcert.regions import Region
from gpcert.search.checkpoints import Checkpoint
from gpcert.search.cut_cells import FAILS, HOLDS, OUTSIDE
from gpcert.search.problem import Progress, SearchState
from gpcert.search.set_problem import Condition, SetProblem, convex, find_sets
from gpcert.search.state import Leaves

SIDES = (">=", "<=")

OPTIONS = ("quantity", "output", "beta", "best_f", "maximize")
"""What may be said of each of several conditions."""


@verb
def level_set(
    model: Any,
    region: Any,
    threshold: Any = None,
    *,
    side: str = ">=",
    quantity: QuantityLike | None = None,
    output: Any = None,
    beta: float | None = None,
    best_f: float | None = None,
    maximize: bool | None = None,
    fixed: Mapping[Any, Any] | None = None,
    tol: float = 0.01,
    budget: BudgetLike = None,
    backend: str | Backend = "numpy",
    progress: bool | None = None,
    proof: bool = False,
    checkpoint: str | Path | Checkpoint | None = None,
) -> LevelSet:
    """The part of a region where predictions meet a specification: proved inside, proved outside,
    undecided; with proved bounds of its volume.

    Parameters
    ----------
    model : a `Posterior`, or a fitted model that an adapter converts; of several conditions also a
        list of models of the same features, or `{name: model}`.
    region, fixed : as `bounds` and `fixed` in `maximize`: a box, a ball or a polytope.
    threshold : a number, which the quantity is compared with; or several conditions, which all have
        to hold, `[("yield", ">=", 0.9), ("impurity", "<=", 0.1, {"quantity": "std"})]`. A condition
        names the model (by its key or number) or, where there is one model, the output (None where
        it has one); further words of `quantity`, `output`, `beta`, `best_f` and `maximize` may
        follow. None (default): the regions of a classifier's classes.
    side : ">=" or "<=". Volumes and shares are the same for ">" and "<".
    quantity, output, beta, best_f, maximize : which value is compared, as in `certify`. A "band" is
        compared as a whole: ">=" asks for `mean - beta std >= threshold`, "<=" for
        `mean + beta std <= threshold`. Of class regions `output` names the class that `contains`
        and `volume` are about, by default the second of two.
    tol : the search goes on until at most this share of the volume (of the box around the region)
        is undecided.
    budget : `Budget(seconds, boxes, memory)`, or a number of seconds; 60 seconds by default.
    backend : "numpy", "torch", "torch:cuda" or, for long work, "torch:cuda:compiled".
    progress : show how far it is; by default only on a terminal.
    proof : cells are in the set or out of it as wholes (more of them are needed), and
        `save("name.cert")` writes what `gpcert-check` checks.
    checkpoint : a file that saves the search, and from which the same call goes on; of one model
        `resume` does, too.

    Ctrl-C ends the search and returns what is proved so far.

    Example
    -------
    >>> import gpcert
    >>> from gpcert.kernels import SquaredExponential
    >>> bump = gpcert.Posterior(SquaredExponential(1.0), points=[[0.0, 0.0]], weights=[1.0])
    >>> disk = gpcert.level_set(bump, [(-2, 2), (-2, 2)], np.exp(-0.5), tol=1e-3)
    >>> disk.volume.lower <= np.pi <= disk.volume.upper, disk.converged
    (True, True)
    >>> disk.contains([0.7, 0.7]), disk.contains([1.0, 1.0])
    (True, False)
    """
    start = time.perf_counter()
    models = _models(model)
    names = common_names("model", (each.feature_names for each in models.values()))
    place = _region(models, region, fixed)
    options = dict(zip(OPTIONS, (quantity, output, beta, best_f, maximize), strict=True))
    given = {name: value for name, value in options.items() if value is not None}
    if isinstance(threshold, list | tuple):
        if given or side != ">=":
            name = next(iter(given), "side")
            raise InputError(
                f"{name}: several conditions say it of each: "
                f"(output, '>=', level, {{'quantity': 'std'}}); leave {name}= out"
            )
        asked = [_condition(models, each) for each in threshold]
        if not asked:
            raise InputError("threshold: expected one condition or more, got an empty list")
        sets = _Sets.of_conditions(asked)
    elif len(models) > 1:
        raise InputError(
            "model: several models need several conditions, threshold=[(name, '>=', level), ...], "
            f"got threshold={threshold!r}"
        )
    elif threshold is None:
        sets = _Sets.of_classes(next(iter(models.values())), given, side)
    else:
        only = next(iter(models.values()))
        sets = _Sets.of_conditions([_compared(only, one_of("side", side, SIDES), threshold, given)])
    wanted = read_proof(proof)
    if wanted:
        sets_question(place, sets.conditions, sets.labels, sets.classes)
    limit, place_of_work = read_budget(budget), backend_from_name(backend)
    share = read_tolerance(tol, 1.0)
    for each in models.values():
        prepare(each)
    with progress_line(progress) as line:
        shown = Progress(start, lambda state: line.show(_told(state)))
        cells, result = find_sets(
            SetProblem(
                place,
                sets.conditions,
                sets.classes,
                share,
                not wanted,
                limit,
                place_of_work,
                shown,
            )
        )
    level = LevelSet(
        region=place.describe(),
        labels=sets.labels,
        target=sets.target,
        meaning=sets.meaning,
        cells=cells,
        tol=share,
        reason=result.reason,
        boxes=result.boxes,
        seconds=time.perf_counter() - start,
        models=tuple(each.fingerprint for each in models.values()),
        names=names,
        classes=sets.classes,
    )
    return replace(level, proof=_proof(level, place, sets)) if wanted else level


def _proof(level: LevelSet, region: Region, sets: _Sets) -> Proof:
    """Of the cells that are in a set as wholes, and of its share."""
    whole = level.cells.whole
    signs = np.where(whole[:, :, HOLDS].any(axis=1), whole[:, :, HOLDS].argmax(axis=1), -1)
    if not sets.classes:
        fails = np.where(whole[:, :, FAILS].any(axis=1), whole[:, :, FAILS].argmax(axis=1), -2)
        signs = np.where(whole[:, :, HOLDS].all(axis=1), 0, 1 + fails)
    signs = np.where(level.cells.within == OUTSIDE, -2, signs)
    ends, none = (level.cells.low, level.cells.high), np.empty((len(signs), 0))
    leaves = Leaves(np.zeros(len(signs), dtype=int), *ends, none)
    about = (sets.conditions, sets.labels, sets.classes, leaves, signs.astype("<i4"))
    return sets_proof(region, *about, level.shares, "; ".join(sets.meaning))


class _Sets:
    """What is asked: conditions, what they are called, and which sets they make."""

    def __init__(
        self, conditions: Sequence[Condition], meaning: Sequence[str], labels: Sequence[Any],
        target: Any, classes: bool = False,
    ) -> None:  # fmt: skip
        self.conditions, self.meaning = tuple(conditions), tuple(meaning)
        self.labels, self.target, self.classes = tuple(labels), target, classes

    @staticmethod
    def of_conditions(asked: Sequence[tuple[Condition, str]]) -> _Sets:
        """The points where all of them hold."""
        conditions, meaning = zip(*asked, strict=True)
        return _Sets(conditions, meaning, (False, True), True)

    @staticmethod
    def of_classes(model: Model, given: Mapping[str, Any], side: str) -> _Sets:
        """The points where the model decides for each class."""
        others = [name for name in given if name != "output"] + ["side"] * (side != ">=")
        if not model.classifies:
            raise InputError(
                "threshold: expected a number, which the quantity is compared with, or several "
                "conditions; only a classifier has regions without one"
            )
        if others:
            raise InputError(
                f"{others[0]}: belongs to threshold=, got none: the regions of the classes are "
                "where the model decides for each"
            )
        target, labels = given.get("output"), tuple(model.labels)
        if target is not None and target not in labels:
            raise InputError(f"output: expected one of {list(labels)}, got {target!r}")
        center = np.zeros(model.dim)
        each = decision_candidates(model, center, Decision(None, None, None, math.inf, None))
        rules = [each.build(k) for k in range(len(labels))]
        if len(labels) == 2:
            (goal, below), rule = (
                (_goals(rules[1].model, r.quantity) for r in rules[::-1]),
                rules[1],
            )
            only = Condition(rule.model, goal, below, rule.level)
            meaning = (f"class {labels[1]}: {rule.text}",)
            return _Sets((only,), meaning, labels, labels[1] if target is None else target)
        conditions = []
        for rule in rules:
            goal = _goals(rule.model, rule.quantity)
            conditions.append(Condition(rule.model, goal, goal, rule.level))
        meaning = tuple(f"class {label}: {rules[0].text}" for label in labels)
        return _Sets(conditions, meaning, labels, target, classes=True)


def _goals(model: Model, quantity: Any) -> Any:
    """A quantity as a goal."""
    return Method().goals([quantity], 0, model)[0]


def _compared(
    model: Model, side: str, level: Any, options: Mapping[str, Any]
) -> tuple[Condition, str]:
    """One condition, and its text."""
    threshold = float(finite_array("threshold", level, ndim=0))
    options, at_least = dict(options), side == ">="
    output = options.pop("output", None)
    if options.get("quantity") == "band":
        options["quantity"] = "lcb" if at_least else "ucb"
    asked: Comparison = comparison(model, threshold, QuantityRequest(**options), output)
    first_of_two = asked.labels[0] is not None and output == asked.labels[0]
    text = f"{asked.value} {side} {threshold!r}"
    if first_of_two:  # asked of the second class, whose probability is 1 less it
        text = f"probability of class {output} {side} {threshold!r}"
        at_least = not at_least
    above, below = (_goals(asked.model, each) for each in (asked.above, asked.below))
    return Condition(asked.model, above, below, asked.level, at_least), text


def _condition(models: Mapping[Any, Model], given: Any) -> tuple[Condition, str]:
    """One of several conditions, `(which, side, level)` or with a mapping of further words."""
    wanted = "threshold: expected conditions (output or model, '>=' or '<=', level, {words})"
    if not isinstance(given, list | tuple) or len(given) not in {3, 4}:
        raise InputError(f"{wanted}, got {given!r}")
    which, side, level = given[:3]
    options = dict(given[3]) if len(given) == 4 and isinstance(given[3], Mapping) else {}
    unknown = [name for name in options if name not in OPTIONS]
    if unknown or (len(given) == 4 and not isinstance(given[3], Mapping)):
        raise InputError(f"{wanted}, with words out of {', '.join(OPTIONS)}; got {given!r}")
    one_of("side", side, SIDES)
    if isinstance(side, str) is False:
        raise InputError(f"{wanted}, got {given!r}")
    if which in models and (len(models) > 1 or which is not None):
        condition, text = _compared(models[which], side, level, options)
        return condition, f"{which}: {text}" if len(models) > 1 else text
    if len(models) > 1:
        raise InputError(
            f"threshold: expected a condition on one of the models {list(models)}, got {which!r}"
        )
    if which is not None and "output" in options:
        raise InputError(f"threshold: expected the output once, got {given!r}")
    if which is not None:
        options["output"] = which
    return _compared(next(iter(models.values())), side, level, options)


def _models(model: Any) -> dict[Any, Model]:
    """The models by what conditions call them: keys, numbers, or None for one alone."""
    if isinstance(model, Mapping):
        models = {key: as_posterior(each) for key, each in model.items()}
    elif isinstance(model, list | tuple):
        models = {k: as_posterior(each) for k, each in enumerate(model)}
    else:
        return {None: as_posterior(model)}
    if not models:
        raise InputError("model: expected a model or several, got none")
    dims = [each.dim for each in models.values()]
    if len(set(dims)) > 1:
        raise InputError(f"model: expected models of the same features, got {dims} of them")
    return models


def _region(models: Mapping[Any, Model], region: Any, fixed: Any) -> Region:
    """The region, which suits all models."""
    first, *others = models.values()
    place = domain_of(first, region, fixed)
    for each in others:
        check_held(held_by(each), place)
    if not convex(place):
        raise InputError(
            f"region: expected a gpcert.Box, Ball or Polytope, got {type(place).__name__}; ask "
            "about the box around it, or about its parts"
        )
    if len(place.free) == 0:
        raise InputError(
            "region: expected one in which some feature moves, got a single point; certify and "
            "prediction_range say what is proved there"
        )
    return place


def _told(state: SearchState) -> str:
    """How far it is."""
    low, high = float(state.lower[0]), float(state.upper[0])
    cost = f"{state.boxes} boxes, {state.seconds:.1f} s"
    return f"share of the volume between {low:.5g} and {high:.5g}, {cost}"
