"""The picture of docs/methods.md: lower bounds of a 1-D mean by both families.

    .venv/bin/python docs/make_methods_picture.py [file]

writes docs/pictures/methods.png (or the file given). Needs matplotlib, no screen.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import gpcert
from gpcert.enclosures import Evaluation, LocalPosterior
from gpcert.enclosures.goals import QuantityGoal
from gpcert.kernels import SquaredExponential
from gpcert.numerics.arrays import Backend
from gpcert.paper.method import PaperMethod
from gpcert.paper.relaxation import sign_multipliers
from gpcert.plots.axes import ACCENT, DARK
from gpcert.quantities import Mean
from gpcert.testing.arb_reference import regression_posterior

FILE = Path(__file__).parent / "pictures" / "methods.png"
DPI = 110
LOW, HIGH = -1.2, 1.2


def model() -> gpcert.Posterior:
    """Nine points of a curve, fitted with a little noise."""
    points = np.linspace(-2.0, 2.0, 9)[:, None]
    targets = np.sin(2.5 * points[:, 0]) + 0.4 * points[:, 0] ** 2
    return regression_posterior(SquaredExponential(0.8), points, targets[None], 3e-2)


def lower_functions(
    posterior: gpcert.Posterior, low: float, high: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[float, float]]:
    """Places, the paper's and Taylor's lower function there, and the proved minima of both."""
    region = gpcert.Box([low], [high])
    local = LocalPosterior.build(posterior, region, Backend(), variance=False)
    evaluation = Evaluation(local, region.root(), optional=False)
    x = np.linspace(low, high, 200)

    intervals = PaperMethod("analytic").of(evaluation)
    (relaxation,) = [program.relaxation for program in intervals.programs]
    y, z = sign_multipliers(posterior.weights)
    flat = y @ relaxation.under.intercept[0] - z @ relaxation.over.intercept[0]
    g, c = (y @ relaxation.under.slopes[0] - z @ relaxation.over.slopes[0])[0]
    e = (x - float(evaluation.cells.center[0, 0])) / float(relaxation.lifted.unit[0])
    paper = float(flat[0]) + g * e + c * e * e

    below = evaluation.mean(0).below
    d = (x - float(evaluation.cells.center[0, 0])) * float(local.kernel.inverse_length[0])
    value = below.value[0] + below.gradient[0, 0] * d + 0.5 * below.hessian[0, 0, 0] * d**2
    taylor = (value - below.error[0]) * np.exp(-below.rate * d**2)
    proved = (
        float(intervals.mean(0, 1).bound[0]),
        float(QuantityGoal(Mean(0, 1)).bound(evaluation, None).lower[0]),
    )
    return x, paper, taylor, proved


def draw(axes: Axes, posterior: gpcert.Posterior, cells: list[tuple[float, float]]) -> None:
    """The mean and both lower functions on every cell."""
    x = np.linspace(LOW, HIGH, 400)
    mean = posterior.predict(x[:, None])[0][:, 0]
    axes.plot(x, mean, color="black", linewidth=1.6, label="mean of the GP")
    for number, (low, high) in enumerate(cells):
        at, paper, taylor, proved = lower_functions(posterior, low, high)
        looks = (("paper: lines", paper, ACCENT, "--"), ("Taylor", taylor, DARK, "-"))
        for (name, values, colour, style), bound in zip(looks, proved, strict=True):
            label = f"{name}, below the mean" if number == 0 else None
            axes.plot(at, values, color=colour, linestyle=style, linewidth=1.4, label=label)
            label = f"{name}, proved minimum" if number == 0 else None
            axes.hlines(bound, low, high, color=colour, linestyle=":", linewidth=1.2, label=label)
        if number:
            axes.axvline(low, color="#777777", linewidth=0.8)
    axes.set_xlim(LOW, HIGH)
    axes.set_xlabel("x")


def picture() -> Figure:
    """One box on the left, two on the right."""
    posterior = model()
    figure = Figure(figsize=(9.0, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    draw(left, posterior, [(LOW, HIGH)])
    middle = 0.5 * (LOW + HIGH)
    draw(right, posterior, [(LOW, middle), (middle, HIGH)])
    left.set_title("one box")
    right.set_title("after one split")
    left.set_ylabel("latent mean")
    left.set_ylim(-6.0, 2.5)
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return figure


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else FILE
    target.parent.mkdir(parents=True, exist_ok=True)
    picture().savefig(target, dpi=DPI)
