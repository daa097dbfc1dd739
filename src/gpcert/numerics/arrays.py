"""The array namespace: the same lines of engine code run on NumPy and on torch (CPU, CUDA).

Everything is float64. Arrays enter the engine through a `Backend` and leave it through `to_numpy`.

Elementwise work is compiled on a GPU where the backend `"torch:cuda:compiled"` asks for it. There
an array operation is bound by memory: a hundred of them read and write the same numbers a
hundred times. torch's compiler (`torch.compile`) writes one kernel for them. It takes about a
minute for a model's first batch (its cache on disk makes later processes faster).

Rounding: the compiled lines are the same lines. Products and sums are not contracted
(`emulate_precision_casts` turns fused multiply-add off), divisions, square roots and exponentials
are those of the plain operations; sums over an axis may be added in another order, which every
error term of this library allows (docs/soundness.md).
"""

from __future__ import annotations

import functools
import math
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import reduce
from numbers import Real
from typing import Annotated, Any, ParamSpec, TypeVar

import array_api_compat
import numpy as np

from gpcert.errors import InputError
from gpcert.utils.optional_imports import optional

Array = Any  # numpy.ndarray or torch.Tensor, always float64 inside the engine

# Shapes in annotations: letters of GLOSSARY.md, checked while tests run (`tests/shapes.py`).
Reals = Annotated[Array, "#"]  # or a number; those of a call broadcast, also to its result
PerCell = Annotated[Array, "B"]
PerCellAndFeature = Annotated[Array, "B f"]
PerCellAndClass = Annotated[Array, "B m"]
PerCellAndPoint = Annotated[Array, "B N"]
PerCellAndBin = Annotated[Array, "B bins"]
PerCellMatrix = Annotated[Array, "B f f"]
PerOrder = Annotated[Array, "B orders"]
Derivatives = Annotated[Array, "B f N"]
Gaps = Annotated[Array, "B n"]
PerClass = Annotated[Array, "m"]
Vectors = Annotated[Array, "... f"]
PerVector = Annotated[Array, "..."]
Index = Annotated[Array, "i"]
Rows = Annotated[Array, "n f"]
PerRow = Annotated[Array, "n"]
PerFeature = Annotated[np.ndarray, "d"]
Inputs = Annotated[np.ndarray, "n d"]
Points = Annotated[np.ndarray, "N d"]


@dataclass(frozen=True)
class Backend:
    """Where arrays live: `Backend()` is NumPy; `backend_from_name("torch:cuda")` a GPU.

    >>> Backend().asarray([1, 2]).dtype
    dtype('float64')
    """

    name: str = "numpy"
    device: str | None = None
    compiled: bool = False
    """Whether elementwise work is compiled (`gpcert.numerics.arrays`)."""

    @property
    def xp(self) -> Any:
        """The array-API namespace."""
        return np if self.name == "numpy" else namespace(_torch().empty(0))

    @property
    def gpu(self) -> bool:
        """Whether the arrays live on a GPU."""
        return self.device is not None and "cuda" in self.device

    @property
    def free_bytes(self) -> float:
        """Memory that is left on the GPU, torch's own reserve included; infinite elsewhere."""
        if self.device is None or "cuda" not in self.device:
            return math.inf
        cuda = _torch().cuda
        reserved = cuda.memory_reserved(self.device) - cuda.memory_allocated(self.device)
        return float(cuda.mem_get_info(self.device)[0] + reserved)

    def asarray(self, values: Any) -> Array:
        """Copy host values into a float64 array of this backend."""
        host = np.asarray(values, dtype=np.float64)
        if self.name == "numpy":
            return host
        return _torch().from_numpy(np.array(host)).to(self.device)


def _torch() -> Any:
    return optional("torch", "backend 'torch'")


def backend_from_name(name: str | Backend = "numpy") -> Backend:
    """The backend `"numpy"`, `"torch"`, `"torch:cpu"`, `"torch:cuda"` or one of several GPUs,
    `"torch:cuda:1"`; `"torch:cuda:compiled"` for long work, see `gpcert.numerics.arrays`."""
    if isinstance(name, Backend):
        return name
    form = r"numpy|torch(?::(cpu|cuda(?::(\d{1,3}))?(:compiled)?))?"
    known = re.fullmatch(form, str(name))
    if not isinstance(name, str) or known is None:
        raise InputError(
            "backend: expected 'numpy', 'torch', 'torch:cpu', 'torch:cuda', 'torch:cuda:1' or "
            f"'torch:cuda:compiled', got {name!r}"
        )
    if name == "numpy":
        return Backend()
    device, number, compiled = known.groups()
    count = _torch().cuda.device_count() if device and device.startswith("cuda") else 1
    if count == 0:
        raise InputError(f"backend {name!r} asks for a GPU, but torch finds none; use 'torch:cpu'")
    if number is not None and int(number) >= count:
        raise InputError(f"backend {name!r}: expected a device below {count}, got {number}")
    _torch()
    place = (device or "cpu").removesuffix(":compiled")
    return Backend("torch", place, compiled is not None)


_KNOWN: dict[type, Any] = {}


def namespace(*arrays: Array) -> Any:
    """Array-API namespace of `arrays`, all of one library (Python scalars are passed over).

    NumPy's is NumPy itself, which has all functions of the standard (from 2.1 on): wrappers around
    them took an eighth of small searches, and looking for them a seventh.
    """
    for array in arrays:
        if not isinstance(array, int | float):
            kind = type(array)
            if kind not in _KNOWN:
                plain = isinstance(array, np.ndarray | np.generic)
                _KNOWN[kind] = np if plain else array_api_compat.array_namespace(*arrays)
            return _KNOWN[kind]
    return array_api_compat.array_namespace(*arrays)  # raises: no arrays


def least_of(arrays: Sequence[Array]) -> Array:
    """The smallest of arrays of one shape, place by place."""
    return reduce(namespace(arrays[0]).minimum, arrays)


def row_products(a: Array, b: Array) -> Array:
    """(B,) the dot products of the rows of matrices (B, N); NumPy forms no products beside."""
    if isinstance(a, np.ndarray):
        return np.einsum("ij,ij->i", a, b)
    return namespace(a).sum(a * b, axis=1)


def keep_freed_memory() -> None:
    """Ask glibc to keep up to 64 MB of freed memory at hand, by freeing an array that nobody wrote.

    It gives back what is freed at the end of its heap beyond twice the largest array that it ever
    freed (32 MB at most count): every batch of a few MB would otherwise fetch its pages again, a
    fourth of the time of many boxes. Elsewhere nothing happens.
    """
    np.empty(4_000_000)


CACHED = 2**15
"""Numbers of an array that stay in a processor's cache from one pass to the next."""


def row_blocks(array: Array, numbers: int = CACHED) -> list[slice]:
    """Rows of a matrix, in blocks of about so many numbers; of a tensor all at once: a GPU wants
    few and large steps.

    >>> row_blocks(np.empty((3, 2**14)))
    [slice(0, 2, None), slice(2, 3, None)]
    """
    rows, columns = array.shape
    step = max(1, numbers // max(1, columns) if isinstance(array, np.ndarray) else rows)
    return [slice(start, min(start + step, rows)) for start in range(0, max(1, rows), step)]


def to_numpy(array: Array) -> np.ndarray:
    """Host copy of an engine array."""
    if array_api_compat.is_torch_array(array):
        return array.detach().cpu().numpy()
    return np.asarray(array)


def number_array(
    name: str, values: Any, ndim: int | None = None, booleans: bool = False
) -> np.ndarray:
    """A new float64 array of numbers, infinite ones allowed, or an `InputError`.

    Reads lists, NumPy arrays, data frames and tensors (also with `requires_grad`, also on a GPU).
    Nothing is converted that would lose or invent something: text, complex numbers, missing values,
    masked entries and sparse matrices are refused, and so is True, which is the number 1 only where
    `booleans` are features.

    >>> number_array("x", [1, float("inf")])
    array([ 1., inf])
    """
    raw = _host_array(name, values)
    kind = raw.dtype.kind
    if kind == "O":
        raw = _real_objects(name, raw, booleans)
    elif kind not in ("fiub" if booleans else "fiu"):
        hints = {
            "c": "complex numbers; pass their real part, if that is what you mean",
            "b": "True or False; pass 1.0 and 0.0",
            "U": "text; convert it first, for example with float",
            "S": "text; convert it first, for example with float",
        }
        raise InputError(f"{name}: expected numbers, got {hints.get(kind, str(raw.dtype))}")
    with np.errstate(over="ignore"):  # what is too large for float64 is infinite
        array = np.array(raw, dtype=np.float64)
    if ndim is not None and array.ndim != ndim:
        raise InputError(f"{name}: expected {ndim} dimension(s), got shape {array.shape}")
    if np.isnan(array).any():
        raise InputError(
            f"{name}: expected finite numbers, got {int(np.isnan(array).sum())} NaN of "
            f"{array.size}; impute or drop them first"
        )
    return array


def finite_array(
    name: str, values: Any, ndim: int | None = None, booleans: bool = False
) -> np.ndarray:
    """Like `number_array`, without infinite numbers.

    >>> finite_array("x", [1, 2.5])
    array([1. , 2.5])
    """
    array = number_array(name, values, ndim, booleans)
    if not np.all(np.isfinite(array)):
        bad = int(array.size - np.isfinite(array).sum())
        raise InputError(
            f"{name}: expected finite numbers, got {bad} infinite of {array.size}; "
            "impute or drop them first"
        )
    return array


def constant_array(name: str, values: Any, ndim: int | None = None) -> np.ndarray:
    """A `finite_array` of some numbers that can only be read: what is derived from it stays true.

    >>> constant_array("x", [1, 2.5]).flags.writeable
    False
    """
    array = finite_array(name, values, ndim)
    if array.size == 0:
        raise InputError(f"{name}: expected at least one number, got none (shape {array.shape})")
    array.setflags(write=False)
    return array


def whole_number(name: str, value: Any, least: int = 0) -> int:
    """A whole number of at least `least`, or an `InputError`."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < least:
        raise InputError(f"{name}: expected a whole number >= {least}, got {value!r}")
    return int(value)


def _host_array(name: str, values: Any) -> np.ndarray:
    """The values as NumPy reads them, on the host, of whatever type."""
    if type(values) is np.ndarray:
        return values
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        count = int(np.ma.getmaskarray(values).sum())
        raise InputError(
            f"{name}: expected numbers, got {count} masked entries; fill or drop them first"
        )
    if hasattr(values, "toarray") and hasattr(values, "nnz"):
        raise InputError(f"{name}: expected a dense array, got a sparse one; pass .toarray()")
    try:
        if array_api_compat.is_torch_array(values):
            tensor: Any = values
            tensor = tensor.detach().cpu()
            return np.asarray(tensor.double() if tensor.is_floating_point() else tensor)
        return np.asarray(values)
    except (TypeError, ValueError, RuntimeError, AttributeError) as error:
        raise InputError(f"{name}: expected numbers, got {_excerpt(values)} ({error})") from error


def _real_objects(name: str, raw: np.ndarray, booleans: bool) -> np.ndarray:
    """Objects that are all real numbers as float64; anything else (None, NA, text) is refused."""
    for value in raw.flat:
        boolean = isinstance(value, bool | np.bool_)
        if not (booleans if boolean else isinstance(value, Real)):
            raise InputError(f"{name}: expected numbers, got {_excerpt(value)}")
    try:
        return np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name}: expected numbers, got {_excerpt(raw)} ({error})") from error


def _excerpt(value: Any) -> str:
    """The value as text that fits a line."""
    try:
        text = repr(value)
    except Exception as error:  # a broken __repr__ must not hide the error that it stands in
        text = f"a {type(value).__name__} ({type(error).__name__} when printed)"
    return text if len(text) <= 200 else text[:200] + "..."


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
    quick = _torch().inference_mode() if plain else nullcontext()
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
