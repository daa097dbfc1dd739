"""What an adapter is: one small file that turns the fitted models of a library into posteriors.

An adapter is a module (or any object) with four names:

    LIBRARY              the library's name, as in the table of `gpcert.adapters.supported`;
    SUPPORTED            a tuple of `Supported`, the rows of that table;
    accepts(model)       whether the model is one this file knows: also one that it refuses by name;
    to_posterior(model)  the `Conversion`: the posterior, and what the library itself predicts.

It is imported only when a model of its library is met, and must be importable where the library is
missing (the table lists it anyway): it imports the library inside its functions, or builds on names
of classes. An outside author writes such a module and either calls
`gpcert.adapters.register("mylibrary", module)`, or lets the package declare an entry point

    [project.entry-points."gpcert.adapters"]
    mylibrary = "mypackage.gpcert_adapter"

whose name is the top-level package of the models. `gpcert.testing.adapter_contract` tests it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from gpcert.adapters.conversion import Conversion
from gpcert.errors import InputError


@dataclass(frozen=True)
class Supported:
    """One row of the table: a class of models, its likelihoods, its kernels, and what to know."""

    model: str
    likelihood: str
    kernels: tuple[str, ...]
    note: str = ""


@runtime_checkable
class Adapter(Protocol):
    """The four names; see the module."""

    LIBRARY: str
    SUPPORTED: tuple[Supported, ...]
    accepts: Callable[[Any], bool]
    to_posterior: Callable[[Any], Conversion]


def check_adapter(adapter: Any, where: str) -> Adapter:
    """The adapter, or an `InputError` that says which of its names is missing or wrong."""
    for name in ("LIBRARY", "SUPPORTED", "accepts", "to_posterior"):
        if not hasattr(adapter, name):
            raise InputError(
                f"{where}: expected an adapter with LIBRARY, SUPPORTED, accepts(model) and "
                f"to_posterior(model), got {adapter!r} without {name}; see gpcert.adapters.adapter"
            )
    rows = adapter.SUPPORTED
    if not (isinstance(rows, tuple) and rows and all(isinstance(row, Supported) for row in rows)):
        raise InputError(
            f"{where}: expected SUPPORTED to be a tuple of gpcert.adapters.Supported, one a class "
            f"of models, got {rows!r}"
        )
    return adapter
