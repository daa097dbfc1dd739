"""An experiment that costs nothing and counts how often its pieces are computed."""

from dataclasses import dataclass

import pytest

from gpcert.study.experiments.base import Piece
from gpcert.study.experiments.results import Finding, ResultFigure

COMPUTED = []
FAILS = {}
"""What happens instead of the result, by piece."""


@dataclass(frozen=True)
class Settings:
    count: int


def pieces(settings):
    return [Piece(f"p{k}", {"k": k}, ("digits38",)) for k in range(settings.count)]


def compute(settings, arguments, sources):
    k = arguments["k"]
    COMPUTED.append(k)
    if k in FAILS:
        FAILS[k]()
    yield "squares", {"k": k, "square": k * k, "dim": sources.load("digits38").dim}


def findings(tables):
    total = sum(tables["squares"].column("square"))
    return [Finding("squares are positive", "yes", str(total), "yes" if total > 0 else "no")]


def draw(tables):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    figure.subplots().plot(tables["squares"].column("square"))
    return figure


TITLE = "Squares"
SETTINGS = {"smallest": Settings(2), "quick": Settings(4), "full": Settings(6)}
CAPTIONS = {"squares": "Squares"}
FIGURE = ResultFigure("curve", "Squares", ("squares",))
