"""Sums, products and roots of balls (`arb`). `x ** 2` is avoided: of a ball around 0 it is NaN."""

from __future__ import annotations

from collections.abc import Iterable

from flint import arb

TINY = arb(2) ** -1000
"""More than underflow can lose in float64."""


def square(x: arb) -> arb:
    """x^2."""
    return x * x


def power(x: arb, n: int) -> arb:
    """x^n, n >= 0."""
    product = arb(1)
    for _ in range(n):
        product *= x
    return product


def root(x: arb) -> arb:
    """The root of a number that is not negative, though its ball may reach below 0."""
    return x.sqrt() if x >= 0 else arb(0).union(x.upper().nonnegative_part().sqrt())


def gamma(roundings: float | arb) -> arb:
    """`n u / (1 - n u)`, u = 2^-53: the relative error of n roundings of float64."""
    error = roundings * arb(2) ** -53
    return error / (1 - error)


def total(parts: Iterable[arb]) -> arb:
    """The sum."""
    return sum(parts, arb(0))


def dot(a: Iterable[arb], b: Iterable[arb]) -> arb:
    """`sum_j a_j b_j`."""
    return sum((x * y for x, y in zip(a, b, strict=True)), arb(0))


def largest(parts: Iterable[arb]) -> arb:
    """The largest of numbers >= 0."""
    largest_part = arb(0)
    for part in parts:
        largest_part = largest_part.max(part)
    return largest_part
