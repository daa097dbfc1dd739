"""Shapes in annotations are checked while these tests run, and what is wrong is noticed."""

import ast
import re
import sys
from pathlib import Path
from textwrap import dedent
from typing import get_origin

import numpy as np
import pytest

from gpcert import arrays
from gpcert.regions import Box, Cells
from tests.shapes import ShapeError, checked, fit, install

MODULE = """
    from __future__ import annotations
    from dataclasses import dataclass
    from functools import cached_property
    from typing import Annotated, Any, NamedTuple
    Array = Any
    PerCell = Annotated[Array, "B"]

    @dataclass(frozen=True)
    class Model:
        value: PerCell
        gradient: Annotated[Array, "B f"]

        def shifted(self, by: PerCell | None = None) -> Model:
            return self if by is None else Model(self.value + by, self.gradient)

        @cached_property
        def right(self) -> PerCell:
            return self.value

        @property
        def wrong(self) -> PerCell:
            return self.gradient

    class Pair(NamedTuple):
        a: PerCell
        b: PerCell

    def both(x: Annotated[Array, "... f"], y: Annotated[Array, "f"]) -> tuple[Array, PerCell]:
        return x, y

    def plain(x: Array) -> Array:
        return x
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    (tmp_path / "shaped_case.py").write_text(dedent(MODULE), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    install("shaped_case")
    import shaped_case

    yield shaped_case
    del sys.modules["shaped_case"]


def test_letters_mean_one_length_throughout_a_call(module):
    model = module.Model(np.zeros(3), np.zeros((3, 2)))
    assert model.shifted(np.ones(3)).right.shape == (3,)
    assert model.shifted() is model
    with pytest.raises(ShapeError, match=r"Model.shifted\(by\): expected \(B\) with .*'B': 3"):
        model.shifted(np.ones(2))
    with pytest.raises(ShapeError, match=r"result of Model.wrong: expected an array \(B\)"):
        _ = model.wrong
    with pytest.raises(ShapeError, match=r"Model.gradient"):
        module.Model(np.zeros(3), np.zeros((2, 2)))
    with pytest.raises(ShapeError, match=r"Pair.b"):
        module.Pair(np.zeros(3), np.zeros(2))
    assert module.Pair(np.zeros(3), np.zeros(3)).b.shape == (3,)


def test_leading_axes_and_tuples(module):
    module.both(np.zeros((4, 3, 2)), np.zeros(2))
    with pytest.raises(ShapeError, match=r"both\(y\)"):
        module.both(np.zeros((4, 3, 2)), np.zeros(3))
    with pytest.raises(ShapeError, match="got float"):
        module.both(np.zeros((4, 2)), 1.0)
    assert checked(module.plain) is module.plain


def test_numbers_mean_themselves():
    fit(np.zeros((5, 3)), "B 3", {}, "here")
    with pytest.raises(ShapeError, match="here: expected"):
        fit(np.zeros((5, 2)), "B 3", {}, "here")


def test_the_suite_checks_the_engine():
    """conftest.py at the root installs the check before anything of the engine is imported."""
    cells = Box([0.0, 0.0], [1.0, 1.0]).root()
    with pytest.raises(ShapeError, match=r"Cells.upper"):
        Cells(cells.region, cells.lower, cells.upper[:, :1])
    assert "install()" in (Path(__file__).parents[1] / "conftest.py").read_text(encoding="utf-8")


ROOMS = ("enclosures", "integrals", "kernels", "likelihoods", "quantities", "regions", "search")


def bare_arrays(room: str) -> int:
    """Public functions of a room that take or return an array and name no shape at all."""
    source, found = Path(__file__).parents[1] / "src" / "gpcert" / room, 0
    for file in source.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
                own = [*node.args.args, *node.args.kwonlyargs]
                hints = [each.annotation for each in own] + [node.returns]
                words = set(re.findall(r"\w+", " ".join(ast.unparse(h) for h in hints if h)))
                found += bool({"Array", "ndarray"} & words) and not NAMED & words
    return found


NAMED = {"Annotated", *(name for name in vars(arrays) if get_origin(vars(arrays)[name]))}

BEFORE = {
    "enclosures": 110,
    "integrals": 23,
    "kernels": 262,
    "likelihoods": 56,
    "quantities": 60,
    "regions": 42,
    "search": 19,
}


@pytest.mark.parametrize("room", ROOMS)
def test_new_functions_name_the_shapes_of_their_arrays(room):
    """The numbers only fall: of functions written before shapes were named."""
    assert bare_arrays(room) <= BEFORE[room]
