"""Shapes that annotations name, checked while tests run.

`Annotated[Array, "B f"]`, or an alias of it in `gpcert.numerics.arrays`, is an array of two axes. A
letter means one length throughout a call: in its arguments, its result and the fields of the record
whose method is called; `_` any. A number means itself, `...` in front further axes, the same
throughout;
`#` is a number or an array: those of a call broadcast together, also to its result's shape.
Records (dataclasses and named tuples) are checked when they are made.

`install` wraps what modules define when they are imported, so that names imported from them are the
checked ones; nothing of it is there outside of tests. Whether arguments fit depends on their shapes
alone, so that those that fitted once are only looked up.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
import sys
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from typing import Any

import numpy as np


class ShapeError(AssertionError):
    """An array has another shape than its annotation says."""


def compiling() -> bool:
    """Whether torch's compiler looks at the functions themselves: its own answer in its tests."""
    return False


@functools.cache
def _axes(spec: str) -> tuple[bool, tuple[str | int, ...]]:
    """Whether further axes may lead, and the axes: letters, or numbers that mean themselves."""
    names = spec.split()
    leading = names[:1] == ["..."]
    return leading, tuple(int(n) if n.isdigit() else n for n in names[leading:])


def fit(value: Any, spec: str, known: dict[Any, Any], where: str) -> None:
    """Bind the letters of `spec` to the lengths of `value`, or raise.

    >>> known = {"B": 3}
    >>> fit(np.zeros((3, 2)), "B f", known, "here")
    >>> known
    {'B': 3, 'f': 2}
    """
    shape = getattr(value, "shape", None)
    if spec[0] == "#":
        _join(() if isinstance(value, int | float) else shape, spec, known, where)
        return
    leading, axes = _axes(spec)
    if leading and shape is not None and len(shape) >= len(axes):
        lead, shape = shape[: len(shape) - len(axes)], shape[len(shape) - len(axes) :]
        if known.setdefault("...", lead) != lead:
            shape = None
    if shape is None or len(shape) != len(axes):
        got = getattr(value, "shape", type(value).__name__)
        raise ShapeError(f"{where}: expected an array ({spec}) with {known}, got {got}")
    for axis, length in zip(axes, shape, strict=True):
        if axis != "_" and length != (
            axis if type(axis) is int else known.setdefault(axis, length)
        ):
            raise ShapeError(f"{where}: expected ({spec}) with {known}, got {tuple(value.shape)}")


def _join(shape: Any, spec: str, known: dict[Any, Any], where: str) -> None:
    """Broadcast a shape with those of a call's other numbers; a result, `#=`, has the joint one."""
    joint = known.setdefault("#", shape)
    if shape is None or (shape != joint and spec == "#="):
        raise ShapeError(f"{where}: expected numbers of the joint shape {joint}, got {shape}")
    if shape != joint:
        try:
            known["#"] = np.broadcast_shapes(joint, shape)
        except ValueError as error:
            raise ShapeError(f"{where}: expected numbers that fit {joint}, got {shape}") from error


def _as_result(specs: Any) -> Any:
    """The shapes of a result, whose numbers (`#`) do not widen the joint shape."""
    if isinstance(specs, tuple):
        return tuple(map(_as_result, specs))
    if isinstance(specs, _Each | _OrNumber):
        return type(specs)(_as_result(specs.spec))
    return "#=" if specs == "#" else specs


@dataclasses.dataclass(frozen=True)
class _Each:
    """The shape of every member of a list, or of a tuple of any length."""

    spec: Any


@dataclasses.dataclass(frozen=True)
class _OrNumber:
    """The shape of what may be a plain number instead."""

    spec: Any


def _specs(hint: Any) -> Any:
    """The shape in an annotation: a text, a tuple of such for a tuple, None for none."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return hint.__metadata__[0] if isinstance(hint.__metadata__[0], str) else None
    if origin in {typing.Union, types.UnionType}:
        spec = next((spec for spec in map(_specs, parts) if spec), None)
        return _OrNumber(spec) if spec and float in parts else spec
    if origin in {list, Sequence} or (origin is tuple and ... in parts):
        spec = _specs(parts[0])
        return _Each(spec) if spec else None
    if origin is tuple:
        specs = tuple(map(_specs, parts))
        return specs if any(specs) else None
    return None


def _fit_all(value: Any, specs: Any, known: dict[Any, Any], where: str) -> None:
    if value is None or specs is None:
        return
    if isinstance(specs, str):
        fit(value, specs, known, where)
    elif isinstance(specs, _Each):
        for each in value if isinstance(value, list | tuple) else ():  # others may be computed
            _fit_all(each, specs.spec, known, where)
    elif isinstance(specs, _OrNumber):
        if not isinstance(value, float):
            _fit_all(value, specs.spec, known, where)
    else:
        for each, spec in zip(value, specs, strict=True):
            _fit_all(each, spec, known, where)


def shapes(annotations: dict[str, Any], names: dict[str, Any]) -> dict[str, Any]:
    """The shapes of those annotations (texts, as all modules postpone them) that have some."""
    found = {}
    for name, hint in annotations.items():
        # named tuples keep their texts in an object
        text = hint.__forward_arg__ if isinstance(hint, typing.ForwardRef) else str(hint)
        words = set(re.findall(r"\w+", text))
        if "Annotated" in words or any(_specs(names.get(word)) for word in words):
            found[name] = _specs(eval(text, names))
    return {name: specs for name, specs in found.items() if specs}


def _fields(cls: type) -> dict[str, Any]:
    """The shapes of a record's fields, those of its bases among them."""
    if not (dataclasses.is_dataclass(cls) or issubclass(cls, tuple)):
        return {}
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        module = sys.modules.get(base.__module__)
        found |= shapes(inspect.get_annotations(base), vars(module) if module else {})
    return found


_fields_of = functools.cache(_fields)


@functools.cache
def _titled_fields(cls: type) -> tuple[list[str], Callable[..., Any], list[tuple[Any, str]]]:
    """The names of a record's fields with shapes, what looks at them, their shapes and titles."""
    fields = _fields_of(cls)
    plan = [(specs, f"{cls.__name__}.{name}") for name, specs in fields.items()]
    return list(fields), _look(fields.values()), plan


@functools.cache
def _letters(cls: type) -> dict[str, list[tuple[str, int]]]:
    """For every letter of a record's fields where it stands: fields, and axes from behind."""
    found: dict[str, list[tuple[str, int]]] = {}
    for name, spec in _fields_of(cls).items():
        if isinstance(spec, str):
            for axis, letter in enumerate(reversed(_axes(spec)[1]), start=1):
                if isinstance(letter, str) and letter != "#":
                    found.setdefault(letter, []).append((name, -axis))
    return found


@functools.cache
def _places(cls: type, wanted: frozenset[str]) -> list[tuple[str, list[tuple[str, int]]]]:
    """Where the wanted letters stand in a record."""
    return [(letter, places) for letter, places in _letters(cls).items() if letter in wanted]


def _known_of(record: Any, wanted: frozenset[str]) -> tuple[tuple[str, int], ...]:
    """The lengths that a record, whose fields fitted when it was made, gives to letters."""
    known = []
    for letter, places in _places(type(record), wanted):
        for name, axis in places:
            value = getattr(record, name)
            if value is not None:
                known.append((letter, value.shape[axis]))
                break
    return tuple(known)


def _seen(value: Any) -> Any:
    """All that a check sees of a value: its shape, those of its members, or its type."""
    if isinstance(value, list | tuple):
        return tuple(map(_seen, value))
    return type(value) if isinstance(value, float) else getattr(value, "shape", type(value))


def _seen_arrays(values: list[Any]) -> Any:
    """The same of values each of which must be a single array, or a number where `#` says so."""
    return tuple([getattr(value, "shape", type(value)) for value in values])


def _look(specs: Iterable[Any]) -> Callable[[list[Any]], Any]:
    """What sees all that checks of a list of values see."""
    return _seen_arrays if all(isinstance(spec, str) for spec in specs) else _seen


def _letters_in(specs: Any) -> set[str]:
    """All letters of the shapes of an annotation."""
    if isinstance(specs, str):
        return {axis for axis in _axes(specs)[1] if isinstance(axis, str)}
    parts = [specs.spec] if isinstance(specs, _Each | _OrNumber) else specs
    return {letter for part in parts if part for letter in _letters_in(part)}


_WRAPPER = """
def wrapper({parameters}):
    if _here.compiling():
        return _function({call})
    _own = {own}
    _key = _own, {arguments}
    _before = _fitted.get(_key)
    if _before is None:
        _before = _fitted[_key] = _fit_arguments(_own, [{names}])
    _result = _function({call})
    _seen = {result}
    if _seen not in _before[1]:
        _fit_result(_result, _before[0])
        _before[1].add(_seen)
    return _result
"""
"""A checked function, with the parameters of its own: looking them up by name and place in each of
some ten million calls took a tenth of the tests' time."""


def _seeing(name: str, specs: Any) -> str:
    """The expression of all that a check sees of a value: one that must be a single array has a
    shape, or is a number where `#` says so, or None."""
    if specs is None:
        return "None"
    single = f"getattr({name}, 'shape', {name}.__class__)"
    return single if isinstance(specs, str) else f"_look({name})"


def _signature(function: Callable[..., Any]) -> tuple[str, str, dict[str, Any]]:
    """A function's parameters, how it is called with them, and the defaults they name."""
    parameters, call, defaults = [], [], {}
    kinds = inspect.Parameter
    before = None
    for name, each in inspect.signature(function).parameters.items():
        if each.kind is kinds.KEYWORD_ONLY and before not in {each.kind, kinds.VAR_POSITIONAL}:
            parameters.append("*")
        if each.kind is not kinds.POSITIONAL_ONLY and before is kinds.POSITIONAL_ONLY:
            parameters.append("/")
        stars = {kinds.VAR_POSITIONAL: "*", kinds.VAR_KEYWORD: "**"}.get(each.kind, "")
        default = "" if each.default is kinds.empty else f"=default_{name}"
        defaults[f"default_{name}"] = each.default
        parameters.append(f"{stars}{name}{default}")
        call.append(f"{name}={name}" if each.kind is kinds.KEYWORD_ONLY else f"{stars}{name}")
        before = each.kind
    return ", ".join(parameters), ", ".join(call), defaults


def checked(function: Callable[..., Any], method: bool = False) -> Callable[..., Any]:
    """The function with its shapes checked; itself where its annotations name none."""
    # not its globals: a decorated function (`np.errstate`) has those of its decorator
    names = vars(sys.modules[function.__module__])
    named = shapes(inspect.get_annotations(function), names)
    if not named:
        return function
    title = function.__qualname__
    returned = _as_result(named.get("return"))
    wanted = frozenset().union(*map(_letters_in, named.values()))
    parameters, call, defaults = _signature(function)
    several = inspect.getfullargspec(function).varargs
    own = {n: _Each(s) if n == several else s for n, s in named.items() if n != "return"}

    def fit_arguments(known: Any, values: list[Any]) -> tuple[dict[Any, Any], set[Any]]:
        """The letters, and the shapes of results that fit them: none is known yet."""
        letters = dict[Any, Any](known)
        for value, (name, specs) in zip(values, own.items(), strict=True):
            _fit_all(value, specs, letters, f"{title}({name})")
        return letters, set()

    def fit_result(result: Any, letters: dict[Any, Any]) -> None:
        _fit_all(result, returned, dict(letters), f"result of {title}")

    source = _WRAPPER.format(
        parameters=parameters,
        call=call,
        own=f"_known_of({parameters.partition(',')[0]}, _wanted)" if method else "()",
        arguments=", ".join(_seeing(name, specs) for name, specs in own.items()),
        names=", ".join(own),
        result=_seeing("_result", returned),
    )
    scope = defaults | {
        "_here": sys.modules[__name__],  # `compiling` is replaced in a test
        "_function": function,
        "_known_of": _known_of,
        "_wanted": wanted,
        "_look": _seen,
        "_fitted": {},  # by the shapes of arguments that fitted
        "_fit_arguments": fit_arguments,
        "_fit_result": fit_result,
    }
    exec(source, scope)
    return functools.wraps(function)(scope["wrapper"])


def _check_class(cls: type) -> None:
    for name, member in list(vars(cls).items()):
        if name in {"__init__", "__new__", "__post_init__"}:
            continue  # its fields are not there yet
        if inspect.isfunction(member):
            setattr(cls, name, checked(member, method=True))
        elif isinstance(member, staticmethod | classmethod):
            setattr(cls, name, type(member)(checked(member.__func__)))
        elif isinstance(member, property) and member.fget:
            setattr(cls, name, property(checked(member.fget, method=True), doc=member.__doc__))
        elif isinstance(member, cached_property):
            replaced = cached_property(checked(member.func, method=True))
            replaced.__set_name__(cls, name)
            setattr(cls, name, replaced)
    if not _fields_of(cls):
        return
    maker = "__new__" if issubclass(cls, tuple) else "__init__"
    made = vars(cls).get(maker)
    if made is not None:
        setattr(cls, maker, _checked_maker(made))


def _checked_maker(made: Callable[..., Any]) -> Callable[..., Any]:
    fitted: set[Any] = set()

    @functools.wraps(made)
    def wrapper(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = made(self, *args, **kwargs)
        if compiling():
            return result
        record: Any = self if result is None else result
        names, look, plan = _titled_fields(type(record))
        values = [getattr(record, name) for name in names]
        key = type(record), look(values)
        if key not in fitted:
            known: dict[Any, Any] = {}
            for value, (specs, where) in zip(values, plan, strict=True):
                _fit_all(value, specs, known, where)
            fitted.add(key)
        return result

    return wrapper


class _Loader(SourceFileLoader):
    def exec_module(self, module: types.ModuleType) -> None:
        super().exec_module(module)
        for name, member in list(vars(module).items()):
            if getattr(member, "__module__", None) != module.__name__:
                continue
            if inspect.isfunction(member):
                setattr(module, name, checked(member))
            elif inspect.isclass(member):
                _check_class(member)


class _Finder:
    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if not name.startswith(self.package) or name.startswith("gpcert.testing"):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


def install(package: str = "gpcert.") -> None:
    """Check the shapes of all modules of a package that are imported from now on."""
    sys.meta_path.insert(0, _Finder(package))  # pyright: ignore[reportArgumentType]
