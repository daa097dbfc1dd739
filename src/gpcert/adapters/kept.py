"""Conversions that are kept while the fitted model has not changed.

A conversion (with the comparison that belongs to it) takes longer than many a question. An entry is
used only for the very object it was made from, and only if that object's fingerprint, taken anew at
every call, is the one it had both before and after it was converted: a model that was fitted again
or altered in any part is converted again. A model that has no fingerprint is never kept.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gpcert.adapters.fingerprint import Fingerprint, fingerprint
from gpcert.committee import Model

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
            if entry is not None and entry.model() is model and entry.state.same(state):
                self._entries.move_to_end(id(model))
                return entry.posterior
        posterior = convert(model)
        after = fingerprint(model)
        if after is not None and after.same(state):  # else it changed while it was converted
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
