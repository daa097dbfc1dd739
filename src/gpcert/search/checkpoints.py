"""Searches that survive a kill: one file holds what a call's searches know, and is replaced as a
whole at an interval.

Whatever is read is the state of a search between two batches (Statement 14.1), so a search that
goes on from it finds the bounds that it would have found. Reading executes nothing; but bounds in a
file are believed, as those in memory are.
"""

from __future__ import annotations

import json
import math
import os
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from gpcert.enclosures import Portfolio
from gpcert.enclosures.evaluation import BoundHistory
from gpcert.errors import CheckpointWarning, InputError
from gpcert.search.problem import Resolution
from gpcert.search.state import Boxes, Frontier, Incumbents, PartitionState, State
from gpcert.utils.archive import Kind, open_archive, packed, unpacked

FORMAT = "gpcert-checkpoint-1"

INTERVAL = 30.0
"""Seconds between two writes, by default."""

WRITING = 20.0
"""So many times as long as a write takes is the time until the next."""

KINDS = {
    cls.__name__: Kind.of(cls)
    for cls in (
        State,
        PartitionState,
        Frontier,
        Boxes,
        Incumbents,
        Resolution,
        Portfolio,
        BoundHistory,
    )
}
"""What the state of a search is made of."""


@dataclass(frozen=True)
class Checkpoint:
    """A file in which a call saves its searches, and the `seconds` between two writes.

    >>> Checkpoint("run.ckpt").seconds
    30.0
    """

    path: str | Path
    seconds: float = INTERVAL

    def __post_init__(self) -> None:
        if not isinstance(self.path, str | os.PathLike):
            raise InputError(f"checkpoint: expected the name of a file, got {self.path!r}")
        if not (isinstance(self.seconds, int | float) and 0 <= self.seconds < math.inf):
            raise InputError(f"checkpoint seconds: expected a number >= 0, got {self.seconds!r}")


@dataclass(eq=False)
class Kept:
    """One search of a call, or another piece of it: its last `state`, the `seconds` that it had
    taken, and the name of the reason for which it ended, empty while it goes on."""

    journal: Journal
    state: Any = None
    seconds: float = 0.0
    ended: str = ""

    def put(self, state: Any, seconds: float, ended: str = "") -> None:
        """What is known now; written when it is time."""
        self.state, self.seconds, self.ended = state, seconds, ended
        self.journal.write_if_due()


class Journal:
    """The searches of a call and the file that holds them."""

    def __init__(self, checkpoint: Checkpoint, call: Mapping[str, Any], model: bytes) -> None:
        self.path, self.seconds = Path(checkpoint.path), checkpoint.seconds
        self.call, self.model = dict(call), model
        self.searches: dict[str, Kept] = {}
        self._due = time.perf_counter() + self.seconds

    def kept(self, key: str) -> Kept:
        """What is kept of the search with this key: of the same question about the same model."""
        return self.searches.setdefault(key, Kept(self))

    def write_if_due(self) -> None:
        """Write at the interval."""
        if time.perf_counter() >= self._due:
            self.write_or_warn()

    def write_or_warn(self) -> None:
        """Write; what has been found is worth more than the file."""
        try:
            self.write()
        except InputError as error:
            warnings.warn(f"{error}; the search goes on", CheckpointWarning, stacklevel=2)
            self._due = time.perf_counter() + self.seconds

    def write(self) -> None:
        """Replace the file by one with all that is known."""
        start, arrays = time.perf_counter(), []
        searches = [
            [key, packed(kept.state, arrays, KINDS), kept.seconds, kept.ended]
            for key, kept in self.searches.items()
            if kept.state is not None
        ]
        # a member of an archive each would take longer than small arrays do
        index = [[array.dtype.str, list(array.shape)] for array in arrays]
        header = {"format": FORMAT, "call": self.call, "searches": searches, "arrays": index}
        text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
        model = np.frombuffer(self.model, dtype=np.uint8)

        def content(stream: IO[bytes]) -> None:
            members: dict[str, Any] = {"header": text, "model": model}
            for kind in {array.dtype.str for array in arrays}:
                same = [a.ravel() for a in arrays if a.dtype.str == kind and a.nbytes < SMALL]
                members[f"small{kind[1:]}"] = np.concatenate(same) if same else np.zeros(0, kind)
            members |= {f"array{k}": a for k, a in enumerate(arrays) if a.nbytes >= SMALL}
            np.savez(stream, **members)

        replace_file(self.path, content)
        now = time.perf_counter()
        self._due = now + max(self.seconds, WRITING * (now - start))

    def read(self, content: Content) -> None:
        """Go on from what a file holds."""
        for key, (state, seconds, ended) in content.searches.items():
            self.searches[key] = Kept(self, state, seconds, ended)


SMALL = 2**16
"""Bytes of arrays that share a member of the archive."""


@dataclass(frozen=True, eq=False)
class Content:
    """What a file holds: the call, its model as `save` writes it, and of every search by key its
    state, the seconds it had taken and why it ended, if it did."""

    call: dict[str, Any]
    model: bytes
    searches: dict[str, tuple[Any, float, str]]

    @staticmethod
    def of(path: str | Path) -> Content:
        """Read a file; an `InputError` where it is none of these. Nothing in it is executed."""
        kinds = ("f8", "i8", "i4", "b1", "u1")
        with open_archive(path, "a checkpoint of gpcert") as archive:
            header = json.loads(archive.array("header", ("u1",)).tobytes())
            if header["format"] != FORMAT:
                raise InputError(f"expected format {FORMAT!r}, got {header['format']!r}")
            members = [name for name in archive.names if name not in {"header", "model"}]
            whole = {name: archive.array(name, kinds) for name in members}
            used, arrays = dict.fromkeys(whole, 0), []
            for k, (kind, shape) in enumerate(header["arrays"]):
                if f"array{k}" in whole:
                    arrays.append(whole[f"array{k}"])
                    continue
                name, count = f"small{kind[1:]}", math.prod(shape)
                part = whole[name][used[name] : used[name] + count]
                used[name] += count
                arrays.append(part.reshape(shape))
            searches = {}
            for key, state, seconds, ended in header["searches"]:
                searches[key] = unpacked(state, arrays, KINDS), float(seconds), str(ended)
            return Content(header["call"], archive.array("model", ("u1",)).tobytes(), searches)


JOURNAL: ContextVar[Journal | None] = ContextVar("gpcert checkpoint", default=None)
"""That of the call that is being answered."""


@contextmanager
def keeping(journal: Journal) -> Iterator[None]:
    """Keep the searches of what runs inside; they are written whatever ends it."""
    with locked(journal.path):
        if journal.path.exists():
            content = Content.of(journal.path)
            if content.call["digest"] != journal.call["digest"]:
                raise InputError(
                    f"{journal.path}: expected the checkpoint of this call, got that of another "
                    f"({content.call['verb']}) or of another version of gpcert; remove it, or "
                    "choose another name"
                )
            journal.read(content)
        journal.write()  # where that is not possible it is known at once
        token = JOURNAL.set(journal)
        try:
            yield
        finally:
            JOURNAL.reset(token)
            journal.write_or_warn()


def replace_file(path: Path, write: Any) -> None:
    """Write a file beside it, then put it in its place: at every moment there is the old one or the
    new one, after a power failure too."""
    part = path.with_name(path.name + ".part")
    try:
        with part.open("wb") as stream:
            write(stream)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(part, path)
        _sync_folder(path.parent)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        raise InputError(
            f"{path}: the checkpoint cannot be written ({error}); what was saved before is still "
            "there"
        ) from error


def _sync_folder(folder: Path) -> None:
    if hasattr(os, "O_DIRECTORY"):  # not on Windows
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Nobody else writes the file meanwhile; the lock ends with its process, however that ends."""
    lock = path.with_name(path.name + ".lock")
    try:
        stream = lock.open("ab")
    except OSError as error:
        raise InputError(f"{path}: the checkpoint cannot be written ({error})") from error
    with stream:
        try:
            _lock(stream)
        except OSError as error:
            raise InputError(
                f"{path}: another call is writing this checkpoint; wait for it, or choose another "
                "name"
            ) from error
        yield  # the file stays: to remove it would let two callers lock two files of its name


def _lock(stream: IO[bytes]) -> None:
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        lock: Any = msvcrt
        lock.locking(stream.fileno(), lock.LK_NBLCK, 1)
        return
    fcntl.flock(stream.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
