"""Results to make pages of: several figures and tables, texts that must be escaped."""

from __future__ import annotations

import io
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from gpcert.study.experiments.results import (
    Environment,
    ExperimentResult,
    Finding,
    ResultFigure,
    ResultTable,
)

NASTY = """<script>document.title = "broken"</script> & "quotes" 'too' | `pipes` *stars*"""


def write_results(folder: Path) -> list[ExperimentResult]:
    """Two experiments with their files in the folder."""
    made = [_radii(), _long()]
    for result in made:
        result.write(folder / result.experiment)
        for figure in result.figures:
            for ending in ("svg", "png"):
                path = folder / result.experiment / f"{figure.name}.{ending}"
                path.write_bytes(_drawing(figure.name, ending))
    return made


def _radii() -> ExperimentResult:
    rng = np.random.default_rng(0)
    radii = ResultTable.of(
        "radii",
        "Proved radii",
        [
            {
                "data": data,
                "epochs": epochs,
                "radius": float(rng.random() / 3),
                "upper": np.inf if epochs == 40 else 0.5,
                "proved": epochs < 40,
            }
            for data in ("Synthetic2D", "SPAM", NASTY)
            for epochs in (10, 40, 100)
        ],
    )
    few = ResultTable("few", "", ("what", "value"), (("a text", None), ("b", 1.0)))
    return ExperimentResult(
        "radii",
        f"Radii {NASTY}",
        "quick",
        "gpcert reproduce radii --quick",
        {"epochs": [10, 40, 100]},
        _environment(),
        75.25,
        (radii, few),
        (
            ResultFigure("curve", f"Curve {NASTY}", ("radii", "few")),
            ResultFigure("b", "B", ("few",)),
        ),
        (
            Finding("it rises", "by 5", "by 3 (2 to 4)", "no", NASTY, why="unexplained"),
            Finding("it falls", "yes", "yes", "yes"),
            Finding("it stays", "1", "1 (-1 to 3)", "unclear", "interval holds 0"),
            Finding("it turns", "1", "1 (-1 to 3)", "unclear", "interval holds 0", beyond=True),
        ),
        (NASTY, "a second note"),
    )


def _long() -> ExperimentResult:
    columns = tuple(f"a column with a long name, number {k}" for k in range(14))
    rows = tuple(tuple(float(j * k) / 7 for k in range(14)) for j in range(250))
    return ExperimentResult(
        "long-table",
        "A long table",
        "full",
        "gpcert reproduce long-table --full --data DIR " + "averylongword" * 20,
        {},
        _environment(),
        7300.0,
        (ResultTable("long", "Many rows and columns", columns, rows),),
        (ResultFigure("curve", "The same name as another", ("long",)),),
    )


def _environment() -> Environment:
    return Environment(
        gpcert="0.1.0",
        python="3.11.7",
        numpy="2.4.6",
        scipy="1.17",
        sklearn="1.9.1",
        machine="Linux x86_64",
        cpu="a cpu",
        cores=2,
        data={"spam": "9ca0789c33a486422a34ffe226148dcca2e546b0eecaae07a93bf07d29e34c87"},
        random_state=0,
        date="2026-01-01",
    )


@cache
def _drawing(name: str, ending: str) -> bytes:
    figure = pytest.importorskip("matplotlib.figure").Figure(figsize=(5, 3))
    figure.add_subplot(title=name).plot([0, 2, 1, 3])
    content = io.BytesIO()
    figure.savefig(content, format=ending)
    return content.getvalue()
