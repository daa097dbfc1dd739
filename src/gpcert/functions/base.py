"""What every increasing function can do, and several of them one after another.

Proofs: docs/mathematics.md, statement 18.1.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from functools import reduce
from typing import Any, ClassVar

import numpy as np

from gpcert.errors import InputError
from gpcert.numerics.arrays import Array, Reals, namespace


class Increasing(ABC):
    """A function f of one number that does not decrease. Subclasses are frozen records, whose
    stored numbers define f in real arithmetic."""

    name: ClassVar[str]
    """Key of the registry; written to saved posteriors."""

    domain: tuple[float, float] = (-math.inf, math.inf)
    """Where f is defined; an end that is not a float of the domain is not in it."""

    range: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    """Bounds of all values."""

    open_below: ClassVar[bool] = False
    """Whether the lower end of the domain is not in it."""

    @abstractmethod
    def value(self, x: Reals) -> Reals:
        """f in plain floating point."""

    @abstractmethod
    def slope(self, x: np.ndarray) -> np.ndarray:
        """About its derivative; guides choices, proves nothing."""

    @abstractmethod
    def inverse(self, y: np.ndarray) -> np.ndarray:
        """About an x with f(x) = y; says where to look, proves nothing."""

    @abstractmethod
    def ends(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Certified: a number <= f(low), and one >= f(high), for exact floats of the domain."""

    def config(self) -> dict[str, Any]:
        """Parameters from which the registry rebuilds this function, as JSON holds them."""
        values = {part.name: getattr(self, part.name) for part in fields(self)}  # pyright: ignore[reportArgumentType]
        return {k: list(v) if isinstance(v, tuple) else v for k, v in values.items()}

    def inside(self, low: Any, high: Any) -> Any:
        """Whether [low, high] lies in the domain."""
        least, most = self.domain
        above = low > least if self.open_below else low >= least
        return above & (high <= most)


@dataclass(frozen=True)
class Curve:
    """One function after another; `Curve()` is the identity.

    >>> from gpcert.functions import Exp, Log
    >>> float(Curve((Log(), Exp()))(np.array([3.0])).round(12)[0])
    3.0
    """

    steps: tuple[Increasing, ...] = ()

    def __post_init__(self) -> None:
        if not all(isinstance(step, Increasing) for step in self.steps):
            raise InputError(f"curve: expected functions of gpcert.functions, got {self.steps!r}")

    def __call__(self, x: Any) -> Any:
        """The value in plain floating point."""
        with np.errstate(all="ignore"):
            return reduce(lambda value, step: step.value(value), self.steps, x)

    def then(self, *steps: Increasing) -> Curve:
        """This curve and more steps after it."""
        return Curve((*self.steps, *steps))

    def slope(self, x: np.ndarray) -> np.ndarray:
        """About its derivative, by the chain rule; 0 where it has none."""
        total = np.ones_like(x)
        with np.errstate(all="ignore"):
            for step in self.steps:
                total, x = total * step.slope(x), step.value(x)
        return np.where(np.isfinite(total), total, 0.0)

    def inverse(self, y: np.ndarray) -> np.ndarray:
        """About an x with this value."""
        with np.errstate(all="ignore"):
            return reduce(lambda value, step: step.inverse(value), reversed(self.steps), y)

    def ends(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Certified: a number <= f(low), and one >= f(high); NaN outside the domain.

        Statement 18.1: each step does not decrease, so bounds go through it from both sides; what
        rounding moves out of the domain of a step is moved back to its end, which is nearer.
        """
        for step in self.steps:
            least, most = step.domain
            if step.open_below:
                least = math.nextafter(least, math.inf)
            low, high = step.ends(low.clip(least, most), high.clip(least, most))
        return low, high

    def below(self, x: Array) -> Array:
        """Certified: numbers <= f(x), -inf where x, or what is known of f(x), is not finite."""
        return self._bound(x, 0, -math.inf)

    def above(self, x: Array) -> Array:
        """Certified: numbers >= f(x), inf where x, or what is known of f(x), is not finite."""
        return self._bound(x, 1, math.inf)

    def _bound(self, x: Array, side: int, trivial: float) -> Array:
        xp = namespace(x)
        known = xp.isfinite(x)
        safe = xp.where(known, x, xp.zeros_like(x))
        bound = self.ends(safe, safe)[side]
        return xp.where(known & xp.isfinite(bound), bound, xp.full_like(bound, trivial))

    @property
    def range(self) -> tuple[float, float]:
        """Bounds of all values."""
        return self.steps[-1].range if self.steps else (-math.inf, math.inf)

    @property
    def everywhere(self) -> bool:
        """Whether no step has a domain that ends."""
        return all(step.domain == (-math.inf, math.inf) for step in self.steps)

    def check(self, low: np.ndarray, high: np.ndarray, what: str) -> None:
        """An `InputError` unless the curve is defined on [low, high]; `what` is who has it."""
        with np.errstate(all="ignore"):
            for step in self.steps:
                if not np.all(step.inside(low, high)):
                    least, most = step.domain
                    raise InputError(
                        f"{what}: expected values {'above' if step.open_below else 'from'} "
                        f"{least:g}{'' if math.isinf(most) else f' to {most:g}'}, where "
                        f"{type(step).__name__} is defined, got [{float(np.min(low)):.6g}, "
                        f"{float(np.max(high)):.6g}]; take a smaller region or a domain="
                    )
                low, high = step.value(low), step.value(high)

    def config(self) -> list[list[Any]]:
        """What `curve_from_config` takes."""
        return [[step.name, step.config()] for step in self.steps]
