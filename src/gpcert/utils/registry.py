"""Classes by the names that saved posteriors carry: our own, and those of other packages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from gpcert.errors import GPCertError, InputError

C = TypeVar("C", bound=type)
T = TypeVar("T")


class Registry(dict[str, C], Generic[C]):
    """Subclasses of `base` by their `name`; `what` they are, as in "kernel".

    A class from outside the package joins by `register`, or by an entry point of the group
    "gpcert.<what>s" whose name is the class's `name`; that is looked up (in installed packages, so
    nothing comes from the file) when a file first asks for it.
    """

    def __init__(self, what: str, base: C, built_in: Iterable[C]) -> None:
        super().__init__()
        self.what, self.base, self.group = what, base, f"gpcert.{what}s"
        for each in built_in:
            self.register(each)

    def register(self, cls: C) -> C:
        """Let saved posteriors name this class; also as a decorator."""
        if not (isinstance(cls, type) and issubclass(cls, self.base)):
            raise InputError(
                f"register: expected a subclass of {self.base.__name__}, got {cls!r}; "
                "give the class, not an instance"
            )
        name: Any = getattr(cls, "name", None)
        if not isinstance(name, str) or not name:
            raise InputError(
                f"register: expected {cls.__name__}.name to be the text that files carry, "
                f"got {name!r}"
            )
        taken = self.get(name)
        place, own = (f"{each.__module__}.{each.__qualname__}" for each in (taken or cls, cls))
        if place != own:  # a module that is imported again defines its classes again
            raise InputError(
                f"register: the {self.what} name {name!r} is taken by {place}; give "
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
        """What `make` makes of the class of this name; parameters that do not fit are an
        `InputError`."""
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
