"""Reads a certificate: one line of text, a JSON header, and packed arrays of numbers.

    b"gpcert-proof-1\\n", length of the header (8 bytes, little-endian), header (UTF-8),
    one zlib stream: the arrays that `header["arrays"]` lists as [name, type, shape], one after the
    other, little-endian and in C order; types are "f8" (float64) and "i4" (int32).

Nothing is executed, and nothing is unpacked before the sizes have been compared with the file.
"""

from __future__ import annotations

import array
import json
import math
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpcert_check import FORMAT
from gpcert_check.verdicts import BadFile

MAGIC = f"{FORMAT}\n".encode()
DEFLATE = 1032
"""zlib never packs more than 1032 bytes into one."""

LARGEST_FILE = 2**31
DEEPEST = 100
SIZES = {"f8": ("d", 8), "i4": ("i", 4)}


@dataclass(frozen=True)
class Numbers:
    """An array of numbers in C order."""

    shape: tuple[int, ...]
    values: array.array

    def rows(self) -> list[list[float]]:
        """The rows of a matrix."""
        n, width = self.shape
        return [list(self.values[i * width : (i + 1) * width]) for i in range(n)]

    def part(self, index: int) -> Numbers:
        """Entry `index` of the first axis."""
        size = math.prod(self.shape[1:])
        return Numbers(self.shape[1:], self.values[index * size : (index + 1) * size])


def read(path: str) -> tuple[dict[str, Any], dict[str, Numbers]]:
    """The header and the arrays."""
    try:
        with Path(path).open("rb") as stream:
            content = stream.read(LARGEST_FILE + 1)
        return unpack(content)
    except (OSError, ValueError, TypeError, LookupError, MemoryError, zlib.error) as error:
        raise BadFile(f"{path}: {error or type(error).__name__}") from error


def unpack(content: bytes) -> tuple[dict[str, Any], dict[str, Numbers]]:
    """The same of the bytes of a file."""
    start = len(MAGIC) + 8
    if content[: len(MAGIC)] != MAGIC or not start <= len(content) <= LARGEST_FILE:
        raise BadFile(f"expected a file of format {FORMAT}")
    end = start + int.from_bytes(content[len(MAGIC) : start], "little")
    if end > len(content):
        raise BadFile("expected the whole header")
    header = parse(content[start:end].decode("utf-8"))
    listed = [(name, SIZES[kind], tuple(shape)) for name, kind, shape in header["arrays"]]
    if any(type(n) is not int or n < 0 for _, _, shape in listed for n in shape):
        raise BadFile("expected shapes of whole numbers")
    total = sum(width * math.prod(shape) for _, (_, width), shape in listed)
    if total > DEFLATE * (len(content) - end) or len({name for name, _, _ in listed}) < len(listed):
        raise BadFile("expected every array once, and all of them in the file")
    stream = zlib.decompressobj()
    data = stream.decompress(content[end:], total + 1)
    if len(data) != total or not stream.eof or stream.unused_data:
        raise BadFile(f"expected arrays of {total} bytes in all")
    arrays, place = {}, 0
    for name, (code, width), shape in listed:
        size = width * math.prod(shape)
        values = array.array(code, data[place : place + size])
        if sys.byteorder == "big":
            values.byteswap()
        arrays[name], place = Numbers(shape, values), place + size
    return header, arrays


def parse(text: str) -> Any:
    """Strict JSON: an object, finite numbers, every name once, bounded nesting."""

    def constant(name: str) -> Any:
        raise BadFile(f"expected finite numbers in the header, got {name}")

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(items)) != len(items):
            raise BadFile("expected every name of the header once")
        return dict(items)

    try:
        value = json.loads(text, parse_constant=constant, object_pairs_hook=pairs)
    except RecursionError as error:
        raise BadFile(f"expected a header nested at most {DEEPEST} deep") from error
    if not isinstance(value, dict):
        raise BadFile("expected a header, a JSON object")
    _check(value, DEEPEST)
    return value


def _check(value: Any, depth: int) -> None:
    if depth == 0 or (isinstance(value, float) and not math.isfinite(value)):
        raise BadFile(f"expected finite numbers in the header, nested at most {DEEPEST} deep")
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            _check(part, depth - 1)
