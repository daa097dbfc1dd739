"""The verbs: what a user asks of a model."""

from gpcert.api.boxes import bound_boxes
from gpcert.api.certify import certify
from gpcert.api.checkpoints import resume
from gpcert.api.differences import difference_range
from gpcert.api.error_bounds import uniform_beta
from gpcert.api.fairness import certify_fair
from gpcert.api.invariant_sets import invariant_set
from gpcert.api.level_sets import level_set
from gpcert.api.lipschitz import lipschitz
from gpcert.api.many import certified_radius_many, certify_many, prediction_range_many
from gpcert.api.optimum import maximize, minimize, recommend, regret_bound
from gpcert.api.probability import expectation, failure_probability
from gpcert.api.quantiles import quantile
from gpcert.api.radius import certified_radius
from gpcert.api.ranges import prediction_range, prediction_ranges
from gpcert.api.slopes import certify_monotone, slope_ranges
from gpcert.api.sobol import sobol_indices

__all__ = [
    "bound_boxes",
    "certify",
    "certify_fair",
    "certify_many",
    "certify_monotone",
    "certified_radius",
    "certified_radius_many",
    "difference_range",
    "invariant_set",
    "level_set",
    "expectation",
    "failure_probability",
    "lipschitz",
    "maximize",
    "minimize",
    "prediction_range",
    "prediction_range_many",
    "prediction_ranges",
    "quantile",
    "recommend",
    "regret_bound",
    "resume",
    "slope_ranges",
    "sobol_indices",
    "uniform_beta",
]
