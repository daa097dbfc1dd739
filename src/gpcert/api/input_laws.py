"""Distributions of inputs as SciPy and OpenTURNS have them, read into laws with proved bounds.

Normal inputs may be turned so that one coordinate points to where failure is most probable: rare
events of many inputs are then nearly functions of that one.

Proofs: docs/mathematics.md, statement 22.10.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize

from gpcert.api.regions import as_mapping, held_by, labels_by_number
from gpcert.enclosures.goals import Goal
from gpcert.errors import InputError
from gpcert.integrals.families import (
    Exponential,
    Family,
    Gumbel,
    Logistic,
    Lognormal,
    Normal,
    Reflected,
    Triangular,
    Uniform,
    Weibull,
)
from gpcert.integrals.incomplete import Beta, Gamma
from gpcert.integrals.input_law import InputLaw, Marginal, Truncated
from gpcert.model.committee import Model
from gpcert.model.posterior import Posterior
from gpcert.numerics.arrays import finite_array
from gpcert.numerics.rounding import gamma, up_float
from gpcert.regions import Box, LinearMap

TAIL = 1e-20
"""What is left out on either side of an input without an end, about: it counts with the bounds that
hold everywhere."""

SCIPY: dict[str, Callable[..., Family]] = {
    "norm": Normal,
    "uniform": Uniform,
    "expon": Exponential,
    "lognorm": Lognormal,
    "triang": Triangular,
    "logistic": Logistic,
    "gumbel_r": Gumbel,
    "gumbel_l": lambda: Reflected(Gumbel()),
    "weibull_min": Weibull,
    "weibull_max": lambda c: Reflected(Weibull(c)),
    "truncnorm": lambda a, b: Truncated(Normal(), a, b),
    "gamma": Gamma,
    "beta": Beta,
    "halfnorm": lambda: Truncated(Normal(), 0.0, math.inf),
}
"""Families by SciPy's names, from their shapes."""


def _of_ends(family: Callable[..., Family]) -> Callable[..., Marginal]:
    return lambda low, high, *shapes: Marginal(family(*shapes), low, high - low)


OPENTURNS: dict[str, Callable[..., Marginal]] = {
    "Normal": lambda mu, sigma: Marginal(Normal(), mu, sigma),
    "Uniform": _of_ends(Uniform),
    "LogNormal": lambda mu, sigma, gamma: Marginal(Lognormal(sigma), gamma, math.exp(mu)),
    "Exponential": lambda rate, gamma: Marginal(Exponential(), gamma, 1.0 / rate),
    "Triangular": lambda a, m, b: Marginal(Triangular((m - a) / (b - a)), a, b - a),
    "Logistic": lambda mu, beta: Marginal(Logistic(), mu, beta),
    "WeibullMin": lambda beta, alpha, gamma: Marginal(Weibull(alpha), gamma, beta),
    "Gumbel": lambda beta, gamma: Marginal(Gumbel(), gamma, beta),
    "Gamma": lambda k, rate, gamma: Marginal(Gamma(k), gamma, 1.0 / rate),
    "Beta": lambda alpha, beta, a, b: Marginal(Beta(alpha, beta), a, b - a),
    "TruncatedNormal": lambda mu, sigma, a, b: Marginal(
        Truncated(Normal(), (a - mu) / sigma, (b - mu) / sigma), mu, sigma
    ),
}
"""Laws by OpenTURNS' class names, from their parameters."""


@dataclass(frozen=True, eq=False)
class ReadInputs:
    """`law` of the features that `region` leaves free; `told`, every feature's in words; `outside`,
    at least the probability that is not in the region. With `behind` these are laws of coordinates
    z of which it makes the inputs."""

    law: InputLaw
    region: Box
    told: tuple[str, ...]
    outside: float
    behind: LinearMap | None = None

    def seen_by(self, model: Model) -> Model:
        """The model as a function of the coordinates that have these laws."""
        if self.behind is None:
            return model
        if not isinstance(model, Posterior) or model.features is not None:
            raise InputError(
                "inputs: expected independent inputs for a model behind linear features (PCA, "
                "scaling that is no plain scaling) or of several parts, got correlated normal ones"
            )
        return replace(model, features=self.behind, feature_names=None, spread=None)


def read_inputs(model: Model, inputs: Any) -> ReadInputs:
    """From one distribution or number for each feature, by name or in order, or a joint one."""
    normal = _joint_normal(inputs)
    if normal is not None:
        return _correlated(model, *normal)
    given = _each(model, inputs)
    held = held_by(model)
    marginals: list[Marginal] = []
    low, high, told = np.empty(model.dim), np.empty(model.dim), []
    for j, one in enumerate(given):
        name = _name(model, j)
        if _is_distribution(one):
            if j in held:
                raise InputError(f"inputs: expected a number for {held[j].told} got a distribution")
            marginal, text = _marginal(name, one)
            marginals.append(marginal)
            low[j], high[j] = _ends(name, marginal)
            told.append(text)
        else:
            low[j] = high[j] = _fixed(name, one)
            told.append(f"{low[j]:g}")
    law, region = InputLaw(tuple(marginals)), Box(low, high)
    if not marginals:
        raise InputError("inputs: expected a distribution for at least one feature, got numbers")
    free = region.free
    return ReadInputs(law, region, tuple(told), law.outside(low[free], high[free]))


def _joint_normal(inputs: Any) -> tuple[np.ndarray, np.ndarray] | None:
    """Mean and covariance of a joint normal law of SciPy's or OpenTURNS', if it is one."""
    if hasattr(inputs, "cov_object") and hasattr(inputs, "logpdf"):  # scipy's frozen one
        return np.atleast_1d(inputs.mean), np.atleast_2d(inputs.cov_object.covariance)
    if not _joint(inputs) or inputs.hasIndependentCopula():
        return None
    marginals = [inputs.getMarginal(j) for j in range(inputs.getDimension())]
    kinds = {_implementation(each).getClassName() for each in marginals}
    copula = _implementation(inputs.getCopula()).getClassName()
    if kinds != {"Normal"} or copula != "NormalCopula":
        return None
    return np.array(inputs.getMean()), np.array(inputs.getCovariance())


def _implementation(one: Any) -> Any:
    return one.getImplementation() if hasattr(one, "getImplementation") else one


def _correlated(model: Model, mean: np.ndarray, covariance: np.ndarray) -> ReadInputs:
    """Inputs `mean + L z`, L the rounded Cholesky factor: that law is meant."""
    d = model.dim
    if mean.shape != (d,) or covariance.shape != (d, d):
        raise InputError(f"inputs: expected a joint law of {d} features, got one of {len(mean)}")
    try:
        root = np.linalg.cholesky(covariance)
    except np.linalg.LinAlgError as error:
        raise InputError(
            "inputs: expected a covariance that is positive definite, got a singular one; give a "
            "number for features that follow from others"
        ) from error
    told = tuple(
        f"norm({m:g}, {s:g}), correlated"
        for m, s in zip(mean, np.sqrt(np.diag(covariance)), strict=True)
    )
    return standard_normals(LinearMap(root, mean), told)


def standard_normals(behind: LinearMap, told: tuple[str, ...], lost: float = 0.0) -> ReadInputs:
    """Inputs that a map makes of independent standard normal coordinates, up to a probability."""
    d = behind.matrix.shape[1]
    marginal = Marginal(Normal())
    low, high = _ends("z", marginal)
    law, region = InputLaw((marginal,) * d), Box(np.full(d, low), np.full(d, high))
    outside = law.outside(region.lower, region.upper)
    return ReadInputs(law, region, told, up_float(outside + lost, 1), behind)


def _name(model: Model, j: int) -> str:
    return repr(model.feature_names[j]) if model.feature_names else f"feature {j}"


def _each(model: Model, inputs: Any) -> list[Any]:
    """One entry for every feature."""
    d = model.dim
    named = as_mapping("inputs", inputs)
    wanted = f"inputs: expected one distribution or number for each of {d} features"
    if named is not None:
        by_number = labels_by_number(model, "inputs", named)
        missing = [_name(model, j) for j in range(d) if j not in by_number]
        if missing:
            raise InputError(f"{wanted}, got none for {', '.join(missing)}")
        return [named[by_number[j]] for j in range(d)]
    if _joint(inputs):
        if not inputs.hasIndependentCopula():
            raise InputError(
                "inputs: expected independent coordinates or a joint normal law, got a joint "
                "distribution with another copula; fit the model on independent coordinates"
            )
        inputs = [inputs.getMarginal(j) for j in range(inputs.getDimension())]
    if _is_distribution(inputs):
        inputs = [inputs]
    if not isinstance(inputs, Sequence | np.ndarray) or isinstance(inputs, str):
        raise InputError(f"{wanted}, got {inputs!r}")
    if len(inputs) != d:
        raise InputError(f"{wanted}, got {len(inputs)}")
    return list(inputs)


def _joint(inputs: Any) -> bool:
    """Whether it is a distribution of OpenTURNS of several dimensions, or of one."""
    return hasattr(inputs, "hasIndependentCopula") and hasattr(inputs, "getDimension")


def _is_distribution(one: Any) -> bool:
    return hasattr(one, "cdf") or hasattr(one, "computeCDF") or hasattr(one, "rvs")


def _fixed(name: str, one: Any) -> float:
    try:
        return float(finite_array(f"inputs, {name}", one, ndim=0))
    except InputError as error:
        raise InputError(
            f"inputs, {name}: expected a frozen distribution of scipy.stats (norm(0, 1)), one of "
            f"OpenTURNS, or a number, got {one!r}"
        ) from error


def _marginal(name: str, one: Any) -> tuple[Marginal, str]:
    if hasattr(one, "computeCDF"):
        return _openturns(name, one)
    kind = getattr(one, "dist", None)
    if kind is None or not hasattr(one, "args"):
        raise InputError(
            f"inputs, {name}: expected a frozen distribution, as scipy.stats.norm(loc=0, scale=1), "
            f"got {one!r}"
        )
    if not hasattr(kind, "pdf"):
        raise InputError(
            f"inputs, {name}: expected a distribution with a density, got the discrete "
            f"{kind.name}; sum over its values, with a number for this feature"
        )
    if kind.name not in SCIPY:
        raise InputError(_unknown(name, kind.name, SCIPY))
    shapes = [each.strip() for each in (kind.shapes or "").split(",") if each.strip()]
    values = {"loc": 0.0, "scale": 1.0}
    values |= dict(zip([*shapes, "loc", "scale"], one.args, strict=False)) | one.kwds
    numbers = {}
    for key, value in values.items():
        ends = key in shapes and kind.name == "truncnorm"  # which may be infinite
        numbers[key] = float(value) if ends else float(finite_array(f"{name}, {key}", value, 0))
    if kind.name == "reciprocal" or numbers["scale"] <= 0 or not np.isfinite(one.cdf(0.0)):
        raise InputError(f"inputs, {name}: expected parameters of {kind.name}, got {values}")
    family = SCIPY[kind.name](*(numbers[shape] for shape in shapes))
    text = ", ".join(f"{key}={numbers[key]:g}" for key in (*shapes, "loc", "scale"))
    return Marginal(family, numbers["loc"], numbers["scale"]), f"{kind.name}({text})"


def _openturns(name: str, one: Any) -> tuple[Marginal, str]:
    law = _implementation(one)
    kind = law.getClassName()
    if kind == "ParametrizedDistribution":  # by other parameters than its own
        law = _implementation(law.getDistributionParameters().getDistribution())
        kind = law.getClassName()
    if law.getDimension() != 1:
        raise InputError(f"inputs, {name}: expected a distribution of one input, got {one}")
    if kind not in OPENTURNS:
        raise InputError(_unknown(name, kind, OPENTURNS))
    numbers = list(map(float, law.getParameter()))
    text = ", ".join(f"{number:g}" for number in numbers)
    return OPENTURNS[kind](*numbers), f"{kind}({text})"


def _unknown(name: str, kind: str, known: Mapping[str, Any]) -> str:
    return (
        f"inputs, {name}: expected a distribution whose values can be proved, one of "
        f"{', '.join(known)}, got {kind}; use the nearest of these, or transform the input so that "
        "it has one of them and fit the model on that"
    )


def _ends(name: str, marginal: Marginal) -> tuple[float, float]:
    """The ends of the support, or where `TAIL` is left beyond them: any numbers would be valid."""
    low = marginal.low if math.isfinite(marginal.low) else _quantile(marginal, left=True)
    high = marginal.high if math.isfinite(marginal.high) else _quantile(marginal, left=False)
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InputError(
            f"inputs, {name}: expected a distribution whose range is of floats, got one from "
            f"{low:g} to {high:g}; rescale the input, or give a number instead"
        )
    return low, high


def _quantile(marginal: Marginal, left: bool) -> float:
    """About where `TAIL` is left on one side, by bisection in y."""
    family, step = marginal.family, 1.0
    inner = family.mode if math.isfinite(family.mode) else 0.0

    def beyond(y: float) -> float:
        at = np.array([y])
        return float((family.below(at) if left else family.above(at))[1][0])

    sign = -1.0 if left else 1.0
    while beyond(inner + sign * step) > TAIL and step < 2.0**900:
        step *= 2.0
    near, far = 0.0, step
    for _ in range(40):
        middle = 0.5 * (near + far)
        near, far = (middle, far) if beyond(inner + sign * middle) > TAIL else (near, middle)
    return marginal.loc + marginal.scale * (inner + sign * far)


FEATURES = 6
"""From so many inputs on."""

STARTS = 5
"""Of the local search for the most probable place: any direction would be valid."""


def turned(model: Model, given: ReadInputs, goal: Goal, level: float) -> ReadInputs | None:
    """The inputs in turned coordinates, where that can help: `x = m + A z`, A about the deviations
    times a reflection. What rounding makes of the law counts as probability that is lost."""
    marginals, d = given.law.marginals, model.dim
    normal = all(type(marginal.family) is Normal for marginal in marginals)
    plain = isinstance(model, Posterior) and model.features is None and given.behind is None
    if not (normal and plain and len(marginals) == d >= FEATURES):
        return None
    mean = np.array([marginal.loc for marginal in marginals])
    deviations = np.array([marginal.scale for marginal in marginals])
    place = _most_probable(model, goal, level, (mean, deviations))
    if place is None:
        return None
    matrix = deviations[:, None] * _reflection(place / np.linalg.norm(place))
    share = matrix / deviations[:, None]
    # the covariance in standard deviations, less the identity
    change = share @ share.T - np.eye(d)
    size = float(np.linalg.norm(change)) + gamma(4 * d + 32) * d
    return standard_normals(LinearMap(matrix, mean), given.told, up_float(1.5 * size, 8))


def _reflection(direction: np.ndarray) -> np.ndarray:
    """An orthogonal matrix, about, whose first column is a unit vector."""
    v = direction - np.eye(len(direction))[0]
    square = float(v @ v)
    return np.eye(len(v)) - (2.0 / square) * np.outer(v, v) if square > 0 else np.eye(len(v))


def _most_probable(
    model: Model, goal: Goal, level: float, scaling: tuple[np.ndarray, np.ndarray]
) -> np.ndarray | None:
    """About the point nearest to 0, in standard deviations, where the goal has a value."""
    function, (mean, deviations) = goal.function(model), scaling
    rng, best = np.random.default_rng(0), None

    def value(u: np.ndarray) -> float:
        return float(function((mean + deviations * u)[None])[0][0]) - level

    def slope(u: np.ndarray) -> np.ndarray:
        return function((mean + deviations * u)[None])[1][0] * deviations

    surface = {"type": "eq", "fun": value, "jac": slope}
    for _ in range(STARTS):
        optimum = minimize(
            lambda u: float(u @ u),
            rng.normal(size=len(mean)),
            jac=lambda u: 2.0 * u,
            method="SLSQP",
            constraints=surface,
        )
        usable = optimum.success and np.isfinite(optimum.x).all() and 0.1 < optimum.fun < 80.0
        if usable and (best is None or optimum.fun < best.fun):
            best = optimum
    return None if best is None else best.x
