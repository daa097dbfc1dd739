"""Solve one problem with MAiNGO; run by an interpreter that has `maingopy` (and nothing else).

Reads a JSON problem (`problems.Regression.for_maingo`) and writes a JSON result.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path

import maingopy
from maingopy import melonpy

AGREEMENT = 1e-6
"""Largest difference of the predictions for which the two models count as the same."""


def scaler(kind, parameters):
    data = melonpy.ScalerData()
    data.type = kind
    data.parameters = parameters
    return data


def gaussian_process(problem, cls):
    """MeLOn's GP from the same hyper-parameters, points and inverse covariance; no scaling."""
    kernel = melonpy.KernelData()
    kernel.sf2 = 1.0
    kernel.ell = problem["lengths"]
    data = melonpy.GPData()
    data.X, data.Y = problem["X"], problem["Y"]
    data.nX, data.DX, data.DY = len(problem["X"]), len(problem["lengths"]), 1
    data.K, data.invK = problem["K"], problem["invK"]
    data.matern = 999  # MeLOn's number for the squared exponential
    data.kernelData = kernel
    data.meanFunction = 0.0
    data.stdOfOutput = 1.0
    parameter = melonpy.SCALER_PARAMETER
    zeros, ones = [0.0] * data.DX, [1.0] * data.DX
    data.inputScalerData = scaler(
        melonpy.SCALER_TYPE.MINMAX,
        {
            parameter.LOWER_BOUNDS: zeros,
            parameter.UPPER_BOUNDS: ones,
            parameter.SCALED_LOWER_BOUNDS: zeros,
            parameter.SCALED_UPPER_BOUNDS: ones,
        },
    )
    data.predictionScalerData = scaler(
        melonpy.SCALER_TYPE.STANDARD, {parameter.MEAN: [0.0], parameter.STD_DEV: [1.0]}
    )
    model = cls()
    model.load_model(data)
    return model


def predictive_probability(problem, x):
    """Phi(mu / sqrt(1 + v)) with v = 1 - |A k|^2 written by hand: A a lower triangle.

    The form in which MAiNGO did best: a sum of squares instead of the quadratic form k.S k.
    """
    kernel = []
    for z in problem["X"]:
        scaled = [(a - b) / length for a, b, length in zip(x, z, problem["lengths"], strict=True)]
        kernel.append(maingopy.covar_sqrexp(sum(maingopy.sqr(s) for s in scaled)))
    mean = sum(t * k for t, k in zip(problem["weights"], kernel, strict=True))
    explained = 0.0
    for row in problem["factor"]:
        terms = [a * k for a, k in zip(row, kernel, strict=True) if a != 0.0]
        explained = explained + maingopy.sqr(sum(terms))
    variance = maingopy.max(1.0 - explained, 0.0)
    return 0.5 + 0.5 * maingopy.erf(mean / maingopy.sqrt(2.0 * (1.0 + variance)))


class Model(maingopy.MAiNGOmodel):
    def __init__(self, problem, quantity):
        maingopy.MAiNGOmodel.__init__(self)
        self.problem = problem
        self.quantity = quantity
        self.gp = gaussian_process(problem, melonpy.GaussianProcess)

    def get_variables(self):
        bounds = zip(self.problem["lower"], self.problem["upper"], strict=True)
        return [
            maingopy.OptimizationVariable(
                maingopy.Bounds(low, high), maingopy.VT_CONTINUOUS, f"x{j}"
            )
            for j, (low, high) in enumerate(bounds)
        ]

    def evaluate(self, variables):
        result = maingopy.EvaluationContainer()
        if self.quantity == "mean":
            result.objective = self.gp.calculate_prediction_reduced_space(variables)
        elif self.quantity in ("lcb", "ei"):
            mean = self.gp.calculate_prediction_reduced_space(variables)
            variance = self.gp.calculate_variance_reduced_space(variables)
            std = maingopy.sqrt(maingopy.max(variance, 1e-16))
            if self.quantity == "lcb":
                result.objective = maingopy.af_lcb(mean, std, self.problem["beta"])
            else:
                result.objective = -maingopy.af_ei(mean, std, self.problem["best"])
        else:
            result.objective = predictive_probability(self.problem, variables)
        return result


def check_predictions(problem):
    """Largest difference between MeLOn's mean and ours at the check points."""
    model = gaussian_process(problem, melonpy.GaussianProcessDouble)
    pairs = zip(problem["checks"], problem["check_mean"], strict=True)
    gap = max(abs(model.calculate_prediction_reduced_space(x) - mean) for x, mean in pairs)
    pairs = zip(problem["checks"], problem["check_variance"], strict=True)
    gap = max(gap, *(abs(model.calculate_variance_reduced_space(x) - v) for x, v in pairs))
    if not gap <= AGREEMENT:
        raise SystemExit(f"MeLOn's GP predicts otherwise: largest difference {gap:.3g}")
    return gap


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("problem", type=Path)
    parser.add_argument("result", type=Path)
    parser.add_argument("--quantity", choices=["mean", "probability", "lcb", "ei"], default="mean")
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--tol", type=float, default=0.01)
    arguments = parser.parse_args()
    problem = json.loads(arguments.problem.read_text())
    disagreement = check_predictions(problem)
    start = time.perf_counter()
    model = Model(problem, arguments.quantity)  # MAiNGO keeps no reference of its own
    solver = maingopy.MAiNGO(model)
    options = {
        "epsilonA": arguments.tol,
        "epsilonR": 1e-9,
        "maxTime": arguments.seconds,
        "loggingDestination": int(maingopy.LOGGING_NONE),
        "writeResultFile": False,
    }
    for name, value in options.items():
        solver.set_option(name, value)
    solver.solve()
    attained = solver.get_objective_value() if solver.get_UBP_count() else math.nan
    result = {
        "seconds": solver.get_wallclock_solution_time(),
        "cpu_seconds": solver.get_cpu_solution_time(),
        "seconds_with_setup": time.perf_counter() - start,
        "status": str(solver.get_status()).rpartition(".")[2],
        "lower": solver.get_final_LBD(),
        "attained": attained,
        "gap": solver.get_final_abs_gap(),
        "iterations": int(solver.get_iterations()),
        "limit": arguments.seconds,
        "disagreement": disagreement,
    }
    arguments.result.write_text(json.dumps(result))


if __name__ == "__main__":
    main()
