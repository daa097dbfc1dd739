"""A record of every kind, with awkward numbers in them."""

import dataclasses

import numpy as np
from scipy.stats import uniform

import gpcert
from gpcert import explain
from gpcert.certificates import (
    CertificateTable,
    FairnessTable,
    Interval,
    LipschitzTable,
    PredictionRange,
)
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Probit
from gpcert.search import StopReason

MODEL = gpcert.Posterior(SquaredExponential(1.0), points=[[0.0], [3.0]], weights=[1.0, -1.0])
AWKWARD = [0.1, 1 / 3, -0.0, 5e-324, 1.7976931348623157e308, np.nextafter(1.0, 2.0)]


def make_range(values, infinite=False):
    a, b, c, d, *_ = sorted(values)
    return PredictionRange(
        minimum=Interval(-np.inf if infinite else a, b),
        maximum=Interval(c, np.inf if infinite else d),
        argmin=None if infinite else np.array(values),
        argmax=np.array(values[::-1]),
        converged=not infinite,
        reason=StopReason.TIME,
        boxes=7,
        seconds=values[0],
        quantity="mean",
        output=2,
        region=gpcert.Ball([0.1] * 6, 0.3, domain=(-np.inf, 1.0), features=[0]).describe(),
    )


RECORDS = {
    "certificate": gpcert.certify(MODEL, [0.0], 2.0, threshold=0.0),
    "prediction_range": make_range(AWKWARD, infinite=True),
    "radius": dataclasses.replace(
        gpcert.certified_radius(MODEL, [0.0], threshold=0.0, max_radius=4.0),
        region=gpcert.Ball([0.0], 1.4).describe(),
    ),
}
RECORDS["certificates"] = CertificateTable((RECORDS["certificate"],) * 2)
RECORDS["prediction_ranges"] = gpcert.RangeTable((RECORDS["prediction_range"],))
RECORDS["radii"] = gpcert.RadiusTable((RECORDS["radius"],))
RECORDS["effects"] = explain.effects(MODEL, [[0.5], [1.0]], 0.5)
RECORDS["attribution"] = explain.Attribution(
    "slope", np.ones((2, 1)), np.ones((2, 1, 1)), (0,), ("x0",), (0, 1)
)
RECORDS["reason"] = explain.contrastive(MODEL, [0.0], 2.0, threshold=0.0)
RECORDS["reasons"] = explain.ReasonTable((RECORDS["reason"],))
RECORDS["pixel_budget"] = explain.pixel_budget(
    dataclasses.replace(MODEL, likelihood=Probit()), [0.0], [0, 1], radius=2.0, ranking="gradient"
)
RECORDS["pixel_budgets"] = explain.PixelBudgetTable((RECORDS["pixel_budget"],))
RECORDS["optimum"] = gpcert.maximize(MODEL, [(-2.0, 5.0)], "mean", tol=0.1)
RECORDS["regret_bound"] = gpcert.regret_bound(
    dataclasses.replace(MODEL, factor=np.eye(2)), [(-2.0, 5.0)], tol=0.1
)
RECORDS["slopes"] = gpcert.slope_ranges(MODEL, [(0.5, 1.0)], tol=0.01)
RECORDS["monotonicities"] = gpcert.certify_monotone(MODEL, [(-1.0, 1.0)], {0: "+"})
RECORDS["monotonicity"] = RECORDS["monotonicities"][0]
EXACT = gpcert.Posterior(SquaredExponential(1.0), [[0.0]], [0.5], training_noise=0.01)
RECORDS["error_bound"] = gpcert.uniform_beta(EXACT, norm_bound=2.0, noise_bound=0.1, delta=0.05)
RECORDS["failure_probability"] = gpcert.failure_probability(
    MODEL, [uniform(-1.0, 2.0)], 0.3, side="above", rtol=0.1, paving=True
)
RECORDS["expectation"] = gpcert.expectation(EXACT, [uniform(-1.0, 2.0)], "std", tol=0.1)
RECORDS["quantile"] = gpcert.quantile(EXACT, [uniform(-1.0, 2.0)], 0.5, quantity="std", tol=0.1)
RECORDS["sobol_indices"] = gpcert.sobol_indices(EXACT, [uniform(-1.0, 2.0)])
RECORDS["lipschitz"] = gpcert.lipschitz(MODEL, [(-1.0, 1.0)])
RECORDS["lipschitz_table"] = LipschitzTable((RECORDS["lipschitz"],) * 2)
RECORDS["fairness"] = gpcert.certify_fair(MODEL, [0.0], {0: (0.0, 2.0)}, delta=1e-3)
RECORDS["fairnesses"] = FairnessTable((RECORDS["fairness"],))
