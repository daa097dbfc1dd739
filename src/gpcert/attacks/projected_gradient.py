"""Projected gradient descent from several starts, all points and starts in one batch."""

from __future__ import annotations

import numpy as np

from gpcert.attacks.functions import Both
from gpcert.attacks.margins import Margins
from gpcert.attacks.neighbourhoods import Neighbourhoods
from gpcert.deadline import checkpoint

FIRST_STEP = 0.25
"""Part of a region's width that the first step may take."""

GROWTH, SHRINK = 1.3, 0.5
"""Factors of a step's length after a success and after a failure."""

JUMPS = 3
"""First steps that go all the way to where the gradient is least (Frank-Wolfe): on nearly linear
margins, and in l_1 balls, they land on the right vertex."""

SMALLEST_STEP = 1e-7
"""Part of the width below which a row has arrived."""


def projected_gradient(
    margins: Margins,
    places: Neighbourhoods,
    starts: np.ndarray,
    rows: np.ndarray,
    *,
    iterations: int,
    latent: bool,
) -> np.ndarray:
    """(k, d): descent of the margin from starts (k, d) in the regions of rows (k,).

    Steps go along the gradient in units of the region's widths, are projected, and are kept only
    where the margin falls: a row never gets worse. The length of a row's step is its own.
    """
    x = places.project(starts, rows)
    value, gradient = _finite(margins.judged(latent, x, rows))
    width = places.width(rows)
    step = np.full(len(x), FIRST_STEP)
    active = np.arange(len(x))
    for t in range(iterations):
        checkpoint()
        size = np.linalg.norm(gradient[active] * width[active], axis=1)
        active = active[(size > 0) & (step[active] > SMALLEST_STEP)]
        if not len(active):
            break
        if t < JUMPS:
            y = places.linear_minimizers(gradient[active], rows[active])
        else:
            y = _step(places, x[active], gradient[active], rows[active], step[active])
        reached, slope = _finite(margins.judged(latent, y, rows[active]))
        better = reached < value[active]
        won, lost = active[better], active[~better]
        x[won], value[won], gradient[won] = y[better], reached[better], slope[better]
        if t >= JUMPS:
            step[won] = np.minimum(step[won] * GROWTH, 1.0)
            step[lost] *= SHRINK
    return x


def _step(
    places: Neighbourhoods, x: np.ndarray, g: np.ndarray, rows: np.ndarray, length: np.ndarray
) -> np.ndarray:
    """A projected step whose size is `length` of the width, in the mean over the features."""
    width = places.width(rows)
    scaled = g * width
    size = np.linalg.norm(scaled, axis=1) / np.sqrt(scaled.shape[1])
    return places.project(x - scaled * width * (length / size)[:, None], rows)


def _finite(judged: Both) -> Both:
    value, gradient = judged
    return np.where(np.isnan(value), np.inf, value), np.nan_to_num(gradient)
