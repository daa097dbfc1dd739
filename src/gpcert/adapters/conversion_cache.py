"""Conversions that are kept while the fitted model has not changed, and how a change is recognised.

A conversion (with the comparison that belongs to it) takes longer than many a question. An entry is
used only for the very object it was made from, and only if that object's fingerprint, taken anew at
every call, is the one it had both before and after it was converted: a model that was fitted again
or altered in any part is converted again. A model that has no fingerprint is never kept.

Statement: two states of a model with equal fingerprints (and `kinds` kept alive) are equal, up to a
collision of SHA-256. Reason: it is that of what `pickle` writes, which can be read back in one way
only, and of the bytes of all arrays in turn, each with its length; objects are written with their
class and all their attributes. What is not known to be described wholly that way (functions of a
user, foreign classes, C structures) has no fingerprint at all.

A tensor is its type, shape and numbers. A module is all its attributes, those of a user's own class
too (conversion reads the mean, the kernel and the data among them, never the code of `forward`),
less what is computed from them and what only training or loading reads. A function counts only if
`pickle` finds it by its name in a library below: it stays the same. The one setting of a library
that conversion reads, GPyTorch's jitter at inducing points, is part of every fingerprint.
"""

from __future__ import annotations

import hashlib
import pickle
import struct
import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

from gpcert.model.committee import Model

LIBRARIES = frozenset({"numpy", "torch", "gpytorch", "botorch", "linear_operator"})
"""Packages whose functions count; NumPy's objects are described by what `pickle` asks of them."""

PACKAGES = frozenset({"sklearn", "gpcert"})
"""Packages whose objects are described by their attributes; a user's own class may compute its
attributes from anything."""

CACHES = ("prediction_strategy", "_memoize_cache", "_mean_cache", "_cached_kernel_mat")
"""Attributes in which GPyTorch keeps what it has computed; not part of the model."""

LEFT_OUT = {
    *CACHES,
    "distance_module",
    # read when a model is trained, loaded or saved
    *("_priors", "_added_loss_terms", "_load_strict_shapes"),
    *("_load_state_dict_pre_hooks", "_load_state_dict_post_hooks"),
    *("_state_dict_hooks", "_state_dict_pre_hooks"),
}
"""Attributes of modules that predictions do not depend on."""

SEARCHES = ("GridSearchCV", "RandomizedSearchCV")
"""Classes with large records of other things than what conversion reads."""


class _Plain:
    """Of the size of every object whose attributes are all it has."""


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
        walk.dump(model)
        walk.stream.update(_settings())
    except (pickle.PicklingError, TypeError, ValueError, AttributeError, RuntimeError):
        return None
    digest = walk.stream.digest() + walk.arrays.digest()
    return Fingerprint(digest, tuple(walk.kinds.values()))


def _settings() -> bytes:
    """The jitter that GPyTorch adds at inducing points unless a model says otherwise."""
    if "gpytorch" not in sys.modules:
        return b""
    torch, jitter = sys.modules["torch"], sys.modules["gpytorch"].settings
    kinds = (torch.float64, torch.float32)
    return repr([jitter.variational_cholesky_jitter.value(kind) for kind in kinds]).encode()


class _Walk(pickle.Pickler):
    """One walk over the parts of a model; nothing is written but hashes."""

    def __init__(self) -> None:
        self.stream, self.arrays = hashlib.sha256(), hashlib.sha256()  # in hardware on most
        self.kinds: dict[int, type] = {}
        file: Any = SimpleNamespace(write=self.stream.update)
        # no method of its own: in a cycle it would keep all parts alive until they are collected
        super().__init__(file, protocol=5, buffer_callback=partial(_add_array, self.arrays))

    def reducer_override(self, value: Any) -> Any:
        """A class by its name and address, other objects by their class and parts; NotImplemented
        where `pickle` itself knows how."""
        kind = type(value)
        if isinstance(value, type) and value is not tuple:
            self.kinds[id(value)] = value
            return tuple, ((value.__module__, value.__qualname__, id(value)),)
        function = hasattr(value, "__qualname__")
        known = _package(value) in LIBRARIES if function else _package(kind) == "numpy"
        if known or kind is OrderedDict or value is tuple:
            return NotImplemented
        return tuple, ((kind, *_parts(value, kind)),)


def _add_array(arrays: Any, buffer: pickle.PickleBuffer) -> None:
    with buffer.raw() as data:
        arrays.update(struct.pack("<Q", data.nbytes))
        arrays.update(data)


def _package(thing: Any) -> str:
    return (getattr(thing, "__module__", None) or "").partition(".")[0]


def _parts(value: Any, kind: type) -> list[Any]:
    """The parts of an object of torch's libraries, or the attributes of a plain object of a known
    package: one of the size of `_Plain`, which has no slots and no C structure beside them. Of our
    own frozen records only the fields count: the rest are derived from them."""
    torch = sys.modules.get("torch")
    if torch is not None and kind in (torch.Tensor, torch.nn.Parameter):
        # a RuntimeError or TypeError: sparse, quantised, or of a type that NumPy has not
        return [str(value.dtype), str(value.device), value.detach().cpu().numpy()]
    if torch is not None and kind in (torch.Size, torch.dtype, torch.device):
        return [str(value)]
    if torch is not None and isinstance(value, torch.nn.Module):
        if any(base.__module__ == "gpytorch.priors.prior" for base in kind.__mro__):
            return []  # of hyper-parameters: read in training only
        return [item for item in vars(value).items() if item[0] not in LEFT_OUT]
    ordinary = kind.__basicsize__ == _Plain.__basicsize__ and kind.__itemsize__ == 0
    if not ordinary or _package(kind) not in PACKAGES or not hasattr(value, "__dict__"):
        raise pickle.PicklingError(f"{kind.__name__} cannot be described")
    names = set(vars(value))
    if is_dataclass(kind) and _package(kind) == "gpcert":
        names &= {each.name for each in fields(kind)}
    if kind.__module__ == "sklearn.model_selection._search" and kind.__qualname__ in SEARCHES:
        names &= {"best_estimator_"}
    return [item for item in vars(value).items() if item[0] in names]


CACHE_SIZE = 8
"""Models whose conversions are kept; the one asked for longest ago leaves first."""


@dataclass(frozen=True, eq=False)
class _Entry:
    model: weakref.ref[Any]
    state: Fingerprint
    posterior: Model


class ConversionCache:
    """Conversions by the address of their model; they do not keep the model alive."""

    def __init__(self, most: int = CACHE_SIZE) -> None:
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
