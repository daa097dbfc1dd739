"""Every public method says what it does, itself or in the class whose method it overrides."""

import importlib
import inspect
import pkgutil

import gpcert
from gpcert.errors import MissingExtraError


def modules():
    for found in pkgutil.walk_packages(gpcert.__path__, "gpcert."):
        try:
            yield importlib.import_module(found.name)
        except (MissingExtraError, ModuleNotFoundError):
            continue  # an adapter of a library that is not here


def test_every_public_method_has_a_docstring_of_its_own_or_inherits_one():
    silent, seen = [], 0
    for module in modules():
        for kind in vars(module).values():
            if not inspect.isclass(kind) or kind.__module__ != module.__name__:
                continue
            for name, member in vars(kind).items():
                callable_ = inspect.isfunction(member) or isinstance(
                    member, property | staticmethod | classmethod
                )
                hidden = name.startswith("_") or kind.__name__.startswith("_")
                if hidden or not callable_ or name in getattr(kind, "__dataclass_fields__", ()):
                    continue
                seen += 1
                if not inspect.getdoc(getattr(kind, name)):
                    silent.append(f"{module.__name__}.{kind.__name__}.{name}")
    assert seen > 1000
    assert not silent
