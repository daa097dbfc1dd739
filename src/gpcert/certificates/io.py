"""Records as JSON files: exact floats, infinities by name, a format and a version beside them."""

from __future__ import annotations

import math
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from gpcert.certificates.schema import decode, encode
from gpcert.certificates.text import TextTable, cost_text, region_text, short
from gpcert.errors import InputError
from gpcert.model.committee import Model, load_model
from gpcert.utils.archive import format_of, from_json, to_json
from gpcert.utils.optional_imports import Axes, package_version

if TYPE_CHECKING:
    from gpcert.certificates.boxes import BoxBounds
    from gpcert.certificates.invariant_sets import InvariantSet
    from gpcert.certificates.level_sets import LevelSet

FORMAT = "gpcert-record-2"

LARGEST_FILE = 2**30
"""Bytes of a record; 10^5 certificates of 100 features need a third of it."""

PIECE = 2**20
"""Bytes read at a time: a reader asked for more takes that much memory first."""

KINDS: dict[str, type[Record]] = {}
"""Every kind of record, by the name that files carry."""

ELSEWHERE = {
    kind: module
    for module, kinds in {
        "gpcert.analyses": "accuracy_point attack attacks certified_accuracy robustness "
        "robustness_table safety_curve safety_step worst_case worst_cases",
        "gpcert.explain": "attribution effects pixel_budget pixel_budgets reason reasons",
        "gpcert.study.experiments.results": "experiment",
    }.items()
    for kind in kinds.split()
}
"""Kinds of packages above this one: imported when a file has one."""

ARCHIVES = {
    "gpcert-boxes-1": "gpcert.certificates.boxes:BoxBounds",
    "gpcert-invariant-set-1": "gpcert.certificates.invariant_sets:InvariantSet",
    "gpcert-level-set-1": "gpcert.certificates.level_sets:LevelSet",
}
"""What reads a `.npz` file that is no model, by its format: imported when a file has one."""

R = TypeVar("R", bound="Record")


class Record:
    """What a search answers, or a table of answers: saves as JSON and loads again.

    Subclasses are frozen dataclasses and say their `kind` in the class statement; see docs/files.md
    for the fields. They leave the text to this class (`@dataclass(repr=False)`): `told` are the
    fields that `repr` shows, `shown` is the small table that `str` and notebooks show. A kind
    without a picture of its own may have one in `gpcert.plots.answers`.
    """

    kind: ClassVar[str] = ""
    told: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, kind: str = "", told: str = "") -> None:
        super().__init_subclass__()
        cls.kind, cls.told = kind, tuple(told.split())
        if kind:
            KINDS[kind] = cls

    def __repr__(self) -> str:
        told = ", ".join(f"{name}={short(getattr(self, name), name)}" for name in self.told)
        return f"{type(self).__name__}({told})"

    def __str__(self) -> str:
        return str(self.shown())

    def _repr_html_(self) -> str:
        return self.shown().html()

    def shown(self) -> TextTable:
        """A small table of what was found, and of the region and the cost where there are some."""
        rows = {name.replace("_", " "): short(getattr(self, name), name) for name in self.told}
        region = getattr(self, "region", None)
        if region:
            rows["region"] = region_text(region)
        if hasattr(self, "boxes"):
            rows["cost"] = cost_text(self)
        return TextTable("", (), list(rows.items()))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw what was found on the Axes, or in a new figure; returns the Axes."""
        return self._drawn(ax)

    def _drawn(self, ax: Axes | None, **options: Any) -> Axes:
        # pictures stand above records, and need a library that records do not: found by name
        pictures = import_module("gpcert.plots.answers").PICTURES
        if self.kind not in pictures:
            tables = (vars(table).get("row_kind") for table in KINDS.values())
            advice = "; plot its table" if type(self) in tables else ""
            raise InputError(f"plot: there is no picture of a single {self.kind}{advice}")
        return pictures[self.kind](ax, self, **options)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, for JSON."""
        return {"kind": self.kind, **encode(self)}

    @classmethod
    def from_dict(cls: type[R], record: dict[str, Any]) -> R:
        """Inverse of `to_dict`; an `InputError` says which field is not as it should be."""
        if not isinstance(record, dict) or record.get("kind") != cls.kind:
            kind = record.get("kind") if isinstance(record, dict) else type(record).__name__
            raise InputError(f"expected a {cls.kind}, got a {kind}")
        built = decode(cls, {name: value for name, value in record.items() if name != "kind"})
        built.check()
        return built

    def check(self) -> None:
        """An `InputError` where fields contradict each other; asked of what was loaded."""
        fields = vars(self)
        seconds = fields.get("seconds", 0.0)
        if not 0 <= seconds < math.inf:
            raise InputError(f"seconds: expected a time, got {seconds!r}")
        region = fields.get("region", {})
        sizes = {np.shape(point)[-1] for point in self.inputs()}
        sizes |= {len(region[name]) for name in ("center", "lower") if name in region}
        if len(sizes) > 1:
            raise InputError(f"expected points of the region's dimension, got {sorted(sizes)}")

    def inputs(self) -> list[np.ndarray]:
        """The fields that hold a point, or points in their last axis: all arrays by default."""
        return [field for field in vars(self).values() if isinstance(field, np.ndarray)]

    def to_json(self) -> str:
        """The text that `save` writes."""
        envelope = {"format": FORMAT, "gpcert": package_version(), "record": self.to_dict()}
        return to_json(envelope, indent=1) + "\n"

    def save(self, path: str | Path) -> None:
        """Write as JSON."""
        Path(path).write_text(self.to_json(), encoding="utf-8")

    @classmethod
    def load(cls: type[R], path: str | Path) -> R:
        """Read what `save` wrote."""
        return _build(path, cls, _read(path))


def load(path: str | Path) -> Record | Model | BoxBounds | LevelSet | InvariantSet:
    """Read any file that gpcert wrote: a record (JSON); a model, bounds of boxes or a set (`.npz`).

    Nothing in the file is executed.
    """
    try:
        with Path(path).open("rb") as stream:
            start = stream.read(2)
    except OSError as error:
        raise InputError(f"{path}: expected a file of gpcert ({error})") from error
    if Path(path).suffix == ".cert":
        raise InputError(
            f"{path}: expected a record or a model; a certificate is checked by gpcert verify and "
            "shown by gpcert show"
        )
    if start == b"PK":  # a zip archive, as every .npz is
        form = format_of(path)
        if form in ARCHIVES:
            module, name = ARCHIVES[form].split(":")
            return getattr(import_module(module), name).load(path)
        return load_model(path)
    record = _read(path)
    kind = record.get("kind")
    if isinstance(kind, str) and kind in ELSEWHERE:
        import_module(ELSEWHERE[kind])
    if not isinstance(kind, str) or kind not in KINDS:
        known = ", ".join(sorted({*KINDS, *ELSEWHERE}))
        raise InputError(f"{path}: expected one of {known}, got {kind!r}")
    return _build(path, KINDS[kind], record)


def _read(path: str | Path) -> dict[str, Any]:
    """The record in a file of this format."""
    try:
        content = bytearray()
        with Path(path).open("rb") as stream:
            while piece := stream.read(PIECE):
                content += piece
                if len(content) > LARGEST_FILE:
                    raise InputError(f"it is larger than {LARGEST_FILE} bytes")
        envelope = from_json(content.decode("utf-8"))
    except (OSError, UnicodeDecodeError, InputError, MemoryError) as error:
        reason = str(error) or type(error).__name__
        raise InputError(f"{path}: expected a JSON record of gpcert ({reason})") from error
    version = envelope.get("format") if isinstance(envelope, dict) else None
    if version != FORMAT and str(version).startswith("gpcert-record-"):
        raise InputError(
            f"{path}: its format is {version!r}, this version reads {FORMAT!r}; certify again, or "
            "read the file with the version of gpcert that it names"
        )
    if version != FORMAT:
        raise InputError(f"{path}: expected a record of format {FORMAT!r}, got {version!r}")
    record = envelope.get("record")
    if not isinstance(record, dict):
        raise InputError(f"{path}: expected a record of fields, got {type(record).__name__}")
    return record


def _build(path: str | Path, cls: type[R], record: dict[str, Any]) -> R:
    try:
        return cls.from_dict(record)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
