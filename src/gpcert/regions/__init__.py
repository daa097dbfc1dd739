"""Regions of inputs and the certified minima of simple functions over their sub-boxes.

A `Region` says where an input may lie: a `Box`, or a `Ball` in some p-norm, on chosen features and
inside a valid domain. `Cells` is a batch of sub-boxes of one region: what the search splits.
"""

from gpcert.regions.base import Region
from gpcert.regions.cells import Cells
from gpcert.regions.image import LinearMap
from gpcert.regions.shapes import Ball, Box, region_from_dict

__all__ = ["Region", "Box", "Ball", "Cells", "LinearMap", "region_from_dict"]
