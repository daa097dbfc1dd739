"""What the parts of a posterior must be, what its file holds, and which shapes belong together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpcert.archive import Shape, plain_label
from gpcert.arrays import finite_array
from gpcert.errors import InputError
from gpcert.kernels import Kernel, kernel_from_config
from gpcert.likelihoods import ClassLikelihood, Likelihood, likelihood_from_config
from gpcert.precision_factors import MOST_ROWS
from gpcert.regions import LinearMap

FORMAT = "gpcert-posterior-1"

ARRAYS = ("points", "weights", "factor", "negative_factor", "offset", "scale", "noise")
"""The arrays of a saved posterior."""

FEATURES = ("matrix", "shift")
"""Those of one behind linear features besides."""

TREND = "slope"
"""That of one with a linear trend besides."""


def check_shapes(shapes: Mapping[str, Shape], prefix: str = "") -> None:
    """An `InputError` unless these are the shapes of one posterior's arrays.

    >>> one = {name: (1,) for name in ("offset", "scale", "noise")}
    >>> two = {"factor": (1, 0, 4), "negative_factor": (1, 0, 4)}
    >>> check_shapes({"points": (4, 2), "weights": (1, 4)} | one | two)
    """
    names = {prefix + name for name in ARRAYS}
    mapped = {prefix + name for name in FEATURES} <= set(shapes)
    if mapped:
        names |= {prefix + name for name in FEATURES}
    trend = prefix + TREND in shapes
    if trend:
        names.add(prefix + TREND)
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
    N, m = of["points"][0], of["weights"][0]
    right = of["weights"][1] == N and all(of[name] == (m,) for name in ("offset", "scale", "noise"))
    if mapped:
        matrix, shift = (shapes[prefix + name] for name in FEATURES)
        right = right and len(matrix) == 2 and (matrix[0],) == shift == of["points"][1:]
    if trend:
        right = right and shapes[prefix + TREND] == (m, of["points"][1])
    for name in ("factor", "negative_factor"):
        shape = of[name]
        right = right and len(shape) == 3 and shape[0] in {1, m} and shape[2] == N
        right = right and shape[1] <= MOST_ROWS * m * N
    if not right:
        raise InputError(f"the shapes do not belong together: {of}")


def check_class_count(
    likelihood: ClassLikelihood, outputs: int, classes: tuple[Any, ...] | None
) -> None:
    """An `InputError` unless there are two classes or more, and as many labels."""
    count = len(likelihood.mixed(outputs))
    if count < 2:
        raise InputError(f"likelihood: {likelihood.name!r} needs 2 outputs or more")
    if classes is not None and len(classes) != count:
        raise InputError(f"classes: expected {count} labels, got {classes!r}")


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
        "kernel": kernel_from_config(*_described(header, "kernel")),
        "likelihood": read_likelihood(header),
        "classes": None if classes is None else check_labels(classes),
        "coupled": coupled,
        "feature_names": names,
        "spread": header.get("spread"),  # not in files of before it was kept
    }


def read_likelihood(header: Mapping[str, Any]) -> Likelihood:
    """The likelihood that a header describes."""
    return likelihood_from_config(*_described(header, "likelihood"))


def _described(header: Mapping[str, Any], name: str) -> tuple[Any, Any]:
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
    plain = isinstance(labels, list) and all(
        isinstance(label, str | int | float) for label in labels
    )
    if not plain or len(set(labels)) != len(labels):
        raise InputError(
            f"classes: expected distinct labels, each text, a number or a truth value, got "
            f"{labels!r}: files hold no others"
        )
    return tuple(labels)


def checked_classes(classes: Any) -> tuple[Any, ...] | None:
    """Distinct labels, or None where there are none."""
    if classes is None:
        return None
    try:
        labels = None if isinstance(classes, str) else tuple(classes)
        if labels is not None and len(set(labels)) == len(labels):
            return labels
    except TypeError:  # not a collection, or labels that cannot be told apart
        pass
    raise InputError(f"classes: expected a tuple of distinct labels, got {classes!r}")


def check_parts(posterior: Any) -> None:
    """Kernel, likelihood and flags are of the right kind."""
    if not isinstance(posterior.kernel, Kernel):
        raise InputError(
            f"kernel: expected a kernel of gpcert.kernels, got {posterior.kernel!r}; for a "
            "scikit-learn kernel, gpcert.adapters.sklearn_kernels.convert_kernel makes one"
        )
    if not isinstance(posterior.likelihood, Likelihood):
        raise InputError(
            "likelihood: expected a likelihood of gpcert.likelihoods, such as Probit(), got "
            f"{posterior.likelihood!r}"
        )
    if not isinstance(posterior.coupled, bool | np.bool_):
        raise InputError(f"coupled: expected True or False, got {posterior.coupled!r}")
    if not (posterior.features is None or isinstance(posterior.features, LinearMap)):
        raise InputError(f"features: expected a LinearMap or None, got {posterior.features!r}")


def per_output(name: str, value: Any, m: int) -> np.ndarray:
    """(m,): one number an output, or the same for all."""
    values = finite_array(name, value)
    if values.shape not in {(), (1,), (m,)}:
        raise InputError(f"{name}: expected a number or shape ({m},), got {values.shape}")
    return np.broadcast_to(values, (m,)).copy()


def check_signs(posterior: Any) -> None:
    """Scales are positive, noise is not negative."""
    if np.any(posterior.scale <= 0) or np.any(posterior.noise < 0):
        raise InputError("expected scale > 0 and noise >= 0 for every output")


def read_classes(posterior: Any) -> tuple[Any, ...] | None:
    """The labels, once they, outputs and scales are those that the likelihood needs."""
    m, classes = posterior.outputs, checked_classes(posterior.classes)
    if isinstance(posterior.likelihood, ClassLikelihood):
        check_class_count(posterior.likelihood, m, classes)
        if posterior.coupled and np.any(posterior.scale != posterior.scale[0]):
            raise InputError("scale: expected the same for all coupled classes")
        if posterior.coupled and posterior.likelihood.mixes:
            raise InputError("mixing: expected independent outputs, got coupled ones")
    elif classes is not None and (len(classes) != 2 or m != 1):
        raise InputError(f"classes: expected two labels of one output, got {classes!r}")
    return classes
