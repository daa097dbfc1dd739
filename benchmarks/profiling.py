"""Section `profile`: how much of a large batch's time is spent in matrix products."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from batches import LINES, OPTIONAL, Batch, D, N
from clocked import Clocked, clocked_copy
from report import Section

from gpcert.enclosures import LocalPosterior
from gpcert.kernels.expansions.squared_exponential import LocalSquaredExponential
from gpcert.numerics.arrays import Backend, namespace


def profile(size: int = 4096) -> Section:
    """The share of matrix products in the time of one large batch, measured in two ways."""
    section = Section("profile", f"Share of matrix products in one batch, N = {N}, d = {D}, NumPy")
    batch = Batch(size, Backend())
    goals = batch.goals(2)
    for resting in ((), LINES, ("derivatives", *LINES), OPTIONAL):
        batch.rest(resting)
        whole = batch.best_seconds(lambda: batch.bound(goals), 2, time.process_time)
        alone = {
            name: batch.best_seconds(work, 2, time.process_time)
            for name, work in products(batch, "derivatives" not in resting).items()
        }
        clock = Clocked.clock
        clock.reset()
        start = time.process_time()
        batch.bound(goals, clocked_local(batch.local))
        inside = time.process_time() - start
        share = clock.seconds["matmul"] / inside
        section.add(
            cells=size,
            without=", ".join(resting) or "nothing",
            cpu_seconds=whole,
            boxes_a_cpu_second=size / whole,
            share_of_products=share,
            target_share=0.5,
            reached=share >= 0.5,
            products_alone_over_whole=sum(alone.values()) / whole,
            products={name: f"{1e3 * s:.0f} ms" for name, s in alone.items()},
            slowest_operations={
                name: f"{100 * s / inside:.0f} %" for name, s in clock.slowest(7).items()
            },
        )
    section.notes = [
        "Both sides of the probability (two goals) over the same enclosures, as for a range.",
        "CPU seconds of the process, best of 2 (other work on the machine does not count). Share: "
        "time spent in `matmul` during a real batch, recorded by an ndarray subclass; beside it "
        "the same products alone, on the same shapes, over the whole.",
        f"Once a model: norms and excess {batch.model_seconds:.3g} s; once a problem: "
        f"`LocalPosterior.build` {batch.build_seconds:.3g} s.",
    ]
    return section


def products(batch: Batch, derivatives: bool) -> dict[str, Callable[[], object]]:
    """The matrix products of a bound alone, on arrays of the same shapes."""
    local, kernel = batch.local, batch.local.kernel
    assert isinstance(kernel, LocalSquaredExponential)
    assert local.precisions is not None, "built with the variance"
    expansion = local.expand(batch.cells)
    K, scaled = expansion.K, expansion.scaled
    xp = namespace(K)
    precision = local.precisions[0]
    transposed = kernel.points.T
    columns = batch.backend.asarray(np.ones((N, 1 + D + D * D)))
    narrow = batch.backend.asarray(np.ones((N, 6)))
    named: dict[str, Callable[[], object]] = {
        "distances": lambda: scaled @ transposed,
        "moments of mean": lambda: K @ columns,
        "moments of variance": lambda: K @ columns,
        "error sums": lambda: [K @ narrow for _ in range(4)],
    }
    if precision.precision is not None:
        named["S k"] = lambda: K @ precision.precision
    else:
        named["A k, A^T q"] = lambda: (K @ precision.factor.T) @ precision.factor
    if derivatives:
        dK = kernel.derivatives(expansion)
        Q = dK @ precision.factor.T
        named["derivatives A"] = lambda: dK @ precision.factor.T
        named["Q Q^T"] = lambda: Q @ xp.matrix_transpose(Q)
    return named


def clocked_local(local: LocalPosterior) -> LocalPosterior:
    """The same with arrays that record the time of every operation on them."""
    assert isinstance(local.kernel, LocalSquaredExponential)
    assert local.precisions is not None, "built with the variance"
    kernel = replace(
        local.kernel,
        **{
            name: clocked_copy(getattr(local.kernel, name))
            for name in ("points", "origin", "lengths", "point_norms", "fixed_distances")
        },
    )
    precisions = tuple(
        replace(
            p,
            factor=clocked_copy(p.factor),
            precision=None if p.precision is None else clocked_copy(p.precision),
        )
        for p in local.precisions
    )
    weights = tuple(clocked_copy(t) for t in local.weights)
    return replace(local, kernel=kernel, precisions=precisions, weights=weights)
