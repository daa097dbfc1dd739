"""Proof certificates: files that the separate program `gpcert-check` checks without gpcert.

A file holds the model, the region, the question as data, the answer, and the boxes of the search as
a tree of cuts, in two arrays. The format and what the checker does with it stand in
docs/certificates.md.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import platform
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from gpcert.errors import InputError
from gpcert.model.committee import Committee
from gpcert.model.multi_output import described_labels
from gpcert.model.posterior import Posterior
from gpcert.regions import Box, Region
from gpcert.search.state import Leaves
from gpcert.utils.archive import LARGEST_HEADER, from_json, to_json
from gpcert.utils.optional_imports import package_version

LEAF = -1
NOTHING = -1
"""In the tree the sign of a leaf of which nothing is claimed."""

MERGED = 64
"""Subtrees of up to so many leaves are tried as one box."""

Proved = Callable[[np.ndarray, np.ndarray, int], bool]
"""Whether a box is proved, of leaves with this sign."""

Corners = Annotated[np.ndarray, "n f"]


def split_tree(
    leaves: tuple[Corners, Corners] | None,
    root: np.ndarray,
    proved: Proved | None = None,
    signs: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The arrays `axes` and `cuts` of a tree over boxes, in preorder, and its leaves' signs.

    A box that no cut divides into whole leaves becomes one leaf, and so does one that is `proved`:
    the checker splits leaves further where it must. Leaves of different signs are never joined,
    those of one sign below 0 always: nothing is claimed of them.
    """
    axes, cuts, kinds = [], [], []
    low, high = (root[:1], root[1:]) if leaves is None else leaves
    signs = np.zeros(len(low), dtype="<i4") if signs is None else signs
    waiting = [(np.arange(len(low)), root[0], root[1])]
    while waiting:
        rows, first, last = waiting.pop()
        cut = None
        sign, alike = int(signs[rows[0]]), np.ptp(signs[rows]) == 0
        joined = len(rows) == 1 or (alike and sign < 0)
        small = alike and len(rows) <= MERGED
        if not joined and not (small and proved is not None and proved(first, last, sign)):
            cut = _cut(low[rows], high[rows], first, last)
        if cut is None:
            axes.append(LEAF)
            kinds.append(max(sign, NOTHING) if alike else NOTHING)
            continue
        axis, at, middle = cut
        axes.append(axis if middle else -2 - axis)
        if not middle:
            cuts.append(at)
        below = high[rows, axis] <= at
        inner, outer = last.copy(), first.copy()
        inner[axis] = outer[axis] = at
        waiting += [(rows[~below], outer, last), (rows[below], first, inner)]
    return np.array(axes, "<i4"), np.array(cuts, "<f8"), np.array(kinds, "<i4")


def boxes_of(
    axes: np.ndarray, cuts: np.ndarray, root: np.ndarray, most: int
) -> Iterator[tuple[list[float], list[float]]]:
    """The first leaves of a tree, for drawing; nothing rests on them."""
    waiting, used = [(root[0].tolist(), root[1].tolist())], 0
    for axis in axes.tolist():
        if not waiting or most == 0:
            return
        low, high = waiting.pop()
        if axis == LEAF:
            most -= 1
            yield low, high
            continue
        j = axis if axis >= 0 else -2 - axis
        cut = 0.5 * low[j] + 0.5 * high[j] if axis >= 0 else float(cuts[used])
        used += axis < 0
        waiting.append(([*low[:j], cut, *low[j + 1 :]], high))
        waiting.append((low, [*high[:j], cut, *high[j + 1 :]]))


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


MAGIC = b"gpcert-proof-1\n"

SUFFIX = ".cert"
"""File names with this ending ask `save` for a proof."""

CLAIMS = {
    "A": "A, of the function in real arithmetic that the stored numbers define",
    "B": "B, of that function and of what float64 gives of the same numbers",
}
"""The kinds of claims, in words."""

MEAN_ARRAYS = ("points", "weights", "offset", "scale", "noise", "slope", "matrix", "shift")

Arrays = dict[str, np.ndarray]


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
class Together:
    """Posteriors of which conditions speak, each of one."""

    members: tuple[Posterior, ...]
    scheme = "conditions"
    classes = None


@dataclass(frozen=True, eq=False)
class Proof:
    """A question about a model and its answer, as `gpcert-check` reads them.

    `leaves`, boxes in the free features that cover the region, only spare the checker work: it
    proves every bound again. None: the region is one box. `by_means`: variances do not matter.
    `claim` is "B" where the answer holds of what float64 gives, too.
    """

    model: Posterior | Committee | Together
    region: Region
    question: dict[str, Any]
    answer: dict[str, Any]
    leaves: Leaves | None = None
    by_means: bool = False
    claim: str = "A"
    signs: np.ndarray | None = None
    """For each leaf which of several claims is about it, -1 for none; where there are several."""
    provenance: dict[str, Any] = field(default_factory=_provenance)

    def save(self, path: str | Path) -> None:
        """Write the file."""
        Path(path).write_bytes(self.to_bytes())

    def to_bytes(self) -> bytes:
        """The bytes of the file; leaves are merged where python-flint is installed."""
        return _packed([self], single=True)

    def described(self) -> dict[str, Any]:
        """The question, with its region."""
        return {**self.question, "region": self.region.describe()}

    def tree(self, merged: bool = True) -> Arrays:
        """The boxes as a tree."""
        free = self.region.free
        root = np.stack([self.region.lower[free], self.region.upper[free]])
        boxes: tuple[Corners, Corners] | None = None
        proved: Proved | None = None
        if merged and self.leaves is not None and len(self.leaves.low) > 1:
            boxes = self.leaves.low, self.leaves.high
            if self.signs is None or isinstance(self.region, Box):  # else edges would be lost
                proved = _checker(_packed([self], single=True, merged=False))
        axes, cuts, signs = split_tree(boxes, root, proved, self.signs if boxes else None)
        tree = {"axes": axes, "cuts": cuts, "root": root}
        return tree if self.signs is None else tree | {"signs": signs}


@dataclass(frozen=True, eq=False)
class ProofTable:
    """The proofs of several questions about one model, in one file."""

    rows: Sequence[Proof]

    @staticmethod
    def of(rows: Sequence[Proof], path: str | Path) -> ProofTable:
        """Of rows about one model; an `InputError` where there are none, or several models."""
        if not rows:
            raise missing_proof(path)
        if any(row.model is not rows[0].model for row in rows):
            raise InputError(
                f"{path}: expected proofs about one posterior, got several (outputs with kernels "
                "of their own, or processes that have copies: use n_jobs=1); save each row"
            )
        return ProofTable(rows)

    def save(self, path: str | Path) -> None:
        """Write the file."""
        Path(path).write_bytes(_packed(self.rows, single=False))


def missing_proof(path: str | Path) -> InputError:
    """What is said where there is nothing to write."""
    return InputError(
        f"{path}: expected a record with a proof, got one without; ask with proof=True, and save a "
        "verdict (ROBUST or NOT_ROBUST) or finite bounds"
    )


def _packed(proofs: Sequence[Proof], single: bool, merged: bool = True) -> bytes:
    """The bytes of a file with one question, or with a table of them."""
    first = proofs[0]
    described, arrays = model_parts(first.model, all(proof.by_means for proof in proofs))
    sha256 = model_sha256(described, arrays)
    for k, proof in enumerate(proofs):
        name = "" if single else f"{k}."
        arrays |= {f"{name}{part}": array for part, array in proof.tree(merged).items()}
    arrays = {name: _plain(array) for name, array in arrays.items()}
    types = {name: "i4" if array.dtype.kind == "i" else "f8" for name, array in arrays.items()}
    question, answer = first.described(), first.answer
    if not single:
        question = {"kind": "table", "rows": [proof.described() for proof in proofs]}
        answer = {"rows": [proof.answer for proof in proofs]}
    text = to_json(
        {
            "claim": first.claim,
            "question": question,
            "answer": answer,
            "model": described,
            "sha256": sha256,
            "provenance": first.provenance,
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
        header = from_json(text.decode("utf-8")) if len(text) == size else None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: expected a certificate ({error})") from error
    if magic != MAGIC or not isinstance(header, dict):
        raise InputError(f"{path}: expected a certificate of format {MAGIC.decode().strip()}")
    return header


def model_parts(
    model: Posterior | Committee | Together, by_means: bool
) -> tuple[dict[str, Any], Arrays]:
    """What a file says of a model, and its arrays; those of variances only where they matter."""
    if isinstance(model, Posterior):
        return _posterior_parts(model, "model_", by_means)
    members, arrays = [], {}
    for k, member in enumerate(model.members):
        described, member_arrays = _posterior_parts(member, f"model{k}_", by_means)
        members.append(described)
        arrays |= member_arrays
    classes = described_labels(model.classes, written=True)
    return {"members": members, "scheme": model.scheme, "classes": classes}, arrays


def _posterior_parts(model: Posterior, name: str, by_means: bool) -> tuple[dict[str, Any], Arrays]:
    described = model.header()
    del described["spread"]
    arrays = model.arrays()
    chosen = {part: a for part, a in arrays.items() if not by_means or part in MEAN_ARRAYS}
    return described, {f"{name}{part}": _plain(a) for part, a in sorted(chosen.items())}


def model_sha256(described: dict[str, Any], arrays: Arrays) -> str:
    """The full SHA-256 of a model, as docs/certificates.md defines it; of the arrays those of a
    model count."""
    if "members" not in described:
        return _posterior_sha256(described, arrays, "model_")
    members = described["members"]
    each = [_posterior_sha256(member, arrays, f"model{k}_") for k, member in enumerate(members)]
    whole = {"classes": described["classes"], "members": each, "scheme": described["scheme"]}
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def _posterior_sha256(header: dict[str, Any], arrays: Arrays, prefix: str) -> str:
    names = ("kernel", "likelihood", "classes", "coupled", "levels")
    parts = {name: header.get(name) for name in names}
    parts |= {name: header[name] for name in ("curves", "mean_function") if header.get(name)}
    digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode())
    for name in sorted(name for name in arrays if name.startswith(prefix)):
        shape = ",".join(map(str, arrays[name].shape))
        digest.update(f"{name[len(prefix) :]}({shape})".encode())
        digest.update(_plain(arrays[name]).tobytes())
    return digest.hexdigest()


def _checker(content: bytes) -> Proved | None:
    """Whether the checker proves all claims on a box as it stands; None without python-flint, and
    for claims that it does not cover, as it then says by itself."""
    try:
        from gpcert_check.claims import Piece
        from gpcert_check.container import unpack
        from gpcert_check.questions import certificates
        from gpcert_check.verdicts import NotCovered
    except ImportError:
        return None
    try:
        certificate = next(certificates(*unpack(content)))
    except NotCovered:
        return None

    def proved(low: np.ndarray, high: np.ndarray, sign: int) -> bool:
        inside = certificate.region.cell(low.tolist(), high.tolist())
        if inside is None:
            return True
        piece = Piece(certificate.models, *inside)
        return all(certificate.proved(claim, piece) for claim in certificate.cases[sign])

    return proved


def _plain(array: np.ndarray) -> np.ndarray:
    """Little-endian numbers in C order."""
    return np.ascontiguousarray(array, dtype="<i4" if array.dtype.kind == "i" else "<f8")
