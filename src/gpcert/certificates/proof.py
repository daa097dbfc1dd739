"""Proof certificates: files that the separate program `gpcert-check` checks without gpcert.

A file holds the model, the region, the question as data, the answer, and the boxes of the search as
a split tree. The format and what the checker does with it stand in docs/certificates.md.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import platform
import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from gpcert.errors import InputError
from gpcert.model.posterior import Posterior
from gpcert.quantities import Band, Mean, Probability, Quantity, Std, Variance
from gpcert.regions import Region
from gpcert.search.state import Leaves
from gpcert.utils.archive import LARGEST_HEADER, from_json, plain_label, to_json
from gpcert.utils.versions import package_version

MAGIC = b"gpcert-proof-1\n"

SUFFIX = ".cert"
"""File names with this ending ask `save` for a proof."""

LEAF = -1
MERGED = 64
"""Subtrees of up to so many leaves are tried as one box."""

KINDS = {Mean: "mean", Variance: "variance", Std: "std", Band: "band", Probability: "probability"}
SYMMETRIC = ("probit",)
"""Likelihoods whose probabilities the checker knows."""

NORMS = {1, 2, "inf"}

MEAN_ARRAYS = ("points", "weights", "offset", "scale", "noise", "slope", "matrix", "shift")

Proved = Callable[[np.ndarray, np.ndarray], bool]
Corners = Annotated[np.ndarray, "n f"]


def _provenance() -> dict[str, Any]:
    """Who wrote the file, when, where and by which command."""
    now = datetime.datetime.now(datetime.UTC)
    return {
        "gpcert": package_version(),
        "numpy": np.__version__,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "date": now.isoformat(timespec="seconds"),
        "command": " ".join(sys.argv),
    }


@dataclass(frozen=True, eq=False)
class Proof:
    """A question about a posterior and its answer, as `gpcert-check` reads them.

    `leaves`, boxes in the free features that cover the region, only spare the checker work: it
    proves every bound again. None: the region is one box.
    """

    model: Posterior
    region: Region
    question: dict[str, Any]
    answer: dict[str, Any]
    leaves: Leaves | None = None
    provenance: dict[str, Any] = field(default_factory=_provenance)

    def save(self, path: str | Path) -> None:
        """Write the file."""
        Path(path).write_bytes(self.to_bytes())

    def to_bytes(self) -> bytes:
        """The bytes of the file; leaves are merged where python-flint is installed."""
        one_box = self._packed(*split_tree(None, self._root))
        if self.leaves is None or len(self.leaves.low) <= 1:
            return one_box
        boxes = self.leaves.low, self.leaves.high
        return self._packed(*split_tree(boxes, self._root, _checker(one_box)))

    @property
    def _root(self) -> np.ndarray:
        free = self.region.free
        return np.stack([self.region.lower[free], self.region.upper[free]])

    def _packed(self, axes: np.ndarray, cuts: np.ndarray) -> bytes:
        goals = self.question.get("goals") or [self.question["goal"]]
        model = self.model.arrays()
        if all(goal["quantity"] == "mean" for goal in goals):
            model = {name: array for name, array in model.items() if name in MEAN_ARRAYS}
        model = {name: _plain(array) for name, array in sorted(model.items())}
        header = self.model.header()
        del header["spread"]
        arrays = {f"model_{name}": array for name, array in model.items()}
        arrays |= {"axes": axes, "cuts": cuts, "root": self._root}
        arrays = {name: _plain(array) for name, array in arrays.items()}
        types = {name: "i4" if array.dtype.kind == "i" else "f8" for name, array in arrays.items()}
        text = to_json(
            {
                "claim": "A",
                "question": {**self.question, "region": self.region.describe()},
                "answer": self.answer,
                "model": header,
                "sha256": model_sha256(header, model),
                "provenance": self.provenance,
                "arrays": [[name, types[name], list(arrays[name].shape)] for name in arrays],
            }
        ).encode()
        data = zlib.compress(b"".join(array.tobytes() for array in arrays.values()))
        return MAGIC + len(text).to_bytes(8, "little") + text + data


def read_header(path: str | Path) -> dict[str, Any]:
    """The header of a file, of which nothing else is read: none of it is checked."""
    try:
        with Path(path).open("rb") as stream:
            magic, size = stream.read(len(MAGIC)), int.from_bytes(stream.read(8), "little")
            text = stream.read(min(size, LARGEST_HEADER)) if magic == MAGIC else b""
        found = from_json(text.decode("utf-8")) if len(text) == size else None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: expected a certificate ({error})") from error
    if magic != MAGIC or not isinstance(found, dict):
        raise InputError(f"{path}: expected a certificate of format {MAGIC.decode().strip()}")
    return found


def model_sha256(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> str:
    """The full SHA-256 of a model, as docs/certificates.md defines it."""
    names = ("kernel", "likelihood", "classes", "coupled", "levels")
    described = json.dumps({name: header.get(name) for name in names}, sort_keys=True)
    digest = hashlib.sha256(described.encode())
    for name in sorted(arrays):
        shape = ",".join(map(str, arrays[name].shape))
        digest.update(f"{name}({shape})".encode())
        digest.update(_plain(arrays[name]).tobytes())
    return digest.hexdigest()


def decision_proof(
    certificate: Any,
    region: Region,
    model: Any,
    quantity: Quantity,
    level: Fraction,
    leaves: Leaves | None = None,
) -> Proof | None:
    """The proof of a `Certificate` that `quantity > level`; None where it neither proves nor
    refutes."""
    if not (certificate.robust or certificate.counterexample is not None):
        return None
    question = {
        "kind": "decision",
        "goal": goal_record(model, quantity),
        "level": [str(level.numerator), str(level.denominator)],
        "x": certificate.x.tolist(),
        "decision": plain_label(certificate.decision),
        "rule": certificate.rule,
    }
    answer: dict[str, Any] = {"status": certificate.status.name}
    if certificate.counterexample is not None:
        answer["counterexample"] = certificate.counterexample.tolist()
        leaves = None
    return Proof(model, region, question, answer, leaves)


def range_proof(
    model: Any,
    region: Region,
    quantities: Sequence[Quantity],
    ends: Sequence[tuple[float, float, np.ndarray | None]],
    meaning: str,
    leaves: Leaves | None = None,
) -> Proof | None:
    """The proof of the least values of quantities: each with a lower bound, an upper one and the
    point where the latter is attained. None where one of the bounds is infinite."""
    if not all(np.isfinite(low) and np.isfinite(up) and at is not None for low, up, at in ends):
        return None
    goals = [goal_record(model, quantity) for quantity in quantities]
    question = {"kind": "range", "goals": goals, "meaning": meaning}
    records = [
        {"lower": low, "upper": up, "point": at.tolist()} for low, up, at in ends if at is not None
    ]
    return Proof(model, region, question, {"ends": records}, leaves)


def check_covered(model: Any, region: Region, quantities: Sequence[Quantity]) -> None:
    """An `InputError` where the checker does not know the question."""
    described = region.describe()
    if described["kind"] not in {"box", "ball"} or described.get("norm", 1) not in NORMS:
        raise InputError(
            f"proof: gpcert-check covers boxes and balls in l_1, l_2 and l_inf, got {region!r}; "
            "leave proof= out"
        )
    for quantity in quantities:
        goal_record(model, quantity)


def goal_record(model: Any, quantity: Quantity) -> dict[str, Any]:
    """A quantity as data; an `InputError` says what the checker does not cover."""
    what = None
    if not isinstance(model, Posterior):
        what = "a model of several kernels"
    elif model.coupled:
        what = "a model of coupled classes"
    elif model.levels:
        what = "a model behind categories"
    elif type(quantity) not in KINDS:
        what = f"the quantity {type(quantity).__name__}"
    elif isinstance(quantity, Probability) and quantity.likelihood.name not in SYMMETRIC:
        what = f"the probability of the likelihood {quantity.likelihood.name!r}"
    if what is not None:
        raise InputError(
            f"proof: gpcert-check does not cover {what}; leave proof= out, or ask for a mean, "
            "variance, std, band or the decision by the sign of a mean (docs/certificates.md has "
            "the list)"
        )
    kind = KINDS[type(quantity)]  # pyright: ignore[reportArgumentType]
    found = {"quantity": kind, "output": quantity.output, "sign": quantity.sign}  # pyright: ignore[reportAttributeAccessIssue]
    return found | ({"beta": quantity.beta} if isinstance(quantity, Band) else {})


def split_tree(
    leaves: tuple[Corners, Corners] | None, root: np.ndarray, proved: Proved | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The arrays `axes` and `cuts` of a tree over boxes, in preorder.

    A box that no cut divides into whole leaves becomes one leaf, and so does one that is `proved`:
    the checker splits leaves further where it must.
    """
    axes, cuts = [], []
    low, high = (root[:1], root[1:]) if leaves is None else leaves
    waiting = [(np.arange(len(low)), root[0], root[1])]
    while waiting:
        rows, first, last = waiting.pop()
        cut = None
        if len(rows) > 1 and not (len(rows) <= MERGED and proved and proved(first, last)):
            cut = _cut(low[rows], high[rows], first, last)
        if cut is None:
            axes.append(LEAF)
            continue
        axis, at, middle = cut
        axes.append(axis if middle else -2 - axis)
        if not middle:
            cuts.append(at)
        below = high[rows, axis] <= at
        inner, outer = last.copy(), first.copy()
        inner[axis] = outer[axis] = at
        waiting += [(rows[~below], outer, last), (rows[below], first, inner)]
    return np.array(axes, dtype="<i4"), np.array(cuts, dtype="<f8")


def _cut(
    low: np.ndarray, high: np.ndarray, first: np.ndarray, last: np.ndarray
) -> tuple[int, float, bool] | None:
    """An axis and a number that divide boxes into two sets of whole boxes, and whether it is the
    middle of the box around them."""
    middle = 0.5 * first + 0.5 * last
    below, above = high <= middle, low >= middle
    good = np.all(below | above, axis=0) & np.any(below, axis=0) & np.any(above, axis=0)
    good &= ~np.any(below & above, axis=0)
    if good.any():
        axis = int(np.argmax(good))
        return axis, float(middle[axis]), True
    for axis in range(low.shape[1]):
        order = np.argsort(low[:, axis], kind="stable")
        starts = low[order, axis]
        ends = np.maximum.accumulate(high[order, axis])
        places = np.flatnonzero((ends[:-1] <= starts[1:]) & (starts[1:] > first[axis]))
        places = places[starts[places + 1] < last[axis]]
        if len(places):
            return axis, float(starts[places[len(places) // 2] + 1]), False
    return None


def _checker(content: bytes) -> Proved | None:
    """Whether the checker proves all claims on a box as it stands; None without python-flint."""
    try:
        from gpcert_check.cell import Cell
        from gpcert_check.check import build
        from gpcert_check.container import unpack
        from gpcert_check.goals import Bounds
    except ImportError:
        return None
    certificate = build(*unpack(content))

    def proved(low: np.ndarray, high: np.ndarray) -> bool:
        cell = Cell(certificate.model.frame, low.tolist(), high.tolist())
        bounds = Bounds(certificate.model, cell)
        return all(certificate.proved(claim, bounds) for claim in certificate.on_region)

    return proved


def _plain(array: np.ndarray) -> np.ndarray:
    """Little-endian numbers in C order."""
    return np.ascontiguousarray(array, dtype="<i4" if array.dtype.kind == "i" else "<f8")
