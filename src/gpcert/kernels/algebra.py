"""Sums, products and powers of kernels in their simplest form.

    SE(l1) SE(l2) = SE(l), 1/l^2 = 1/l1^2 + 1/l2^2,    SE(l)^p = SE(l / sqrt p),
    RQ(l, a)^p = RQ(l / sqrt p, a p),    Periodic(., l)^p = Periodic(., l / sqrt p).

Simplifying rounds the parameters, so it belongs to the making of a model: a bound is proved for the
kernel that comes out. Nothing simplifies the kernel of a posterior behind the user's back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from gpcert.errors import InputError
from gpcert.kernels.base import Kernel
from gpcert.kernels.composite import Composite, Product, Scale, Sum
from gpcert.kernels.constant import Constant, White
from gpcert.kernels.periodic import Periodic
from gpcert.kernels.radial import RationalQuadratic, SquaredExponential
from gpcert.numerics.arrays import number_array

HIGHEST_POWER = 16
"""A power of a kernel that has no closed form is a product of so many factors at most."""


def sum_of(kernels: Sequence[Kernel | float]) -> Kernel:
    """k1 + k2 + ..., nested sums flattened, equal squared exponentials and constants added up.

    >>> k = sum_of([Constant(1.0), SquaredExponential(2.0), Constant(0.5)])
    >>> [part.name for part in k.kernels]
    ['constant', 'squared_exponential']
    """
    parts: list[Kernel] = []
    for kernel in _flat(kernels, Sum):
        for i, part in enumerate(parts):
            joined = _joined(part, kernel)
            if joined is not None:
                parts[i] = joined
                break
        else:
            parts.append(kernel)
    return parts[0] if len(parts) == 1 else Sum(tuple(parts))


def product_of(kernels: Sequence[Kernel | float]) -> Kernel:
    """k1 * k2 * ..., nested products flattened, factors pulled out, squared exponentials merged.

    >>> k = product_of([Constant(3.0), SquaredExponential(2.0), SquaredExponential(2.0)])
    >>> k.name, float(k.variance), round(float(k.length_scale), 3)
    ('squared_exponential', 3.0, 1.414)
    """
    factor, merged, parts = 1.0, None, []
    for part in _flat(kernels, Product):
        scale, kernel = _unscaled(part)
        factor *= scale
        if isinstance(kernel, Constant):
            factor *= kernel.variance
        elif isinstance(kernel, SquaredExponential):
            merged = kernel if merged is None else _merged(merged, kernel)
        else:
            parts.append(kernel)
    if merged is not None:
        parts.insert(0, merged)
    if not parts:
        return Constant(factor)
    return scaled_by(parts[0] if len(parts) == 1 else Product(tuple(parts)), factor)


def scaled_by(kernel: Kernel, factor: float) -> Kernel:
    """factor * k, the factor taken into the kernel where it has one of its own."""
    if factor == 1.0:
        return kernel
    if kernel.has_variance:
        return replace(kernel, variance=kernel.variance * factor)  # pyright: ignore
    if isinstance(kernel, Product):
        first, *rest = kernel.kernels
        if first.has_variance:
            return Product((scaled_by(first, factor), *rest))
    return Scale(kernel, factor)


def power_of(kernel: Kernel, p: float) -> Kernel:
    """k^p for p > 0: in closed form where there is one, else a product of p equal factors.

    >>> power_of(SquaredExponential(2.0, variance=3.0), 4).config()
    {'length_scale': 1.0, 'variance': 81.0}
    """
    exponent = float(number_array("power of a kernel", p, ndim=0))
    if not 0 < exponent < math.inf:
        raise InputError(f"power of a kernel: expected a positive number, got {p!r}")
    try:
        return _power_of(kernel, exponent)
    except OverflowError as error:
        raise InputError(
            f"power of a kernel: its variance overflows for the power {p!r}"
        ) from error


def _power_of(kernel: Kernel, p: float) -> Kernel:
    if p == 1:
        return kernel
    if isinstance(kernel, Scale):
        return scaled_by(power_of(kernel.kernel, p), kernel.factor**p)
    if isinstance(kernel, Product):
        return product_of([power_of(part, p) for part in kernel.kernels])
    for kind, rule in _POWERS.items():
        if isinstance(kernel, kind):
            return rule(kernel, p)
    if float(p).is_integer() and p <= HIGHEST_POWER:
        return product_of([kernel] * int(p))
    raise InputError(
        f"power of a kernel: expected a whole number from 1 to {HIGHEST_POWER} for a "
        f"{type(kernel).__name__}, got {p!r}; only Constant, SquaredExponential, "
        "RationalQuadratic and Periodic (and products of them) have other powers"
    )


_POWERS: dict[type, Callable[[Any, float], Kernel]] = {
    Constant: lambda k, p: Constant(k.variance**p),
    SquaredExponential: lambda k, p: SquaredExponential(k.length_scale / np.sqrt(p), k.variance**p),
    RationalQuadratic: lambda k, p: RationalQuadratic(
        k.length_scale / np.sqrt(p), k.alpha * p, k.variance**p
    ),
    Periodic: lambda k, p: Periodic(k.period, k.length_scale / np.sqrt(p), k.variance**p),
}


def _flat(kernels: Sequence[Kernel | float], kind: type[Composite]) -> list[Kernel]:
    """The parts of nested sums (products) in order."""
    if not kernels:
        raise InputError(f"{kind.__name__}: expected at least one kernel, got none")
    flat: list[Kernel] = []
    for k in kernels:
        if isinstance(k, kind):
            flat.extend(k.kernels)
        else:
            flat.append(k if isinstance(k, Kernel) else Constant(k))
    return _flat(flat, kind) if any(isinstance(k, kind) for k in flat) else flat


def _unscaled(kernel: Kernel) -> tuple[float, Kernel]:
    """The factors around a kernel, and the kernel inside."""
    if not isinstance(kernel, Scale):
        return 1.0, kernel
    factor, inside = _unscaled(kernel.kernel)
    return factor * kernel.factor, inside


def _joined(a: Kernel, b: Kernel) -> Kernel | None:
    """The sum of two kernels that differ in their variance only, as one; None for all others."""
    if type(a) is not type(b) or not isinstance(a, Constant | White | SquaredExponential):
        return None
    first, second = (getattr(kernel, "length_scale", 1.0) for kernel in (a, b))
    same = np.array_equal(first, second)
    return replace(a, variance=a.variance + b.variance) if same else None  # pyright: ignore


def _merged(a: SquaredExponential, b: SquaredExponential) -> SquaredExponential:
    lengths = 1.0 / np.sqrt(a.length_scale**-2.0 + b.length_scale**-2.0)
    return SquaredExponential(lengths, a.variance * b.variance)
