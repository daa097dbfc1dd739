"""Pictures of several classes: colours by class, what is refused, and the page that shows them."""

import importlib.util
import struct
from pathlib import Path

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF

import gpcert
from gpcert.errors import InputError
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Softmax
from gpcert.plots import decision, plot_decision_regions, plot_range
from gpcert.plots.axes import CLASS_PALETTE, LOOKS
from gpcert.plots.decision import areas_of

Figure = pytest.importorskip("matplotlib.figure").Figure
to_rgba = pytest.importorskip("matplotlib.colors").to_rgba

DOCS = Path(__file__).parents[2] / "docs"
CENTERS = np.array([[0.0, 0.0], [3.0, 0.0], [1.5, 2.5]])
LABELS = ("a", "b", "c")


@pytest.fixture
def ax():
    return Figure(figsize=(3, 2)).add_subplot()


@pytest.fixture(autouse=True)
def coarse(monkeypatch):
    monkeypatch.setattr(decision, "CLASS_GRID", 24)


def softmax_model():
    """Class k is the most probable one near its centre."""
    return gpcert.Posterior(
        SquaredExponential(1.0),
        points=CENTERS,
        weights=3.0 * np.eye(3),
        factor=0.5 * np.eye(3),
        likelihood=Softmax(),
        classes=LABELS,
    )


def sklearn_model(scheme):
    X = np.concatenate([CENTERS, CENTERS + 0.2])
    model = GaussianProcessClassifier(4.0 * RBF(1.0), multi_class=scheme, optimizer=None)
    return model.fit(X, LABELS * 2)


MODELS = {
    "softmax": softmax_model,
    "one_vs_rest": lambda: sklearn_model("one_vs_rest"),
    "one_vs_one": lambda: sklearn_model("one_vs_one"),
}


def areas(ax):
    """The filled level sets, one object a class."""
    return [drawn for drawn in ax.collections if getattr(drawn, "filled", False)]


@pytest.mark.parametrize("name", MODELS)
def test_every_class_has_its_area_and_colour(ax, name):
    model = MODELS[name]()
    proved = gpcert.certify(model, [0.0, 0.0], radius=0.3)
    refuted = gpcert.certify(model, [1.4, 0.1], radius=0.6)
    assert (proved.status, refuted.status) == (gpcert.Status.ROBUST, gpcert.Status.NOT_ROBUST)
    assert plot_decision_regions(ax, model, [proved, refuted]) is ax
    filled = areas(ax)
    assert len(filled) == 3
    for c, area in enumerate(filled):
        np.testing.assert_allclose(area.get_facecolor()[-1][:3], to_rgba(CLASS_PALETTE[c])[:3])
        lead = inside(area, CENTERS)
        assert lead.tolist() == (np.arange(3) == c).tolist()
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == [*(f"class {k}" for k in LABELS), "proved robust", "refuted", "counter-example"]
    colours = [to_rgba(line.get_color()) for line in ax.get_lines()]
    assert to_rgba(LOOKS[gpcert.Status.ROBUST].colour) in colours
    ax.figure.canvas.draw()


def inside(area, points):
    """Which points lie in one of the filled level sets."""
    return np.array([any(path.contains_point(p) for path in area.get_paths()) for p in points])


def test_points_have_the_colour_of_their_class(ax):
    y = ["c", "a", "new"]
    plot_decision_regions(ax, softmax_model(), X=CENTERS, y=y)
    markers = {
        drawn.get_label(): tuple(drawn.get_facecolor()[0])
        for drawn in ax.collections
        if drawn.get_label().startswith("class")
    }
    assert markers["class a"] == to_rgba(CLASS_PALETTE[0])
    assert markers["class c"] == to_rgba(CLASS_PALETTE[2])
    assert "class new" in markers
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert sorted(texts) == ["class a", "class b", "class c", "class new"]


def test_a_class_that_never_leads_has_no_area(ax):
    model = gpcert.Posterior(
        SquaredExponential(1.0),
        points=CENTERS,
        weights=np.diag([3.0, 3.0, 0.0]),
        offset=[0.0, 0.0, -5.0],
        likelihood=Softmax(),
    )
    plot_decision_regions(ax, model)
    assert len(areas(ax)) == 2
    ax.figure.canvas.draw()


@pytest.mark.parametrize("name", MODELS)
def test_no_threshold_for_several_classes(ax, name):
    with pytest.raises(InputError, match="threshold"):
        plot_decision_regions(ax, MODELS[name](), threshold=0.5)


def test_models_that_have_no_plane_are_refused(ax):
    line = gpcert.Posterior(
        SquaredExponential(1.0), [[0.0], [1.0]], np.eye(2), likelihood=Softmax()
    )
    with pytest.raises(InputError, match="two features"):
        plot_decision_regions(ax, line)
    targets = gpcert.Posterior(SquaredExponential(1.0), CENTERS, np.eye(3))
    with pytest.raises(InputError, match="one output"):
        areas_of(targets, None)


def test_ranges_of_classes_are_named_by_their_labels(ax):
    ranges = gpcert.prediction_ranges(softmax_model(), gpcert.Ball([1.5, 1.0], 0.2), tol=0.05)
    plot_range(ax, ranges)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == list(LABELS)
    plot_range(ax, [ranges[0], ranges[0]])
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["0", "1"]


def load_script():
    path = DOCS / "make_multiclass_picture.py"
    spec = importlib.util.spec_from_file_location("multiclass_picture", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_picture_of_the_page_is_there_and_small():
    data = (DOCS / "pictures" / "multiclass.png").read_bytes()
    assert "](pictures/multiclass.png)" in (DOCS / "multiclass.md").read_text(encoding="utf-8")
    assert len(data) < 120_000
    width, height = struct.unpack(">II", data[16:24])
    assert width >= 900
    assert height >= 400


@pytest.mark.slow
def test_the_script_draws_what_the_page_says():
    figure = load_script().picture()
    titles = [ax.get_title() for ax in figure.axes[1:]]
    assert titles == ["A: class a proved", "B: class b proved", "C: class b refuted"]
    bars = [patch.get_bbox() for patch in figure.axes[2].patches[:3]]
    assert bars[0].x1 > bars[1].x0  # ranges overlap in B
