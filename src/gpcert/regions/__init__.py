"""Regions of inputs and the certified minima of simple functions over their sub-boxes.

A `Region` says where an input may lie: a `Box`; a `Ball` in some p-norm, on chosen features and
inside a valid domain; a `Polytope`, a box with linear constraints; a `Discrete` one, some of whose
features take whole numbers or a few values; a `OneHot` one, with categories as groups of columns; a
`Union` of several; or a class of your own. `Cells` is a batch of sub-boxes of one region: what the
search splits.
"""

from gpcert.regions.base import Region
from gpcert.regions.cells import Cells
from gpcert.regions.discrete import Discrete
from gpcert.regions.image import LinearMap
from gpcert.regions.one_hot import OneHot
from gpcert.regions.polytope import Polytope
from gpcert.regions.records import region_from_dict, register
from gpcert.regions.shapes import Ball, Box
from gpcert.regions.union import Union

__all__ = [
    "Region",
    "Box",
    "Ball",
    "Polytope",
    "Discrete",
    "OneHot",
    "Union",
    "Cells",
    "LinearMap",
    "region_from_dict",
    "register",
]
