"""Arguments of explanations (points, regions, names of features and outputs), and a model's
predictions, slopes and relevant features in plain floating point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gpcert.api.options import read_x
from gpcert.api.range_questions import same_label
from gpcert.api.regions import RegionSpecification
from gpcert.api.rules import decision_candidates
from gpcert.attacks import Decision
from gpcert.attacks.functions import plain_function
from gpcert.errors import InputError
from gpcert.inputs.tabular import row_labels
from gpcert.likelihoods import ClassLikelihood
from gpcert.model.committee import Committee, Model
from gpcert.model.multi_output import Outputs
from gpcert.quantities import Mean
from gpcert.regions import Ball, Box, Region
from gpcert.regions.shapes import check_domain, check_radius

MAX_LISTED = 8
"""Largest number of features that a text names; of more it gives the first ones and the number."""


def feature_labels(names: tuple[str, ...] | None, dim: int) -> tuple[str, ...]:
    """The model's names of its features, or x0, x1, ...

    >>> feature_labels(None, 2), feature_labels(("age", "bmi"), 2)
    (('x0', 'x1'), ('age', 'bmi'))
    """
    return tuple(f"x{j}" for j in range(dim)) if names is None else tuple(map(str, names))


def listed_names(names: tuple[str, ...]) -> str:
    """The first few names, and the number of all if there are more.

    >>> listed_names(("a", "b")), listed_names(())
    ('a, b', 'none')
    """
    if not names:
        return "none"
    if len(names) <= MAX_LISTED:
        return ", ".join(names)
    return ", ".join(names[:MAX_LISTED]) + f", ... ({len(names)} in all)"


def output_index(outputs: Sequence[Any], output: Any, classes: bool) -> int:
    """The index of the output with this label; None is the only one, or the second of two classes.

    >>> output_index(("no", "yes"), None, True), output_index(("no", "yes"), "no", True)
    (1, 0)
    """
    if output is None and (len(outputs) == 1 or (classes and len(outputs) == 2)):
        return len(outputs) - 1
    for index, label in enumerate(outputs):
        if output is not None and same_label(label, output):
            return index
    got = "none" if output is None else repr(output)
    raise InputError(f"output: expected one of {list(outputs)}, got {got}")


Moves = tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray] | None]
"""Features that move (F,), their radii (F,) or (n, F), and the bounds of the valid inputs."""


def read_labelled_points(model: Model, X: Any) -> tuple[np.ndarray, tuple[Any, ...]]:
    """One point or several as (n, d), and their labels: the index of a data frame, or 0, 1, ..."""
    try:
        single = isinstance(X, Mapping) or np.ndim(X) == 1
    except ValueError:  # rows of unequal lengths: `check_inputs` below raises the error
        single = False
    points = read_x(model, X, "pass a table")[None] if single else model.check_inputs(X)
    if len(points) == 0:
        raise InputError("X: expected at least one point, got none")
    return points, row_labels(X) or tuple(range(len(points)))


def read_moves(
    model: Model, X: np.ndarray, specification: RegionSpecification, table: Any
) -> Moves:
    """The features that move, one at a time: all but those with a radius of 0. X (n, d) are the
    points of `table`, which may be a data frame."""
    name, shape = specification.given_radius, specification.shape(model)
    if (specification.radius is None) == (specification.relative is None):
        got = "none" if name is None else "both"
        raise InputError(f"expected exactly one of radius= and relative=, got {got}")
    point_radii = [
        check_radius(shape.radii(r), model.dim) for r in specification.radii(model, X, table)
    ]
    chosen = np.arange(model.dim) if shape.features is None else shape.features
    radii = np.stack([np.broadcast_to(r, (model.dim,)) for r in point_radii])[:, chosen]
    moving = np.any(radii > 0, axis=0)
    if not np.any(moving):
        assert name is not None, "checked above"
        raise InputError(
            f"{name}: expected a positive number for some feature, got "
            f"{getattr(specification, name)!r}"
        )
    ends = shape.domain
    for x in X:
        ends = check_domain(ends, x)
    radii = radii[:, moving]
    alike = bool(np.all(radii == radii[0]))
    return chosen[moving], radii[0] if alike else radii, ends


def region_around(model: Model, x: np.ndarray, specification: RegionSpecification) -> Region:
    """The region as in `certify`; it must be a box or a ball around x.

    Fixing features at x turns a ball around another point into a set that is not a ball.
    """
    region = specification.around(model, x)
    if not region.is_box_or_ball:
        raise InputError(
            f"region: expected a Box or a Ball, got a {region.kind or type(region).__name__}; with "
            "features fixed at x, other regions are not supported"
        )
    if isinstance(region, Ball) and not np.array_equal(region.center, x):
        raise InputError(
            "region: expected a ball around x itself, or a Box: with features fixed at x, a ball "
            "around another point is not a ball"
        )
    return region


def read_order(name: str, order: Any, model: Model) -> list[int]:
    """Distinct features by number or name, the most important first."""
    names = model.feature_names or ()
    try:
        numbers = [names.index(each) if each in names else each for each in list(order)]
        features = [int(each) for each in numbers]
    except (TypeError, ValueError) as error:
        raise InputError(f"{name}: expected features in order, got {order!r} ({error})") from error
    if (
        features != numbers
        or len(set(features)) != len(features)
        or not set(features) <= set(range(model.dim))
    ):
        raise InputError(
            f"{name}: expected distinct features of 0 to {model.dim - 1}, got {order!r}"
        )
    return features


def with_free(region: Region, x: np.ndarray, free: Sequence[int]) -> Region:
    """The points of the region that agree with x in all features except `free`.

    >>> with_free(Box([0.0, 0.0], [1.0, 2.0]), np.array([0.5, 1.0]), [1]).lower
    array([0.5, 0. ])
    """
    index = np.asarray(sorted(free), dtype=int)
    if isinstance(region, Ball):
        chosen = np.intersect1d(index, region.features)
        return Ball(region.center, region.radius, region.norm, chosen, region.domain)
    low, high = x.copy(), x.copy()
    low[index], high[index] = region.lower[index], region.upper[index]
    return Box(low, high)


def output_labels(model: Model) -> tuple[Any, ...]:
    """The classes, or the numbers of the outputs of a regression."""
    if isinstance(model, Committee):
        return model.classes
    return model.labels if _probable(model) else tuple(range(model.outputs))


def predictions(model: Model, X: np.ndarray) -> np.ndarray:
    """(n, outputs): probabilities of all classes, two included, or the means.

    >>> from gpcert import Posterior
    >>> from gpcert.kernels import SquaredExponential
    >>> predictions(Posterior(SquaredExponential(1.0), [[0.0]], [2.0]), np.zeros((1, 1))).tolist()
    [[2.0]]
    """
    if isinstance(model, Committee):
        return model.probabilities(X)
    values = model.prediction(X)
    if _probable(model) and not isinstance(model.likelihood, ClassLikelihood):
        return np.concatenate([1.0 - values, values], axis=1)
    return values


def _probable(posterior: Outputs) -> bool:
    """Whether the posterior predicts class probabilities."""
    return posterior.likelihood.classifies and posterior.likelihood.has_variance


def features_seen(model: Model) -> np.ndarray:
    """(d,) mask: False where no kernel and no trend of the model depends on the feature.

    A prediction is a function of kernel values, of k(x, x) and of trends, so it does not depend on
    such a feature. With linear features, an input counts if a feature that depends on it does.

    >>> from gpcert import Posterior
    >>> from gpcert.kernels import ActiveDimensions, SquaredExponential
    >>> kernel = ActiveDimensions(SquaredExponential(1.0), (0, 2))
    >>> features_seen(Posterior(kernel, [[0.0, 0.0, 0.0]], [1.0])).tolist()
    [True, False, True]
    """
    mask = np.zeros(model.dim, dtype=bool)
    for member in model.members:
        member_mask = member.kernel.features_seen(member.points.shape[1]) | np.any(
            member.slope, axis=0
        )
        member_mask = member_mask | (member.mean_function is not None)
        mask |= member_mask if member.features is None else member.features.sees(member_mask)
    return mask


def decision_gradient(model: Model, x: np.ndarray) -> np.ndarray:
    """(d,): gradient at x of the margin of the decision, in plain floating point.

    For two classes, and in regression, it is the gradient of the (first) latent mean, which points
    in the direction in which the decision changes.
    """
    if isinstance(model, Committee) or isinstance(model.likelihood, ClassLikelihood):
        rule = decision_candidates(model, x, Decision()).guess  # a ranking needs no proof
        function = rule.goal.function(rule.model)
    else:
        function = plain_function(model, Mean(0, 1))
    return function(x[None])[1][0]


def importance_by_gradient(model: Model, x: np.ndarray, region: Region) -> np.ndarray:
    """All features, the most important first: |slope| times the feature's radius."""
    reach = np.maximum(region.upper - x, x - region.lower)
    return np.argsort(-np.abs(decision_gradient(model, x)) * reach, kind="stable")
