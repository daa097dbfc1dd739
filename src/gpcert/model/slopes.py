"""The slopes of a model's means along fixed directions, as a model: each is a mean of its own.

Proofs: docs/mathematics.md, statements 19.1 and 19.6.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from gpcert.errors import InputError
from gpcert.kernels.slope import SlopeKernel, check_smooth
from gpcert.likelihoods.gaussian import Gaussian, MeanOnly
from gpcert.model.changes import stationary
from gpcert.model.multi_output import Outputs, SeparateOutputs
from gpcert.model.posterior import Posterior
from gpcert.model.posterior_parts import check_linear_mean
from gpcert.numerics.arrays import PerFeature


def slope_model(
    model: Outputs, directions: Sequence[PerFeature], output: int, order: int = 1
) -> Outputs:
    """The slopes of one output's mean, or its second derivatives for `order` 2, one output of the
    new model for each direction (d,)."""
    posterior, c = model.output(output)
    return _together([slope_of(posterior, direction, c, order) for direction in directions])


def joined_slopes(
    model: Outputs, directions: Sequence[PerFeature], outputs: Sequence[int]
) -> Outputs:
    """The slopes of several outputs along several directions, output by output."""
    owners = (model.output(c) for c in outputs)
    return _together([slope_of(owner, u, c) for owner, c in owners for u in directions])


def slopes_of_outputs(model: Outputs, direction: PerFeature) -> Outputs:
    """The slopes of all outputs' means along one direction."""
    owners = (model.output(c) for c in range(model.outputs))
    return _together([slope_of(posterior, direction, c) for posterior, c in owners])


def slopes_beside(model: Outputs, directions: Sequence[PerFeature], output: int) -> SeparateOutputs:
    """One latent function with its variance, and the slopes of its mean along each direction: what
    slopes of its variance are made of, of a stationary kernel (Statement 19.13)."""
    posterior, c = model.output(output)
    if not stationary(posterior.kernel):
        raise InputError(
            "kernel: slopes of variances, and so of standard deviations and probabilities, are "
            f"known for stationary kernels, got {type(posterior.kernel).__name__} with a part that "
            "is not; ask about the latent mean, quantity='mean'"
        )
    check_smooth(posterior.kernel)
    slopes = [slope_of(posterior, direction, c) for direction in directions]
    return SeparateOutputs((_alone(posterior, c), *slopes))


def joined_beside(
    model: Outputs, directions: Sequence[PerFeature], outputs: Sequence[int]
) -> SeparateOutputs:
    """`slopes_beside` of several outputs, one after the other."""
    each = (slopes_beside(model, directions, c).members for c in outputs)
    return SeparateOutputs(tuple(member for members in each for member in members))


def _alone(posterior: Posterior, c: int) -> Posterior:
    """One output as a latent function of its own."""
    each = {"weights": posterior.weights, "offset": posterior.offset, "scale": posterior.scale}
    each |= {"noise": posterior.noise, "slope": posterior.slope}
    fields: dict[str, Any] = {name: part[[c]] for name, part in each.items()}
    for name in ("factor", "negative_factor", "training_noise"):
        part = getattr(posterior, name)
        if part is not None:
            fields[name] = part[[c]] if len(part) > 1 else part
    if posterior.outputs > 1:
        fields["inverse"] = None
    alone = replace(posterior, likelihood=Gaussian(), classes=None, coupled=False, **fields)
    if posterior.outputs == 1:
        vars(alone)["unit"] = posterior.unit  # of the same functions
    return alone


def _together(slopes: Sequence[Posterior]) -> Outputs:
    return slopes[0] if len(slopes) == 1 else SeparateOutputs(tuple(slopes))


def slope_of(
    posterior: Posterior, direction: PerFeature, output: int = 0, order: int = 1
) -> Posterior:
    """`D_u mu_c`, or `D_u^2 mu_c` for `order` 2, as the mean of a posterior without a variance,
    in the units of the inputs.

    >>> from gpcert.kernels import SquaredExponential
    >>> bump = Posterior(SquaredExponential(1.0), points=[[0.0]], weights=[1.0], offset=3.0)
    >>> round(float(slope_of(bump, np.array([1.0])).mean([[1.0]])[0, 0]), 4)
    -0.6065
    """
    seen = seen_direction(posterior, direction)
    lengths = posterior.kernel.typical_lengths(len(seen))
    with np.errstate(over="ignore", under="ignore"):
        size = float(np.max(np.abs(seen) / lengths, initial=0.0))
    exponent = math.frexp(size)[1] if 0.0 < size < math.inf else 0
    unit = np.ldexp(seen, -exponent)
    scale = np.ldexp(posterior.scale[output], order * exponent)
    if not (np.isfinite(scale) and scale > 0 and np.array_equal(np.ldexp(unit, exponent), seen)):
        raise InputError(
            "direction: its size in length-scales of the kernel leaves float64; express the inputs "
            "in another unit"
        )
    slopes = replace(
        posterior,
        kernel=SlopeKernel(posterior.kernel, unit, float(order)),
        weights=posterior.weights[output],
        factor=None,
        negative_factor=None,
        training_noise=None,
        inverse=None,
        offset=_constant(posterior, seen, output) if order == 1 else 0.0,
        scale=scale,
        noise=0.0,
        slope=None,
        likelihood=MeanOnly(),
        classes=None,
        coupled=False,
    )
    known, mine = posterior.unit, slopes.unit
    same = known.exponent == mine.exponent
    if same and np.array_equal(known.weights[output], mine.weights[0]):
        vars(mine)["norms"] = known.norms[[output]]  # of the same functions: K is formed once
    return slopes


def seen_direction(posterior: Posterior, direction: PerFeature) -> PerFeature:
    """The direction as the kernel sees it: exactly `W u` behind linear features."""
    check_linear_mean(posterior)
    moved = np.flatnonzero(direction)
    held = [int(j) for j in moved if int(j) in posterior.levels]
    if held:
        names = posterior.feature_names or range(posterior.dim)
        raise InputError(
            f"slope: {names[held[0]]!r} holds categories, along which there is no slope; ask for "
            "difference_range between two of them"
        )
    if posterior.features is None:
        return np.asarray(direction, dtype=np.float64)
    matrix, curves = posterior.features.matrix, posterior.features.curves
    bent = [int(j) for j in moved if int(j) in curves]
    if bent:
        names = posterior.feature_names or range(posterior.dim)
        raise InputError(
            f"slope: {names[bent[0]]!r} goes through a function that is not linear before the "
            "kernel sees it; ask for difference_range, or for slopes of a model of its values"
        )
    seen = []
    for row in matrix[:, moved].tolist():
        terms = zip(row, direction[moved].tolist(), strict=True)
        seen.append(_exactly(sum((Fraction(w) * Fraction(u) for w, u in terms), Fraction(0))))
    if any(value is None for value in seen):
        raise InputError(
            "direction: behind linear features (PCA, one-hot columns) expected the direction of "
            "one feature, or one whose features are floats, got one that they round; give feature="
        )
    return np.array(seen, dtype=np.float64)


def vanishes(model: Outputs, feature: int, output: int) -> bool:
    """Whether the mean does not depend on a feature: its slope there is 0 exactly."""
    posterior, c = model.output(output)
    if feature in posterior.levels:
        return False
    if posterior.features is not None and feature in posterior.features.curves:
        seen = posterior.features.matrix[:, feature] != 0
    else:
        seen = seen_direction(posterior, np.eye(posterior.dim)[feature]) != 0
    by_kernel = seen & posterior.kernel.features_seen(len(seen))
    return not (np.any(by_kernel) or np.any(posterior.slope[c][seen]))


def _constant(posterior: Posterior, seen: PerFeature, output: int) -> float:
    """The slope of the linear trend, as a float."""
    if not posterior.has_trend:
        return 0.0
    pairs = zip(posterior.slope[output].tolist(), seen.tolist(), strict=True)
    slope = sum((Fraction(a) * Fraction(b) for a, b in pairs), Fraction(0))
    constant = _exactly(Fraction(float(posterior.scale[output])) * slope)
    if constant is None:
        raise InputError(
            "slope: the slope of the model's linear trend is no float64 number in this direction; "
            "fit the model without rescaled targets, or ask for difference_range"
        )
    return constant


def _exactly(value: Fraction) -> Any:
    """The float that it is; None where there is none."""
    try:
        rounded = float(value)
    except OverflowError:
        return None
    return rounded if Fraction(rounded) == value else None
