"""The options that describe a region, the same in all verbs, and the regions that they define.

Names of features are replaced by their numbers here: only the model knows them.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np

from gpcert.errors import InputError, RegionWarning
from gpcert.inputs.tabular import codes_of, column_names, listed, read_points, row_labels
from gpcert.model.committee import Model
from gpcert.numerics.arrays import Inputs, finite_array
from gpcert.numerics.rounding import product_up
from gpcert.regions import Ball, Region
from gpcert.regions.freed import with_values
from gpcert.regions.shapes import check_ends, check_features, check_norm, check_radius


def feature_number(model: Model, name: str, label: Any) -> int:
    """The number of a feature, from its name or its number."""
    names = model.feature_names
    if isinstance(label, str):
        if names is None:
            raise InputError(
                f"{name}: expected numbers of features, got the name {label!r}; the model was "
                "fitted without names (fit it on a data frame to use them)"
            )
        if label not in names:
            raise InputError(f"{name}: expected names out of {list(names)}, got {label!r}")
        return names.index(label)
    whole = isinstance(label, int | np.integer) and not isinstance(label, bool)
    if not whole or not 0 <= label < model.dim:
        raise InputError(
            f"{name}: expected names or numbers 0 to {model.dim - 1} of features, got {label!r}"
        )
    return int(label)


def as_mapping(name: str, value: Any) -> Mapping[Any, Any] | None:
    """A mapping by feature: one itself, or a series of a data frame with names; else None."""
    if isinstance(value, Mapping):
        return value
    series = hasattr(value, "iloc") and hasattr(value, "index") and not hasattr(value, "columns")
    if series and any(isinstance(label, str) for label in value.index):
        by_name = dict(zip(value.index, value.tolist(), strict=True))
        if len(by_name) < len(value):
            raise InputError(f"{name}: expected every name once, got {list(value.index)}")
        return by_name
    return None


def labels_by_number(model: Model, name: str, labels: Iterable[Any]) -> dict[int, Any]:
    """Labels by the numbers of their features; an `InputError` where two mean the same one."""
    by_number: dict[int, Any] = {}
    for label in labels:
        j = feature_number(model, name, label)
        if j in by_number:
            raise InputError(
                f"{name}: expected every feature once, got {by_number[j]!r} and {label!r} for the "
                "same"
            )
        by_number[j] = label
    return by_number


def number_per_feature(model: Model, name: str, given: Mapping[Any, Any]) -> np.ndarray:
    """(d,) numbers from `{name: number}`; 0 for features that are left out, and for those of "any"
    category."""
    values = np.zeros(model.dim)
    for j, label in labels_by_number(model, name, given).items():
        if isinstance(given[label], str) and given[label] == "any" and j in model.levels:
            continue
        values[j] = float(finite_array(f"{name} of {label!r}", given[label], ndim=0))
    return values


def read_features(model: Model, features: Any) -> np.ndarray | None:
    """Numbers of the features that may move, from names, numbers or a mask."""
    if features is None:
        return None
    if isinstance(features, str):
        features = [features]
    wanted = f"features: expected names or numbers of features, or a mask, got {features!r}"
    if np.ma.is_masked(features) or isinstance(features, Mapping):
        raise InputError(f"{wanted}; radii by name are given as radius=")
    try:
        labels = list(features)
    except TypeError as error:
        raise InputError(wanted) from error
    if any(isinstance(label, str) for label in labels):
        labels = [feature_number(model, "features", label) for label in labels]
    return check_features(labels, model.dim)


def read_domain(model: Model, domain: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """The ends (d,), (d,) of the valid inputs, from `(low, high)` or `{name: (low, high)}`."""
    if domain is None:
        return None
    named = as_mapping("domain", domain)
    if named is not None:
        ends = np.tile([[-math.inf], [math.inf]], model.dim)
        for j, label in labels_by_number(model, "domain", named).items():
            ends[:, j] = check_ends(f"domain of {label!r}", named[label], ())
        return ends[0], ends[1]
    return check_ends("domain", domain, (model.dim,))


T = TypeVar("T", bound=Region)


@dataclass(frozen=True, eq=False)
class Shape:
    """What balls around all points have in common; `unit` (d,) is that of the radius, or None, and
    `unit_name` what records call it."""

    norm: float
    features: np.ndarray | None
    domain: tuple[np.ndarray, np.ndarray] | None
    unit: np.ndarray | None
    unit_name: str = ""
    held: Mapping[int, Held] = field(default_factory=dict)
    """Features that hold categories."""
    freed: tuple[int, ...] = ()
    """Those of them whose category is free."""

    def radii(self, radius: Any) -> Any:
        """The radius in the inputs' own units: what was given, or one number per feature.

        The product is rounded up: the ball contains that of the exact product.
        """
        if self.unit is None:
            return radius
        return product_up(np.asarray(check_radius(radius, len(self.unit))), self.unit)

    def ball(self, x: np.ndarray, radius: Any) -> Region:
        """The ball around x, with every category of the features that are freed."""
        ball = Ball(x, self.radii(radius), self.norm, self.features, self.domain)
        check_held(self.held, ball)
        codes = {j: self.held[j].codes for j in self.freed}
        return with_values(ball, codes) if codes else ball


@dataclass(frozen=True, eq=False)
class RegionSpecification:
    """The region options of a verb: `radius` or `relative`, `norm`, `features`, `domain` and
    `scale`; or `region`."""

    radius: Any = None
    relative: Any = None
    norm: Any = math.inf
    features: Any = None
    domain: Any = None
    scale: Any = None
    region: Any = None

    @staticmethod
    def read(
        options: Mapping[str, Any], radius: Any = None, region: Any = None
    ) -> RegionSpecification:
        """From the options of a verb."""
        shape = {name: options[name] for name in ("norm", "features", "domain", "scale")}
        return RegionSpecification(radius, options.get("relative"), region=region, **shape)

    def shape(self, model: Model) -> Shape:
        """Everything but the radius, names replaced by numbers."""
        if self.relative is not None and self.scale is not None:
            raise InputError(
                "scale: is the unit of radius=, got relative=, whose unit is each value; drop one"
            )
        self._check_moved(model, "scale")
        features, domain = read_features(model, self.features), read_domain(model, self.domain)
        unit = _scale(model, self.scale)
        name = "standard deviations" if isinstance(self.scale, str) else "units of scale"
        name = name if unit is not None else ""
        parts = check_norm(self.norm), features, domain, unit, name, held_by(model)
        return Shape(*parts, self._freed(model, features))

    def _freed(self, model: Model, features: np.ndarray | None) -> tuple[int, ...]:
        """The features that `radius`, `relative` or `scale` say may have "any" category."""
        freed: set[int] = set()
        for name in ("radius", "relative", "scale"):
            named = as_mapping(name, getattr(self, name)) or {}
            anys = [label for label, value in named.items() if is_any(value)]
            for j, label in labels_by_number(model, name, anys).items():
                if j not in model.levels:
                    raise InputError(
                        f"{name}: 'any' frees a category, but {label!r} holds numbers; give it a "
                        "number, or pass a region with bounds of its own"
                    )
                if features is not None and j not in features:
                    raise InputError(
                        f"{name}: {label!r} has no effect, as features= leaves it out; name it in "
                        "both or in neither"
                    )
                freed.add(j)
        return tuple(sorted(freed))

    def radii(self, model: Model, points: Inputs, X: Any = None) -> list[Any]:
        """The radius of the ball around each point, in units of the scale; X are the points as they
        were given.

        A radius in parts of each value is rounded up: the ball contains that of the exact product.
        """
        if self.relative is not None:
            part = check_radius(self._read(model, "relative"), model.dim, "relative")
            self._say_zeros(model, np.broadcast_to(part, (model.dim,)) > 0, points)
            return list(product_up(part, np.abs(points)))
        if _is_rows(self.radius):
            return list(_rows_of_radii(model, self.radius, len(points), X))
        return [self._read(model, "radius")] * len(points)

    def _read(self, model: Model, name: str) -> Any:
        """Numbers as they were given, `{name: number}` as an array (d,).

        Features that a mapping leaves out are fixed, and so are those with 0.
        """
        given = getattr(self, name)
        named = as_mapping(name, given)
        if named is None:
            return given
        numbers = number_per_feature(model, name, named)
        chosen = read_features(model, self.features)
        if chosen is not None and isinstance(given, Mapping):
            for j, label in labels_by_number(model, name, named).items():
                if numbers[j] > 0 and j not in chosen:
                    raise InputError(
                        f"{name}: {label!r} has no effect, as features= leaves it out; name it in "
                        "both or in neither"
                    )
        self._check_moved(model, name)
        return numbers

    def _check_moved(self, model: Model, name: str) -> None:
        """An `InputError` for one of `features` that a mapping leaves out, and so keeps fixed."""
        given, chosen = getattr(self, name), read_features(model, self.features)
        if chosen is None or not isinstance(given, Mapping):
            return
        still = sorted(set(chosen.tolist()) - set(labels_by_number(model, name, given)))
        if still:
            names = model.feature_names or range(model.dim)
            raise InputError(
                f"features: {names[still[0]]!r} has no effect, as {name}= leaves it out, which "
                "keeps it fixed; name it in both or in neither"
            )

    def _say_zeros(self, model: Model, moves: np.ndarray, points: Inputs) -> None:
        """A warning where values are 0, an error where all are: a part of 0 is 0."""
        chosen = read_features(model, self.features)
        if chosen is not None:
            moves = moves & np.isin(np.arange(model.dim), chosen)
        zero = (points[:, moves] == 0).sum()
        if zero == 0:
            return
        why = "a part of 0 is 0; give radius= where they should move"
        if zero == points[:, moves].size:
            raise InputError(f"relative: expected values other than 0, got 0 everywhere: {why}")
        warnings.warn(
            f"relative: {zero} of {points[:, moves].size} values are 0 and stay fixed: {why}",
            RegionWarning,
            stacklevel=2,
        )

    def around(self, model: Model, x: np.ndarray) -> Region:
        """The ball around x, or the region that was given instead, which must contain x."""
        if self._is_ball():
            if _is_rows(self.radius):
                raise InputError(
                    "radius: expected a number or one per feature around one point, got a table; "
                    "radii per point belong to the verbs for many points"
                )
            return self.shape(model).ball(x, self.radii(model, x[None])[0])
        region = self.given(model)
        if not bool(region.contains(x)):
            raise InputError(
                "x: expected a point of the region; the decision at x is what is certified"
            )
        return region

    def given(self, model: Model) -> Region:
        """The region that was given, without a point or a radius."""
        self._is_ball()
        return read_region(model, self.region)

    def around_each(self, model: Model, points: Inputs, X: Any = None) -> list[Region]:
        """A ball around each point, or the one region for all, or one each, which contain them; X
        are the points as they were given."""
        if self._is_ball():
            shape, radii = self.shape(model), self.radii(model, points, X)
            return [shape.ball(x, radius) for x, radius in zip(points, radii, strict=True)]
        if is_list_of_regions(self.region):
            regions, n = [read_region(model, each) for each in self.region], len(points)
            if len(regions) != n:
                wanted = f"one, or one for each of {n} points"
                raise InputError(f"region: expected {wanted}, got {len(regions)}")
        else:
            regions = [read_region(model, self.region)] * len(points)
        pairs = enumerate(zip(regions, points, strict=True))
        outside = [k for k, (region, x) in pairs if not region.contains(x)]
        if outside:
            raise InputError(
                f"X: expected points of the region, got row {outside[0]} outside it "
                f"({len(outside)} rows in all); its decision is what is judged"
            )
        return regions

    @property
    def given_radius(self) -> str | None:
        """Which of the options for a radius was given."""
        given = (name for name in ("radius", "relative") if getattr(self, name) is not None)
        return next(given, None)

    def _is_ball(self) -> bool:
        """Whether a radius was given, not a region; an `InputError` where both or neither is."""
        names = ("radius", "relative", "region")
        given = [f"{name}=" for name in names if getattr(self, name) is not None]
        if len(given) != 1:
            got = " and ".join(given) if given else "none"
            raise InputError(f"expected exactly one of radius=, relative= and region=, got {got}")
        if self.region is None:
            return True
        norm = None if check_norm(self.norm) == math.inf else self.norm
        for name, given in {**vars(self), "norm": norm, "region": None}.items():
            if given is not None:
                raise InputError(
                    f"{name}: belongs to a ball of radius=, got a region= as well; leave it out, "
                    "and give the region that shape"
                )
        return False


def is_list_of_regions(value: Any) -> bool:
    """Whether these are several regions rather than points."""
    return (
        isinstance(value, Sequence) and len(value) > 0 and all(isinstance(r, Region) for r in value)
    )


def is_any(value: Any) -> bool:
    """Whether a radius says that every category is allowed."""
    return isinstance(value, str) and value == "any"


def _is_rows(radius: Any) -> bool:
    """Whether these are radii of many points, a table of them."""
    if isinstance(radius, Mapping | str | bytes):
        return False
    try:
        return np.ndim(radius) == 2
    except ValueError:  # rows of unequal lengths, which are refused elsewhere
        return False


def _rows_of_radii(model: Model, radius: Any, count: int, X: Any) -> Inputs:
    """Radii (n, d) in the model's order of features, one row per point."""
    if column_names("radius", radius) is None:
        rows = finite_array("radius", radius, ndim=2)
    else:
        rows = read_points("radius", radius, model.dim, model.feature_names)
    if rows.shape != (count, model.dim):
        raise InputError(
            f"radius: expected a number, {model.dim} numbers, one per feature, or shape "
            f"({count}, {model.dim}), a row of them per point, got shape {rows.shape}"
        )
    labels = row_labels(radius), row_labels(X)
    if None not in labels and labels[0] != labels[1]:
        raise InputError(
            "radius: expected the index of X in the same order, got another one; its rows would "
            "belong to other points"
        )
    if np.any(rows < 0):
        raise InputError(f"radius: expected numbers >= 0, got {rows.min()}")
    return rows


def read_region(model: Model, region: Any) -> Region:
    """A region with as many features as the model."""
    if not isinstance(region, Region):
        raise InputError(
            "region: expected a gpcert.Box, Ball, Polytope, Discrete, OneHot or Union, got "
            f"{region!r}"
        )
    if region.names is not None and model.feature_names is not None:
        region = region.renamed(model.feature_names)
    if region.dim != model.dim:
        raise InputError(f"region: expected {model.dim} features, got {region.dim}")
    return check_held(held_by(model), region)


class Held(NamedTuple):
    """A feature that holds categories: how it is called, and their numbers."""

    told: str
    codes: np.ndarray


def held_by(model: Model) -> dict[int, Held]:
    """The features that hold categories."""
    names = model.feature_names
    return {
        j: Held(
            f"{f'feature {j}' if names is None else f'column {names[j]!r}'}, which holds "
            f"categories ({listed(labels)}),",
            codes_of(labels),
        )
        for j, labels in model.levels.items()
    }


def check_held(held: Mapping[int, Held], region: T, more: str = "") -> T:
    """The region, if these features are fixed in it or take categories only; `more` is said where
    they do not."""
    for j, (told, codes) in held.items():
        values = region.values_of(j)
        if values is None or (len(values) > 1 and not np.all(np.isin(values, codes))):
            raise InputError(
                f"region: expected {told} to stay fixed, got a region that moves it; give it a "
                "radius of 0, or leave it out of features=; all its categories are allowed by "
                f"radius={{feature: 'any'}}, some by a gpcert.regions.Discrete with values={more}"
            )
    return region


def _scale(model: Model, scale: Any) -> np.ndarray | None:
    """The unit of the radius (d,): the features' spread, or what was given; 0 keeps one fixed."""
    if scale is None:
        return None
    if isinstance(scale, str):
        if scale != "std":
            raise InputError(f"scale: expected 'std' or one number per feature, got {scale!r}")
        if model.spread is None:
            raise InputError(
                "scale: 'std' needs the standard deviations of the training data, which this model "
                "does not know; pass scale=X_train.std(axis=0), or Posterior(..., spread=...)"
            )
        return model.spread
    named = as_mapping("scale", scale)
    if named is None:
        units = finite_array("scale", scale)
    else:
        units = number_per_feature(model, "scale", named)
    wanted = f"scale: expected 'std' or {model.dim} positive numbers, one per feature, got "
    if units.shape != (model.dim,):
        raise InputError(f"{wanted}shape {units.shape}")
    given: Any = slice(None)
    if named is not None:
        given = [feature_number(model, "scale", k) for k, v in named.items() if not is_any(v)]
    if np.any(units[given] <= 0):
        raise InputError(f"{wanted}{scale!r}; a feature is kept fixed by a radius of 0")
    return units
