"""The library on shadow arrays: inside `counted` its modules make such arrays, and `up`, `down` and
the others compare the counts that they are given with the errors that arrive.

    with counted() as ledger:
        gpcert.prediction_range(model, region)
    assert not ledger.faults

Numbers are taken as given again where they are rounded up or down, where the source says so
(`gpcert.numerics.rounding.given`), where a function returns them together with a bound of their
error, and at the functions and records of `GIVEN`. What an allowance adds to a sum (`gamma(8) *
size`) covers errors of the other terms, inside of one function.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, ModuleType
from typing import Any

import numpy as np

import gpcert
from gpcert.kernels import sizes
from gpcert.numerics import arrays, rounding
from gpcert.testing.rounding import rules
from gpcert.testing.rounding.arrays import Allowance, Shadow, shadow
from gpcert.testing.rounding.ledger import (
    GIVEN,
    SKIPPED,
    STATED,
    STATED_ARGUMENTS,
    STEPS,
    Count,
    Given,
    Ledger,
    count_at,
    counts_of,
    syntax_of,
)
from gpcert.testing.rounding.rules import plain

OUTSIDE = (
    *(*SKIPPED, "gpcert.numerics.arrays", "gpcert.attacks", "gpcert.models", "gpcert.adapters"),
    *("gpcert.study", "gpcert.plots", "gpcert.cli", "gpcert.utils", "gpcert.__main__"),
)
"""Modules that see plain arrays: no proof rests on them."""

ALLOWANCES = ("SLACK", "PEAK_SLACK")
"""Constants of modules that are allowance for errors, besides those that are made of U or gamma."""

BOUNDS = ("norm_upper", "norm_lower")
"""Functions of `rounding` whose results are bounds."""


class _ShadowNumpy(ModuleType):
    """NumPy, whose new arrays of floats are shadows."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


def _new(name: str) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        first = args[0] if args else None
        if isinstance(first, Shadow) and name in ("asarray", "array"):
            dtype = options.get("dtype")
            array = first if dtype in (None, float, np.float64) else first.astype(dtype)
            return array.copy() if name == "array" else array
        made = getattr(np, name)(*args, **options)
        return made.view(Shadow) if made.dtype.kind == "f" and type(made) is np.ndarray else made

    return call


NUMPY = _ShadowNumpy("numpy")
for _name in ("asarray", "array", "zeros", "ones", "empty", "full", "eye"):
    setattr(NUMPY, _name, _new(_name))


def _namespace(*given: Any) -> Any:
    namespace = arrays.namespace(*given)
    return NUMPY if namespace is np else namespace


def _accepted(x: Any) -> Any:
    """`given`."""
    if isinstance(x, Shadow):
        x.accept()
    return x


def _bounding(name: str) -> Callable[..., Any]:
    def call(*args: Any, **options: Any) -> Any:
        return _accepted(getattr(rounding, name)(*args, **options))

    return call


def _instruments(ledger: Ledger) -> dict[str, Any]:
    """What modules see in place of names of `rounding`, `sizes`, `arrays` and NumPy."""

    def used(frame: FrameType, roundings: float) -> tuple[Count | None, float]:
        count = count_at(frame.f_globals["__name__"], frame.f_code, frame.f_lasti)
        halved = count is not None and count == ledger.halved
        return count, roundings / 2.0 if halved else roundings

    def stepping(name: str) -> Callable[..., Any]:
        original = getattr(sizes if name == "raised" else rounding, name)

        def call(x: Any, roundings: float = 1) -> Any:
            frame = sys._getframe(1)
            count, given = used(frame, roundings)
            if count is not None:
                ledger.met(count, x, given, frame)
            stepped = original(plain(x), given)
            if not isinstance(x, Shadow):
                return stepped
            result = shadow(stepped)
            result.sites, result.allowance = x.sites | ({count} - {None}), x.allowance
            return result

        return call

    def gamma(n: float) -> float:
        count, given = used(sys._getframe(1), n)
        if count is not None:
            ledger.used(count, given)
        return Allowance.of(rounding.gamma(given), frozenset({count} - {None}))

    return {
        **{name: stepping(name) for name in STEPS},
        **{name: _bounding(name) for name in BOUNDS},
        "gamma": gamma,
        "U": Allowance.of(rounding.U),
        "given": _accepted,
        "namespace": _namespace,
        "np": NUMPY,
    }


def _constants(module: ModuleType) -> Iterator[tuple[str, Allowance]]:
    """Constants of a module that are made of U or gamma."""
    for node in syntax_of(module.__name__).body:
        if not (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)):
            continue
        name, parts = node.targets[0].id, list(ast.walk(node.value))
        value = module.__dict__.get(name)
        made = any(isinstance(part, ast.Name) and part.id in ("U", "gamma") for part in parts)
        if type(value) is float and (made or name in ALLOWANCES):
            places = ((p.lineno, p.col_offset) for p in parts if isinstance(p, ast.Call))
            counts = (counts_of(module.__name__).get(place) for place in places)
            yield name, Allowance.of(value, frozenset(counts) - {None})


class _Boundaries:
    """Where functions of the library begin and end: for `sys.setprofile`."""

    SIMPLE = frozenset((type(None), bool, int, float, str, np.ndarray))

    def __init__(self, ledger: Ledger, given: Given, files: frozenset[str]) -> None:
        self.ledger, self.given, self.files = ledger, given, files

    def __call__(self, frame: FrameType, event: str, result: Any) -> None:
        code = frame.f_code
        if code.co_filename not in self.files:
            return
        name = code.co_qualname
        if event == "return" and type(result) not in self.SIMPLE:
            self.returned(name, result)
        elif event == "call" and name in STATED_ARGUMENTS:
            for value, error in STATED_ARGUMENTS[name](frame.f_locals):
                if isinstance(value, Shadow):
                    self.ledger.stated(name, value, error)
                    value.accept()
        elif event == "call" and name in self.given.arguments:
            _accept_all(list(frame.f_locals.values()))

    def returned(self, name: str, result: Any) -> None:
        """What a function returned."""
        for value, error in STATED[name](result) if name in STATED else ():
            self.ledger.stated(name, value, error)
        parts = list(_parts(result))
        if name in self.given.results or (len(parts) > 1 and any(map(_is_error, parts))):
            if isinstance(result, tuple) and len(parts) == len(result) == 2:
                self._pair(*parts)
            for part in parts:
                part.accept()
        for part in parts:
            part.allowance = 0.0  # what a function returns is a number like any other
            part.sites = frozenset(site for site in part.sites if site.call != "gamma")

    def _pair(self, value: Shadow, error: Shadow) -> None:
        """A value and, by the looks of it, its error: which share of allowances was taken."""
        if value.shape == error.shape and _is_error(error) and np.any(value.bounds[0]):
            with np.errstate(all="ignore"):
                shares = value.bounds[0] * rounding.U / np.abs(plain(error))
            share = float(np.max(np.nan_to_num(shares, posinf=0.0), initial=0.0))
            for site in error.sites:
                if site.call == "gamma" and share <= 1.0:
                    self.ledger.taken(site, share)


def _is_error(part: Shadow) -> bool:
    """Whether it was rounded up, or is an allowance for the most part."""
    if not part.sites:
        return False
    if not part.bounds[0].any():
        return True
    return bool(np.any(part.allowance)) and bool(
        np.all(part.allowance >= 0.1 * np.abs(plain(part)))
    )


def _parts(value: Any, depth: int = 3) -> Iterator[Shadow]:
    """The shadows in a tuple, a list or a record."""
    if isinstance(value, Shadow):
        yield value
    elif depth and isinstance(value, list | tuple):
        for each in value:
            yield from _parts(each, depth - 1)
    elif depth and dataclasses.is_dataclass(value) and type(value).__module__.startswith("gpcert"):
        yield from _parts(list(vars(value).values()), depth)


def _accept_all(values: Any) -> None:
    for part in _parts(values):
        part.accept()


def _accepting(init: Any) -> Any:
    @functools.wraps(init)
    def call(record: Any, *args: Any, **options: Any) -> None:
        init(record, *args, **options)
        _accept_all(list(vars(record).values()))

    return call


@functools.cache
def library() -> tuple[ModuleType, ...]:
    """The modules that a run looks at, imported."""
    names = [info.name for info in pkgutil.walk_packages(gpcert.__path__, "gpcert.")]
    return tuple(importlib.import_module(n) for n in names if not n.startswith(OUTSIDE))


def records(names: frozenset[str]) -> list[type]:
    """The classes of the library with these names."""
    return [
        value
        for module in library()
        for name, value in vars(module).items()
        if name in names and inspect.isclass(value) and value.__module__ == module.__name__
    ]


def _clear_caches() -> None:
    """Forget what functions of the library remember: shadows of a run, or arrays from before it."""
    vars(arrays)["_KNOWN"].clear()  # the namespace of each type
    for module in library():
        kinds = [value for value in vars(module).values() if inspect.isclass(value)]
        for owner in (module, *kinds):
            for value in list(vars(owner).values()):
                inner = getattr(value, "__func__", value)  # of a static method
                if callable(getattr(inner, "cache_clear", None)):
                    inner.cache_clear()


@contextmanager
def counted(ledger: Ledger | None = None, given: Given = GIVEN) -> Iterator[Ledger]:
    """Count roundings inside, into this ledger or a new one. Not for several threads at once."""
    ledger = Ledger() if ledger is None else ledger
    changed: list[tuple[Any, str, Any]] = []

    def change(owner: Any, name: str, new: Any) -> None:
        changed.append((owner, name, inspect.getattr_static(owner, name)))
        setattr(owner, name, new)

    instruments = _instruments(ledger)
    originals = {
        name: [vars(source)[name] for source in (rounding, sizes, arrays) if name in vars(source)]
        for name in instruments
    }
    asarray, profile = arrays.Backend.asarray, sys.getprofile()

    def shadows(backend: Any, values: Any) -> Any:
        made = asarray(backend, plain(values))
        return shadow(made) if isinstance(made, np.ndarray) else made

    files = frozenset(str(module.__file__) for module in library())
    rules.SHARES.clear()
    _clear_caches()
    try:
        for module in library():
            for name, constant in _constants(module):
                change(module, name, constant)
            for name, new in instruments.items():
                present = vars(module).get(name)
                if present is not None and any(present is each for each in originals[name]):
                    change(module, name, new)
        for kind in records(given.records):
            change(kind, "__init__", _accepting(kind.__init__))
        for module in (rounding, arrays):
            change(module, "np", NUMPY)
        change(rounding, "namespace", _namespace)
        change(arrays.Backend, "asarray", shadows)
        sys.setprofile(_Boundaries(ledger, given, files))
        yield ledger
    finally:
        sys.setprofile(profile)
        for owner, name, old in reversed(changed):
            setattr(owner, name, old)
        _clear_caches()
        for site, share in rules.SHARES.items():
            if site.call == "gamma":
                ledger.taken(site, share)
