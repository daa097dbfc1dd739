"""`bound_boxes`: proved ranges over many boxes in one call."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.api.box_blocks import Block, BoxWork, nothing, work_on
from gpcert.api.parallel import START_SECONDS, numbered_results, prepare
from gpcert.api.progress import progress_line
from gpcert.api.questions import QuantityName, RangeQuestion, range_question
from gpcert.api.words import (
    BudgetLike,
    read_budget,
    read_flag,
    read_jobs,
    read_tolerance,
    verb,
)
from gpcert.archive import fingerprint
from gpcert.arrays import Backend, backend_from_name
from gpcert.certificates.boxes import BoxBounds, BoxFile
from gpcert.committee import Model
from gpcert.enclosures.affine import has_affine
from gpcert.errors import InputError
from gpcert.regions import Box
from gpcert.search import Budget, stop_if_interrupted

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
    quantity: QuantityName | Sequence[QuantityName] = "mean",
    beta: float | None = None,
    affine: bool = False,
    tol: float | None = None,
    budget: BudgetLike = None,
    backend: str | Backend = "numpy",
    out: Any = None,
    n_jobs: int | None = None,
    progress: bool | None = None,
) -> BoxBounds:
    """Proved ranges of one or more quantities over each of R boxes, in shared batches.

    Parameters
    ----------
    model : a model as in `prediction_range`, or a list of them (outputs with kernels of their own):
        their outputs stand one after another.
    lower, upper : (R, d), the corners of the boxes, in the units of the model's inputs.
    quantity : "mean", "std", "variance", "band" or "probability", or several of them.
    beta : how many standard deviations a band reaches; see `prediction_range`.
    affine : also find, for every box, an affine function that the mean, std or variance is proved
        to lie above in the whole box, and one that it lies below: `BoxBounds.affine`.
    tol : None bounds every box once, which is tight on small boxes; with a number, boxes are split
        until every end is known to within it.
    budget : seconds or a `Budget` for the whole call. By default 60 seconds where `tol` is given,
        and no limit where it is not.
    backend : "numpy", "torch", "torch:cuda" or, for long work, "torch:cuda:compiled".
    out : where the ranges go instead of new arrays: an array (R, outputs, 2), such as a memory map,
        a path ending in `.npy`, or `{quantity: array or path}`. Paths are written block by block,
        with a `.progress.json` beside each: the same call goes on where a killed one was. Affine
        functions of `mean.npy` go to `mean.affine.npy`.
    n_jobs : processes; by default what `joblib.parallel_config` says, else one.
    progress : show how far it is; by default only on a terminal.

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
    given = model if isinstance(model, list | tuple) else [model]
    models = [as_posterior(each) for each in given]
    questions = _questions(models, quantity, beta)
    low, high = _corners(models, lower, upper)
    accuracy = None if tol is None else read_tolerance(tol)
    free = budget is None and accuracy is None
    limit = Budget(seconds=None) if free else read_budget(budget)
    whole = Box(low.min(axis=0), high.max(axis=0))
    wanted = bool(read_flag("affine", affine))
    work = BoxWork.of(questions, whole, backend_from_name(backend), accuracy, wanted)
    _check_affine(work)
    size = GPU_BLOCK if work.backend.gpu else BLOCK
    files = _files(out, work, (low, high), {"beta": beta, "tol": accuracy, "block": size})
    jobs, shown = read_jobs(n_jobs), read_flag("progress", progress)
    blocks = Blocks(files, len(low), size)
    ends = time.time() + limit.ends(start) - time.perf_counter()  # a moment that processes share
    pieces = [
        (work, low[rows], high[rows], _share(limit, len(low[rows]) / len(low)), ends)
        for rows in blocks.left()
    ]
    try:
        for each in models:
            prepare(each)
        with progress_line(shown) as line:
            long = work.seconds(sum(len(piece[1]) for piece in pieces)) > LONG_SECONDS
            for number, found in numbered_results(work_on, pieces, jobs, at_once=long):
                blocks.take(number, found)
                line.show(blocks.told(time.perf_counter() - start))
                stop_if_interrupted(found.reason)
    except KeyboardInterrupt:
        pass  # what is bounded so far is returned; the rest has infinite ends
    return BoxBounds(
        lower=low,
        upper=high,
        ranges={name: file.values for name, file in files.ranges.items()},
        outputs=work.outputs,
        reached=blocks.reached,
        converged=blocks.converged,
        tol=accuracy,
        boxes=blocks.boxes,
        seconds=time.perf_counter() - start,
        models=tuple(each.fingerprint for each in models),
        affine={name: file.values for name, file in files.affine.items()},
    )


class Files(NamedTuple):
    """Where ranges and affine functions of every quantity go."""

    ranges: Mapping[str, BoxFile]
    affine: Mapping[str, BoxFile]

    @property
    def all(self) -> list[BoxFile]:
        """Every one."""
        return [*self.ranges.values(), *self.affine.values()]


class Blocks:
    """The boxes in blocks: which are left, and what is known of the others."""

    def __init__(self, files: Files, count: int, size: int) -> None:
        self.files = files
        self.count = count
        self.rows = [slice(k, min(k + size, count)) for k in range(0, count, size)]
        done = set.intersection(*(file.done for file in files.all))
        self.numbers = [k for k in range(len(self.rows)) if k not in done]
        self.reached = count - sum(rows.stop - rows.start for rows in self.left())
        self.before = self.reached
        self.boxes = 0

    def left(self) -> list[slice]:
        """Rows of the blocks that are to be bounded."""
        return [self.rows[k] for k in self.numbers]

    def take(self, number: int, found: Block) -> None:
        """Put the bounds of one block away."""
        k = self.numbers[number]
        for name, file in self.files.ranges.items():
            file.write(k, self.rows[k], found.ranges[name], found.finished)
        for name, file in self.files.affine.items():
            file.write(k, self.rows[k], found.affine[name], found.finished)
        self.reached += found.reached
        self.boxes += found.boxes

    @property
    def converged(self) -> bool:
        """Whether every block ended as it was asked to."""
        return all(len(file.done) == len(self.rows) for file in self.files.all)

    def told(self, seconds: float) -> str:
        """How far it is."""
        here = self.reached - self.before
        left = (self.count - self.reached) * seconds / here if here else float("nan")
        return f"{self.reached} of {self.count} boxes, about {left:.0f} s left"


def _questions(
    models: Sequence[Model], quantity: Any, beta: float | None
) -> dict[str, list[RangeQuestion]]:
    """What is asked of every model, by quantity."""
    if not models:
        raise InputError("model: expected a model or a list of them, got an empty list")
    several = isinstance(quantity, list | tuple | set | frozenset)
    names: tuple[Any, ...] = tuple(quantity) if several else (quantity,)
    if not names or not all(isinstance(n, str) for n in names) or len(set(names)) < len(names):
        raise InputError(f"quantity: expected one or several different ones, got {quantity!r}")
    if beta is not None and "band" not in names:
        raise InputError(f"beta: belongs to quantity='band', got quantity={quantity!r}")
    reach = {"band": beta}
    return {
        name: [range_question(model, name, reach.get(name)) for model in models] for name in names
    }


def _corners(models: Sequence[Model], lower: Any, upper: Any) -> tuple[np.ndarray, np.ndarray]:
    """The corners (R, d) each, in the models' order of features."""
    if len({model.dim for model in models}) > 1:
        dims = [model.dim for model in models]
        raise InputError(f"model: expected models of the same features, got {dims} of them")
    low, high = models[0].check_inputs(lower, "lower"), models[0].check_inputs(upper, "upper")
    if low.shape != high.shape or len(low) == 0:
        raise InputError(
            f"upper: expected as many boxes as in lower and at least one, got {len(high)} and "
            f"{len(low)}"
        )
    crossed = np.flatnonzero(np.any(low > high, axis=1))
    if len(crossed):
        raise InputError(f"lower: expected lower <= upper, got the opposite in row {crossed[0]}")
    return low, high


def _files(
    out: Any, work: BoxWork, corners: tuple[np.ndarray, np.ndarray], asked: Mapping[str, Any]
) -> Files:
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
    header = {"models": work.fingerprints, **asked}
    identity = fingerprint(header, {"lower": corners[0], "upper": corners[1]})
    ranges, affine = {}, {}
    for name, labels in work.outputs.items():
        rows = (len(corners[0]), len(labels))
        ranges[name] = BoxFile.of(targets[name], rows, f"{name} {identity}")
        if work.affine:
            place = _beside(targets[name])
            unknown = nothing(work.whole.dim)
            affine[name] = BoxFile.of(place, rows, f"{name} affine {identity}", unknown)
    return Files(ranges, affine)


def _beside(target: Any) -> Path | None:
    """`mean.affine.npy` for `mean.npy`; a new array where ranges go to one."""
    if not isinstance(target, str | os.PathLike):
        return None
    path = Path(target)
    return path.with_name(f"{path.stem}.affine{path.suffix}")


def _check_affine(work: BoxWork) -> None:
    """That there are affine functions of all that is asked about."""
    if not work.affine:
        return
    if not all(has_affine(goal.quantity) for group in work.asked for goal in group.goals):
        raise InputError(
            "affine: expected quantities out of 'mean', 'std' and 'variance', got "
            f"{list(work.outputs)}; ask for the others in a call of their own"
        )
    members = [member for group in work.asked for member in group.model.members]
    if any(member.features is not None for member in members):
        raise InputError(
            "affine: not known for a model behind linear features (PCA); leave it out, or bound "
            "boxes of the features: fit on them, without a pipeline"
        )


def _share(budget: Budget, part: float) -> Budget:
    """The part of the boxes that a block may take; the time is everybody's."""
    boxes = None if budget.boxes is None else max(1, int(budget.boxes * part))
    return replace(budget, seconds=None, boxes=boxes)
