"""Files that were damaged or made with bad intent: mutants of what gpcert writes."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import gpcert
from gpcert import kernels, likelihoods
from gpcert.errors import InputError
from gpcert.model.committee import Committee

Rng = np.random.Generator

GIANT = 10**9
"""Numbers in an array that a file claims to hold."""

MAX_MEMORY = 1.2e7
"""Bytes that reading a small file may take, besides 40 times its size; LZMA itself takes 8 MB."""


def posterior() -> gpcert.Posterior:
    """A small model."""
    kernel = kernels.Sum([kernels.SquaredExponential([1.0, 2.0]), kernels.Matern(1.0, 1.5)])
    return gpcert.Posterior(
        kernel,
        [[0.0, 0.5], [1.0, -1.0]],
        [1.0, -0.5],
        0.3 * np.eye(2),
        likelihood=likelihoods.Probit(),
        classes=("no", "yes"),
    )


def write_originals(folder: Path) -> dict[str, Path]:
    """One file of every kind that gpcert writes."""
    model = posterior()
    model.save(folder / "posterior.npz")
    Committee((model, model), ("a", "b"), "one_vs_rest").save(folder / "committee.npz")
    budget = gpcert.Budget(seconds=5.0, boxes=5)
    gpcert.certify(model, [0.0, 0.0], 0.1, budget=budget).save(folder / "certificate.json")
    gpcert.certify_many(model, [[0.0, 0.0], [1.0, 0.5]], 0.1, budget=budget).save(
        folder / "table.json"
    )
    box = gpcert.Box([0.0, 0.0], [0.1, 0.1])
    gpcert.prediction_range(model, box, budget=budget).save(folder / "range.json")
    gpcert.certified_radius(model, [0.0, 0.0], budget=budget, rtol=0.5).save(folder / "radius.json")
    return {path.stem: path for path in sorted(folder.iterdir())}


def readers() -> dict[str, Callable[[Path], Any]]:
    """What reads each kind."""
    return {
        "posterior": gpcert.Posterior.load,
        "committee": Committee.load,
        "certificate": gpcert.Certificate.load,
        "table": gpcert.CertificateTable.load,
        "range": gpcert.PredictionRange.load,
        "radius": gpcert.Radius.load,
    }


def mutant(rng: Rng, data: bytes, archive: bool) -> bytes:
    """A damaged copy."""
    kinds = [_flipped, _flipped, _truncated, _spliced, _zeroed]
    kinds += [_header, _header, _array, _array, _repacked] if archive else [_record, _record, _deep]
    return kinds[int(rng.integers(len(kinds)))](rng, data)


def _flipped(rng: Rng, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(int(rng.integers(1, 6))):
        changed[int(rng.integers(len(changed)))] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def _truncated(rng: Rng, data: bytes) -> bytes:
    return data[: int(rng.integers(len(data)))]


def _spliced(rng: Rng, data: bytes) -> bytes:
    a, b, c = sorted(int(i) for i in rng.integers(len(data), size=3))
    return data[:b] + data[a:c] + data[c:]


def _zeroed(rng: Rng, data: bytes) -> bytes:
    a, b = sorted(int(i) for i in rng.integers(len(data), size=2))
    b = min(b, a + 64)
    return data[:a] + bytes(b - a) + data[b:]


STRANGE = (None, True, -1, 0, 1e999, float("nan"), "", "x", [], {}, [[]], 10**30, "1e5", [1, "a"])
"""Values of every kind, for places where another kind is expected."""


def _changed(rng: Rng, value: Any) -> Any:
    """A JSON value with one part replaced, removed or added."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        key = sorted(value, key=str)[int(rng.integers(len(value)))]
        if rng.random() < 0.15:
            return {k: v for k, v in value.items() if k != key}
        if rng.random() < 0.1:
            return {**value, "extra": 1}
        return {**value, key: _changed(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.7:
        index = int(rng.integers(len(value)))
        return [*value[:index], _changed(rng, value[index]), *value[index + 1 :]]
    return STRANGE[int(rng.integers(len(STRANGE)))]


def _record(rng: Rng, data: bytes) -> bytes:
    return json.dumps(_changed(rng, json.loads(data))).encode()


def _deep(rng: Rng, data: bytes) -> bytes:
    depth = int(rng.integers(10_000, 200_000))
    inside = b"[" * depth + b"]" * depth
    return (
        inside
        if rng.random() < 0.3
        else data.replace(b'"record": {', b'"record": {"a": ' + inside + b", ", 1)
    )


def _unpacked(data: bytes) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _packed(parts: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return stream.getvalue()


def _saved(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=True)
    return stream.getvalue()


def _header(rng: Rng, data: bytes) -> bytes:
    """Another JSON header, with deep nesting now and then."""
    parts = _unpacked(data)
    text = str(np.load(io.BytesIO(parts["header.npy"])))
    if rng.random() < 0.1:
        depth = int(rng.integers(10_000, 100_000))
        text = text[:-1] + ', "a": ' + "[" * depth + "]" * depth + "}"
    else:
        text = json.dumps(_changed(rng, json.loads(text)))
    return _packed(parts | {"header.npy": _saved(np.array(text))})


def _array(rng: Rng, data: bytes) -> bytes:
    """One array missing, of another shape or type, or that claims to be giant."""
    parts = _unpacked(data)
    names = [name for name in parts if name != "header.npy"]
    name = names[int(rng.integers(len(names)))]
    kind = int(rng.integers(9))
    if kind == 0:
        del parts[name]
        return _packed(parts)
    if kind == 1:
        return _packed(parts | {name: _claimed(f"({GIANT},)", b"\0" * 64)})
    if kind == 2:
        return _packed(parts | {"unknown.npy": _claimed("(4000000,)", bytes(32_000_000))})
    strange = (
        np.array([["a", "b"]]),
        np.array([{"a": 1}], dtype=object),
        np.full((2, 2), np.nan),
        np.zeros((0, 2)),
        np.ones((2, 2), dtype=complex),
        np.ones((3, 1, 2, 2)),
    )
    return _packed(parts | {name: _saved(strange[kind - 3])})


def _claimed(shape: str, body: bytes) -> bytes:
    """A `.npy` member whose header says the shape, whatever follows."""
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (63 - (10 + len(text)) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + body


def _repacked(rng: Rng, data: bytes) -> bytes:
    """Other compression, or bytes flipped inside the members."""
    parts = _unpacked(data)
    names = sorted(parts)
    name = names[int(rng.integers(len(names)))]
    method = (zipfile.ZIP_STORED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)[int(rng.integers(3))]
    return _packed(parts | {name: _flipped(rng, parts[name])}, method)


def load_findings(kind: str, data: bytes, folder: Path) -> list[str]:
    """What is wrong with how a file is read: any other error than ours, too much memory, an object
    that is not what it claims to be."""
    path = folder / ("mutant.npz" if kind in {"posterior", "committee"} else "mutant.json")
    path.write_bytes(data)
    tracemalloc.start()
    try:
        loaded = readers()[kind](path)
        problems = insane(loaded)
    except InputError:
        problems = []
    except Exception as error:  # what must not happen is what is looked for
        problems = [f"{type(error).__name__}: {str(error)[:120]}"]
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    if peak > MAX_MEMORY + 40 * len(data):
        problems.append(f"{peak / 1e6:.0f} MB for a file of {len(data) / 1e3:.0f} kB")
    return problems


def insane(loaded: Any) -> list[str]:
    """Parts of a loaded object that are of the wrong kind."""
    if isinstance(loaded, gpcert.CertificateTable):
        rows = [text for item in loaded.certificates for text in insane(item)]
        return rows + _not(bool, complete=loaded.complete)
    if isinstance(loaded, gpcert.Posterior | Committee):
        arrays = [getattr(m, name) for m in loaded.members for name in ("points", "weights")]
        bad = [a for a in arrays if a.dtype != np.float64 or not np.all(np.isfinite(a))]
        return [f"an array of {a.dtype}" for a in bad]
    found = _not(int, boxes=loaded.boxes) + _number(seconds=loaded.seconds)
    if isinstance(loaded, gpcert.PredictionRange):
        for interval in (loaded.minimum, loaded.maximum):
            found += _number(lower=interval.lower, upper=interval.upper)
        found += _not(bool, converged=loaded.converged) + _not(str, quantity=loaded.quantity)
        return found + _point(loaded.argmin) + _point(loaded.argmax)
    if isinstance(loaded, gpcert.Certificate):
        found += _number(lower=loaded.margin.lower, upper=loaded.margin.upper)
    else:
        found += _number(lower=loaded.lower, upper=loaded.upper, norm=loaded.norm)
    return found + _point(loaded.counterexample)


def _not(kind: type, **parts: Any) -> list[str]:
    return [f"{name} is {value!r}" for name, value in parts.items() if type(value) is not kind]


def _number(**parts: Any) -> list[str]:
    return [
        f"{name} is {value!r}" for name, value in parts.items() if type(value) not in {int, float}
    ]


def _point(point: Any) -> list[str]:
    good = point is None or (isinstance(point, np.ndarray) and point.dtype == np.float64)
    return [] if good and (point is None or point.ndim == 1) else [f"a point is {point!r}"]
