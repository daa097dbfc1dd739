"""What an experiment is: settings, pieces of work, data by name, and what is made of the rows."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gpcert.errors import InputError
from gpcert.study.datasets import (
    Dataset,
    digits,
    fashion,
    mnist,
    spambase,
    synthetic2d,
    table_file,
)
from gpcert.study.experiments.results import (
    NOT_JUDGED,
    OWN,
    SCALES,
    Cell,
    ExperimentResult,
    Finding,
    ResultFigure,
    ResultTable,
    check_name,
)
from gpcert.utils.optional_imports import Figure


class Source(NamedTuple):
    """A data set as the paper names it, and what loads it from a folder, or from OpenML."""

    label: str
    load: Callable[[str | None], Dataset]
    offline: bool = False
    """Whether it needs no file and no download."""
    image: bool = False


SOURCES = {
    "synthetic2d": Source("Synthetic2D", lambda _: synthetic2d(), True),
    "synthetic2d-published": Source(
        "Synthetic2D (shift 5)", lambda _: synthetic2d(shift=5.0), True
    ),
    "synthetic2d-1000": Source("Synthetic2D", lambda _: synthetic2d(n_test=1000), True),
    "synthetic2d-published-1000": Source(
        "Synthetic2D (shift 5)", lambda _: synthetic2d(n_test=1000, shift=5.0), True
    ),
    "digits38": Source("digits 3/8 (8x8)", lambda _: digits((3, 8)), True, True),
    "digits358": Source("digits 3/5/8 (8x8)", lambda _: digits((3, 5, 8)), True, True),
    "spam": Source("SPAM", lambda folder: spambase(folder, features="paper")),
    "mnist38": Source("MNIST38", lambda folder: mnist((3, 8), folder), image=True),
    "mnist358": Source("MNIST358", lambda folder: mnist((3, 5, 8), folder), image=True),
    "fashion-ts": Source("F-MNIST-TS", lambda folder: fashion((0, 6), folder), image=True),
    "fashion-tsp": Source("F-MNIST-TSP", lambda folder: fashion((0, 2, 6), folder), image=True),
    OWN: Source("own table", lambda _: Sources().load(OWN)),
}
"""By name: the paper's, as far as they go, and scikit-learn's digits in their place offline."""


def labelled(name: str) -> str:
    """A data set's name as the paper writes it.

    >>> labelled("mnist38")
    'MNIST38'
    """
    return SOURCES[name].label


GARMENTS = {0: "t-shirt", 2: "pullover", 6: "shirt"}


def class_label(data: str, label: Any) -> str:
    """A class as a reader knows it.

    >>> class_label("fashion-ts", 6), class_label("mnist38", 8)
    ('shirt', '8')
    """
    return GARMENTS[label] if data.startswith("fashion") else str(label)


@dataclass(frozen=True)
class Sources:
    """Data sets by name: generated, embedded, from files in a folder, or from OpenML; and the data
    set "own", a CSV file `table` whose column `target` has the labels.

    A copy of it travels to the processes that compute; each of them loads what it needs, once.

    >>> Sources().load("synthetic2d").dim
    2
    """

    folder: str | None = None
    table: str | None = None
    target: str | None = None

    def __post_init__(self) -> None:
        for name in ("folder", "table"):
            if (path := getattr(self, name)) is not None:
                object.__setattr__(self, name, str(Path(path).absolute()))

    def load(self, name: str) -> Dataset:
        """The data set of this name."""
        if name == OWN and self.table is not None and self.target is not None:
            return _own_table(self.table, self.target)
        if name not in SOURCES or name == OWN:
            raise InputError(f"data: expected one of {list(SOURCES)}, got {name!r}")
        return _loaded(name, None if SOURCES[name].offline else self.folder)

    def digest(self, name: str) -> str:
        """SHA-256 of all numbers and labels of a data set, as the experiments see them."""
        data, digest = self.load(name), hashlib.sha256()
        for part in (data.X_train, data.y_train, data.X_test, data.y_test):
            array = np.ascontiguousarray(part)
            digest.update(f"{array.dtype.str} {array.shape} ".encode())
            digest.update(array.tobytes())
        return digest.hexdigest()


@cache
def _own_table(table: str, target: str) -> Dataset:
    return table_file(table, target)


@cache
def _loaded(name: str, folder: str | None) -> Dataset:
    return SOURCES[name].load(folder)


def subset(data: Dataset, n_train: int, n_test: int, random_state: int) -> Dataset:
    """Training and test points drawn at random; all of them where there are no more.

    A larger draw with the same seed contains a smaller one, so that sizes can be compared.

    >>> small = subset(digits((3, 8)), 20, 10, random_state=0)
    >>> large = subset(digits((3, 8)), 40, 10, random_state=0)
    >>> bool(np.array_equal(small.X_train, large.X_train[:20]))
    True
    """
    rng = np.random.default_rng(random_state)
    train = rng.permutation(len(data.X_train))[:n_train]
    test = rng.permutation(len(data.X_test))[:n_test]
    parts = data.X_train[train], data.y_train[train], data.X_test[test], data.y_test[test]
    return Dataset(*parts, data.name, data.features)


Row = Mapping[str, Cell]
Rows = Iterable[tuple[str, Row]]
"""Rows one by one, each after the name of the table that it is for."""

Tables = Mapping[str, ResultTable]
"""The finished tables by name: all that findings and figures are made from."""


def by_table(rows: Rows) -> dict[str, list[Row]]:
    """The rows of every table in their order.

    >>> by_table([("a", {"x": 1}), ("b", {"y": 2}), ("a", {"x": 3})])
    {'a': [{'x': 1}, {'x': 3}], 'b': [{'y': 2}]}
    """
    tables: dict[str, list[Row]] = {}
    for table, row in rows:
        tables.setdefault(table, []).append(row)
    return tables


@dataclass(frozen=True)
class Piece:
    """A unit of work whose rows are saved when it is finished: one model, one set of points.

    `arguments` are plain JSON values, `data` the names of the data sets that it reads (see
    `Sources`), `cost` its expected share of the time, for the progress bar.
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    data: tuple[str, ...] = ()
    cost: float = 1.0

    def __post_init__(self) -> None:
        check_name("piece", self.name)


def one_per_case(settings: Any) -> list[Piece]:
    """A piece for each of `settings.cases`, named after its data set."""
    return [Piece(case.data, {"case": k}, (case.data,)) for k, case in enumerate(settings.cases)]


def one_per(cost: Callable[..., float], **axes: Iterable[Any]) -> list[Piece]:
    """A piece for every combination of values, named after them; one of them is the data set, and
    one that costs nothing is none.

    >>> [piece.name for piece in one_per(lambda data, n: n, data=["spam"], n=[0, 1, 2])]
    ['spam-1', 'spam-2']
    """
    every = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    return [
        Piece(re.sub("[^a-z0-9]+", "-", "-".join(map(str, chosen.values()))), chosen, data, at)
        for chosen in every
        if (at := cost(**chosen)) > 0 and (data := (chosen["data"],))
    ]


@dataclass(frozen=True, eq=False)
class Experiment:
    """One experiment, made of the names in its module `gpcert.study.experiments.NAME`.

    Parameters
    ----------
    name : as in `gpcert reproduce NAME`.
    title : TITLE, a line about it.
    settings : SETTINGS, a frozen dataclass of plain values for each of the scales "smallest"
        (tests), "quick" (no download, a minute) and "full" (the paper's), and of "own" (a user's
        own table) where the experiment can be run on one.
    captions : CAPTIONS, the tables in their order; a setting is named in braces.
    figure : FIGURE, which `draw(tables)` draws.
    compute : `(settings, arguments of a piece, sources) -> rows`; it may run in another process.
        Numbers depend on nothing but its arguments.
    pieces : `settings -> pieces`; what is computed, taken apart.
    summary : `tables of the computed rows -> rows` that follow from these; a table of the same name
        is replaced.
    findings : `tables -> findings` one by one; the claims of the paper beside our numbers.
    notes : NOTES, what a reader should know about the settings and where they differ from the
        paper's.
    variants : VARIANTS, changes of the settings by name: alternatives of the published scripts,
        which `NAME-VARIANT` runs.
    reasons : REASONS, why a claim does not agree, by the beginning of the claim: tested reasons, of
        the full run and not of its variants.
    """

    name: str
    title: str
    settings: Mapping[str, Any]
    captions: Mapping[str, str]
    figure: ResultFigure
    draw: Callable[[Tables], Figure]
    compute: Callable[[Any, Mapping[str, Any], Sources], Rows]
    pieces: Callable[[Any], Sequence[Piece]] = one_per_case
    summary: Callable[[Tables], Rows] = lambda tables: ()
    findings: Callable[[Tables], Iterable[Finding]] = lambda tables: ()
    notes: tuple[str, ...] = ()
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_name("experiment", self.name)
        if set(self.settings) - {OWN} != set(SCALES):
            raise InputError(
                f"{self.name}: expected settings for {list(SCALES)}, got {list(self.settings)}"
            )

    def settings_of(self, scale: str) -> Any:
        """The settings of one scale."""
        if scale == OWN and OWN not in self.settings:
            able = [name for name in NAMES if OWN in experiment_named(name).settings]
            raise InputError(
                f"{self.name}: cannot be run on a table of your own; expected one of {able}"
            )
        if scale not in self.settings:
            raise InputError(f"scale: expected one of {list(self.settings)}, got {scale!r}")
        return self.settings[scale]

    def work(self, scale: str) -> list[Piece]:
        """The pieces of one scale, whose names differ."""
        pieces = list(self.pieces(self.settings_of(scale)))
        names = [piece.name for piece in pieces]
        if len(set(names)) != len(names):
            raise InputError(f"{self.name}: expected pieces with different names, got {names}")
        return pieces

    def tables(self, scale: str, rows: Rows) -> tuple[ResultTable, ...]:
        """All tables, from the rows of all pieces."""
        settings = vars(self.settings_of(scale))
        titles = {name: text.format(**settings) for name, text in self.captions.items()}

        def made(rows: Rows) -> dict[str, ResultTable]:
            grouped = by_table(rows).items()
            return {name: ResultTable.of(name, titles[name], records) for name, records in grouped}

        tables = made(rows)
        tables |= made(self.summary(tables))
        return tuple(tables[name] for name in titles if name in tables)

    def judged(self, result: ExperimentResult) -> ExperimentResult:
        """The result with findings, figures and notes made anew from its tables.

        Of the smallest scale no claim is judged: a handful of points settles none, whatever their
        intervals say.
        """
        findings = tuple(self.findings({table.name: table for table in result.tables}))
        if result.scale == "smallest":
            findings = tuple(replace(each, **TOO_SMALL) for each in findings)
        if result.scale == OWN:
            findings = tuple(replace(each, paper="of its data", beyond=True) for each in findings)
        findings = tuple(map(self._with_reason, findings))
        return replace(result, findings=findings, figures=(self.figure,), notes=self.notes)

    def _with_reason(self, finding: Finding) -> Finding:
        """A claim of the paper that does not agree has a reason, or none is known."""
        if finding.beyond or finding.agrees not in ("no", "unclear"):
            return finding
        known = [why for start, why in self.reasons.items() if finding.claim.startswith(start)]
        unsettled = (
            "the interval does not settle it" if finding.agrees == "unclear" else UNEXPLAINED
        )
        return replace(finding, why=known[0] if known else unsettled)


UNEXPLAINED = "unexplained"
"""Said of a disagreement that no test gave a reason for."""

TOO_SMALL = {
    "ours": "a run this small says nothing",
    "agrees": NOT_JUDGED,
    "comment": "the smallest scale only shows that the experiment runs; see quick and full",
}
"""What is said of every claim at the smallest scale."""

NAMES = (
    "safety",
    "robustness",
    "sparse",
    "interpretability-global",
    "interpretability-images",
    "multiclass",
    "convergence",
    "scaling",
    "full-image",
    "sufficient-reasons",
)


def names() -> tuple[str, ...]:
    """The names that `reproduce` knows, in the order of the paper."""
    return NAMES


def experiment_named(name: str) -> Experiment:
    """The experiment of this name.

    >>> experiment_named("safety").name
    'safety'
    """
    if name in NAMES:
        parts = vars(import_module(f"gpcert.study.experiments.{name.replace('-', '_')}"))
        constants = {key.lower(): part for key, part in parts.items() if key.isupper()}
        known: dict[str, Any] = {**parts, **constants, "name": name}
        arguments = [each.name for each in fields(Experiment) if each.name in known]
        return Experiment(**{argument: known[argument] for argument in arguments})
    for base in sorted(NAMES, key=len, reverse=True):
        start, _, variant = name.partition(f"{base}-")
        if not start and variant:
            experiment = experiment_named(base)
            if variant in experiment.variants:
                return _variant(experiment, name, experiment.variants[variant])
    raise InputError(
        f"experiment: expected one of {', '.join(NAMES)}, or one of their variants "
        f"{', '.join(variant_names())}; got {name!r}"
    )


def variant_names() -> tuple[str, ...]:
    """The names of the variants, alternatives to the settings of the experiments."""
    return tuple(
        f"{name}-{variant}" for name in NAMES for variant in experiment_named(name).variants
    )


def _variant(experiment: Experiment, name: str, changes: Mapping[str, Any]) -> Experiment:
    """The experiment with other settings at every scale."""
    settings = {scale: replace(own, **changes) for scale, own in experiment.settings.items()}
    what = ", ".join(f"{field.replace('_', ' ')} {value}" for field, value in changes.items())
    title = f"{experiment.title}; variant: {what}"
    return replace(experiment, name=name, settings=settings, title=title, variants={}, reasons={})
