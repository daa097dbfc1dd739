"""Regions from the records that `Region.describe` writes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpcert.errors import InputError
from gpcert.regions.ball import Ball
from gpcert.regions.base import Region
from gpcert.regions.box import Box


def region_from_dict(record: Mapping[str, Any]) -> Region:
    """The region that `describe` wrote, with the same floats.

    >>> region_from_dict({"kind": "box", "lower": [0.0], "upper": [1.0]})
    Box(lower=array([0.]), upper=array([1.]))
    """
    if not isinstance(record, Mapping):
        raise InputError(f"region: expected a record that describe() wrote, got {record!r}")
    kind = record.get("kind")
    fields = {key: value for key, value in record.items() if key != "kind"}
    makers = {"box": Box, "ball": Ball}
    if not isinstance(kind, str) or kind not in makers:
        raise InputError(f"region kind: expected one of {sorted(makers)}, got {kind!r}")
    if fields.get("domain") is not None:
        fields["domain"] = _numbers(fields["domain"])
    try:
        return makers[kind](**fields)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"region record of kind {kind!r}: {error}") from error


def _numbers(value: Any) -> Any:
    """Nested lists with their infinite numbers, which JSON has no number for, no longer as text."""
    if isinstance(value, list | tuple):
        return [_numbers(each) for each in value]
    infinite = isinstance(value, str) and value in ("inf", "-inf")
    return float(value) if infinite else value
