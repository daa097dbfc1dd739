"""Images: effects of pixels, and how few pixels flip the decision, against LIME (Fig. 6)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import gpcert
from gpcert.certificates.text import below
from gpcert.explain import effects, pixel_budget
from gpcert.plots.axes import new_figure
from gpcert.plots.curves import plot_gaps
from gpcert.plots.explanations import plot_heat_map
from gpcert.study.datasets import Dataset
from gpcert.study.experiments.base import Piece, Rows, Sources, Tables, class_label, labelled
from gpcert.study.experiments.fits import LIMES, Case, image_shape, limes, trained
from gpcert.study.experiments.pictures import shared_legend
from gpcert.study.experiments.results import Finding, ResultFigure, ResultTable, answer, bootstrap
from gpcert.utils.optional_imports import Axes, Figure

OURS, EVERY = "effects", "effects, constant pixels too"
ROWS = ("image", "effect", "smallest gap", "adversarial")


@dataclass(frozen=True)
class Settings:
    """One test image per class that the model gets right; pixels move by at most `radius` within
    [0, 1]; `boxes` bound the search for all effects of an image, `gap_boxes` that for one gap.

    Pixels that never vary in the training images rank last in "effects": their length-scales are
    where training started, so that their effects say nothing about the data; a second ranking has
    them where their effects put them."""

    cases: tuple[Case, ...]
    train: int = 1000
    images: int = 3
    radius: float = 0.5
    betas: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    samples: int = 5000
    tol: float = 0.01
    boxes: int = 200_000
    gap_boxes: int = 150
    random_state: int = 0


def pieces(settings: Settings) -> list[Piece]:
    """One per image, each with its model, trained anew: minutes each."""
    return [
        Piece(f"{case.data}-{image}", {"case": k, "image": image}, (case.data,))
        for k, case in enumerate(settings.cases)
        for image in range(settings.images)
    ]


def compute(settings: Settings, arguments: Mapping[str, Any], sources: Sources) -> Rows:
    """Effects, both versions of LIME, and the gaps by the order that each gives."""
    case, data, model = trained(settings, arguments, sources, None, likelihood="softmax")
    right = model.predict(data.X_test) == data.y_test
    label = data.classes[arguments["image"]]
    i = int(np.flatnonzero(right & (data.y_test == label))[0])  # the first that it gets right
    head = {"data": case.data, "image": arguments["image"], "label": label}
    for table, row in _image(settings, model, data, i):
        yield table, {**head, **row}


def _image(settings: Settings, model: Any, data: Dataset, i: int) -> Rows:
    x, label = data.X_test[i], data.y_test[i]
    k = list(model.classes_).index(label)
    around = {"radius": settings.radius, "domain": (0.0, 1.0)}
    budget = gpcert.Budget(seconds=None, boxes=settings.boxes)
    bounds = effects(model, x, tol=settings.tol, budget=budget, **around).of(label)
    every = bounds.values[0, 0]
    varies = np.ptp(data.X_train, axis=0) > 0.0
    values = {OURS: np.where(varies, every, 0.0), EVERY: every}
    values |= limes(model, k, x, data, settings, image=True)
    betas = [beta for beta in settings.betas if beta <= x.size]
    limits = gpcert.Budget(seconds=None, boxes=settings.gap_boxes)
    flipped = None
    for name, v in values.items():
        how: Any = {"ranking": by_size(v), "tol": settings.tol, "budget": limits}
        curve = pixel_budget(model, x, betas, **how, **around)
        flipped = curve.adversarial if name == OURS else flipped
        known = {"proved up to": curve.safe_beta, "flips at": curve.least_beta}
        yield "budgets", {"ranking": name, **known, "boxes": curve.boxes}
        for beta, low, high in zip(curve.betas, curve.lower, curve.upper, strict=True):
            ends = {"lower": float(low), "upper": float(high)}
            yield "gaps", {"ranking": name, "beta": beta, **ends}
    for j in range(x.size):
        row = {"pixel": j, "value": float(x[j])}
        row |= {f"effect {end}": float(getattr(bounds, end)[0, 0, j]) for end in ("lower", "upper")}
        row["varies"] = bool(varies[j])
        row |= {name: float(values[name][j]) for name in LIMES}
        yield "pixels", {**row, "adversarial": None if flipped is None else float(flipped[j])}


def by_size(values: np.ndarray) -> list[int]:
    """Pixels, the largest value in size first."""
    return np.argsort(-np.abs(values), kind="stable").tolist()


def findings(tables: Tables) -> Iterator[Finding]:
    """Gaps and numbers of pixels, ours against each version of LIME."""
    for name in LIMES:
        yield _gaps(tables, name)
        yield from _numbers(tables, name)


def _gaps(tables: Tables, name: str) -> Finding:
    """Pairs of gaps whose proved bounds are apart settle who over-estimates."""
    pairs = _pairs(tables["gaps"], name)
    above = sum(lime["lower"] > ours["upper"] for ours, lime in pairs)
    below = sum(lime["upper"] < ours["lower"] for ours, lime in pairs)
    return Finding(
        f"{name} over-estimates robustness, for each image and number of pixels",
        "for all six images and all numbers",
        f"gap proved larger than ours in {above} of {len(pairs)} pairs, proved smaller in {below}",
        answer(above == len(pairs), below),
        "no if one gap is proved smaller; yes if all are proved larger",
    )


def _numbers(tables: Tables, name: str) -> Iterator[Finding]:
    """Pixels to an adversarial image: what is proved about the ratio, and its median."""
    least, most = [], []
    for ours, lime in _pairs(tables["budgets"], name):
        own, other = (np.inf if r["flips at"] is None else r["flips at"] for r in (ours, lime))
        least.append(_more(lime["proved up to"]) / own)
        most.append(other / _more(ours["proved up to"]))
    yield Finding(
        f"{name} needs more than three times as many pixels in some cases",
        "in two of six images",
        f"proved at least {', '.join(map(below, least))} times as many "
        "(0: our effects lead to no adversarial image)",
        answer(max(least) > 3, max(most) <= 3),
    )
    yield Finding(
        f"{name} needs more pixels than our effects",
        "for every image",
        f"median of the proved ratios {bootstrap(least)} over {len(least)} images",
        answer(min(least) > 1, min(most) <= 1),
        "yes: proved for every image; no: refuted for one",
    )


def _pairs(table: ResultTable, name: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Our row and LIME's, image by image (and beta by beta): both rankings have all in order."""
    ours, lime = (table.where(ranking=each).records() for each in (OURS, name))
    return list(zip(ours, lime, strict=True))


def _more(count: Any) -> int:
    """The fewest pixels that could flip the decision, from what is proved not to."""
    return 1 if count is None else int(count) + 1


def draw(tables: Tables) -> Figure:
    """Per image: itself, its effects, the gaps, and the adversarial image with fewest pixels."""
    images = tables["pixels"].groups("data", "image", "label")
    figure = new_figure(max(5.0, 2.3 * len(images)), 6.6, layout="compressed")
    axes = figure.subplots(4, len(images), squeeze=False)
    for column, ((data, image, label), pixels) in zip(axes.T, images.items(), strict=True):
        gaps, budgets = (tables[name].where(data=data, image=image) for name in ("gaps", "budgets"))
        _column(column, pixels, gaps, budgets)
        column[0].set_title(f"{labelled(data)}: {class_label(data, label)}", fontsize="medium")
    for ax, text in zip(axes[:, 0], ROWS, strict=True):
        ax.set_ylabel(text)
    for ax in axes[2, 1:]:
        ax.set_ylabel("")
    return shared_legend(figure, columns=2 if len(images) <= 3 else 4)


def _column(axes: Any, pixels: ResultTable, gaps: ResultTable, budgets: ResultTable) -> None:
    shape = image_shape(len(pixels.rows))
    image, low, high = map(pixels.numbers, ("value", "effect lower", "effect upper"))
    _grey(axes[0], image, shape)
    effect = np.where(pixels.column("varies"), 0.5 * (low + high), 0.0)
    plot_heat_map(axes[1], effect, shape, label="", image=image)
    rankings = gaps.groups("ranking").items()
    curves: Any = [(r, *map(own.numbers, ("beta", "lower", "upper"))) for r, own in rankings]
    plot_gaps(axes[2], curves)
    betas = sorted(set(gaps.column("beta")))
    axes[2].set_xscale("log", base=2)
    axes[2].set_xticks(betas, labels=[str(beta) for beta in betas])
    axes[2].minorticks_off()
    axes[2].set_box_aspect(1)
    axes[2].set_xlabel("pixels that may change", fontsize="small")
    flipped = pixels.numbers("adversarial")
    if np.isnan(flipped[0]):
        axes[3].set_axis_off()
        axes[3].set_box_aspect(1)
        tried = max(betas)
        told = f"none found:\nany {tried} pixels of this order\nleave the decision as it is"
        axes[3].text(0.5, 0.5, told, ha="center", va="center", fontsize="small")
        return
    _grey(axes[3], flipped, shape)
    count = budgets.where(ranking=OURS).column("flips at")[0]
    axes[3].set_title(f"pixels changed: {count}", fontsize="small")


def _grey(ax: Axes, image: np.ndarray, shape: tuple[int, int]) -> None:
    ax.imshow(image.reshape(shape), cmap="gray", vmin=0.0, vmax=1.0)
    ax.set(xticks=[], yticks=[])


TITLE = "Images: effects of pixels, and how few of them flip the decision, against LIME"
SETTINGS = {
    "smallest": Settings(
        (Case("digits358", 1),), 20, 1, 0.5, (1, 2), samples=100, tol=0.1, boxes=64, gap_boxes=1
    ),
    "quick": Settings((Case("digits358"),), train=250, samples=1000, gap_boxes=50),
    "full": Settings((Case("mnist358"), Case("fashion-tsp"))),
}
VARIANTS = {"scripts": {"train": 500}}
REASONS = {
    f"{name} over-estimates": "Effects one by one are no good order for many pixels (8 to 32)."
    for name in LIMES
} | {
    "LIME (package) needs more pixels": "At two garments one pixel is enough by either order.",
    "LIME (scripts) needs more pixels": "At the five the first four pixels by effects do not flip "
    "the decision, the first four by LIME do.",
}
CAPTIONS = {
    "budgets": "Pixels, the most important first by each ranking: proved not to flip the "
    "decision up to, known to flip it at (empty: not within the numbers tried)",
    "gaps": "Proved bounds of the smallest gap, by pixels",
    "pixels": "Images, effects, weights, adversarial images",
}
FIGURE = ResultFigure(
    "images",
    "Per column a test image; the effect of each pixel on the probability of its class "
    "(red raises it, blue lowers it; pixels that never vary in training are left out); bounds of "
    "the smallest gap when the most important pixels are free, by four rankings; the adversarial "
    "image with the fewest pixels that the effects lead to",
    ("pixels", "gaps", "budgets"),
)
NOTES = (
    "One test image of each class, the first in random order that the model gets right.",
    "Pixels move by at most 0.5 within [0, 1], the step of the published scripts; softmax "
    "Laplace, 10 epochs, 1000 training images (the scripts: 500).",
    "The gap at a number of pixels is the smallest over all values of these pixels, enclosed, "
    "not that of one attack; both bounds are proved.",
    "Pixels are ranked by their effects one by one. Those that never vary in the training images "
    "keep the length-scale that training started at, and all of them together only make the model "
    "unsure: they rank last. The ranking with them in the place of their effects is shown beside.",
    "LIME as in interpretability-global; in the version of the scripts black pixels have the "
    "weight 0, so that it ranks them last.",
)
