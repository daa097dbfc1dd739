"""Regions from the records that they write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpcert.errors import InputError
from gpcert.regions.base import Region
from gpcert.regions.discrete import Discrete
from gpcert.regions.one_hot import OneHot
from gpcert.regions.polytope import Polytope
from gpcert.regions.shapes import Ball, Box
from gpcert.regions.union import Union

KINDS: dict[str, type[Region]] = {
    each.kind: each for each in (Box, Ball, Polytope, Discrete, OneHot, Union)
}
"""Regions by the `kind` of their records."""


def register(cls: type[Region]) -> type[Region]:
    """Let files hold regions of this class, by its `kind`; also as a decorator."""
    if not (isinstance(cls, type) and issubclass(cls, Region) and cls.kind):
        raise InputError(f"register: expected a subclass of Region with a kind, got {cls!r}")
    if KINDS.setdefault(cls.kind, cls).__qualname__ != cls.__qualname__:
        raise InputError(f"register: the region kind {cls.kind!r} is taken; choose another")
    KINDS[cls.kind] = cls
    return cls


def region_from_dict(record: Mapping[str, Any]) -> Region:
    """The region that `describe` wrote, with the same floats.

    >>> region_from_dict({"kind": "box", "lower": [0.0], "upper": [1.0]})
    Box(lower=array([0.]), upper=array([1.]))
    """
    if not isinstance(record, Mapping):
        raise InputError(f"region: expected a record that describe() wrote, got {record!r}")
    fields = dict(record)
    kind = fields.pop("kind", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(
            f"region kind: expected one of {sorted(KINDS)}, got {kind!r}; if it is your own, "
            "import the module that defines it and decorate the class with gpcert.regions.register"
        )
    if kind == "box" and fields.get("upper") is None:
        raise InputError("region record of kind 'box': expected lower and upper, got no upper")
    for name, value in fields.items():
        if isinstance(value, Mapping):
            fields[name] = region_from_dict(value)
        elif isinstance(value, list) and value and all(isinstance(v, Mapping) for v in value):
            fields[name] = [region_from_dict(each) for each in value]
        else:
            fields[name] = value if name == "names" else numbers(value)
    try:
        return KINDS[kind].from_record(**fields)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"region record of kind {kind!r}: {error}") from error


def numbers(value: Any) -> Any:
    """Nested lists with their infinite numbers, which JSON has no number for, no longer as text."""
    if isinstance(value, list | tuple):
        return [numbers(each) for each in value]
    return float(value) if isinstance(value, str) and value in ("inf", "-inf") else value
