"""Shapes in annotations are checked while these tests run, and what is wrong is noticed."""

import inspect
import re
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from textwrap import dedent
from typing import Annotated, get_origin

import numpy as np
import pytest

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

    def summed(x: Annotated[Array, "... f"], start: Annotated[Array, "..."] | float = 0.0):
        return start + x.sum(axis=-1)

    def plain(x: Array) -> Array:
        return x

    def first(x: Annotated[Array, "#"], y: Annotated[Array, "#"]) -> Annotated[Array, "#"]:
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
    assert module.summed(np.zeros((4, 3, 2))).shape == (4, 3)
    with pytest.raises(ShapeError, match=r"summed\(start\): .*got \(3,\)"):
        module.summed(np.zeros((4, 3, 2)), np.zeros(3))
    assert module.summed(np.zeros(2), 1.0) == 1.0
    assert checked(module.plain) is module.plain


def test_numbers_mean_themselves():
    fit(np.zeros((5, 3)), "B 3", {}, "here")
    with pytest.raises(ShapeError, match="here: expected"):
        fit(np.zeros((5, 2)), "B 3", {}, "here")


def test_numbers_broadcast(module):
    assert module.first(np.zeros((4, 3)), np.zeros(3)).shape == (4, 3)
    assert module.first(2.0, 1) == 2.0
    with pytest.raises(ShapeError, match=r"first\(y\): expected numbers that fit \(4, 3\)"):
        module.first(np.zeros((4, 3)), np.zeros(4))
    with pytest.raises(ShapeError, match=r"result of first: .*joint shape \(4, 3\), got \(3,\)"):
        module.first(np.zeros(3), np.zeros((4, 3)))
    with pytest.raises(ShapeError, match=r"first\(x\): .*got None"):
        module.first("text", 1.0)


def test_the_suite_checks_the_engine():
    """conftest.py at the root installs the check before anything of the engine is imported."""
    cells = Box([0.0, 0.0], [1.0, 1.0]).root()
    with pytest.raises(ShapeError, match=r"Cells.upper"):
        Cells(cells.region, cells.lower, cells.upper[:, :1])
    assert "install()" in (Path(__file__).parents[1] / "conftest.py").read_text(encoding="utf-8")


SOURCE = Path(__file__).parents[1] / "src"
PACKAGES = (
    "enclosures",
    "integrals",
    "kernels",
    "likelihoods",
    "paper",
    "quantities",
    "regions",
    "search",
)


def members(module) -> Iterator[tuple[str, Callable]]:
    """The functions of a module and the methods of its classes."""
    for name, member in vars(module).items():
        if getattr(member, "__module__", None) == module.__name__:
            own = vars(member) if inspect.isclass(member) else {"": member}
            for inner, each in own.items():
                function = next(
                    (
                        getattr(each, way)
                        for way in ("fget", "func", "__func__")
                        if hasattr(each, way)
                    ),
                    each,
                )
                if inspect.isfunction(function):
                    yield f"{name}.{inner}".strip("."), function


def bare_arrays(package: str) -> list[str]:
    """Public functions of a package that take or return an array and name no shape at all."""
    found = []
    for file in sorted((SOURCE / "gpcert" / package).rglob("*.py")):
        module = import_module(".".join(file.relative_to(SOURCE).with_suffix("").parts))
        for name, function in members(module):
            hints = inspect.get_annotations(function)
            text = re.sub(r"Callable\[\[.*?\], [^]]*\]", "", " ".join(map(str, hints.values())))
            words = set(re.findall(r"\w+", text))
            named = any(get_origin(vars(module).get(word)) is Annotated for word in words)
            public = not name.split(".")[-1].startswith("_")
            if public and {"Array", "ndarray"} & words and not ("Annotated" in words or named):
                found.append(f"{module.__name__}.{name}")
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_public_functions_name_the_shapes_of_their_arrays(package):
    assert bare_arrays(package) == []
