"""GPFGS: one step to where the linearised decision is least (Grosse, Pfaff, Smith and Backes,
*How wrong am I?*, 2017), and its variant on the prediction instead of the latent mean."""

from __future__ import annotations

import numpy as np

from gpcert.attacks.margins import Margins
from gpcert.attacks.neighbourhoods import Neighbourhoods


def gradient_sign(
    margins: Margins, places: Neighbourhoods, starts: np.ndarray, *, latent: bool = True
) -> np.ndarray:
    """(n, d): from every start to the point of its region that minimises the margin's gradient.

    In an l_inf ball that is `x - radius sign(gradient)`, clipped to the domain, as in the paper; in
    other norms the vertex or the point of the sphere that the gradient points away from. Where the
    deviation from the start itself is attacked, its gradient is 0: each mean is raised and lowered,
    and the worse one counts. `latent=False`: the gradient of the prediction.
    """
    rows = np.arange(len(starts))
    best, value = starts, np.full(len(starts), np.inf)
    for gradient in margins.first_gradients(starts, rows, latent=latent):
        found = places.linear_minimizers(gradient, rows)
        reached = margins.values(found, rows)[0 if not latent else 1]
        better = reached < value
        best = np.where(better[:, None], found, best)
        value = np.where(better, reached, value)
    return best
