"""Attacks on many points at once: every method, and the best of all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from gpcert.arrays import whole_number
from gpcert.attacks.margins import Margins
from gpcert.attacks.neighbourhoods import Neighbourhoods
from gpcert.attacks.projected_gradient import projected_gradient
from gpcert.attacks.random_search import random_search
from gpcert.deadline import checkpoint
from gpcert.errors import InputError

AttackName = Literal["gpfgs", "gpfgs_probability", "pgd", "square", "best"]

MOST_ROWS = 4096
"""Points times starts that are attacked at once."""


@dataclass(frozen=True)
class Effort:
    """How long an attack tries: `restarts` random starts of projected gradient, `iterations` steps
    from each (and ten times as many proposals of random search)."""

    restarts: int = 3
    iterations: int = 40

    def __post_init__(self) -> None:
        whole_number("restarts", self.restarts)
        whole_number("iterations", self.iterations, 1)


@np.errstate(all="ignore")  # huge latent functions overflow
def attack_points(
    margins: Margins,
    places: Neighbourhoods,
    starts: np.ndarray,
    method: AttackName,
    effort: Effort,
    random_state: int | np.random.Generator | None,
) -> np.ndarray:
    """(n, d): for each start a point of its region with a small margin.

    `starts` are the points whose decisions are attacked, one per region. Methods: "gpfgs", one step
    along the gradient of the latent mean, wherever it leads; "gpfgs_probability", of the
    prediction; "pgd", projected gradient from both, from the start and from random points;
    "square", random search; "best". The last three are never worse than the start.
    """
    if method not in get_args(AttackName):
        raise InputError(
            f"method: expected one of {', '.join(get_args(AttackName))}, got {method!r}"
        )
    rng = np.random.default_rng(random_state)
    rows = np.arange(len(starts))
    if method in {"gpfgs", "gpfgs_probability"}:
        return gradient_sign(margins, places, starts, latent=method == "gpfgs")
    found = [starts]
    if method in {"pgd", "best"}:
        found += [gradient_sign(margins, places, starts, latent=which) for which in (True, False)]
        found += _descents(margins, places, found, effort, rng)
    if method in {"square", "best"}:
        search = random_search(margins, places, iterations=10 * effort.iterations, rng=rng)
        found.append(search)
        if method == "best":
            found += _descents(margins, places, [search], Effort(0, effort.iterations), rng)
    best, value = starts, margins.value(False, starts, rows)
    for other in found[1:]:
        best, value = margins.better(best, value, other, rows)
    return best


def _descents(
    margins: Margins,
    places: Neighbourhoods,
    starts: list[np.ndarray],
    effort: Effort,
    rng: np.random.Generator,
) -> list[np.ndarray]:
    """Descents from several starts per point, of the latent margin and of the predicted one."""
    rows = np.arange(len(places))
    every = [*starts, *(places.sample(rows, rng) for _ in range(effort.restarts))]
    count = max(1, MOST_ROWS // max(1, len(places)))
    found = []
    for first in range(0, len(every), count):
        group = every[first : first + count]
        owners = np.tile(rows, len(group))
        for latent in (True, False):
            checkpoint()
            ends = projected_gradient(
                margins,
                places,
                np.concatenate(group),
                owners,
                iterations=effort.iterations,
                latent=latent,
            )
            found += np.split(ends, len(group))
    return found


def gradient_sign(
    margins: Margins, places: Neighbourhoods, starts: np.ndarray, *, latent: bool = True
) -> np.ndarray:
    """GPFGS (Grosse, Pfaff, Smith and Backes, *How wrong am I?*, 2017), one step (n, d): from every
    start to the point of its region that minimises the margin's gradient.

    In an l_inf ball that is `x - radius sign(gradient)`, clipped to the domain, as in the paper; in
    other norms the vertex or the point of the sphere that the gradient points away from. Where the
    deviation from the start itself is attacked, its gradient is 0: each mean is raised and lowered,
    and the worse one counts. `latent=False`: the gradient of the prediction.
    """
    rows = np.arange(len(starts))
    best, value = starts, np.full(len(starts), np.inf)
    for gradient in margins.first_gradients(starts, rows, latent=latent):
        found = places.linear_minimizers(gradient, rows)
        reached = margins.value(latent, found, rows)
        better = reached < value
        best = np.where(better[:, None], found, best)
        value = np.where(better, reached, value)
    return best
