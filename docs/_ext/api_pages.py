"""The API reference: one page per group of public names, shown by autodoc."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from source_pages import write_if_changed

import gpcert


@dataclass(frozen=True)
class Group:
    """A page: its title, the module whose names it shows, and which of them."""

    title: str
    module: str
    names: tuple[str, ...]
    about: str = ""


VERBS = tuple(gpcert._PUBLIC["gpcert.api"].split())
ANALYSES = tuple(gpcert._PUBLIC["gpcert.analyses"].split())
RECORDS = tuple(gpcert._PUBLIC["gpcert.certificates"].split())
REGIONS = tuple(gpcert._PUBLIC["gpcert.regions"].split())
ERRORS = tuple(gpcert._PUBLIC["gpcert.errors"].split())

MODULES = {
    "kernels": "Kernels",
    "likelihoods": "Likelihoods",
    "quantities": "Quantities",
    "models": "Estimators",
    "explain": "Explanations",
    "plots": "Pictures",
    "regions": "Regions: the protocol",
    "certificates": "Records: the base",
    "adapters": "Adapters of other libraries",
    "attacks": "Local attacks",
    "analyses": "Analyses: rows of the tables",
    "search": "The search",
    "botorch": "In BoTorch's place",
    "optuna": "In Optuna's place",
    "ax": "In Ax's place",
    "trieste": "In Trieste's place",
    "skopt": "In scikit-optimize's place",
    "testing": "Contracts for your own parts",
}
"""Modules with pages of their own, and their titles."""


def groups() -> list[Group]:
    """All pages, in order: names of `gpcert` itself first, then those that modules add."""
    of_package = [
        Group("Verbs", "gpcert", VERBS),
        Group("Analyses", "gpcert", ANALYSES),
        Group("Records", "gpcert", RECORDS),
        Group("Regions", "gpcert", REGIONS),
    ]
    rest = [
        name
        for name in gpcert.__all__
        if name != "__version__" and not any(name in group.names for group in of_package)
    ]
    other = tuple(name for name in rest if name not in ERRORS)
    pages = [
        *of_package,
        Group("Models and budgets", "gpcert", other),
        Group("Errors", "gpcert", ERRORS),
    ]
    shown = {id(getattr(gpcert, name)) for group in pages for name in group.names}
    for name, title in MODULES.items():
        try:
            module = import_module(f"gpcert.{name}")
        except ImportError:  # the library that it speaks for is not installed
            continue
        own = tuple(each for each in public_names(module) if id(getattr(module, each)) not in shown)
        if own:
            pages.append(Group(title, module.__name__, own, inspect.getdoc(module) or ""))
    return pages


def public_names(module: Any) -> list[str]:
    """`__all__`, or the functions and classes that a module defines."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return list(listed)
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__ == module.__name__
    ]


def directive(module: Any, name: str) -> list[str]:
    """How autodoc shows one name."""
    value = getattr(module, name)
    path = f"{module.__name__}.{name}"
    if inspect.isclass(value):
        lines = [f".. autoclass:: {path}", "   :members:"]
        if issubclass(value, Exception):
            lines += ["   :show-inheritance:"]
        return lines
    if callable(value):
        return [f".. autofunction:: {path}"]
    return [f".. autodata:: {path}", "   :no-value:"]


def page(group: Group) -> str:
    """The page of a group."""
    module = import_module(group.module)
    lines = [group.title, "=" * len(group.title), ""]
    lines += [f".. module:: {group.module}", ""] if group.module != "gpcert" else []
    for name in group.names:
        lines += [name, "-" * len(name), "", *directive(module, name), ""]
    return "\n".join(lines)


def write(folder: Path) -> None:
    """Write the pages and their index."""
    pages = groups()
    names = [
        group.title.lower().replace(" ", "-").replace(":", "").replace("'", "") for group in pages
    ]
    for name, group in zip(names, pages, strict=True):
        write_if_changed(folder / f"{name}.rst", page(group))
    rows = [
        f"| [{group.title}]({name}.rst) | `{group.module}` | "
        f"{', '.join(f'`{each}`' for each in group.names)} |"
        for name, group in zip(names, pages, strict=True)
    ]
    table = "\n".join(["| page | module | names |", "| --- | --- | --- |", *rows])
    tree = "\n".join(["```{toctree}", ":hidden:", "", *names, "```"])
    write_if_changed(
        folder / "index.md",
        "# API reference\n\nEvery public name, from its docstring.\n\n" + f"{tree}\n\n{table}\n",
    )
