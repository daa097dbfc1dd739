"""Plots of results: each function draws on the given Axes and returns them.

Functions import matplotlib when they need it; the package does not.
"""

from gpcert.plots.answers import (
    plot_certificates,
    plot_image_counterexample,
    plot_radii,
    plot_range,
)
from gpcert.plots.curves import plot_gaps, plot_training
from gpcert.plots.decision import plot_decision_regions
from gpcert.plots.explanations import (
    plot_effects,
    plot_heat_map,
    plot_kept_features,
    plot_kept_pixels,
)
from gpcert.plots.kernels import plot_kernel_lines
from gpcert.plots.sets import plot_boxes, plot_invariant_set, plot_level_set

__all__ = [
    "plot_boxes",
    "plot_certificates",
    "plot_decision_regions",
    "plot_effects",
    "plot_gaps",
    "plot_heat_map",
    "plot_image_counterexample",
    "plot_kept_features",
    "plot_kept_pixels",
    "plot_invariant_set",
    "plot_kernel_lines",
    "plot_level_set",
    "plot_radii",
    "plot_range",
    "plot_training",
]
