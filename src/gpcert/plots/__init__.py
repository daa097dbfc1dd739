"""Pictures of what is proved: each function draws on the Axes that it is given and returns it.

matplotlib is imported by the functions that need it, not with the package.
"""

from gpcert.plots.decision import plot_decision_regions
from gpcert.plots.images import plot_image_counterexample
from gpcert.plots.intervals import plot_range

__all__ = ["plot_decision_regions", "plot_range", "plot_image_counterexample"]
