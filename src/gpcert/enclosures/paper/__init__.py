"""The paper's own enclosures: one linear relaxation a cell, bounded by its dual.

`relaxation` encloses every k(x, z_i) between functions that are linear in a few lifted coordinates
of x; `safe_dual` turns any multipliers into a proved bound; `linear_programs` and
`quadratic_program` look for good multipliers, and need not be trusted.
"""

from gpcert.enclosures.paper.intervals import PaperEnclosures

__all__ = ["PaperEnclosures"]
