"""`bound_boxes`: proved ranges over many boxes in one call, block by block.

Proofs: docs/mathematics.md, statement 14.1.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.api.accuracy import Accuracy
from gpcert.api.box_work import Block, BoxWork, Key, check_affine, work_on
from gpcert.api.options import BudgetLike, QuantityLike, read_budget, read_jobs, verb
from gpcert.api.questions import quantity_requests, read_beta
from gpcert.api.range_questions import slopes_question
from gpcert.api.ranges import RangeGoals
from gpcert.api.regions import check_held, held_by
from gpcert.api.running import START_SECONDS, numbered_results, prepare, progress_line, read_flag
from gpcert.certificates.boxes import BoxBounds, BoxFile
from gpcert.errors import InputError
from gpcert.inputs.tabular import common_names, read_points
from gpcert.model.committee import Model
from gpcert.numerics.arrays import Backend, backend_from_name
from gpcert.quantities import Quantity
from gpcert.regions import Box
from gpcert.search import DEFAULT_BUDGET, Budget, StopReason, stop_if_interrupted
from gpcert.search.checkpoints import JOURNAL, Checkpoint
from gpcert.utils.archive import fingerprint
from gpcert.utils.optional_imports import package_version

SLOPE = "slope"
"""All partial derivatives of the means: a quantity of `bound_boxes` alone."""

LONG_SECONDS = 2.0 * START_SECONDS
"""Work beyond which other processes start at once: a block is too long to be tried here first."""

BLOCK, GPU_BLOCK = 8192, 2**20
"""Boxes of one piece of work: one process's, and what a run that is killed may lose. Fixed, so that
bounds do not depend on the number of processes."""


@verb
def bound_boxes(
    model: Any,
    lower: Any,
    upper: Any,
    *,
    quantity: QuantityLike | Sequence[QuantityLike] = "mean",
    beta: float | None = None,
    affine: bool = False,
    tol: float | None = None,
    rtol: float | None = None,
    budget: BudgetLike = None,
    backend: str | Backend = "numpy",
    out: Any = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
    checkpoint: str | Path | Checkpoint | None = None,
) -> BoxBounds:
    """Proved ranges of one or more quantities over each of R boxes, in shared batches.

    Parameters
    ----------
    model : a model as in `prediction_range`, or a list of them (outputs with kernels of their own):
        their outputs stand one after another.
    lower, upper : (R, d), the corners of the boxes, in the units of the model's inputs.
    quantity : "mean", "std", "variance", "lcb", "ucb", "band" or "probability", or any
        `gpcert.quantities.Quantity`, which the answer names by its class; or several of them. Also
        "slope", the partial derivatives of every mean in all features (without a tolerance they
        are as tight as the boxes are small).
    beta : how many standard deviations bounds and band reach; see `prediction_range`.
    affine : also find, for every box, an affine function that the mean, std, variance or confidence
        bound is proved to lie above in the whole box, and one that it lies below:
        `BoxBounds.affine`.
    tol, rtol : without them every box is bounded once, which is tight on small boxes; with one or
        both, boxes are split until every end is known as well as `prediction_range` says of them.
    budget : seconds or a `Budget` for the whole call (its `boxes` and `memory` with `tol` or `rtol`
        only). By default 60 seconds with them, and no limit without.
    backend : "numpy", "torch", "torch:cuda" or, for long work, "torch:cuda:compiled".
    out : where the ranges go instead of new arrays: an array (R, outputs, 2), such as a memory map,
        a path ending in `.npy`, or `{quantity: array or path}`. Paths are written block by block,
        with a `.progress.json` beside each: the same call goes on where a killed one was. Affine
        functions of `mean.npy` go to `mean.affine.npy`.
    n_jobs : processes; by default what `joblib.parallel_config` says, else one.
    progress : show how far it is; by default only on a terminal.
    checkpoint : a file that saves finished blocks (with a tolerance also searches), from which the
        same call goes on; without `out`, whose files do so by themselves.

    Ctrl-C ends the run and returns what is bounded so far, with `complete` False.

    Example
    -------
    >>> import gpcert
    >>> from gpcert.kernels import SquaredExponential
    >>> bump = gpcert.Posterior(SquaredExponential(1.0), points=[[0.0]], weights=[1.0])
    >>> edges = np.linspace(0.0, 2.0, 5)[:, None]
    >>> bounds = gpcert.bound_boxes(bump, edges[:-1], edges[1:])
    >>> bounds["mean"].shape, bounds.complete
    ((4, 1, 2), True)
    >>> low, high = bounds["mean"][0, 0]  # exp(-x^2 / 2) on [0, 1/2]
    >>> bool(low <= np.exp(-0.125) and 1.0 <= high), bool(high - low < 0.125)
    (True, True)
    """
    start = time.perf_counter()
    if out is not None and JOURNAL.get() is not None:
        raise InputError(
            "checkpoint: expected none with out=: a file of out= goes on by itself where a killed "
            "call was; leave one of them out"
        )
    models = [as_posterior(m) for m in (model if isinstance(model, list | tuple) else [model])]
    questions = _questions(models, quantity, beta)
    low, high, held = _corners(models, lower, upper)
    accuracy = Accuracy.read(tol, rtol)
    free = budget is None and not accuracy.given
    limit = Budget(seconds=None) if free else read_budget(budget)
    if not accuracy.given and (limit.boxes, limit.memory) != (None, DEFAULT_BUDGET.memory):
        raise InputError(
            "budget: boxes and memory limit how often boxes are split, got no tol= and rtol=, so "
            "that each box is bounded once; give one of them, or seconds only"
        )
    whole, wanted = Box(low.min(axis=0), high.max(axis=0)), bool(read_flag("affine", affine))
    work = BoxWork.of(questions, whole, held, backend_from_name(backend), accuracy, wanted)
    check_affine(work)
    size = GPU_BLOCK if work.backend.gpu else BLOCK
    identity = {"beta": beta, **vars(accuracy), "block": size, **_objects(questions)}
    files = _files(out, work, (low, high), identity)
    jobs, show = read_jobs(n_jobs), read_flag("progress", progress)
    blocks = Blocks(files, len(low), size)
    ends = time.time() + limit.ends(start) - time.perf_counter()  # a moment that processes share
    pieces = []
    for rows in blocks.left:  # each may take its part of the boxes; the time is everybody's
        part = len(low[rows]) / len(low)
        boxes = None if limit.boxes is None else max(1, int(limit.boxes * part))
        share = replace(limit, seconds=None, boxes=boxes)
        pieces.append((work, low[rows], high[rows], share, ends))
    try:
        for each in models:
            prepare(each)
        with progress_line(show) as line:
            long = work.seconds(sum(len(piece[1]) for piece in pieces)) > LONG_SECONDS
            for number, block in numbered_results(work_on, pieces, jobs, at_once=long):
                blocks.take(number, block)
                line.show(blocks.told(time.perf_counter() - start))
                stop_if_interrupted(block.reason)
    except KeyboardInterrupt:
        pass  # what is bounded so far is returned; the rest has infinite ends
    return BoxBounds(
        lower=low,
        upper=high,
        ranges=blocks.values("ranges"),
        outputs=work.outputs,
        reached=blocks.reached,
        converged=blocks.converged,
        tol=accuracy.tol,
        rtol=accuracy.rtol,
        boxes=blocks.boxes,
        seconds=time.perf_counter() - start,
        models=tuple(each.fingerprint for each in models),
        affine=blocks.values("affine"),
        met=blocks.met if accuracy.given else None,
    )


class Blocks:
    """The boxes in blocks: which are left, and what is known of the others."""

    def __init__(self, files: Mapping[Key, BoxFile], count: int, size: int) -> None:
        self.files, self.count = files, count
        done = set.intersection(*(file.done for file in files.values()))
        starts = [k for k in range(0, count, size) if k // size not in done]
        self.left = [slice(k, min(k + size, count)) for k in starts]
        """Rows of the blocks that are to be bounded."""
        for file in files.values():
            for rows in self.left:
                file.forget_unfinished(rows.start // size, rows)
        self.size, self.boxes = size, 0
        self.reached = self.before = count - sum(rows.stop - rows.start for rows in self.left)
        self.met = self.before

    def take(self, number: int, block: Block) -> None:
        """Put the bounds of one block away."""
        rows = self.left[number]
        finished = block.reason is StopReason.CONVERGED  # every end is known as asked
        for key, file in self.files.items():
            file.write(rows.start // self.size, rows, block.values[key], finished)
        self.reached += block.reached
        self.boxes += block.boxes
        self.met += block.met

    @property
    def converged(self) -> bool:
        """Whether every block ended as it was asked to."""
        every = -(-self.count // self.size)
        return all(len(file.done) == every for file in self.files.values())

    def values(self, kind: str) -> dict[str, np.ndarray]:
        """All that is known, by quantity."""
        return {name: file.values for (each, name), file in self.files.items() if each == kind}

    def told(self, seconds: float) -> str:
        """How far it is."""
        here = self.reached - self.before
        left = (self.count - self.reached) * seconds / here if here else float("nan")
        return f"{self.reached} of {self.count} boxes, about {left:.0f} s left"


def _questions(
    models: Sequence[Model], quantity: Any, beta: float | None
) -> dict[str, list[RangeGoals]]:
    """What is asked of every model, by quantity."""
    if not models:
        raise InputError("model: expected a model or a list of them, got an empty list")
    several = isinstance(quantity, list | tuple | set | frozenset)
    asked: tuple[Any, ...] = tuple(quantity) if several else (quantity,)
    if not all(isinstance(each, str | Quantity) for each in asked):
        wanted = "one or several different ones, names or Quantity objects"
        raise InputError(f"quantity: expected {wanted}, got {quantity!r}")
    goals = {}
    read_beta(beta, *asked)
    if any(isinstance(each, str) and each == SLOPE for each in asked):
        goals[SLOPE] = [RangeGoals.of_all(slopes_question(model)) for model in models]
    others: tuple[Any, ...] = tuple(q for q in asked if not (isinstance(q, str) and q == SLOPE))
    requests = quantity_requests(others, beta).items() if others or not goals else ()
    named = {name: [RangeGoals.of(model, each) for model in models] for name, each in requests}
    return named | goals


def _objects(questions: Mapping[str, Sequence[RangeGoals]]) -> dict[str, list[str]]:
    """Every `Quantity` object with all its fields, for the identity of files."""
    given = [goals[0].question.given for goals in questions.values()]
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
        objects = [repr(each) for each in given if isinstance(each, Quantity)]
    return {"objects": objects} if objects else {}


def _corners(
    models: Sequence[Model], lower: Any, upper: Any
) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
    """The corners (R, d) each, in the models' order of features, and the features that hold
    categories."""
    dims = [model.dim for model in models]
    if len(set(dims)) > 1:
        raise InputError(f"model: expected models of the same features, got {dims} of them")
    names = common_names("model", (model.feature_names for model in models))
    levels: dict[int, tuple[Any, ...]] = {}
    for j, labels in (item for model in models for item in model.levels.items()):
        if levels.setdefault(j, labels) != labels:
            raise InputError(
                f"model: expected the same categories in all models, got {levels[j]} and {labels} "
                f"for feature {j}; make a call for each model"
            )
    low, high = (
        read_points(name, corners, dims[0], names, levels)
        for name, corners in (("lower", lower), ("upper", upper))
    )
    if low.shape != high.shape or len(low) == 0:
        wanted = "as many boxes as in lower and at least one"
        raise InputError(f"upper: expected {wanted}, got {len(high)} and {len(low)}")
    crossed = np.flatnonzero(np.any(low > high, axis=1))
    if len(crossed):
        raise InputError(f"lower: expected lower <= upper, got the opposite in row {crossed[0]}")
    held = {j: told for model in models for j, told in held_by(model).items()}
    moved = np.flatnonzero(np.any(low[:, list(held)] < high[:, list(held)], axis=1))
    for row in moved[:1]:
        check_held(held, Box(low[row], high[row]))
    return low, high, tuple(held)


def _files(
    out: Any, work: BoxWork, corners: tuple[np.ndarray, np.ndarray], asked: Mapping[str, Any]
) -> dict[Key, BoxFile]:
    """What exists already is of the same call, or an error."""
    names = list(work.outputs)
    if isinstance(out, Mapping):
        if set(out) != set(names):
            raise InputError(f"out: expected the quantities {names}, got {list(out)}")
        targets = dict(out)
    elif out is not None and len(names) > 1:
        raise InputError(f"out: expected {{quantity: array or path}} for {names}, got {type(out)}")
    else:
        targets = dict.fromkeys(names, out)
    arrays = [target for target in targets.values() if isinstance(target, np.ndarray)]
    if any(np.shares_memory(a, b) for a, b in combinations(arrays, 2)):
        raise InputError("out: expected an array of its own for every quantity, got one for two")
    # what another version found may be what this one has mended
    header = {"models": work.fingerprints, "gpcert": package_version(), **asked}
    identity = fingerprint(header, {"lower": corners[0], "upper": corners[1]})
    files = {}
    for (kind, name), (outputs, unknown) in work.unknown.items():
        target, about = targets[name], f"{name} {identity}"
        if kind == "affine":  # `mean.affine.npy` for `mean.npy`; a new array beside one
            path = Path(target) if isinstance(target, str | os.PathLike) else None
            target = path and path.with_name(f"{path.stem}.affine{path.suffix}")
            about = f"{name} affine {identity}"
        files[kind, name] = BoxFile.of(target, (len(corners[0]), outputs), about, unknown)
    return files
