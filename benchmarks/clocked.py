"""Arrays that record where the time goes: `@` is no function call that a profiler could see."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import Any, ClassVar

import numpy as np


class Clock:
    """CPU seconds by name of the operation."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)

    def reset(self) -> None:
        self.seconds.clear()

    def slowest(self, count: int) -> dict[str, float]:
        """The operations that took longest."""
        ordered = sorted(self.seconds.items(), key=lambda item: -item[1])
        return dict(ordered[:count])


class Clocked(np.ndarray):
    """An ndarray whose operations, and those on their results, are timed by name."""

    clock: ClassVar[Clock] = Clock()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        if "out" in options:
            options["out"] = tuple(_plain(x) for x in options["out"])
        plain = [_plain(x) for x in inputs]
        start = time.process_time()
        result = getattr(ufunc, method)(*plain, **options)
        name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
        self.clock.seconds[name] += time.process_time() - start
        return _wrapped(result)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        start = time.process_time()
        inner = sum(self.clock.seconds.values())
        result = super().__array_function__(function, types, args, kwargs)
        own = time.process_time() - start - (sum(self.clock.seconds.values()) - inner)
        self.clock.seconds[function.__name__] += own
        return _wrapped(result)


def clocked_copy(array: np.ndarray) -> np.ndarray:
    """The same numbers as a `Clocked` array."""
    return np.array(array).view(Clocked)


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, Clocked) else value


def _wrapped(value: Any) -> Any:
    plain = isinstance(value, np.ndarray) and not isinstance(value, Clocked)
    return value.view(Clocked) if plain else value
