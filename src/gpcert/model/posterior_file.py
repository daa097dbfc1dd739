"""What the file of a posterior holds, and which shapes of its arrays belong together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpcert.errors import InputError
from gpcert.functions import Curve, curve_from_config
from gpcert.kernels import kernel_from_config
from gpcert.likelihoods import Likelihood, likelihood_from_config
from gpcert.model.posterior_parts import MAX_ROWS
from gpcert.utils.archive import Shape, plain_label

FORMAT = "gpcert-posterior-1"

ARRAYS = ("points", "weights", "factor", "negative_factor", "offset", "scale", "noise")
"""The arrays of a saved posterior."""

FEATURES = ("matrix", "shift")
"""Those of one behind linear features besides."""

TREND = "slope"
"""That of one with a linear trend besides."""

TRAINING_NOISE = "training_noise"
"""That of one whose precision is (K + noise)^-1 besides."""


def check_shapes(shapes: Mapping[str, Shape], prefix: str = "") -> None:
    """An `InputError` unless these are the shapes of one posterior's arrays.

    >>> one = {name: (1,) for name in ("offset", "scale", "noise")}
    >>> two = {"factor": (1, 0, 4), "negative_factor": (1, 0, 4)}
    >>> check_shapes({"points": (4, 2), "weights": (1, 4)} | one | two)
    """
    names = {prefix + name for name in ARRAYS}
    for others in (FEATURES, (TREND,), (TRAINING_NOISE,)):  # all of them, or none
        besides = {prefix + name for name in others}
        names |= besides if besides <= set(shapes) else set()
    if set(shapes) != names:
        missing, unknown = sorted(names - set(shapes)), sorted(set(shapes) - names)
        raise InputError(
            f"a part is missing or unknown: expected the arrays {', '.join(ARRAYS)}; "
            f"missing {missing}, unknown {unknown[:9]}"
        )
    of = {name: shapes[prefix + name] for name in ARRAYS}
    if len(of["points"]) != 2 or len(of["weights"]) != 2:
        raise InputError(
            f"expected points (N, d) and weights (m, N), got {of['points']} and {of['weights']}"
        )
    (N, q), m = of["points"], of["weights"][0]
    expected = {"weights": (m, N), TREND: (m, q), "shift": (q,)}
    expected |= dict.fromkeys(("offset", "scale", "noise"), (m,))
    right = all(shapes.get(prefix + name, shape) == shape for name, shape in expected.items())
    matrix = shapes.get(prefix + "matrix", (q, 0))
    right = right and len(matrix) == 2 and matrix[0] == q
    count = of["factor"][:1]
    right = right and shapes.get(prefix + TRAINING_NOISE, (*count, N)) == (*count, N)
    for name in ("factor", "negative_factor"):
        shape = of[name]
        right = right and len(shape) == 3 and shape[0] in {1, m} and shape[2] == N
        right = right and shape[1] <= MAX_ROWS * m * N
    if not right:
        raise InputError(f"the shapes do not belong together: {of}")


def described(posterior: Any) -> dict[str, Any]:
    """What tells a posterior from others besides its numbers and its likelihood."""
    levels = {str(j): list(labels) for j, labels in posterior.levels.items()}
    names, mean = posterior.feature_names, posterior.mean_function
    curves = {} if posterior.features is None else posterior.features.curves
    described = {str(j): curve.config() for j, curve in curves.items()}
    return {
        **({"levels": levels} if levels else {}),
        **({"curves": described} if described else {}),
        **({} if mean is None else {"mean_function": [mean.name, mean.config()]}),
        "kernel": [posterior.kernel.name, posterior.kernel.config()],
        "classes": posterior.classes and [plain_label(label) for label in posterior.classes],
        "coupled": posterior.coupled,
        "feature_names": None if names is None else list(names),
    }


def header_fields(header: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a posterior that are not numbers, from the header of a file."""
    coupled, names = header.get("coupled", False), header.get("feature_names")
    if not isinstance(coupled, bool):
        raise InputError(f"coupled: expected true or false, got {coupled!r}")
    if not (names is None or isinstance(names, list)):
        raise InputError(f"feature_names: expected a list of names, got {names!r}")
    if "classes" not in header:
        raise InputError("a part is missing: expected classes")
    classes = header["classes"]
    return {
        "kernel": kernel_from_config(*_name_and_parameters(header, "kernel")),
        "likelihood": read_likelihood(header),
        "classes": None if classes is None else check_labels(classes),
        "coupled": coupled,
        "feature_names": names,
        "spread": header.get("spread"),  # not in files of before it was kept
    }


def header_levels(header: Mapping[str, Any]) -> dict[int, Any]:
    """The labels of the inputs that hold categories, which files of other models are without."""
    levels = header.get("levels", {})
    if not isinstance(levels, dict) or not all(str(j).isdecimal() for j in levels):
        raise InputError(f"levels: expected labels by the numbers of features, got {levels!r}")
    return {int(j): labels for j, labels in levels.items()}


def header_curves(header: Mapping[str, Any]) -> dict[int, Curve]:
    """The functions that inputs go through first."""
    curves = header.get("curves", {})
    if not isinstance(curves, dict) or not all(str(j).isdecimal() for j in curves):
        raise InputError(f"curves: expected functions by the numbers of features, got {curves!r}")
    return {int(j): curve_from_config(config) for j, config in curves.items()}


def read_likelihood(header: Mapping[str, Any]) -> Likelihood:
    """The likelihood that a header describes."""
    return likelihood_from_config(*_name_and_parameters(header, "likelihood"))


def _name_and_parameters(header: Mapping[str, Any], name: str) -> tuple[Any, Any]:
    described = header.get(name)
    if not isinstance(described, list) or len(described) != 2:
        raise InputError(f"{name}: expected [name, parameters], got {described!r}")
    return described[0], described[1]


def written_labels(classes: Any) -> list[Any] | None:
    """Labels of classes as a file holds them; an `InputError` for those that it cannot."""
    if classes is None:
        return None
    return list(check_labels([plain_label(label) for label in classes]))


def check_labels(labels: Any) -> tuple[Any, ...]:
    """Labels of classes from a file: distinct text, numbers or truth values."""
    kinds = str | int | float
    plain = isinstance(labels, list) and all(isinstance(label, kinds) for label in labels)
    if not plain or len(set(labels)) != len(labels):
        raise InputError(
            f"classes: expected distinct labels, each text, a number or a truth value, got "
            f"{labels!r}: files hold no others"
        )
    return tuple(labels)
