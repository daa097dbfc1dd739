"""The paper's bounded decomposition: lines under and over every k(., z_i).

A kernel of your own gets it by `affine_relaxation.register`; one without is bounded by Taylor
expansions alone.
"""

from gpcert.paper.lines import bounds, kernels  # noqa: F401  (they register)
from gpcert.paper.lines.algebra import affine_lower_bound
from gpcert.paper.lines.carriers import Affine, AffineRelaxation, Carrier
from gpcert.paper.lines.registry import affine_relaxation, check_lines, has_lines, lines_bound

__all__ = [
    "Affine",
    "AffineRelaxation",
    "Carrier",
    "affine_lower_bound",
    "affine_relaxation",
    "check_lines",
    "has_lines",
    "lines_bound",
]
