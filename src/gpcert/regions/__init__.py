"""Regions of inputs and the certified minima of simple functions over their sub-boxes.

A `Region` says where an input may lie: a `Box`, or a `Ball` in some p-norm, on chosen features and
inside a valid domain. `Cells` is a batch of sub-boxes of one region: what the search splits.
"""

from gpcert.regions.ball import Ball
from gpcert.regions.base import Region
from gpcert.regions.box import Box
from gpcert.regions.cells import Cells
from gpcert.regions.linear_map import LinearMap
from gpcert.regions.records import region_from_dict

__all__ = ["Region", "Box", "Ball", "Cells", "LinearMap", "region_from_dict"]
