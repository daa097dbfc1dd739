"""Conversions that are kept while the fitted model has not changed, and how a change is recognised.

A conversion (with the comparison that belongs to it) takes longer than many a question. An entry is
used only for the very object it was made from, and only if that object's fingerprint, taken anew at
every call, is the one it had both before and after it was converted: a model that was fitted again
or altered in any part is converted again. A model that has no fingerprint is never kept.

Statement: two states of a model with equal fingerprints (and `kinds` kept alive) are equal, up to a
collision of SHA-256. Reason: the encoding below writes a tag, a length and the
content of every part, so that it can be read back in one way only; arrays are written with their
type, shape and bytes, and objects with their class and all their attributes. What is not known to
be described wholly that way (functions, foreign classes, C structures) has no fingerprint at all.

A tensor is its type, shape and numbers. A module is all its attributes, those of a user's own class
too (conversion reads the mean, the kernel and the data among them, never the code of `forward`),
less what is computed from them and what only training or loading reads. A function counts only if
torch or a library on it defines it and nothing else is bound to it: it stays the same.
"""

from __future__ import annotations

import hashlib
import struct
import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np

from gpcert.committee import Model

TORCH_PACKAGES = frozenset({"torch", "gpytorch", "botorch", "linear_operator"})

LEFT_OUT = frozenset(
    {
        # caches
        "prediction_strategy",
        "_memoize_cache",
        "_mean_cache",
        "_cached_kernel_mat",
        "distance_module",
        # read when a model is trained, loaded or saved
        "_priors",
        "_added_loss_terms",
        "_load_state_dict_pre_hooks",
        "_load_state_dict_post_hooks",
        "_state_dict_hooks",
        "_state_dict_pre_hooks",
        "_load_strict_shapes",
    }
)
"""Attributes of modules that predictions do not depend on."""


def torch_parts(value: Any, kind: type) -> list[Any] | None:
    """The parts of a value that only torch's libraries know; None for all others."""
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    if isinstance(value, torch.nn.Module):
        if any(base.__module__ == "gpytorch.priors.prior" for base in kind.__mro__):
            return []  # of hyper-parameters: read in training only
        state = {name: part for name, part in vars(value).items() if name not in LEFT_OUT}
        return [part for item in state.items() for part in item]
    rules: dict[type, Callable[[Any], list[Any] | None]] = {
        torch.Tensor: _tensor_parts,
        torch.nn.Parameter: _tensor_parts,
        torch.Size: lambda size: [int(length) for length in size],
        torch.dtype: lambda dtype: [str(dtype)],
        torch.device: lambda device: [str(device)],
        OrderedDict: lambda pairs: [part for item in pairs.items() for part in item],
        set: lambda parts: sorted(parts) if all(isinstance(p, str) for p in parts) else None,
        FunctionType: _function_parts,
        BuiltinFunctionType: _function_parts,
    }
    return rules[kind](value) if kind in rules else None


def _tensor_parts(tensor: Any) -> list[Any] | None:
    numbers = tensor.detach().cpu()
    try:
        return [str(tensor.dtype), str(tensor.device), numbers.numpy()]
    except (TypeError, RuntimeError):  # sparse, quantised, or of a type that NumPy has not
        return None


def _function_parts(function: Any) -> list[Any] | None:
    package = (getattr(function, "__module__", None) or "").partition(".")[0]
    bound = getattr(function, "__closure__", None) or getattr(function, "__defaults__", None)
    if package not in TORCH_PACKAGES or bound:
        return None
    return [function.__module__, function.__qualname__]


PACKAGES = frozenset({"sklearn", "gpcert"})
"""Packages whose objects are described by their attributes; a user's own class may compute its
attributes from anything."""

READ = {
    ("sklearn.model_selection._search", "GridSearchCV"): ("best_estimator_",),
    ("sklearn.model_selection._search", "RandomizedSearchCV"): ("best_estimator_",),
}
"""Attributes that conversion reads, for classes with large records of other things."""


class _Plain:
    """Of the size of every object whose attributes are all it has."""


class _Unknown(Exception):
    """A part that cannot be described."""


@dataclass(frozen=True)
class Fingerprint:
    """The digest; `kinds` are the classes met, whose addresses are in it and must not be reused."""

    digest: bytes
    kinds: tuple[type, ...] = field(compare=False)


def fingerprint(model: Any) -> Fingerprint | None:
    """The fingerprint of a model as it is now; None if a part of it cannot be described.

    >>> from sklearn.gaussian_process import GaussianProcessRegressor
    >>> model = GaussianProcessRegressor(optimizer=None).fit([[0.0], [1.0]], [0.0, 1.0])
    >>> before = fingerprint(model)
    >>> before == fingerprint(model)
    True
    >>> model.alpha_[0] += 1e-15
    >>> before == fingerprint(model)
    False
    """
    walk = _Walk()
    try:
        walk.add(model)
    except (_Unknown, RecursionError):
        return None
    return Fingerprint(walk.hash.digest(), tuple(walk.kinds.values()))


class _Walk:
    """One walk over the parts of a model."""

    def __init__(self) -> None:
        self.hash = hashlib.sha256()  # in hardware on most processors
        self.seen: dict[int, int] = {}
        self.alive: list[Any] = []  # parts made on the way: their addresses must not be reused
        self.kinds: dict[int, type] = {}

    def add(self, value: Any) -> None:
        """Write one part."""
        kind = type(value)
        if value is None or kind in (bool, str):
            self._write(kind.__name__, repr(value).encode())
        elif kind is int:
            self._write("int", f"{value:x}".encode())
        elif kind is bytes:
            self._write("bytes", value)
        elif kind in (float, complex):
            self._write(kind.__name__, struct.pack("<dd", value.real, value.imag))
        elif isinstance(value, np.generic) and value.dtype.kind not in "OV":
            self._write(f"scalar {value.dtype.str}", value.tobytes())
        elif id(value) in self.seen:
            self._write("seen", str(self.seen[id(value)]).encode())
        else:
            self.seen[id(value)] = len(self.seen)
            self.alive.append(value)
            self._add_composite(value, kind)

    def _add_composite(self, value: Any, kind: type) -> None:
        torch_part = torch_parts(value, kind)
        if torch_part is not None:
            self._add_kind(kind)
            self._add_parts("torch", torch_part)
        elif kind in (np.ndarray, np.memmap):
            self._add_array(value)
        elif kind in (list, tuple):
            self._add_parts(kind.__name__, value)
        elif kind is dict:
            self._add_parts("dict", [part for item in value.items() for part in item])
        elif kind is np.random.RandomState:
            self._add_parts("RandomState", [value.get_state(legacy=False)])
        elif kind is np.random.Generator:
            self._add_parts("Generator", [value.bit_generator.state])
        elif isinstance(value, type):
            self._add_kind(value)
        else:
            self._add_object(value, kind)

    def _add_array(self, array: np.ndarray) -> None:
        if array.dtype.kind == "O":
            self._add_parts(f"objects {array.shape}", list(array.flat))
            return
        if array.dtype.kind == "V":  # records, which may hold objects
            raise _Unknown
        turned = array.flags.f_contiguous and not array.flags.c_contiguous
        data = np.ascontiguousarray(array.T if turned else array)
        content = data.reshape(-1).view(np.uint8) if data.size else b""
        self._write(f"array {array.dtype.str} {array.shape} {turned}", content)

    def _add_object(self, value: Any, kind: type) -> None:
        """Class and attributes of a plain object of a known package.

        An object of the size of `_Plain` has no slots and no C structure beside its attributes. Of
        our own frozen records only the fields count: the rest are derived from them.
        """
        ordinary = kind.__basicsize__ == _Plain.__basicsize__ and kind.__itemsize__ == 0
        package = kind.__module__.partition(".")[0]
        if not ordinary or package not in PACKAGES or not hasattr(value, "__dict__"):
            raise _Unknown
        self._add_kind(kind)
        state = vars(value)
        if is_dataclass(kind) and package == "gpcert":
            names = [field.name for field in fields(kind)]
            state = {name: state[name] for name in names if name in state}
        wanted = READ.get((kind.__module__, kind.__qualname__))
        if wanted is not None:
            state = {name: state[name] for name in wanted if name in state}
        self._add_parts("object", [part for item in state.items() for part in item])

    def _add_kind(self, kind: type) -> None:
        self.kinds[id(kind)] = kind
        self._write("kind", f"{kind.__module__}.{kind.__qualname__} {id(kind)}".encode())

    def _add_parts(self, tag: str, parts: Any) -> None:
        self._write(tag, str(len(parts)).encode())
        for part in parts:
            self.add(part)

    def _write(self, tag: str, content: Any) -> None:
        name = tag.encode()
        self.hash.update(struct.pack("<QQ", len(name), len(content)))
        self.hash.update(name)
        self.hash.update(content)


MOST_KEPT = 8
"""Models whose conversions are kept; the one asked for longest ago leaves first."""


@dataclass(frozen=True, eq=False)
class _Entry:
    model: weakref.ref[Any]
    state: Fingerprint
    posterior: Model


class Kept:
    """Conversions by the address of their model; they do not keep the model alive."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._entries: OrderedDict[int, _Entry] = OrderedDict()
        self._lock = threading.RLock()  # a weak reference may die, and call back, inside it

    def __len__(self) -> int:
        return len(self._entries)

    def posterior(self, model: Any, convert: Callable[[Any], Model]) -> Model:
        """The kept conversion of the model as it is now, or a new one."""
        state = fingerprint(model)
        if state is None:
            return convert(model)
        with self._lock:
            entry = self._entries.get(id(model))
            if entry is not None and entry.model() is model and entry.state == state:
                self._entries.move_to_end(id(model))
                return entry.posterior
        posterior = convert(model)
        if fingerprint(model) == state:  # else it changed while it was converted
            self._keep(model, state, posterior)
        return posterior

    def _keep(self, model: Any, state: Fingerprint, posterior: Model) -> None:
        address = id(model)
        if not type(model).__weakrefoffset__:  # a tuple: nobody would say when it dies
            return
        with self._lock:
            reference = weakref.ref(model, lambda dead: self._forget(address, dead))
            self._entries[address] = _Entry(reference, state, posterior)
            self._entries.move_to_end(address)
            while len(self._entries) > self._most:
                self._entries.popitem(last=False)

    def _forget(self, address: int, reference: weakref.ref[Any]) -> None:
        with self._lock:
            entry = self._entries.get(address)
            if entry is not None and entry.model is reference:
                del self._entries[address]
