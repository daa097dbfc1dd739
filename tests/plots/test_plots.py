"""Pictures: they draw on the Axes given, with the right regions, bars and errors."""

import numpy as np
import pytest

import gpcert
from gpcert.errors import InputError
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Probit
from gpcert.plots import plot_decision_regions, plot_image_counterexample, plot_range
from gpcert.plots.axes import LOOKS
from gpcert.plots.decision import outline

Figure = pytest.importorskip("matplotlib.figure").Figure
to_rgba = pytest.importorskip("matplotlib.colors").to_rgba


@pytest.fixture
def ax():
    return Figure(figsize=(3, 2)).add_subplot()


@pytest.fixture
def model():
    return gpcert.Posterior(
        SquaredExponential(1.0),
        points=[[-1.0, 0.0], [1.0, 0.0]],
        weights=[-1.0, 1.0],
        factor=0.5 * np.eye(2),
        likelihood=Probit(),
        classes=("no", "yes"),
    )


def test_outline_of_balls_lies_on_the_sphere_and_in_the_region():
    for norm in (1.0, 2.0, 3.5, np.inf):
        ball = gpcert.Ball([1.0, -2.0], 0.5, norm=norm)
        points = outline(ball.describe())
        size = np.linalg.norm(points - ball.center, ord=norm, axis=1)
        np.testing.assert_allclose(size, 0.5, rtol=1e-12)


def test_outline_is_clipped_to_the_domain_and_to_the_features():
    ball = gpcert.Ball([0.9, 0.5], 0.3, norm=2, domain=(0.0, 1.0))
    points = outline(ball.describe())
    assert points[:, 0].max() == 1.0
    assert points[:, 0].min() == pytest.approx(0.6)
    assert np.all(np.linalg.norm(points - ball.center, axis=1) <= 0.3 + 1e-12)
    line = outline(gpcert.Ball([0.9, 0.5], 0.3, features=[1]).describe())
    assert set(line[:, 0]) == {0.9}
    assert np.ptp(line[:, 1]) == pytest.approx(0.6)
    open_side = gpcert.Ball([0.9, 0.5], 0.3, domain=(-np.inf, 1.0))
    assert outline(open_side.describe()).max() == 1.0


@pytest.mark.parametrize(
    "region",
    [{"kind": "blob"}, {"kind": "box", "lower": [0.0], "upper": [1.0]}],
)
def test_outline_rejects_other_regions(region):
    with pytest.raises(InputError):
        outline(region)


def test_decision_regions_draws_every_status(ax, model):
    proved = gpcert.certify(model, [1.0, 0.0], radius=0.4)
    refuted = gpcert.certify(model, [0.3, 0.2], radius=0.6)
    unknown = gpcert.Certificate.from_dict({**proved.to_dict(), "status": "UNKNOWN"})
    assert proved.status is gpcert.Status.ROBUST
    assert refuted.status is gpcert.Status.NOT_ROBUST
    points = np.random.default_rng(0).normal(size=(20, 2))
    returned = plot_decision_regions(
        ax, model, [proved, refuted, unknown], X=points, y=np.arange(20) % 2
    )
    assert returned is ax
    colours = [to_rgba(line.get_color()) for line in ax.get_lines()]
    for look in LOOKS.values():
        assert to_rgba(look.colour) in colours
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == [
        "class 0",
        "class 1",
        "proved robust",
        "refuted",
        "undecided",
        "counter-example",
    ]
    crosses = [line for line in ax.get_lines() if line.get_marker() == "X"]
    np.testing.assert_allclose(crosses[0].get_xydata()[0], refuted.counterexample)
    ax.figure.canvas.draw()


def test_decision_regions_of_regression_and_of_a_box(ax):
    model = gpcert.Posterior(SquaredExponential(1.0), points=[[0.0, 0.0]], weights=[1.0])
    region = gpcert.Box([-0.2, -0.2], [0.2, 1.5])
    cert = gpcert.certify(model, [0.0, 0.0], region=region, threshold=0.5)
    plot_decision_regions(ax, model, [cert], X=[[-2.0, -2.0], [2.0, 2.0]], threshold=0.5)
    assert cert.status is gpcert.Status.NOT_ROBUST
    ax.figure.canvas.draw()


def test_decision_regions_needs_the_plane(ax):
    model = gpcert.Posterior(SquaredExponential(1.0), points=[[0.0]], weights=[1.0])
    with pytest.raises(InputError, match="two features"):
        plot_decision_regions(ax, model)


def test_range_bars_are_the_intervals(ax, model):
    ranges = [
        gpcert.prediction_range(model, gpcert.Ball(x, 0.3), tol=0.05)
        for x in ([1.0, 0.0], [0.0, 0.5])
    ]
    assert plot_range(ax, ranges, labels=["a", "b"], threshold=0.5) is ax
    for bar, rng in zip(ax.patches, ranges, strict=True):
        assert bar.get_x() == rng.minimum.lower
        assert bar.get_x() + bar.get_width() == pytest.approx(rng.maximum.upper)
    marks = {points.get_label(): points.get_offsets()[:, 0] for points in ax.collections}
    np.testing.assert_array_equal(marks["attained"], [r.minimum.upper for r in ranges])
    centres = model.prediction(np.array([[1.0, 0.0], [0.0, 0.5]]))[:, 0]
    np.testing.assert_allclose(marks["at the centre"], centres)
    assert ax.get_xlabel() == "probability"
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["a", "b"]
    low, high = ax.get_xlim()  # no bar is cut at the axis
    assert low < min(r.minimum.lower for r in ranges)
    assert high > max(0.5, *(r.maximum.upper for r in ranges))


def test_range_with_an_infinite_end_still_draws(ax, model):
    rng = gpcert.prediction_range(model, gpcert.Ball([1.0, 0.0], 0.3), sides="minimum")
    assert rng.maximum.upper == np.inf
    plot_range(ax, [rng])
    ax.figure.canvas.draw()


def test_range_wants_a_label_a_range(ax):
    with pytest.raises(InputError):
        plot_range(ax, [])


def test_image_counterexample():
    axes = Figure().subplots(1, 3)
    x = np.linspace(0.0, 1.0, 12)
    other = np.clip(x + 0.25, 0.0, 1.0)
    assert plot_image_counterexample(axes, x, other, (3, 4), labels=(3, 8)) is axes
    np.testing.assert_array_equal(axes[0].images[0].get_array(), x.reshape(3, 4))
    np.testing.assert_array_equal(axes[2].images[0].get_array(), (other - x).reshape(3, 4))
    assert axes[1].get_title() == "decided 8"
    with pytest.raises(InputError, match="pixels"):
        plot_image_counterexample(axes, x, other, (4, 4))
    with pytest.raises(InputError, match="three"):
        plot_image_counterexample(axes[:2], x, other, (3, 4))


def test_the_picture_of_a_certificate_shows_what_moved(ax):
    frame_names = ("width", "height", "depth")
    model = gpcert.Posterior(
        SquaredExponential(1.0),
        points=[[-1.0, 0.0, 0.0], [1.0, 0.0, 0.0]],
        weights=[-1.0, 1.0],
        feature_names=frame_names,
    )
    cert = gpcert.certify(model, [0.3, 0.2, 0.0], radius={"width": 1.0, "depth": 0.0}, threshold=0)
    assert cert.feature_names == frame_names
    assert cert.moved_features == (0,)
    after = cert.counterexample[0]
    assert f"counter-example  width from 0.3 to {after:.4g}" in str(cert)
    loaded = gpcert.Certificate.from_dict(cert.to_dict())
    assert loaded.feature_names == frame_names
    cert.plot(ax)
    (names,) = [
        texts
        for inset in ax.child_axes
        if any(texts := [label.get_text() for label in inset.get_yticklabels()])
    ]
    assert names == ["width"]
    proved = gpcert.certify(model, [1.0, 0.2, 0.0], radius=0.1, threshold=0)
    assert proved.moved_features == ()
    ax.figure.canvas.draw()


def test_labelled_curves_on_one_axes_have_colours_of_their_own(ax):
    model = gpcert.Posterior(SquaredExponential(1.0), points=[[0.0], [3.0]], weights=[1.0, -1.0])
    for label, x in (("left", 0.0), ("right", 3.0)):
        gpcert.safety_curve(model, [x], [0.5, 2.0], threshold=0.0).plot(ax, label=label)
    colours = {
        line.get_label().split(",")[0]: line.get_color()
        for line in ax.lines
        if not line.get_label().startswith("_")
    }
    assert set(colours) == {"left", "right"}
    assert len(set(colours.values())) == 2
    ax.figure.canvas.draw()
