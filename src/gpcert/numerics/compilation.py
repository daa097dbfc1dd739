"""Compiled elementwise work on a GPU, asked for by the backend `"torch:cuda:compiled"`.

There an array operation is bound by memory: a hundred of them read and write the same numbers a
hundred times. torch's compiler (`torch.compile`) writes one kernel for them. It takes about a
minute for a model's first batch (its cache on disk makes later processes faster), so nobody gets it
who has not asked.

Rounding: the compiled lines are the same lines. Products and sums are not contracted
(`emulate_precision_casts` turns fused multiply-add off), divisions, square roots and exponentials
are those of the plain operations; sums over an axis may be added in another order, which every
error term of this library allows (docs/soundness.md).
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, ParamSpec, TypeVar

from gpcert.numerics.arrays import Array, Backend, namespace
from gpcert.utils.optional_imports import optional

_OPTIONS = {
    "emulate_precision_casts": True,  # no contracted products
    "assert_indirect_indexing": False,  # what is gathered is gathered by tables of our own
    "triton.persistent_reductions": False,  # rows of ten features are summed in half the time
}

P = ParamSpec("P")
R = TypeVar("R")


class _Active(threading.local):
    """The backend whose batch this thread bounds now; others bound theirs beside it."""

    backend = Backend()


_active = _Active()


def _compiling() -> bool:
    """Whether torch looks at what it compiles: its own answer as soon as anything is compiled."""
    return False


@contextmanager
def running_on(backend: Backend) -> Iterator[None]:
    """Bound batches of this backend inside: compiled, if it asks for that."""
    before = _active.backend
    _active.backend = backend
    # what torch keeps for derivatives is a tenth of a launch
    plain = backend.name == "torch" and not backend.compiled
    quick = optional("torch", "backend 'torch'").inference_mode() if plain else nullcontext()
    try:
        with quick:
            yield
    finally:
        _active.backend = before


def fused(function: Callable[P, R]) -> Callable[P, R]:
    """Let `function`, of arrays and fixed numbers only, be compiled where `running_on` says so.

    No host value may be taken from its arrays inside (no `bool`, `float` or `nonzero`).
    """

    @functools.wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> R:
        if _compiling() or not _active.backend.compiled:  # inside, it is part of another
            return function(*args, **options)
        return _compiled(function)(*args, **options)

    return call


def products(matrix: Array, *vectors: Array) -> list[Array]:
    """The products (B, n) of matrices (B, n, f) with vectors (B, f): one batched product of all, or
    sums of a compiled function, which reads small matrices several times faster."""
    xp = namespace(matrix)
    if _compiling():
        return [xp.sum(matrix * vector[:, None, :], axis=2) for vector in vectors]
    block = vectors[0][:, :, None] if len(vectors) == 1 else xp.stack(vectors, axis=2)
    together = matrix @ block
    return [together[:, :, place] for place in range(len(vectors))]


def dot(rows: Array, columns: Array) -> Array:
    """`rows @ columns` for one column (N,) or a few (N, m): in a compiled function they are sums,
    for which no rows are written down (fast where each column lies together in memory)."""
    if not _compiling():
        return rows @ columns
    xp = namespace(rows)
    if columns.ndim == 1:
        return xp.sum(rows * columns, axis=1)
    return xp.stack([xp.sum(rows * columns[:, j], axis=1) for j in range(columns.shape[1])], axis=1)


@functools.cache
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    torch = optional("torch", "backend 'torch'")
    global _compiling  # noqa: PLW0603 - torch is not imported before something is compiled
    _compiling = torch.compiler.is_compiling
    namespace(torch.empty(0))  # looked up outside of what is compiled
    compiled = torch.compile(function, options=_OPTIONS)

    @functools.wraps(function)
    def alone(*args: Any, **options: Any) -> Any:
        for array in (*args, *options.values()):
            if isinstance(array, torch.Tensor) and array.ndim:
                # one kernel for batches of every size; other sizes are the model's
                torch._dynamo.maybe_mark_dynamic(array, 0)
        return compiled(*args, **options)

    return alone
