"""Parsers of options: numbers, by feature or by name, labels, radii, valid inputs."""

from __future__ import annotations

import csv
import importlib
import math
import os
import sys
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from gpcert.cli.files import Points, read_points
from gpcert.errors import InputError
from gpcert.utils.option_names import QuantityName

if TYPE_CHECKING:
    from gpcert.model.committee import Model


def radius_of(text: str, model: Model, points: Points | None = None) -> Any:
    """A number, or a list with one per feature, also from numbers by feature; or a row of numbers
    per point, from a file."""
    if points is None or not text.lower().endswith(".csv"):
        return per_feature("--radius", text, model)
    path = Path(text)
    if not path.is_file():
        raise InputError(f"--radius: expected a CSV file, got {text!r}")
    rows = read_points(path, None, model.dim, model.feature_names)
    row_numbers = tuple(range(len(rows.labels)))
    if len(rows.labels) != len(points.labels):
        raise InputError(
            f"--radius: expected a row for each of {len(points.labels)} points, got "
            f"{len(rows.labels)} in {text}"
        )
    unnamed = rows.labels == row_numbers and set(points.labels) != set(row_numbers)
    if rows.labels != points.labels and not unnamed:  # the rows may belong to other points
        raise InputError(
            f"--radius: expected the ids of POINTS in the same order, got others in {text}"
        )
    return rows.X


def per_feature(option: str, text: str, model: Model) -> Any:
    """A number, or a list with one per feature, also from numbers by feature.

    >>> from gpcert.kernels import SquaredExponential
    >>> from gpcert.model.posterior import Posterior
    >>> model = Posterior(SquaredExponential(1.0), [[0.0, 0.0]], [1.0], feature_names=["a", "b"])
    >>> [per_feature("--radius", text, model) for text in ("0.5", "0.5,1", "b=2")]
    [0.5, [0.5, 1.0], {1: 2.0}]
    """
    numbers = _by_feature(option, text, model)
    return numbers[0] if isinstance(numbers, list) and len(numbers) == 1 else numbers


def scale_of(text: str, model: Model) -> Any:
    """The text "std", a list with one number per feature, or a mapping from features."""
    return "std" if parts_of(text) == ["std"] else _by_feature("--scale", text, model)


def domain_of(text: str, model: Model) -> tuple[Any, Any]:
    """The smallest and the largest valid inputs: two numbers, or lists of one per feature."""
    parts = parts_of(text)
    if any("=" in part for part in parts):
        low, high = [-math.inf] * model.dim, [math.inf] * model.dim
        pairs = _pairs("--domain", parts, lambda name: feature_of("--domain", name, model))
        for j, (name, pair) in pairs.items():
            first, sign, second = pair.partition(":")
            if not sign:
                raise InputError(f"--domain: expected name=low:high, got {name}={pair}")
            low[j], high[j] = _number("--domain", first), _number("--domain", second)
        return low, high
    ends = [_number("--domain", part) for part in parts]
    if len(ends) != 2:
        raise InputError(f"--domain: expected two numbers as in 0,1, got {text!r}")
    return ends[0], ends[1]


def radii_of(text: str) -> list[float]:
    """Comma-separated numbers, or `first:last:count`.

    >>> radii_of("0.1,0.2"), radii_of("0:1:3")
    ([0.1, 0.2], [0.0, 0.5, 1.0])
    """
    try:
        if ":" in text:
            first, last, count = text.split(":")
            low, high, steps = float(first), float(last), int(count)
            if steps < 2:
                raise ValueError
            return [low + (high - low) * k / (steps - 1) for k in range(steps)]
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        raise InputError(
            "--radii: expected numbers as in 0.1,0.2 or first:last:count as in 0:0.5:11, got "
            f"{text!r}"
        ) from error


def quantity_of(text: str | None) -> Any:
    """The value of `--quantity`: a name, or a `Quantity` object of a user's module, `module:NAME`,
    which is imported from the current folder or from Python's path."""
    if text is None or text in get_args(QuantityName):
        return text
    if ":" not in text:
        names = ", ".join(get_args(QuantityName))
        raise InputError(f"--quantity: expected one of {names}, or module:NAME, got {text!r}")
    from gpcert.quantities import Quantity

    module, _, name = text.partition(":")
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        quantity = attrgetter(name)(importlib.import_module(module))
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f"--quantity: expected module:NAME, got {text!r} ({error})") from error
    if not isinstance(quantity, Quantity):
        expected = f"a gpcert.quantities.Quantity object as {name} of {module}"
        advice = "; name an object, such as LOSS = Loss(output=0, sign=1)"
        raise InputError(f"--quantity: expected {expected}, got {quantity!r}{advice}")
    return quantity


def label_of(text: str | None, model: Model, quantity: Any = None) -> Any:
    """The value of `--class`: the label of a class, or the number of a target."""
    if text is None:
        return None
    from gpcert.api.options import QuantityRequest
    from gpcert.api.questions import range_question

    # None is the one latent function of two classes, which has no label
    labels = [
        label
        for label in range_question(model, QuantityRequest(quantity)).labels
        if label is not None
    ]
    return label_from_text("--class", text, labels)


def label_from_text(option: str, text: str, labels: Any) -> Any:
    """The label with this text."""
    matches = [label for label in labels if str(label) == text]
    if len(matches) != 1:
        names = f"one of {', '.join(map(str, labels))}" if labels else "none"
        raise InputError(f"{option}: expected {names}; got {text!r}")
    return matches[0]


def parts_of(text: str) -> list[str]:
    """Comma-separated parts; names with commas may be quoted."""
    return [part.strip() for part in next(csv.reader([text], skipinitialspace=True), None) or [""]]


def numbers_of(option: str, text: str, key: Callable[[str], Any]) -> list[float] | dict[Any, Any]:
    """Comma-separated numbers: a list, or a mapping from the keys of their names, where "any" (of a
    category) may stand for a number."""
    parts = parts_of(text)
    if not any("=" in part for part in parts):
        return [_number(option, part) for part in parts]
    pairs = _pairs(option, parts, key)
    return {
        meant: value if value == "any" else _number(option, value)
        for meant, (_, value) in pairs.items()
    }


def _by_feature(option: str, text: str, model: Model) -> list[float] | dict[int, Any]:
    return numbers_of(option, text, lambda name: feature_of(option, name, model))


def _pairs(option: str, parts: list[str], key: Callable[[str], Any]) -> dict[Any, tuple[str, str]]:
    """Names and values by key; each key must occur once."""
    pairs = [_pair(option, part) for part in parts]
    pairs_by_key = {key(pair[0]): pair for pair in pairs}
    if len(pairs_by_key) < len(pairs):
        raise InputError(f"{option}: expected every name once, got {', '.join(parts)}")
    return pairs_by_key


def _pair(option: str, part: str) -> tuple[str, str]:
    name, sign, value = part.rpartition("=")
    if not sign or not name:
        raise InputError(f"{option}: expected name=number for every part, got {part!r}")
    return name.strip(), value


def _number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise InputError(f"{option}: expected numbers as in 0,1, got {text!r}") from error


def features_of(text: str, model: Model, option: str = "--features") -> list[int]:
    """The indices of features, from comma-separated names or indices."""
    return [feature_of(option, part, model) for part in parts_of(text)]


def feature_of(option: str, text: str, model: Model) -> int:
    """The index of a feature, from its name or its index; names take precedence."""
    names = model.feature_names or ()
    if text in names:
        return names.index(text)
    if not (text.isascii() and text.isdigit()) or int(text) >= model.dim:
        known = f"one of {', '.join(names)}, or " if names else ""
        raise InputError(
            f"{option}: expected {known}a number from 0 to {model.dim - 1}, got {text!r}"
        )
    return int(text)
