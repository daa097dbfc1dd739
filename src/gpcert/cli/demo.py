"""`gpcert demo`: a complete example on data that needs no download."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import gpcert
from gpcert.cli.options import command
from gpcert.cli.terminal import above, below, cells, console, option, say, say_written, table
from gpcert.cli.verbs import RADIUS_COLUMNS, radius_cells
from gpcert.utils.optional_imports import optional

if TYPE_CHECKING:
    import numpy as np

    from gpcert.certificates.record import RecordTable
    from gpcert.study.datasets import Dataset

T = TypeVar("T", bound="RecordTable[Any]")

PIXELS = (0.0, 1.0)
IMAGES = 3
"""Number of digits whose radius is computed and drawn."""


@command(
    "demo",
    "Examples:",
    "gpcert demo",
    "gpcert demo --quick --output-dir /tmp/demo",
    "The picture is demo.png; the results are JSON files beside it (gpcert.load).",
)
def demo(
    output_dir: Annotated[
        Path, option("folder for the picture and the results; made if missing")
    ] = Path("demo_output"),
    seconds: Annotated[float, option("time for one search")] = 1.0,
    quick: Annotated[bool, option("fewer training points, fewer rows", "--quick")] = False,
) -> None:
    """Fit two classifiers, bound their predictions around test points, and draw the results."""
    from threadpoolctl import threadpool_limits

    start = time.perf_counter()
    optional("matplotlib", "the demo's picture")  # checked before the computation
    output_dir.mkdir(parents=True, exist_ok=True)
    # BLAS threads do not pay for matrices of some hundred rows
    with threadpool_limits(limits=1):
        written = _run(output_dir, gpcert.Budget(seconds=seconds), quick)
    say(f"done in {time.perf_counter() - start:.1f} s")
    say_written(*written)


def _run(output_dir: Path, budget: gpcert.Budget, quick: bool) -> list[Path]:
    """Run both problems; returns the written files."""
    import numpy as np

    count = 4 if quick else 8
    plane = study(
        gpcert.study.datasets.synthetic2d(n=60 if quick else 250),
        (0.15, 0.4),
        count + 2,
        None,
        budget,
    )
    _show(plane)
    images_of = gpcert.study.datasets.digits((3, 8), test_size=0.8 if quick else 0.3)
    digits = study(images_of, (0.05, 0.1), count, PIXELS, budget)
    _show(digits)
    # the most certain ones: their counter-examples differ visibly
    certainty = np.abs(digits.posterior.prediction(digits.data.X_test[digits.chosen])[:, 0] - 0.5)
    images = [digits.chosen[k] for k in np.argsort(-certainty)[:IMAGES]]
    options: Any = {"domain": PIXELS, "budget": budget, "progress": False}
    radii = whole(
        gpcert.certified_radius_many(digits.posterior, digits.data.X_test[images], **options)
    )
    title = f"{digits.data.name}: certified l_inf radii, all 64 pixels, domain [0, 1]"
    draw(output_dir / "demo.png", plane, digits, images, radii)
    tables = {
        "synthetic2d.json": plane.certificates,
        "digits.json": digits.certificates,
        "ranges.json": gpcert.RangeTable(tuple(plane.ranges + digits.ranges)),
        "radii.json": gpcert.RadiusTable(radii.rows, labels=tuple(images)),
    }
    for name, each in tables.items():
        each.save(output_dir / name)
    rows = table(title, ["point", *RADIUS_COLUMNS])
    for name, item in zip(images, radii, strict=True):
        rows.add_row(str(name), *radius_cells(item))
    console().print(rows)
    return [output_dir / name for name in ("demo.png", *tables)]


def _show(done: Study) -> None:
    import numpy as np

    parameters = done.posterior.kernel.config().items()
    kernel = ", ".join(f"{name} {np.round(value, 3)}" for name, value in parameters)
    say(
        f"{done.data.name}: {len(done.data.X_train)} training points, {done.data.dim} features, "
        f"test accuracy {100 * done.accuracy:.1f} %, {kernel}",
        style="bold",
    )
    second = (done.posterior.classes or (0, 1))[1]
    title = f"{done.data.name}: is the decision the same in the whole l_inf ball?"
    first = ["point", "decision", "radius", "status", "boxes", "ms"]
    rows = table(title, [*first, f"proved range of p({second})", "boxes", "ms"])
    names = done.chosen * len(done.radii)
    for name, c, r in zip(names, done.certificates, done.ranges, strict=True):
        rows.add_row(
            str(name),
            *cells(c, "decision"),
            f"{c.region['radius']:g}",
            *cells(c, "status boxes ms"),
            f"\\[{below(r.minimum.lower)}, {above(r.maximum.upper)}]",
            *cells(r, "boxes ms"),
        )
    console().print(rows)


@dataclass(frozen=True, eq=False)
class Study:
    """Certificates and ranges of chosen test points, radius after radius."""

    data: Dataset
    posterior: gpcert.Posterior
    accuracy: float
    chosen: list[int]
    radii: tuple[float, ...]
    certificates: gpcert.CertificateTable
    ranges: list[gpcert.PredictionRange]


def study(
    data: Dataset, radii: tuple[float, ...], count: int, domain: Any, budget: gpcert.Budget
) -> Study:
    """Fit scikit-learn's Laplace classifier, certify `count` of its test points at each radius."""
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    model = GaussianProcessClassifier(ConstantKernel(10.0) * RBF(2.0), random_state=0)
    model.fit(data.X_train, data.y_train)
    posterior = gpcert.as_posterior(model)
    assert isinstance(posterior, gpcert.Posterior), "the demo's problems have two classes"
    chosen = _spread(posterior, data.X_test, count)
    points = data.X_test[chosen]
    certificates, ranges = [], []
    for radius in radii:
        options = {"domain": domain, "budget": budget, "progress": False}
        certificates += whole(gpcert.certify_many(posterior, points, radius, **options))
        ranges += whole(gpcert.prediction_range_many(posterior, points, radius, **options))
    accuracy = float(model.score(data.X_test, data.y_test))
    table = gpcert.CertificateTable(tuple(certificates))
    return Study(data, posterior, accuracy, chosen, radii, table, ranges)


def whole(table: T) -> T:
    """The table, unless Ctrl-C ended it."""
    if not table.complete:
        raise KeyboardInterrupt
    return table


def _spread(posterior: gpcert.Posterior, X: np.ndarray, count: int) -> list[int]:
    """The least certain test point, then repeatedly the one farthest from those chosen so far."""
    import numpy as np

    chosen = [int(np.argmin(np.abs(posterior.prediction(X)[:, 0] - 0.5)))]
    while len(chosen) < min(count, len(X)):
        distances = np.linalg.norm(X[:, None] - X[chosen], axis=-1).min(axis=1)
        chosen.append(int(np.argmax(distances)))
    return chosen


IMAGE_SHAPE = (8, 8)
PIXELS_PER_INCH = 110


def draw(
    path: Path, plane: Study, digits: Study, images: Sequence[int], radii: gpcert.RadiusTable
) -> None:
    """Write the picture as PNG."""
    from gpcert.plots import plot_decision_regions
    from gpcert.plots.axes import new_figure

    changed = [(k, r) for k, r in zip(images, radii, strict=True) if r.counterexample is not None]
    figure = new_figure(12.0, 5.4)
    halves: Any = figure.subfigures(1, 2, width_ratios=(1.35, 1.0), wspace=0.03)
    left, right = halves
    ax, data = left.add_subplot(), plane.data
    plot_decision_regions(ax, plane.posterior, plane.certificates, X=data.X_test, y=data.y_test)
    sizes = " and ".join(f"{radius:g}" for radius in plane.radii)
    ax.set_title(
        f"{data.name}: is the decision the same in the whole box?\n"
        f"(boxes of radius {sizes} around test points)"
    )
    if changed:
        _draw_digits(right, digits, changed)
    figure.savefig(path, dpi=PIXELS_PER_INCH)


def _draw_digits(figure: Any, digits: Study, changed: Sequence[tuple[int, gpcert.Radius]]) -> None:
    from gpcert.plots import plot_image_counterexample

    grid = figure.subplots(len(changed), 3, squeeze=False)
    first, second = digits.posterior.classes or (0, 1)
    for axes, (index, radius) in zip(grid, changed, strict=True):
        labels = (radius.decision, second if radius.decision == first else first)
        images = digits.data.X_test[index], radius.counterexample
        plot_image_counterexample(list(axes), *images, IMAGE_SHAPE, labels=labels)
        axes[0].set_ylabel(
            f"proved to {below(radius.lower)}\nrefuted at {above(radius.upper)}", fontsize="small"
        )
    grid[-1, 2].set_xlabel("purple: more ink\norange: less", fontsize="small")
    figure.suptitle(
        "Digits, all 64 pixels free:\nhow far until the decision changes?", fontsize="large"
    )
