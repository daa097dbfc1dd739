"""Pictures of what is proved: each function draws on the Axes that it is given and returns it.

matplotlib is imported by the functions that need it, not with the package.
"""

from gpcert.plots.decision import plot_decision_regions
from gpcert.plots.images import plot_image_counterexample
from gpcert.plots.intervals import plot_range
from gpcert.plots.kernels import plot_kernel_lines
from gpcert.plots.training import plot_training

__all__ = [
    "plot_decision_regions",
    "plot_image_counterexample",
    "plot_kernel_lines",
    "plot_range",
    "plot_training",
]
