"""The paper's own enclosures: one linear relaxation a cell, bounded by its dual.

`relaxation` encloses every k(x, z_i) between functions that are linear in a few lifted coordinates
of x, and turns any multipliers into a proved bound; `programs` look for good multipliers, and need
not be trusted.
"""

from gpcert.enclosures.paper import class_grid  # noqa: F401  (it registers)
from gpcert.enclosures.paper.intervals import PaperEnclosures

__all__ = ["PaperEnclosures"]
