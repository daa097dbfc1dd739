"""Calls that go on where they were killed: `checkpoint=` of the verbs, and `resume`."""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from gpcert.adapters import as_posterior
from gpcert.errors import InputError
from gpcert.model.committee import Model, load_model
from gpcert.numerics.arrays import Backend
from gpcert.regions import Region
from gpcert.regions.records import region_from_dict
from gpcert.search import Budget
from gpcert.search.checkpoints import Checkpoint, Content, Journal, keeping
from gpcert.utils.archive import Kind, digest, packed, unpacked
from gpcert.utils.optional_imports import package_version

R = TypeVar("R")

VERBS: dict[str, Callable[..., Any]] = {}
"""The verbs that have `checkpoint=`, by name, once their modules are imported."""

MODULES = ("gpcert.api", "gpcert.analyses", "gpcert.explain")
"""The packages that have verbs."""

FREE = ("budget", "n_jobs", "progress", "backend")
"""Options that another run of the same call may have otherwise: bounds hold whatever they are."""


class _FrozenKind(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return hasattr(value, "dist") and hasattr(value, "args") and hasattr(value, "kwds")


class Frozen(metaclass=_FrozenKind):
    """A frozen distribution of `scipy.stats`, which takes long to import: by what it has."""

    @staticmethod
    def parts(law: Any) -> list[Any]:
        """Its name, arguments and words."""
        return [law.dist.name, list(law.args), dict(law.kwds)]

    @staticmethod
    def make(name: str, places: list[Any], named: dict[str, Any]) -> Any:
        """The distribution again."""
        from scipy import stats

        family = getattr(stats, name, None)
        if not isinstance(family, stats.rv_continuous):
            raise InputError(f"expected a distribution of scipy.stats, got {name!r}")
        return family(*places, **named)


KINDS = {
    "distribution": Kind(Frozen, Frozen.parts, Frozen.make),
    "budget": Kind.of(Budget),
    "backend": Kind.of(Backend),
    "region": Kind(Region, lambda region: [region.describe()], region_from_dict),
    "numbers": Kind(
        np.ndarray, lambda a: [a.tolist(), a.dtype.str], lambda a, kind: np.array(a, dtype=kind)
    ),
}
"""What arguments may be, beside plain numbers and text."""


def kept_call(
    checkpoint: Any, verb: str, asked: inspect.BoundArguments, answer: Callable[[], R]
) -> R:
    """The answer of a verb, whose searches a file saves; those that it holds already go on.

    Soundness: a search is found again by a hash of its question and its model.
    """
    if not isinstance(checkpoint, Checkpoint):
        checkpoint = Checkpoint(checkpoint)
    arguments = _flat(asked)
    arguments.pop("checkpoint", None)
    given = arguments.pop("model", arguments.pop("models", None))
    names = list(given) if isinstance(given, Mapping) else []
    several = isinstance(given, list | tuple | Mapping)
    each_given = given.values() if names else given if several else [given]
    models: list[Model] = [as_posterior(each) for each in each_given if each is not None]
    fixed = {name: _plain(value) for name, value in arguments.items() if name not in FREE}
    fixed |= {"names of models": names} if names else {}
    # bounds of another version are not believed: it may have had a defect
    asked_of = digest(package_version(), verb, models if several else (models or [None])[0], fixed)
    call: dict[str, Any] = {"verb": verb, "digest": asked_of, "arguments": {}}
    if several:
        call["unsaved"] = "model: files hold one model, not a list of them"
    for name, value in arguments.items():
        try:
            call["arguments"][name] = packed(value, [], KINDS)
        except InputError as error:
            call["unsaved"] = f"{name}: {error}"
    try:
        saved = _saved(models[0]) if len(models) == 1 else b""
    except OSError as error:
        raise InputError(f"{checkpoint.path}: the model cannot be written ({error})") from error
    with keeping(Journal(checkpoint, call, saved)):
        return answer()


def resume(path: str | Path, *, budget: Any = None) -> Any:
    """Go on with a call that was saved with `checkpoint=path`; returns what the call returns.

    A search that a kill or an interrupt ended goes on from what was saved last, and the bounds are
    those of a run that nothing ended; a finished one is not searched again. `budget` replaces the
    call's own: time that a search took before counts. The file is believed: what it says was
    proved is not proved again.

    Example
    -------
    >>> import gpcert, os, tempfile
    >>> from gpcert.kernels import SquaredExponential
    >>> p = gpcert.Posterior(SquaredExponential(1.0), points=[[0.0], [3.0]], weights=[1.0, -1.0])
    >>> path = os.path.join(tempfile.mkdtemp(), "run.ckpt")
    >>> first = gpcert.prediction_range(p, [0.0], 1.0, checkpoint=path)
    >>> gpcert.resume(path).minimum == first.minimum
    True
    """
    content = Content.of(path)
    call = content.call
    if "unsaved" in call:
        raise InputError(
            f"{path}: expected arguments that files hold, got {call['unsaved']}; call "
            f"{call['verb']} again with the same arguments and checkpoint={str(path)!r}"
        )
    for module in MODULES:
        import_module(module)
    if call["verb"] not in VERBS:
        raise InputError(f"{path}: expected one of {', '.join(sorted(VERBS))}, got {call['verb']}")
    arguments = {name: unpacked(value, [], KINDS) for name, value in call["arguments"].items()}
    if budget is not None:
        arguments["budget"] = budget
    return VERBS[call["verb"]](_loaded(content.model), **arguments, checkpoint=path)


def _plain(value: Any) -> Any:
    """What a hash counts of an argument: of distributions their names and numbers."""
    if isinstance(value, Frozen):
        return Frozen.parts(value)
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def _flat(asked: inspect.BoundArguments) -> dict[str, Any]:
    """All arguments that were given, by name."""
    arguments: dict[str, Any] = {}
    for name, value in asked.arguments.items():
        if asked.signature.parameters[name].kind is inspect.Parameter.VAR_KEYWORD:
            arguments |= value
        else:
            arguments[name] = value
    return arguments


def _saved(model: Model) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.npz")
        model.save(path)
        return path.read_bytes()


def _loaded(content: bytes) -> Model:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.npz")
        path.write_bytes(content)
        return load_model(path)
