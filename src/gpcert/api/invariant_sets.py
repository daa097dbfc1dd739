"""`invariant_set`: states from which a learned map is proved to stay inside.

Proofs: docs/mathematics.md, statement 21.4.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.api.boxes import bound_boxes
from gpcert.api.options import BudgetLike, one_of, read_budget, verb
from gpcert.api.questions import DEFAULT_BETA
from gpcert.api.running import progress_line
from gpcert.certificates.boxes import BoxBounds
from gpcert.certificates.invariant_sets import InvariantSet
from gpcert.errors import InputError
from gpcert.model.committee import Committee, Model
from gpcert.numerics.arrays import Backend, finite_array
from gpcert.numerics.rounding import TINY, add_down, add_up, gamma, up
from gpcert.regions import Box
from gpcert.search import Budget
from gpcert.search.checkpoints import Checkpoint
from gpcert.search.invariant import GridCells, at_edge, kept_inside

STEPS = ("next", "delta")

MOST_CELLS = 2**24
"""Cells of the finest grid: what the union of cells is looked up in."""


@verb
def invariant_set(
    models: Any,
    region: Any,
    step: str = "next",
    *,
    disturbance: Any = 0.0,
    inputs: Any = None,
    beta: float = DEFAULT_BETA,
    cells: int = 20_000,
    refine: int = 1,
    budget: BudgetLike = None,
    backend: str | Backend = "numpy",
    progress: bool | None = None,
    checkpoint: str | Path | Checkpoint | None = None,
) -> InvariantSet:
    """The largest union of cells of a grid that a learned map is proved to keep inside.

    Parameters
    ----------
    models : one model with an output for each of n states, or a list of models whose outputs, one
        after another, are the states. Their features are the states, and then the inputs.
    region : a `Box` of the states, or n pairs (low, high).
    step : "next" if the models predict the next state, "delta" if they predict what is added to it.
    disturbance : the largest size of what is added to the next state, a number or n of them.
    inputs : (m, k) candidates for the k input features; for every cell the middle one, in this
        order, of those that keep inside is chosen. None where the models have the states alone.
    beta : the map is any function within `mean +- beta std` at every point; 0 means the mean. With
        `gpcert.uniform_beta` this is a statement about the true map.
    cells : about how many cells there are at first, the same number along each state.
    refine : how often cells at the edge of the set are halved along every state, and asked again.
    budget : seconds, or a `Budget`; 60 seconds by default.
    backend, progress : as in `bound_boxes`.
    checkpoint : a file that saves the images of cells, and from which the same call goes on.

    Ctrl-C and the end of the budget leave a smaller set, of cells whose images are known. It may be
    empty.

    Example
    -------
    >>> import gpcert
    >>> from gpcert.kernels import Linear
    >>> halves = gpcert.Posterior(Linear([1.0]), points=[[1.0]], weights=[0.5])  # x -> x / 2
    >>> safe = gpcert.invariant_set(halves, [(-1, 1)], disturbance=0.4, beta=0, cells=100)
    >>> safe.contains([0.9]), safe.share > 0.999
    (True, True)
    """
    start = time.perf_counter()
    each = [as_posterior(m) for m in (models if isinstance(models, list | tuple) else [models])]
    n, box = _states(each, region)
    choices = _inputs(each, n, inputs)
    one_of("step", step, STEPS)
    far = _disturbance(disturbance, n)
    reach = float(finite_array("beta", beta, ndim=0))
    if reach < 0:
        raise InputError(f"beta: expected a number of standard deviations >= 0, got {beta!r}")
    count, halvings = _whole("cells", cells, 1), _whole("refine", refine, 0)
    along = max(1, round(count ** (1.0 / n)))
    if (along * 2**halvings) ** n > MOST_CELLS:
        raise InputError(
            f"cells, refine: expected a finest grid of at most {MOST_CELLS} cells, got "
            f"{along * 2**halvings} along each of {n} states; ask for fewer"
        )
    work = _Images(each, choices, step, far, reach, read_budget(budget), backend, start)
    grid = GridCells.of(box.lower, box.upper, [along] * n, halvings)
    with progress_line(progress) as line:
        images = work.of(grid)
        kept, choice = kept_inside(grid, images)
        for _ in range(halvings):
            edge = at_edge(grid, kept) if kept.any() else grid.size > 1
            if not edge.any() or not work.complete:
                break
            line.show(f"{kept.sum()} of {len(grid)} cells, {edge.sum()} at the edge are halved")
            parts = grid.take(edge).halves()
            images = np.concatenate([images[kept], work.of(parts)])
            grid = grid.take(kept).joined(parts)
            kept, choice = kept_inside(grid, images)
    safe = grid.take(kept)
    return InvariantSet(
        lower=safe.low,
        upper=safe.high,
        choice=choice[kept],
        inputs=choices,
        disturbance=far,
        bounds=np.stack([box.lower, box.upper]),
        beta=reach,
        step=step,
        complete=work.complete,
        boxes=work.boxes,
        seconds=time.perf_counter() - start,
        models=tuple(model.fingerprint for model in each),
    )


@dataclass(eq=False)
class _Images:
    """Boxes around the images of cells, for every input, and what they cost."""

    models: Sequence[Model]
    inputs: np.ndarray
    step: str
    disturbance: np.ndarray
    beta: float
    budget: Budget
    backend: str | Backend
    start: float
    complete: bool = True
    boxes: int = field(default=0)

    def of(self, cells: GridCells) -> np.ndarray:
        """(R, m, n, 2): the ends of the next states from every cell, with every input."""
        low, high = cells.low, cells.high
        images = np.empty((len(low), len(self.inputs), cells.n, 2))
        images[..., 0], images[..., 1] = -np.inf, np.inf
        for k, given in enumerate(self.inputs):
            left = self.budget.ends(self.start) - time.perf_counter()
            if left <= 0 or not self.complete:
                self.complete = False
                break
            ends = (np.concatenate([end, np.tile(given, (len(end), 1))], 1) for end in (low, high))
            limit = replace(self.budget, seconds=left if np.isfinite(left) else None)
            bounds = bound_boxes(
                list(self.models),
                *ends,
                quantity="band" if self.beta else "mean",
                beta=self.beta or None,
                affine=self.step == "delta" and self._has_lines,
                budget=limit if limit.seconds else None,
                backend=self.backend,
            )
            self.complete &= bounds.complete
            self.boxes += bounds.boxes
            images[:, k] = self._next(bounds, low, high)
        return images

    @property
    def _has_lines(self) -> bool:
        """Whether affine bounds are known: not behind linear features."""
        return all(part.features is None for model in self.models for part in model.members)

    def _next(self, bounds: BoxBounds, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """(R, n, 2): the next states, rounded outwards."""
        name = next(iter(bounds.ranges))
        ends = bounds[name].copy()
        if self.step == "delta":
            lower, upper = add_down(low, ends[..., 0]), add_up(high, ends[..., 1])
            if bounds.affine:
                lines = bounds.affine[name]
                lower = np.maximum(lower, _least(lines[:, :, 0], low, high))
                upper = np.minimum(upper, -_least(-lines[:, :, 1], low, high, -1.0))
            ends = np.stack([lower, upper], axis=-1)
        ends[..., 0] = add_down(ends[..., 0], -self.disturbance)
        ends[..., 1] = add_up(ends[..., 1], self.disturbance)
        return ends


def _least(lines: np.ndarray, low: np.ndarray, high: np.ndarray, sign: float = 1.0) -> np.ndarray:
    """(R, n): lower bounds of `sign x_i + slope_i.x + offset_i` over boxes (R, n) of states; the
    inputs, which boxes hold fixed, are in the offsets.

    Reason: one rounding of the slope with 1 added, one of each product, n of their sum with the
    offset, which has one of its own.
    """
    n = low.shape[1]
    slope, offset = lines[:, :, :n] + sign * np.eye(n), lines[:, :, -1]
    ends = slope * low[:, None], slope * high[:, None]
    with np.errstate(invalid="ignore"):
        size = np.maximum(np.abs(ends[0]), np.abs(ends[1])).sum(axis=2) + np.abs(offset)
        value = np.minimum(*ends).sum(axis=2) + offset
        value = value - up(gamma(n + 6) * size, n + 8) - (n + 2.0) * TINY
    return np.where(np.isfinite(value), value, -np.inf)


def _states(models: Sequence[Model], region: Any) -> tuple[int, Box]:
    """How many states there are, and their box."""
    if not models:
        raise InputError("models: expected a model or a list of them, got an empty list")
    maps = [each for each in models if not (isinstance(each, Committee) or each.classifies)]
    if len(maps) < len(models):
        raise InputError("models: expected regressions of the next state, got a classifier")
    dims = {each.dim for each in models}
    if len(dims) > 1:
        raise InputError(f"models: expected models of the same features, got {sorted(dims)}")
    n = sum(each.outputs for each in maps)
    if isinstance(region, Box):
        box = region
    else:
        pairs = finite_array("region", region, ndim=2)
        if pairs.shape[1] != 2:
            raise InputError(f"region: expected a Box or {n} pairs (low, high), got {region!r}")
        box = Box(*pairs.T)
    if box.dim != n or len(box.free) != n:
        raise InputError(
            f"region: expected a box of {n} states, one for each output of the models, all of "
            f"which move, got {box.dim} of which {len(box.free)} move"
        )
    return n, box


def _inputs(models: Sequence[Model], n: int, inputs: Any) -> np.ndarray:
    """(m, k): the candidates for the inputs."""
    k = models[0].dim - n
    if k < 0:
        raise InputError(
            f"models: expected the {n} states among their features, got {models[0].dim} features"
        )
    if inputs is None:
        if k:
            raise InputError(
                f"inputs: expected candidates (m, {k}) for the {k} features that are no states, "
                "got none"
            )
        return np.zeros((1, 0))
    values = finite_array("inputs", inputs)
    values = values[:, None] if values.ndim == 1 else values
    if k == 0 or values.ndim != 2 or values.shape[1] != k or not len(values):
        raise InputError(
            f"inputs: expected candidates of shape (m, {k}), one column for each feature that is "
            f"no state, got shape {values.shape}"
        )
    return values


def _disturbance(given: Any, n: int) -> np.ndarray:
    far = finite_array("disturbance", given)
    if far.shape not in {(), (n,)} or np.any(far < 0):
        raise InputError(f"disturbance: expected a number >= 0 or {n} of them, got {given!r}")
    return np.broadcast_to(far, (n,)).copy()


def _whole(name: str, given: Any, least: int) -> int:
    if isinstance(given, bool) or not isinstance(given, int | np.integer) or given < least:
        raise InputError(f"{name}: expected a whole number >= {least}, got {given!r}")
    return int(given)
