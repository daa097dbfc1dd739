"""Many boxes in one call, and what a model costs before its first box; see results/scale.md.

    python benchmarks/scale.py [--boxes 16384] [--sizes 1000 4000 8000] [--backend numpy]
                               [--mean 20000] [--data FOLDER] [--streamed 1000000]

Boxes: N = 1000, d = 3, squared exponential, cells of a fortieth of the domain, three outputs with
hyper-parameters of their own. Beside the rate stands its target, and the width of the proved ranges
over that of 200 sampled points a box (a physical limit: below 1 is impossible, but for sampling).
Points (with --data): a thousand test points decided in one call. Streamed: a million boxes to a
file, killed on the way and gone on with, and their memory (`benchmarks/many.py`).
Set-up: norms, excess and precisions of an exact regressor beside scikit-learn's fit of it, and of a
file of it; the mean alone of more points.
"""

from __future__ import annotations

import os
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from many import many_points, streamed
from report import Section, command_line, merge
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

import gpcert
from gpcert.enclosures import LocalPosterior
from gpcert.kernels import SquaredExponential
from gpcert.model.unit_form import UnitForm
from gpcert.numerics.arrays import Backend

N, D, CELL = 1000, 3, 1.0 / 40.0
LENGTHS = ((0.3, 0.4, 0.5), (0.35, 0.3, 0.6), (0.5, 0.5, 0.3))
TARGETS = {"mean": 10_000, "mean, std": 2_500}
"""Boxes a second on two cores."""


def learned_dynamics(seed: int = 0) -> list[Any]:
    """Three fitted regressors on the same points."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 1.0, (N, D))
    found = []
    for k, lengths in enumerate(LENGTHS):
        y = np.sin((4 + k) * X[:, 0]) + np.cos(5.0 * X[:, 1] * X[:, 2])
        gp = GaussianProcessRegressor(1.5 * RBF(lengths), alpha=1e-2, optimizer=None)
        found.append(gp.fit(X, y))
    return found


def sampled_width(models: list[Any], low: np.ndarray, quantity: str, boxes: int = 40) -> np.ndarray:
    """(boxes, outputs): largest less smallest value at 200 points and the corners of each box."""
    rng = np.random.default_rng(1)
    corners = np.stack(np.meshgrid(*[[0.0, 1.0]] * D), axis=-1).reshape(-1, D)
    places = np.concatenate([rng.random((200, D)), corners])
    widths = np.empty((boxes, len(models)))
    for b in range(boxes):
        X = low[b] + CELL * places
        for o, gp in enumerate(models):
            mean, std = gp.predict(X, return_std=True)
            widths[b, o] = np.ptp(mean if quantity == "mean" else std)
    return widths


def many_boxes(count: int, backend: str, jobs: list[int]) -> Section:
    """Rates of one call, the model's set-up included."""
    section = Section("boxes", f"Boxes a second: N = {N}, d = {D}, cells 1/40, three outputs")
    section.notes.append("per CPU second: of one process alone; targets: per second on two cores")
    section.notes.append("rates per second are those beside all other work (see load_average)")
    fits = learned_dynamics()
    models = [gpcert.as_posterior(each) for each in fits]
    low = np.random.default_rng(2).uniform(0.0, 1.0 - CELL, (count, D))
    for name, target in TARGETS.items():
        quantity: Any = tuple(name.split(", "))
        for n_jobs in jobs:
            ask = {"quantity": quantity, "backend": backend, "n_jobs": n_jobs}
            wall, cpu = time.perf_counter(), time.process_time()
            found = gpcert.bound_boxes(models, low, low + CELL, **ask)
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
            rows: dict[str, Any] = {"quantity": name, "backend": backend, "boxes": count}
            rows |= {"n_jobs": n_jobs, "per CPU second": count / cpu if n_jobs == 1 else None}
            rows |= {"per second": count / wall, "target": target}
            for each in quantity:
                widths = found[each][:40, :, 1] - found[each][:40, :, 0]
                ratio = np.median(widths / sampled_width(fits, low, each))
                rows[f"{each}: proved / sampled width"] = float(ratio)
            section.add(**rows)
    return section


def set_up(sizes: list[int]) -> Section:
    """Seconds of what a question of a variance needs before its first box, beside the fit."""
    title = "Set-up of a model: CPU seconds of one thread, d = 5, noise 0.01; target: ratio 1"
    section = Section("set-up", title)
    for size in sizes:
        section.add(**costs(size))
    section.notes.append("the fit is one Cholesky factorisation: hyper-parameters are given")
    section.notes.append(
        "loaded: excess of the same model from a file, which holds nothing that proves it"
    )
    section.notes.append("excess: with what norms are made of, in one pass; bind: what is left")
    section.notes.append("with conversion: what a question of a library's own model waits for")
    return section


def mean_alone(size: int) -> Section:
    """A question of the mean in bounded memory; the factor is not needed, and not made."""
    section = Section("mean", "The mean of many points: CPU seconds of one thread, d = 5")
    X = np.random.default_rng(size).uniform(0.0, 1.0, (size, 5))
    kernel = SquaredExponential([0.5] * 5, 1.5)
    model = gpcert.Posterior(kernel, X, np.random.default_rng(0).normal(size=size))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    norms, _ = timed(lambda: model.unit.norms)
    box = gpcert.Box(np.full(5, 0.4), np.full(5, 0.42))
    ask, found = timed(lambda: gpcert.prediction_range(model, box, quantity="mean", tol=1e6))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    row = {"N": size, "norms": norms, "one range": ask, "boxes": found.boxes}
    section.add(**row, **{"peak GB": peak, "peak before GB": before})
    return section


def costs(size: int) -> dict[str, float]:
    """Of one model; `target`: at most the fit's time."""
    X = np.random.default_rng(size).uniform(0.0, 1.0, (size, 5))
    gp = GaussianProcessRegressor(1.5 * RBF([0.5] * 5), alpha=1e-2, optimizer=None)
    fit, _ = timed(lambda: gp.fit(X, np.sin(4 * X[:, 0]) + X[:, 1]))
    convert, model = timed(lambda: gpcert.as_posterior(gp))
    alone, _ = timed(lambda: UnitForm.of(model).norms)
    unit, region = model.unit, gpcert.Box(np.zeros(5), np.ones(5))
    excess, _ = timed(lambda: (unit.excess, unit.gain))  # in the order of a question
    norms, _ = timed(lambda: unit.norms)
    rest, _ = timed(lambda: LocalPosterior.build(model, region, Backend(), variance=True))
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.npz")
        again = gpcert.Posterior.load(Path(folder) / "model.npz")
    loaded, _ = timed(lambda: again.unit.excess)
    assert again.unit.excess == unit.excess
    found = {"N": size, "threads": int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1))}
    found |= {"fit": fit, "conversion": convert, "norms alone": alone, "excess": excess}
    own = norms + rest
    found |= {"bind": own, "set-up / fit": (own + excess) / fit, "mean's / fit": alone / fit}
    found |= {"loaded": loaded, "loaded / fit": (own + loaded) / fit}
    found |= {"with conversion / fit": (convert + own + excess) / fit}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return found | {"excess found": float(unit.excess), "peak GB": peak}


def timed(work: Any) -> tuple[float, Any]:
    """CPU seconds, and what came of them."""
    start = time.process_time()
    found = work()
    return time.process_time() - start, found


def main() -> None:
    """The tables that are asked for."""
    parser = command_line(__doc__)
    parser.add_argument("--boxes", type=int, default=16384)
    parser.add_argument("--jobs", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--sizes", type=int, nargs="*", default=[1000, 4000, 8000])
    parser.add_argument("--mean", type=int, default=20000, help="points of section mean")
    parser.add_argument("--backend", default="numpy")
    parser.add_argument("--points", type=int, default=1000)
    parser.add_argument("--data", type=Path, help="folder of spambase and MNIST: section points")
    parser.add_argument("--cache", type=Path, help="folder where fits are kept")
    parser.add_argument("--streamed", type=int, default=0, help="boxes of section streamed")
    options = parser.parse_args()
    if options.boxes:
        section = many_boxes(options.boxes, options.backend, options.jobs)
        merge(options.results, section, "boxes", "scale")
    if options.data is not None:
        section = many_points(options.points, options.data, options.cache)
        merge(options.results, section, "points", "scale")
    if options.streamed:
        merge(options.results, streamed(options.streamed), "streamed", "scale")
    if options.mean:
        merge(options.results, mean_alone(options.mean), "mean", "scale")
    if options.sizes:
        merge(options.results, set_up(options.sizes), "set-up", "scale")


if __name__ == "__main__":
    main()
