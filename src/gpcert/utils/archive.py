"""Files of numbers and text: `.npz` archives with a JSON header, without code; and strict JSON: no
NaN, no number beyond float64, no duplicate keys, and bounded nesting; records of arrays as JSON and
a list of arrays, and a hash of any of them.

A file from elsewhere may be corrupt or malicious, so its contents are not trusted. Names, types,
shapes and sizes are read from the directory and from the first bytes of each array, and checked
against each other and by the caller. Only then are arrays unpacked, in pieces, so that no more
memory is used than valid arrays need.
"""

from __future__ import annotations

import functools
import hashlib
import json
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from gpcert.errors import InputError

Shape = tuple[int, ...]
Check = Callable[[dict[str, Any], Mapping[str, Shape]], None]
"""Raises an `InputError` where the names and shapes of the arrays do not fit the header."""

_UNREADABLE = (
    OSError,
    EOFError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RuntimeError,  # encrypted; NotImplementedError: an unsupported compression method
    struct.error,
    zlib.error,
    zipfile.BadZipFile,
)
"""Exceptions of the standard library for corrupt archives (determined by flipping bytes)."""

_NPY = re.compile(
    r"\{'descr': '([<>|][a-zA-Z][0-9]{1,9})', 'fortran_order': (True|False), "
    r"'shape': \(((?:[0-9]{1,18}(?:, [0-9]{1,18})*,?)?)\), \} *\n"
)
"""The header of a `.npy` as NumPy writes it: matched, not evaluated."""

LARGEST_NPY_HEADER = 4096
LARGEST_HEADER = 2**24
"""Characters of the JSON header."""

DEFLATE = 1032
"""Deflate never packs more than 1032 bytes into one (zlib's technical notes)."""

PIECE = 2**20
"""Bytes unpacked at a time."""

DEEPEST = 200
"""Deepest nesting of lists and objects: a kernel inside a kernel needs three levels, a record
six."""


@dataclass(frozen=True)
class _Entry:
    """Position and declared type of an array; its size is checked."""

    info: zipfile.ZipInfo
    dtype: np.dtype
    shape: Shape
    fortran: bool
    start: int

    @property
    def size(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


class Archive:
    """An open `.npz`: its directory is read and checked, its arrays are not."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._zip = zipfile.ZipFile(stream)
        length = stream.seek(0, 2)
        infos = self._zip.infolist()
        # members that share bytes would let a small file unpack to a huge one
        if sum(info.compress_size for info in infos) > length:
            raise InputError("expected arrays that are all in the file")
        self._members: dict[str, zipfile.ZipInfo] = {}
        for info in infos:
            name = info.filename.removesuffix(".npy")
            if name == info.filename or name in self._members:
                raise InputError(f"expected every array once, got {info.filename!r}")
            _check_packing(info)
            self._members[name] = info

    @property
    def names(self) -> list[str]:
        """The arrays' names."""
        return list(self._members)

    def shapes(self, names: Collection[str], kinds: Collection[str]) -> dict[str, Shape]:
        """Shapes of the arrays with these names, from their first bytes.

        `kinds` are the allowed types, as in "f8" or "u1".
        """
        return {name: self._entry(name, kinds).shape for name in names}

    def array(self, name: str, kinds: Collection[str]) -> np.ndarray:
        """Unpack one array."""
        entry = self._entry(name, kinds)
        flat = np.frombuffer(self._bytes(entry), dtype=entry.dtype)
        return flat.reshape(entry.shape, order="F" if entry.fortran else "C")

    def text(self, name: str) -> str:
        """Unpack an array that holds one text of bounded length."""
        entry = self._entry(name, ("U",))
        if entry.shape != () or entry.dtype.itemsize > 4 * LARGEST_HEADER:
            raise InputError(f"{name}: expected one text of at most {LARGEST_HEADER} characters")
        order = "le" if entry.dtype.str.startswith("<") else "be"
        return self._bytes(entry).decode(f"utf-32-{order}").rstrip("\0")

    def _entry(self, name: str, kinds: Collection[str]) -> _Entry:
        if name not in self._members:
            raise InputError(f"expected an array {name!r}, got {', '.join(self._members)}")
        info = self._members[name]
        with self._zip.open(info) as stream:
            text, start = _npy_header(stream)
        match = _NPY.fullmatch(text)
        if match is None:
            raise InputError(f"{name}: expected an array of plain numbers, got {text[:80]!r}")
        descr, fortran, shape = match.groups()
        if not any(descr[1:].startswith(kind) for kind in kinds):
            raise InputError(f"{name}: expected numbers of type {' or '.join(kinds)}, got {descr}")
        numbers = tuple(map(int, shape.replace(",", " ").split()))
        entry = _Entry(info, np.dtype(descr), numbers, fortran == "True", start)
        if entry.size != info.file_size - start:
            raise InputError(
                f"{name}: expected {entry.size} bytes for the shape {entry.shape}, "
                f"got {info.file_size - start}"
            )
        return entry

    def _bytes(self, entry: _Entry) -> bytearray:
        """The array's bytes; reading the last one checks the checksum."""
        data = bytearray()
        with self._zip.open(entry.info) as stream:
            stream.read(entry.start)
            while piece := stream.read(PIECE):
                data += piece
                if len(data) > entry.size:
                    break
        if len(data) != entry.size:
            raise InputError(f"{entry.info.filename}: expected {entry.size} bytes")
        return data


@contextmanager
def open_archive(path: str | Path, what: str) -> Iterator[Archive]:
    """Open an archive; any problem with the file becomes an `InputError` that names it.

    `what` is the expected content, as in "a file of Posterior.save".
    """
    try:
        with Path(path).open("rb") as stream:
            yield Archive(stream)
    except MemoryError as error:
        raise InputError(f"{path}: there is not enough memory for its arrays") from error
    except _UNREADABLE as error:
        reason = str(error) or type(error).__name__
        raise InputError(f"{path}: expected {what} ({reason})") from error


def write_arrays(path: str | Path, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> None:
    """Write the header, which contains its "format", and the arrays."""
    text = to_json(header)
    with Path(path).open("wb") as stream:
        np.savez_compressed(stream, header=np.array(text), **dict(arrays))


def format_of(path: str | Path) -> str | None:
    """The format that the header of an archive says, if it has one."""
    try:
        with open_archive(path, "a file of gpcert") as archive:
            header = from_json(archive.text("header"))
    except InputError:
        return None
    form = header.get("format") if isinstance(header, dict) else None
    return form if isinstance(form, str) else None


def read_arrays(
    path: str | Path, checks: Mapping[str, Check]
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read what `write_arrays` wrote with one of the formats; never executes code from the file.

    `checks`, by format, verify names and shapes before any array is unpacked.
    """
    with open_archive(path, "a file of Posterior.save") as archive:
        header = from_json(archive.text("header"))
        form = header.get("format") if isinstance(header, dict) else None
        if not isinstance(form, str) or form not in checks:
            expected = " or ".join(map(repr, checks))
            raise InputError(f"expected format {expected}, got {form!r}")
        names = [name for name in archive.names if name != "header"]
        checks[form](header, archive.shapes(names, ("f8",)))
        arrays = {name: archive.array(name, ("f8",)) for name in names}
        return header, {n: array.astype(np.float64, copy=False) for n, array in arrays.items()}


def fingerprint(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> str:
    """16 hexadecimal digits of the SHA-256 of a header and of all bytes of its arrays.

    >>> fingerprint({"format": "x"}, {"points": np.zeros((1, 1))})
    'a1453cf889dc529a'
    """
    # labels that files cannot hold, such as dates, still distinguish models
    text = json.dumps(header, sort_keys=True, default=repr)
    digest = hashlib.sha256(text.encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name], dtype="<f8")
        digest.update(f"{name}{array.shape}".encode())
        digest.update(memoryview(array.data).cast("B") if array.size else b"")
    return digest.hexdigest()[:16]


def plain_label(label: Any) -> Any:
    """A label that JSON can hold."""
    return label.item() if isinstance(label, np.generic) else label


def _check_packing(info: zipfile.ZipInfo) -> None:
    if info.flag_bits & 0x1 or info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        raise InputError(f"{info.filename}: expected plain or deflated bytes")
    deflated = info.compress_type == zipfile.ZIP_DEFLATED
    if info.file_size > (DEFLATE * (info.compress_size + 1) if deflated else info.compress_size):
        raise InputError(
            f"{info.filename}: {info.compress_size} bytes cannot unpack to {info.file_size}"
        )


def _npy_header(stream: IO[bytes]) -> tuple[str, int]:
    """The header text of an array, and the offset of its numbers."""
    magic = stream.read(8)
    size = {b"\x01\x00": 2, b"\x02\x00": 4, b"\x03\x00": 4}.get(magic[6:])
    if magic[:6] != b"\x93NUMPY" or size is None:
        raise InputError("expected arrays in NumPy's format")
    length = int.from_bytes(stream.read(size), "little")
    if length > LARGEST_NPY_HEADER:
        raise InputError(f"expected at most {LARGEST_NPY_HEADER} bytes before an array's numbers")
    return stream.read(length).decode("latin-1"), 8 + size + length


def from_json(text: str) -> Any:
    """The value of a JSON text, or an `InputError`.

    >>> from_json('{"a": [1, 2.5]}')
    {'a': [1, 2.5]}
    """
    try:
        value = json.loads(text, parse_constant=_constant, object_pairs_hook=_pairs)
    except RecursionError as error:
        raise InputError(f"expected JSON nested at most {DEEPEST} deep") from error
    except ValueError as error:  # a JSONDecodeError, or an integer of thousands of digits
        raise InputError(f"expected JSON text ({error})") from error
    _check(value, DEEPEST)
    return value


def to_json(value: Any, *, indent: int | None = None) -> str:
    """The JSON text that `from_json` reads, floats exact; in ASCII, for any console.

    >>> to_json({"a": 0.1})
    '{"a": 0.1}'
    """
    _check(value, DEEPEST)
    return json.dumps(value, indent=indent, allow_nan=False)


def _check(value: Any, depth: int) -> None:
    if isinstance(value, dict | list | tuple):
        if depth == 0:
            raise InputError(f"expected JSON nested at most {DEEPEST} deep")
        if isinstance(value, dict) and not all(isinstance(key, str) for key in value):
            raise InputError(f"expected text as keys, got {list(value)!r}")
        for item in value.values() if isinstance(value, dict) else value:
            _check(item, depth - 1)
    elif isinstance(value, float):
        if not math.isfinite(value):  # a literal such as 1e999, or NaN
            raise InputError(f"expected numbers of float64, got {value!r}")
    elif not (value is None or isinstance(value, str | int)):
        raise InputError(
            f"expected numbers, text, lists and tables of them, got {value!r} "
            f"({type(value).__name__}): files cannot hold it"
        )


def _constant(name: str) -> Any:
    raise InputError(f"expected finite numbers, got {name}")


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"expected every name once, got {twice!r} twice")
    return record


class Kind(NamedTuple):
    """How values of a class are taken apart and made again."""

    cls: type
    parts: Callable[[Any], list[Any]]
    make: Callable[..., Any]

    @staticmethod
    def of(record: type) -> Kind:
        """Of a dataclass, or a named tuple."""
        if is_dataclass(record):
            names = [field.name for field in fields(record)]
            return Kind(record, lambda value: [getattr(value, name) for name in names], record)
        return Kind(record, list, record)


Kinds = Mapping[str, Kind]


def packed(value: Any, arrays: list[np.ndarray], kinds: Kinds) -> Any:
    """The value as JSON, in which an array is its place among `arrays`, where it is added.

    >>> arrays = []
    >>> text = packed({"a": (np.inf, np.zeros(2))}, arrays, {})
    >>> unpacked(text, arrays, {})
    {'a': (inf, array([0., 0.]))}
    """
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):  # exact, and infinities too
        return {"float": value.hex()}

    def each(parts: Any) -> list[Any]:
        return [packed(part, arrays, kinds) for part in parts]

    for name, kind in kinds.items():
        if isinstance(value, kind.cls):
            return {name: each(kind.parts(value))}
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        arrays.append(value)
        return {"array": len(arrays) - 1}
    if type(value) in {tuple, list, dict}:
        inside = [each(p) for p in value.items()] if isinstance(value, dict) else each(value)
        return {type(value).__name__: inside}
    raise InputError(f"files hold no {type(value).__name__}")


def unpacked(value: Any, arrays: list[np.ndarray], kinds: Kinds) -> Any:
    """The value that was `packed`."""
    if not isinstance(value, dict):
        return value
    ((name, inside),) = value.items()
    if name == "float":
        return float.fromhex(inside)
    if name == "array":
        return arrays[inside]
    if name == "dict":
        return {unpacked(k, arrays, kinds): unpacked(v, arrays, kinds) for k, v in inside}
    parts = [unpacked(part, arrays, kinds) for part in inside]
    if name in {"tuple", "list"}:
        return tuple(parts) if name == "tuple" else parts
    return kinds[name].make(*parts)


def digest(*values: Any) -> str:
    """A SHA-256 of values and all that is in them: the same in every process.

    Models count by their fingerprints, objects of other classes by class and attributes.

    >>> digest(1.0, [2]) == digest(1.0, [2]), digest(1.0) == digest(1)
    (True, False)
    """
    hashed = hashlib.sha256()
    _add(hashed.update, list(values))
    return hashed.hexdigest()


def _add(update: Callable[[bytes], None], value: Any) -> None:
    if hasattr(value, "to_numpy") and hasattr(value, "index"):  # a frame, or a row of one
        value = [list(getattr(value, "columns", value.index)), value.to_numpy().tolist()]
    update(f"{type(value).__module__}.{type(value).__qualname__}:".encode())
    inside = _inside(value)
    if isinstance(inside, bytes):
        update(f"{len(inside)};".encode() + inside)
        return
    update(f"{len(inside)}(".encode())
    for part in inside:
        _add(update, part)


def _inside(value: Any) -> bytes | list[Any]:
    """What tells a value from others of its class."""
    known: Any = getattr(value, "fingerprint", None)
    if isinstance(known, str):
        inside: bytes | list[Any] = known.encode()
    elif isinstance(value, np.ndarray) and value.dtype.kind != "O":
        inside = f"{value.dtype}{value.shape}".encode() + np.ascontiguousarray(value).tobytes()
    elif isinstance(value, Enum):
        inside = value.name.encode()
    elif isinstance(value, type) or (callable(value) and hasattr(value, "__qualname__")):
        cells = [cell.cell_contents for cell in getattr(value, "__closure__", None) or ()]
        inside = [value.__module__, value.__qualname__, getattr(value, "__self__", None), *cells]
    elif isinstance(value, Mapping):
        inside = [part for pair in value.items() for part in pair]
    elif isinstance(value, tuple | list | np.ndarray):
        inside = list(value)
    elif isinstance(value, set | frozenset):
        inside = sorted(value, key=repr)
    elif is_dataclass(value):
        inside = [getattr(value, field.name) for field in fields(value)]
    elif getattr(value, "__dict__", None):
        inside = _attributes(value)
    else:
        inside = repr(value).encode()
    return inside


def _attributes(value: Any) -> list[Any]:
    """Names and values, but for what is derived from others."""
    derived, cls = functools.cached_property, type(value)
    names = [name for name in vars(value) if not isinstance(getattr(cls, name, None), derived)]
    return [part for name in sorted(names) for part in (name, vars(value)[name])]
