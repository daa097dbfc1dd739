"""`page_of`: a certificate, a record or a table as one HTML page that needs no other file, no
network and no script; all text is escaped.

A page repeats what a file says: it proves nothing, and says how to check what can be checked.
"""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from gpcert.certificates.drawings import (
    MOST_LEAVES,
    Place,
    line_drawing,
    moves_drawing,
    region_drawing,
)
from gpcert.certificates.io import Record, load
from gpcert.certificates.optimum import Optimum, RegretBound
from gpcert.certificates.proof import CLAIMS, SUFFIX, boxes_of
from gpcert.certificates.record import Certificate, PredictionRange, Radius, RecordTable
from gpcert.certificates.text import (
    Interval,
    Status,
    above,
    below,
    cost_text,
    interval_text,
    region_text,
    table_shown,
)
from gpcert.errors import InputError
from gpcert.regions import region_from_dict

SHOWN = 24
"""Rows of a table that a page tells and draws one by one."""

LISTED = 1000
"""Rows of a table that a page lists."""

LOOKS = {Status.ROBUST.name: "yes", Status.NOT_ROBUST.name: "no"}

Boxes = Sequence[tuple[Sequence[float], Sequence[float]]]


@dataclass(frozen=True, kw_only=True)
class Told:
    """One answer in words and pictures."""

    question: str
    verdict: str
    look: str = "unclear"
    facts: Sequence[tuple[str, str]] = ()
    drawings: Sequence[str] = ()


@dataclass(frozen=True)
class Layout:
    """The region of an answer, with the names of its features."""

    region: dict[str, Any]
    names: Sequence[str]
    boxes: Boxes = ()

    def drawings(self, start: np.ndarray | None, places: Sequence[Place]) -> list[str]:
        """Which features move, and for two free features the region."""
        try:
            region = region_from_dict(self.region)
        except InputError:  # of a class that is not registered here
            return []
        low, high, free = region.lower, region.upper, np.flatnonzero(region.lower < region.upper)
        names = self.names or [f"feature {j}" for j in range(len(low))]
        if len(names) != len(low) or any(place.point.shape != low.shape for place in places):
            raise InputError("expected points and names of the region's dimension")
        start = region.center if start is None else start
        known = [start, *(place.point for place in places)]
        ends = np.min([low, *known], axis=0), np.max([high, *known], axis=0)
        drawings = []
        if places:
            title = f"What moves, from {'the centre' if start is region.center else 'x'}"
            drawings.append(moves_drawing(title, names, ends, start, places))
        if len(free) == 2:
            here = [Place("x", start, "here"), *places]
            flat = [Place(each.name, each.point[free], each.look) for each in here]
            count = f", in {len(self.boxes)} boxes that are proved one by one" if self.boxes else ""
            drawings.append(
                region_drawing(
                    f"The region{count}",
                    [names[j] for j in free.tolist()],
                    (ends[0][free], ends[1][free]),
                    self.boxes or [(low[free].tolist(), high[free].tolist())],
                    _outline(self.region, region, free),
                    flat,
                )
            )
        return [drawing for drawing in drawings if drawing]


def page_of(path: str | Path) -> str:
    """The page of a `.cert` file, or of a record or table in JSON."""
    path = Path(path)
    if path.suffix == SUFFIX:
        told, provenance = _told_file(path)
        check = (
            f"<p>Nothing on this page has been checked. With the file, <code>gpcert-check "
            f"{escape(path.name)}</code> (<code>pip install 'gpcert[check]'</code>) proves every "
            "claim again and shares no code with gpcert; <code>gpcert verify "
            f"{escape(path.name)} --model M</code> also says whether it is about your model.</p>"
        )
        return _page(told, "", provenance, check)
    record = load(path)
    if not isinstance(record, Record):
        raise InputError(f"{path}: expected a certificate, a record or a table, got a model")
    rows = record.rows if isinstance(record, RecordTable) else (record,)
    told = [_told(row) for row in rows[:SHOWN]]
    listed = ""
    if isinstance(record, RecordTable):
        listed, pairs = _list(record), zip(record.labels, told, strict=False)
        told = [replace(each, question=f"{label}: {each.question}") for label, each in pairs]
    models = dict.fromkeys(str(getattr(row, "model", "")) for row in rows)
    provenance = [("file", path.name), *(("model", f"fingerprint {m}") for m in models if m)]
    check = (
        "<p>A record says what somebody found; it holds no proof. Ask the verb again with "
        "<code>proof=True</code>, and <code>save</code> under a name that ends in "
        "<code>.cert</code>: <code>gpcert-check</code> proves such a file again.</p>"
    )
    return _page(told, listed, provenance, check)


def _told(record: Any) -> Told:
    """A record, of the kinds that have words and pictures of their own; others as their table."""
    for kind, tell in TELLERS.items():
        if isinstance(record, kind):
            return tell(record)
    table = record.shown()
    rows = [(str(row[0]), ", ".join(map(str, row[1:]))) for row in table.rows]
    return Told(question=table.title or record.kind.replace("_", " "), verdict="", facts=rows)


def _of_certificate(c: Certificate) -> Told:
    what = c.rule if c.decision is None else f"the decision {c.decision!r}"
    facts = [("rule", c.rule), ("margin", f"least one in {interval_text(c.margin)} {c.unit}")]
    facts += [("search", f"{c.reason.value}; {cost_text(c)}")]
    marks = {"at x": c.margin_at_x} if c.margin_at_x is not None else {}
    margin = _bar("The least margin: above 0 the decision holds", c.margin, {"level": 0.0, **marks})
    places = [] if c.counterexample is None else [Place("counter-example", c.counterexample, "bad")]
    return Told(
        question=f"Does {what} hold at every point of the {region_text(c.region)}?",
        verdict=c.summary,
        look=LOOKS.get(c.status.name, "unclear"),
        facts=facts,
        drawings=[margin, *Layout(c.region, c.feature_names).drawings(c.x, places)],
    )


def _of_range(r: PredictionRange) -> Told:
    low, high = r.minimum, r.maximum
    marks = {} if r.nominal is None else {"at the centre": r.nominal}
    extremes = [("minimum at", r.argmin, "low"), ("maximum at", r.argmax, "high")]
    places = [Place(name, point, look) for name, point, look in extremes if point is not None]
    return Told(
        question=f"Which values has the {r.meaning or r.quantity} in the {region_text(r.region)}?",
        verdict=f"between {below(low.lower)} and {above(high.upper)}",
        look="yes" if r.converged else "unclear",
        facts=[
            ("minimum", f"in {interval_text(low)}"),
            ("maximum", f"in {interval_text(high)}"),
            ("search", f"{r.reason.value}; {cost_text(r)}"),
        ],
        drawings=[_range_bar(low, high, marks), *Layout(r.region, ()).drawings(None, places)],
    )


def _of_radius(r: Radius) -> Told:
    what = r.rule if r.decision is None else f"the decision {r.decision!r}"
    places = [] if r.counterexample is None else [Place("counter-example", r.counterexample, "bad")]
    refuted = "no counter-example is known"
    if math.isfinite(r.upper):
        refuted = f"a counter-example at distance {above(r.upper)}"
    title = "Distances from x: proved, and the counter-example"
    marks = {"counter-example": r.upper} if math.isfinite(r.upper) else {}
    bar = line_drawing(title, (0.0, r.lower), (math.inf, -math.inf), marks)
    return Told(
        question=f"How far from x does {what} hold?",
        verdict=f"up to {below(r.lower)} (l_{r.norm:g}) proved; {refuted}",
        look="yes" if r.lower > 0 else "unclear",
        facts=[("rule", r.rule), ("search", r.reason.value)],
        drawings=[bar, *Layout(r.region, ()).drawings(None, places)],
    )


def _of_optimum(o: Optimum) -> Told:
    ends = sorted((o.value, o.bound))
    facts = [("value", f"{o.value!r} at x, proved"), ("bound", f"{o.bound!r}, proved")]
    places = [] if o.x is None else [Place("best point", o.x, "high")]
    line = line_drawing("The optimum lies here", (ends[0], ends[1]), (math.inf, -math.inf), {})
    return Told(
        question=f"What is the {o.side} of the {o.meaning or o.quantity}?",
        verdict=f"between {below(ends[0])} and {above(ends[1])}",
        look="yes" if o.converged else "unclear",
        facts=[*facts, ("search", o.reason.value)],
        drawings=[line, *Layout(o.region, o.features).drawings(None, places)],
    )


def _of_regret(r: RegretBound) -> Told:
    return Told(
        question="How much better than the best observed point can any point be?",
        verdict=f"at most {above(r.bound)}",
        look="yes" if r.converged else "unclear",
        facts=[(name, str(value)) for name, value in r.shown().rows],
        drawings=Layout(r.region, r.features).drawings(None, [Place("observed", r.x, "high")]),
    )


TELLERS: Mapping[type, Callable[[Any], Told]] = {
    Certificate: _of_certificate,
    PredictionRange: _of_range,
    Radius: _of_radius,
    Optimum: _of_optimum,
    RegretBound: _of_regret,
}


def _told_file(path: Path) -> tuple[list[Told], list[tuple[str, str]]]:
    """The claims of a certificate, of which nothing is checked, and where it comes from."""
    from gpcert_check.container import read
    from gpcert_check.verdicts import BadFile

    try:
        header, arrays = read(str(path))
        questions, answers = header["question"], header["answer"]
        table = "rows" in questions
        pairs = list(zip(questions["rows"], answers["rows"], strict=True)) if table else []
        pairs = pairs or [(questions, answers)]
        members = header["model"].get("members", [header["model"]])
        names = [str(name) for name in members[0].get("feature_names") or ()]
        told = []
        for k, (question, answer) in enumerate(pairs[:SHOWN]):
            parts = (arrays.get(f"{k}.{p}" if table else p) for p in ("axes", "cuts", "root"))
            tree = [np.array(part.values).reshape(part.shape) for part in parts if part is not None]
            boxes: list[Any] = []
            if len(tree) == 3:
                boxes = list(boxes_of(tree[0], tree[1], tree[2], MOST_LEAVES))
            layout = Layout(question["region"], names, boxes if len(boxes) > 1 else ())
            told.append(_of_claim(question, answer, layout))
        facts = [("kernel", str(member["kernel"][0])) for member in members]
        facts += [("claim", CLAIMS.get(header["claim"], str(header["claim"])))]
        facts += [("model", f"SHA-256 {header['sha256']}")]
        facts += [(str(name), str(value)) for name, value in header["provenance"].items()]
    except (BadFile, LookupError, TypeError, AttributeError, ValueError) as error:
        raise InputError(f"{path}: expected a certificate ({error})") from error
    return told, [("file", path.name), *facts]


def _of_claim(question: dict[str, Any], answer: dict[str, Any], layout: Layout) -> Told:
    """One question of a certificate and its answer."""
    where, kind = region_text(layout.region), question["kind"]
    x = np.array(question["x"], dtype=float) if "x" in question else None
    bad, drawings = answer.get("counterexample"), []
    places = [] if bad is None else [Place("counter-example", np.array(bad, dtype=float), "bad")]
    facts, look = [], "unclear"
    if "rule" in question:
        facts.append(("rule", str(question["rule"])))
    what = question.get("decision")
    what = question.get("rule") if what is None else f"the decision {what!r}"
    if kind == "decision":
        asked = f"Does {what} hold at every point of the {where}?"
        verdict, look = f"claimed: {answer['status']}", LOOKS.get(answer["status"], look)
    elif kind == "radius":
        asked = f"How far from x does {what} hold?"
        verdict = f"claimed: up to {below(float(answer['lower']))} (l_{question['norm']})"
        if answer["upper"] is not None:
            verdict += f", refuted at {above(float(answer['upper']))}"
    elif kind == "regret":
        asked = "How much better than the best observed point can any point be?"
        verdict = f"claimed: at most {above(float(answer['bound']))}"
        places = [Place("observed", np.array(answer["point"], dtype=float), "high")]
    elif kind == "sets":
        asked = f"Where in the {where} does {what} hold?"
        each = (
            f"{s['label']!r} in {interval_text(Interval(*s['share']))}" for s in answer["shares"]
        )
        verdict = f"claimed shares of the volume: {'; '.join(each)}"
    else:
        asked = f"Which values has the {question['meaning']} in the {where}?"
        low, high = _sides(question["goals"], answer["ends"])
        verdict = f"claimed: between {below(low.lower)} and {above(high.upper)}"
        drawings.append(_range_bar(low, high, {}))
        for goal, end in zip(question["goals"], answer["ends"], strict=True):
            name, mark = ("minimum at", "low") if goal["sign"] > 0 else ("maximum at", "high")
            places.append(Place(name, np.array(end["point"], dtype=float), mark))
    drawings += layout.drawings(x, places)
    return Told(question=asked, verdict=verdict, look=look, facts=facts, drawings=drawings)


def _sides(goals: Sequence[Any], ends: Sequence[Any]) -> tuple[Interval, Interval]:
    """The least and the largest value; infinite on a side that was not asked for."""
    least, most = Interval(-math.inf, math.inf), Interval(-math.inf, math.inf)
    for goal, end in zip(goals, ends, strict=True):
        lower, upper = float(end["lower"]), float(end["upper"])
        if goal["sign"] > 0:
            least = Interval(lower, upper)
        else:
            most = Interval(-upper, -lower)
    return least, most


def _bar(title: str, interval: Interval, marks: dict[str, float]) -> str:
    return line_drawing(title, (interval.lower, interval.upper), (math.inf, -math.inf), marks)


def _range_bar(low: Interval, high: Interval, marks: dict[str, float]) -> str:
    attained = (low.upper, high.lower)
    title = "Values that occur (dark) and that are not excluded (light)"
    return line_drawing(title, (low.lower, high.upper), attained, marks)


def _outline(record: dict[str, Any], region: Any, free: np.ndarray) -> np.ndarray | None:
    """The boundary of a ball of another norm than l_inf, about, cut to its box."""
    norm = record.get("norm")
    if record.get("kind") != "ball" or norm in (None, "inf"):
        return None
    p, unit = float(norm), np.asarray(record["radius"], dtype=float)
    turn = np.linspace(0.0, 2.0 * math.pi, 181)[:-1]
    ring = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    ring /= np.sum(np.abs(ring) ** p, axis=1, keepdims=True) ** (1.0 / p)
    reach = unit[free] if unit.ndim else np.full(2, float(unit))
    middle = np.asarray(record["center"], dtype=float)[free]
    return np.clip(middle + ring * reach, region.lower[free], region.upper[free])


def _list(table: RecordTable[Any]) -> str:
    """The rows of a table, one line each."""
    pairs = list(zip(table.labels, table.rows, strict=True))[:LISTED]
    lines = [{"point": name, **table.cells(row)} for name, row in pairs]
    listed = table_shown("", lines, table.complete, LISTED)
    head = "".join(f"<th>{escape(name)}</th>" for name in listed.columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in listed.rows
    )
    notes = [f"{len(table)} rows; {table.summary}".rstrip("; "), *listed.notes]
    if len(table) > SHOWN:
        notes.append(f"the first {SHOWN} are told one by one below")
    return (
        f'<p>{escape(". ".join(notes))}.</p><div class="scroll" tabindex="0"><table><thead><tr>'
        f"{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _section(told: Told, heading: str) -> Iterator[str]:
    yield f"<section><{heading}>{escape(told.question)}</{heading}>"
    if told.verdict:
        yield f'<p class="verdict {told.look}">{escape(told.verdict)}</p>'
    facts = "".join(f"<dt>{escape(n)}</dt><dd>{escape(t)}</dd>" for n, t in told.facts if t)
    yield f'<dl>{facts}</dl><div class="drawings">{"".join(told.drawings)}</div></section>'


def _page(
    told: Sequence[Told], listed: str, provenance: Sequence[tuple[str, str]], check: str
) -> str:
    css = (files("gpcert.certificates") / "page.css").read_text(encoding="utf-8")
    # the browser takes this style and refuses everything else, scripts and networks included
    known = base64.b64encode(hashlib.sha256(css.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{known}'; base-uri 'none'; form-action 'none'"
    one = len(told) == 1 and not listed
    title = told[0].question if one else "Answers, one by one"
    head = "" if one else f"<h1>{escape(title)}</h1>"
    sections = "".join(part for each in told for part in _section(each, "h1" if one else "h2"))
    facts = "".join(f"<dt>{escape(n)}</dt><dd>{escape(t)}</dd>" for n, t in provenance)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<style>{css}</style>
</head>
<body>
<main>{head}{listed}{sections}</main>
<section><h2>Where it comes from</h2><dl>{facts}</dl></section>
<section><h2>How to check it</h2>{check}</section>
</body>
</html>
"""
