"""What people see of a record: short text, escaped HTML, a picture; of every kind there is."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import uniform

import gpcert
from gpcert import explain
from gpcert.certificates import FairnessTable, Interval, LipschitzTable, PredictionRange
from gpcert.certificates.io import KINDS
from gpcert.certificates.record import RecordTable
from gpcert.certificates.text import TextTable
from gpcert.errors import InputError
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Probit
from gpcert.plots import plot_range
from gpcert.search import StopReason

WIDE = 196
EVIL = "<script>alert('&')</script>"
QUICK = gpcert.Budget(seconds=0.2)
NO_PICTURE = {"accuracy_point", "robustness", "safety_step", "error_bound"}
"""Rows of tables that are no picture by themselves, and a number."""


def Figure(**options):
    return pytest.importorskip("matplotlib.figure").Figure(**options)


@pytest.fixture(scope="module")
def records():
    """One record of every kind, of a model with 196 features and a class that looks like HTML."""
    rng = np.random.default_rng(0)
    Z = rng.uniform(0, 1, (4, WIDE))
    kernel = SquaredExponential(9.0)
    factor = np.linalg.inv(np.linalg.cholesky(kernel.value(Z, Z) + 0.1 * np.eye(4)))
    model = gpcert.Posterior(
        kernel, Z, [2.0, -2.0, 1.0, -1.5], factor, likelihood=Probit(), classes=(EVIL, "yes")
    )
    mean = gpcert.Posterior(kernel, Z, [2.0, -2.0, 1.0, -1.5], factor)
    X, few = Z[:2], {"features": [0, 1]}
    y = [EVIL, "yes"]
    many = gpcert.certify_many(model, X, 0.3)
    ranges = gpcert.prediction_range_many(model, X, 0.1, **few)
    radii = gpcert.certified_radius_many(model, X, max_radius=0.2, budget=QUICK, **few)
    attacks = gpcert.attack(model, X, 0.3, method="gpfgs")
    curve = gpcert.safety_curve(model, X[0], [0.0, 0.1], **few)
    spread = gpcert.robustness(model, X, 0.1, **few)
    share = gpcert.certified_accuracy(model, X, y, [0.1], budget=QUICK, **few)
    worst = gpcert.worst_case(mean, X, 0.1, **few)
    reason = explain.sufficient(model, X[0], 0.3, **few)
    pixels = explain.pixel_budget(model, X[0], [1], radius=0.1, ranking="gradient", **few)
    effects = explain.effects(model, X, 0.1, **few)
    names = tuple(f"x{j}" for j in range(WIDE))
    weights = explain.Attribution("LIME weight", X, np.ones((2, 1, WIDE)), (0,), names, (0, 1))
    found = [many[0], many, ranges[0], ranges, radii[0], radii, attacks[0], attacks, curve]
    found += [curve[0], spread[0], spread, share[0], share, worst[0], worst, reason, pixels]
    found += [explain.ReasonTable((reason,)), explain.PixelBudgetTable((pixels,))]
    found += [effects, weights]
    best = gpcert.maximize(mean, np.stack([Z[0], np.where(np.arange(WIDE) < 2, 1.0, Z[0])]))
    found += [best, gpcert.recommend(mean, gpcert.Box(Z[1], Z[1]))]
    around = gpcert.Ball(Z[0], 0.1, features=[0, 1])
    monotone = gpcert.certify_monotone(mean, around, {0: "+", 1: "-"})
    found += [gpcert.slope_ranges(mean, around, [0, 1]), monotone, monotone[0]]
    steep = gpcert.lipschitz(mean, around)
    fair = gpcert.certify_fair(mean, around, {WIDE - 1: (0.0, 1.0)}, delta=1e-3)
    found += [steep, LipschitzTable((steep,)), fair, FairnessTable((fair,))]
    exact = gpcert.Posterior(mean.kernel, Z[:1], [0.5], training_noise=0.01)
    found += [gpcert.uniform_beta(exact, norm_bound=2.0, noise_bound=0.1, delta=0.05)]
    laws = [uniform(0.0, 1.0), uniform(0.0, 1.0), *Z[0, 2:]]
    found += [gpcert.failure_probability(mean, laws, 0.0, paving=True)]
    found += [gpcert.expectation(mean, laws, tol=0.1), gpcert.quantile(mean, laws, 0.5, tol=0.1)]
    found += [gpcert.sobol_indices(mean, laws)]
    return {record.kind: record for record in found}


class Balanced(HTMLParser):
    """Checks that tags are closed in order, and collects the text."""

    def __init__(self):
        super().__init__()
        self.open, self.text = [], ""

    def handle_starttag(self, tag, attrs):
        assert tag in {"div", "b", "table", "thead", "tbody", "tr", "th", "td"}
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_every_kind_of_record_is_here(records):
    ours = {kind for kind, cls in KINDS.items() if cls.__module__.startswith("gpcert.")}
    assert set(records) == ours - {"experiment"}  # has tests of its own


def test_text_is_short_however_many_features_there_are(records):
    for record in records.values():
        assert repr(record).startswith(type(record).__name__ + "(")
        assert len(repr(record)) < 300, repr(record)
        assert "\n" not in repr(record)
        lines = str(record).splitlines()
        assert len(lines) <= 14
        assert max(map(len, lines)) < 250


def test_tables_say_whether_they_are_whole_and_as_near_as_asked(records):
    for record in records.values():
        if isinstance(record, RecordTable):
            assert "complete=True" in repr(record)
            assert "complete=False" in repr(replace(record, complete=False))
    for kind in ("prediction_ranges", "radii", "safety_curve", "certified_accuracy"):
        table = records[kind]
        assert f"converged={table.converged}" in repr(table)
        late = replace(table[0], reason=StopReason.TIME)
        assert "converged=False" in repr(replace(table, rows=(late, *table.rows[1:])))
    assert "converged=True" in repr(records["prediction_range"])


def test_a_table_of_several_quantities_is_shown(records, tmp_path):
    bands = gpcert.RangeTable((replace(records["prediction_range"], quantity="band", beta=2.0),))
    mixed = gpcert.RangeTable((*records["prediction_ranges"], *bands))
    mixed.save(tmp_path / "mixed.json")
    for table in (mixed, gpcert.load(tmp_path / "mixed.json")):
        first, *_, last = (line.split() for line in str(table).splitlines()[2:])
        assert (first[3], last[3]) == ("-", "2")  # the column of beta
        assert "band" in table._repr_html_()
        assert list(table.to_frame()["beta"].isna()) == [True] * (len(table) - 1) + [False]
        assert table.plot(Figure().subplots())


def test_titles_and_pictures_say_the_unit_of_the_radius():
    kernel, words = SquaredExponential(1.0), {"threshold": 0.0, "scale": "std"}
    model = gpcert.Posterior(kernel, [[0.0], [3.0]], [1.0, -1.0], spread=[1.5])
    found = gpcert.certified_radius(model, [0.0], **words)
    assert "radius in standard deviations" in str(found)
    tables = [
        gpcert.certified_radius_many(model, [[0.0]], **words),
        gpcert.safety_curve(model, [0.0], [0.0, 0.1], **words),
        gpcert.certified_accuracy(model, [[0.0]], None, [0.1], **words),
    ]
    for table in tables:
        assert "in standard deviations" in str(table).splitlines()[0]
        label = table.plot(Figure().subplots()).get_xlabel()
        assert label.startswith("radius in standard deviations")
    plain = gpcert.certified_radius(model, [0.0], threshold=0.0, scale=[2.0])
    assert "radius in units of scale" in str(plain)


def test_notebooks_get_the_same_words_escaped(records):
    for record in records.values():
        html = record._repr_html_()
        assert "<script" not in html
        reader = Balanced()
        reader.feed(html)
        assert not reader.open
        for row in record.shown().rows:
            for cell in row:
                assert cell in reader.text
        # readable on light and dark pages: no colour of letters or of the background
        assert not re.search(r"(?<![-\w])(color|background):(?!inherit|none)", html)


def test_verdicts_are_marked(records):
    html = records["certificates"]._repr_html_()
    assert "border-left" in html
    assert records["certificates"][0].status.name in html


def test_every_record_draws_itself(records):
    for kind, record in records.items():
        ax = Figure(figsize=(4, 3), layout="constrained").subplots()
        if kind in NO_PICTURE:
            with pytest.raises(InputError, match="no picture of a single"):
                record.plot(ax)
            continue
        assert record.plot(ax) is ax
        ax.figure.canvas.draw()
        panels = [ax, *ax.child_axes]
        assert any(each.get_xlabel() or each.get_title() or each.get_legend() for each in panels)


def test_a_certificate_of_an_image_shows_it(records):
    for radius in (0.001, 3.0):
        ax = Figure().subplots()
        found = replace(records["certificate"], counterexample=None)
        if radius > 1:
            found = replace(found, counterexample=found.x + 0.1)
        found.plot(ax, shape=(14, 14))
        assert len(ax.child_axes) == (4 if radius > 1 else 2)
        with pytest.raises(InputError, match="196 pixels"):
            found.plot(ax, shape=(3, 3))


def test_certificate_bars_begin_at_the_proved_margin(records):
    table = records["certificates"]
    ax = Figure().subplots()
    table.plot(ax)
    starts = sorted(bar.get_x() for bar in ax.patches)
    assert starts == pytest.approx(sorted(row.margin.lower for row in table))


def test_plain_values_are_those_at_the_points(records):
    for row in records["prediction_ranges"]:
        assert row.minimum.lower <= row.nominal <= row.maximum.upper
    for row in records["certificates"]:
        assert row.margin_at_x >= row.margin.lower


def one(output, low, high):
    ends = Interval(low, low), Interval(high, high)
    cost = {"reason": StopReason.CONVERGED, "boxes": 1, "seconds": 0.0}
    return PredictionRange(*ends, None, None, True, "mean", output, {}, nominal=low, **cost)


@pytest.mark.parametrize("count", [1, 3, 10, 60])
def test_names_of_ranges_do_not_overlap(count):
    figure = Figure(figsize=(5, 5), layout="constrained")
    ax = figure.subplots()
    plot_range(ax, [one(f"{k} of the classes with a very long name", k, k) for k in range(count)])
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.get_yticklabels()]
    for upper, lower in pairwise(boxes):
        assert upper.y0 >= lower.y1
    assert all(box.x0 >= 0 for box in boxes)


def test_cells_are_aligned_under_their_names():
    text = str(TextTable("title", ("a", "long name"), [("value", "1"), ("b", "2")])).splitlines()
    assert [line.index(word) for line, word in zip(text[1:], ("long", "1", "2"), strict=True)] == [
        9,
        9,
        9,
    ]


def test_a_region_with_a_radius_for_each_feature_is_told_in_words():
    model = gpcert.Posterior(SquaredExponential(1.0), [[0.0, 0.0, 0.0]], [1.0])
    words = "l_inf ball of radii up to 0.2 in 2 of 3 features"
    for radius, options in (([0.1, 0.2, 0.0], {}), ([0.1, 0.2, 9.0], {"features": [0, 1]})):
        found = gpcert.certify(model, np.zeros(3), radius, threshold=0.5, **options)
        assert words in str(found)
        assert words in found._repr_html_()


def test_a_radius_is_never_shown_larger_than_proved():
    model = gpcert.Posterior(SquaredExponential(1.0), [[0.0], [3.0]], [1.0, -1.0])
    radius = gpcert.certified_radius(model, [0.3], threshold=0.0)
    for lower, upper in ((radius.lower, radius.upper), (0.12348, 0.23452)):
        told = repr(replace(radius, lower=lower, upper=upper))
        ends = dict(part.split("=") for part in told[len("Radius(") : -1].split(", ")[:2])
        assert float(ends["lower"]) <= lower
        assert float(ends["upper"]) >= upper
