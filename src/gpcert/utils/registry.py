"""Classes by their names in saved posteriors: built-in classes and those of other packages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from gpcert.errors import GPCertError, InputError

C = TypeVar("C", bound=type)
T = TypeVar("T")


class Registry(dict[str, C], Generic[C]):
    """Subclasses of `base` by their `name`; `what` is their kind, as in "kernel".

    A class of another package is added by `register`, or by an entry point of the group
    "gpcert.<what>s" with the class's `name`. Entry points of installed packages are looked up when
    a file first needs the name; no code comes from the file.
    """

    def __init__(self, what: str, base: C, built_in: Iterable[C]) -> None:
        super().__init__()
        self.what, self.base, self.group = what, base, f"gpcert.{what}s"
        for each in built_in:
            self.register(each)

    def register(self, cls: C) -> C:
        """Add a class to the registry; also usable as a decorator."""
        if not (isinstance(cls, type) and issubclass(cls, self.base)):
            raise InputError(
                f"register: expected a subclass of {self.base.__name__}, got {cls!r}; "
                "give the class, not an instance"
            )
        name: Any = getattr(cls, "name", None)
        if not isinstance(name, str) or not name:
            raise InputError(
                f"register: expected {cls.__name__}.name to be the name in saved files, "
                f"got {name!r}"
            )
        taken = self.get(name)
        known_place, new_place = (
            f"{each.__module__}.{each.__qualname__}" for each in (taken or cls, cls)
        )
        if known_place != new_place:  # a module that is imported again redefines its classes
            raise InputError(
                f"register: the {self.what} name {name!r} is taken by {known_place}; give "
                f"{cls.__name__} a name of its own"
            )
        self[name] = cls
        return cls

    def find(self, name: Any) -> C:
        """The class of this name."""
        if isinstance(name, str) and name not in self:
            for entry in entry_points(group=self.group, name=name):
                self.register(entry.load())
        if not isinstance(name, str) or name not in self:
            raise InputError(
                f"{self.what}: expected one of {sorted(self)}, got {name!r}; if it is your own, "
                f"import the module that defines it and decorate the class with "
                f"gpcert.{self.what}s.register before loading, or let its package declare an "
                f"entry point {name!r} in the group {self.group!r}"
            )
        return self[name]

    def built(self, name: str, make: Callable[[C], T]) -> T:
        """The result of `make` for the class of this name; an `InputError` if its parameters do not
        fit."""
        kind = self.find(name)
        try:
            return make(kind)
        except GPCertError:
            raise
        except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError) as error:
            raise InputError(
                f"{self.what} {name!r}: its parameters do not fit ({error!r}); use what its "
                "config() returns"
            ) from error
