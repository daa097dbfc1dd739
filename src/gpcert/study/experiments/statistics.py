"""How sure a number over some points is, and whether it settles a claim."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from gpcert.errors import InputError

DRAWS = 2000
LEVEL = 0.95


class Estimate(NamedTuple):
    """A number and the ends of its 95 % interval.

    >>> str(Estimate(0.123456, 0.1, 0.2))
    '0.123 [0.1, 0.2]'
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3g} [{self.low:.3g}, {self.high:.3g}]"

    def cells(self, name: str) -> dict[str, Any]:
        """Three cells of a row: the number under its name, `low` and `high`."""
        return {name: self.value, "low": self.low, "high": self.high}


def bootstrap(
    values: Any, statistic: Callable[..., Any] = np.median, random_state: int = 0
) -> Estimate:
    """A statistic of the rows of `values`, with its interval by resampling rows.

    Percentiles of 2000 draws with replacement (Efron & Tibshirani 1993, ch. 13). `statistic` takes
    the resampled array and `axis=`, the axis of the rows, as NumPy's functions do. Rows that belong
    to the same point, such as the deltas of two models, stay together.

    >>> median = bootstrap(np.arange(101.0))
    >>> median.value, bool(35 < median.low < 50 < median.high < 65)
    (50.0, True)
    """
    rows = np.asarray(values, dtype=np.float64)
    if rows.ndim == 0 or len(rows) == 0:
        raise InputError("values: expected one or more rows, got none")
    draws = np.random.default_rng(random_state).integers(len(rows), size=(DRAWS, len(rows)))
    statistics = np.asarray(statistic(rows[draws], axis=1), dtype=np.float64)
    low, high = np.quantile(statistics, [(1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0])
    return Estimate(float(statistic(rows[None], axis=1)[0]), float(low), float(high))


def median_cells(values: Any, name: str, end: str = "") -> dict[str, Any]:
    """The cells of a median and its ends (`end` before their names), empty where there are no
    values."""
    cells = bootstrap(values) if len(values) else (None, None, None)
    return dict(zip((name, f"{end}low", f"{end}high"), cells, strict=True))


def share(successes: Any) -> Estimate:
    """The share of True, with Wilson's interval: of no success in n it still says how many there
    may be, where resampling would say none.

    >>> half = share([True] * 5 + [False] * 5)
    >>> half.value, round(half.low, 2), round(half.high, 2)
    (0.5, 0.24, 0.76)
    """
    from scipy.stats import binomtest

    flags = np.asarray(successes, dtype=bool)
    if len(flags) == 0:
        raise InputError("successes: expected one or more, got none")
    ends = binomtest(int(flags.sum()), len(flags)).proportion_ci(LEVEL, method="wilson")
    return Estimate(float(flags.mean()), float(ends.low), float(ends.high))


def exceeds(estimate: Estimate, level: float) -> str:
    """ "yes" if the whole interval lies above the level, "no" if it lies below, else "unclear".

    >>> exceeds(Estimate(2.0, 1.5, 3.0), 1.0), exceeds(Estimate(2.0, 0.5, 3.0), 1.0)
    ('yes', 'unclear')
    """
    return answer(estimate.low > level, estimate.high < level)


def answer(yes: Any, no: Any) -> str:
    """The answer where either is settled, "unclear" between."""
    return "yes" if yes else "no" if no else "unclear"


def opposite(answer: str) -> str:
    """The answer to the opposite claim; what is unclear stays so."""
    return {"yes": "no", "no": "yes"}.get(answer, answer)
