"""How fast an average over a Gaussian can change: derivative bounds in standard deviations.

Proofs: docs/mathematics.md, statements 9.3 and 9.4.
"""

from __future__ import annotations

from typing import Annotated

from gpcert.arrays import Array, namespace
from gpcert.rounding import up

UNIMODAL_BOUNDS = (0.39895, 0.48395, 0.57703, 1.10121, 1.93695, 4.61448, 10.22475, 28.35596)
"""`e_j >= max phi^(j-1) - min phi^(j-1)`, j = 1..8, phi the standard normal density.

Statement: let `F(t) = E s(t + z)`, z standard normal, with s in [0, 1] rising first and falling
then (or only one of these). Then `|F^(j)| <= e_j`. The same for `E s(a + L (z + t u))`, |u| = 1, in
several dimensions, if s is so along every line: condition on the part of z orthogonal to u.
Reason: the rising and the falling part of ds have mass at most 1 each (Statement 9.3); log-concave
functions are of this kind. Mixed derivatives along several unit vectors have the same bound (Banach
1938: a symmetric multilinear form on a Euclidean space attains its norm on the diagonal).
"""

PROBABILITY_LINES: tuple[tuple[tuple[float, float], ...], ...] = (
    (
        (-2.33, 2.33336),
        (-1.75, 1.76618),
        (-1.28, 1.3275),
        (-0.84, 0.95197),
        (-0.39, 0.62391),
        (0.0, 0.39895),
        (0.39, 0.23391),
        (0.84, 0.11197),
        (1.28, 0.0475),
        (1.75, 0.01618),
        (2.33, 0.00336),
    ),
    (
        (-5.64, 5.6581),
        (-3.22, 3.29008),
        (-1.71, 1.87829),
        (-0.64, 0.96183),
        (0.0, 0.48395),
        (0.13, 0.39734),
        (0.51, 0.17454),
        (0.64, 0.16092),
        (2.07, 0.06807),
        (4.41, 0.01791),
    ),
    (
        (-5.61, 5.67149),
        (-0.91, 1.0554),
        (-0.28, 0.71109),
        (0.0, 0.57698),
        (0.71, 0.28957),
        (1.21, 0.13653),
        (5.61, 0.06149),
    ),
    (
        (-7.21, 7.40868),
        (-2.24, 2.50028),
        (-2.23, 2.49187),
        (-1.48, 1.98663),
        (0.0, 1.10118),
        (0.48, 0.85101),
        (1.41, 0.43027),
        (3.52, 0.15204),
        (3.87, 0.1188),
    ),
    (
        (-13.07, 13.18579),
        (-11.5, 11.67522),
        (-2.26, 2.95326),
        (0.0, 1.93682),
        (1.81, 1.24622),
        (3.92, 0.59152),
        (9.92, 0.28575),
        (15.32, 0.11239),
    ),
    (
        (-48.87, 49.11392),
        (-17.01, 18.19673),
        (-5.94, 7.62694),
        (-2.46, 5.79864),
        (0.0, 4.61422),
        (6.36, 2.01479),
        (6.71, 1.89358),
        (13.56, 0.81187),
        (49.0, 0.2875),
    ),
    (
        (-41.03, 42.25633),
        (-41.02, 42.24679),
        (-26.7, 29.2539),
        (-9.69, 14.10886),
        (0.0, 10.22475),
        (4.89, 8.44977),
        (21.12, 3.51072),
        (55.2, 1.13982),
    ),
    (
        (-149.1, 152.43936),
        (-28.06, 40.6697),
        (0.0, 28.35596),
        (27.19, 18.00612),
        (45.69, 11.9489),
        (78.67, 6.37048),
        (256.33, 1.64349),
    ),
)
"""Pairs (slope, height) for j = 1..8: `|F^(j)| <= height + slope p` for a mean of p = F.

Statement: for s as above and any slope, `|F^(j)| <= height + slope F` at the same point, where
`height >= max |E He_j(z) 1_I| - slope P(I)` over intervals I.
Reason: s is an average of indicators of intervals, its superlevel sets (Statement 9.4). The slopes
were chosen by looking at p = 0.01 to 0.99; the tests prove the heights in ball arithmetic.
"""


def unimodal_bound(order: int, low: Array, high: Array) -> Annotated[Array, "j"]:
    """Upper bound of `|F^(j)|` for j = `order` in 1..8 where `low <= F <= high`.

    >>> import numpy as np
    >>> half, small = np.array([0.5]), np.array([0.01])
    >>> float(unimodal_bound(4, half, half)[0]) > 6 * float(unimodal_bound(4, small, small)[0])
    True
    """
    xp = namespace(high)
    best = xp.full_like(high, UNIMODAL_BOUNDS[order - 1])
    for slope, height in PROBABILITY_LINES[order - 1]:
        best = xp.minimum(best, up(height + slope * (high if slope > 0 else low), 4))
    return best
