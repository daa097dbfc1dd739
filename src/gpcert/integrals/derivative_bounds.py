"""How fast an average over a Gaussian can change: derivative bounds in standard deviations.

Proofs: docs/mathematics.md, statement 9.3.
"""

from __future__ import annotations

UNIMODAL_BOUNDS = (0.39895, 0.48395, 0.57703, 1.10121, 1.93695, 4.61448)
"""`e_j >= max phi^(j-1) - min phi^(j-1)`, j = 1..6, phi the standard normal density.

Statement: let `F(t) = E s(t + z)`, z standard normal, with s in [0, 1] rising first and falling
then (or only one of these). Then `|F^(j)| <= e_j`. The same for `E s(a + L (z + t u))`, |u| = 1, in
several dimensions, if s is so along every line: condition on the part of z orthogonal to u.
Reason: the rising and the falling part of ds have mass at most 1 each (Statement 9.3); log-concave
functions are of this kind. Mixed derivatives along several unit vectors have the same bound (Banach
1938: a symmetric multilinear form on a Euclidean space attains its norm on the diagonal).
"""
