"""What the explorer asks: maps agree with predictions, its lines of Python with its verdicts."""

import numpy as np
import pytest

import gpcert
from gpcert.explorer.questions import (
    PICTURES,
    Asked,
    Question,
    limits_of,
    maps_of,
    plane_values,
    search_boxes,
)
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Probit, Softmax
from gpcert.models import GPRegressor


def posterior(**fields):
    rng = np.random.default_rng(0)
    points = rng.normal(size=(6, 3))
    fields = {"weights": rng.normal(size=6), "factor": 0.3 * np.eye(6), **fields}
    return gpcert.Posterior(SquaredExponential(1.0), points=points, **fields)


def test_maps_of_each_kind_of_model():
    regression = posterior()
    assert [each.name for each in maps_of(regression)] == ["mean", "standard deviation"]
    binary = posterior(likelihood=Probit(), classes=("no", "yes"))
    assert [each.name for each in maps_of(binary)] == ["probability of class yes"]
    machine = gpcert.Posterior(SquaredExponential(1.0), points=[[0.0]], weights=[1.0])
    assert maps_of(machine)[0].name == "mean"
    X = np.random.default_rng(1).normal(size=(4, 3))
    np.testing.assert_array_equal(maps_of(binary)[0].values(X), binary.prediction(X)[:, 0])
    np.testing.assert_allclose(
        maps_of(regression)[1].values(X) ** 2, regression.predict(X)[1][:, 0]
    )
    weights = np.random.default_rng(2).normal(size=(3, 6))
    several = posterior(weights=weights, factor=None, likelihood=Softmax(), classes=("a", "b", "c"))
    assert [each.name for each in maps_of(several)] == [f"probability of class {c}" for c in "abc"]


def test_a_plane_holds_the_other_features():
    model = posterior()
    shown, x = maps_of(model)[0], np.array([0.1, 0.2, 0.3])
    limits = limits_of(model.places)
    values = plane_values(shown, x, (2, 0), limits, side=5)
    corner = [limits[1][0], 0.2, limits[0][2]]
    assert values[-1, 0] == pytest.approx(model.mean([corner])[0, 0])


def test_the_line_of_python_gives_the_verdict():
    model = posterior()
    x = np.array([0.1, 0.2, 0.3])
    ball = Question(x, radius=0.4, norm=2.0, features=(0, 2), threshold=0.1)
    box = ball.moved(box=(x - 0.1, x + 0.2))
    for question in (ball, box):
        certificate = question.certificate(model)
        repeated = eval(question.python, {"gpcert": gpcert, "model": model})
        assert repeated.status is certificate.status
        assert repeated.margin == certificate.margin
        assert repeated.region == certificate.region
        shown = maps_of(model)[0]
        proved = question.range(model, shown)
        assert proved.minimum.lower <= model.mean([x])[0, 0] <= proved.maximum.upper


def test_the_boxes_of_a_search_cover_its_region():
    rng = np.random.default_rng(3)
    X = rng.uniform(size=(30, 2))
    model = GPRegressor(random_state=0).fit(X, np.sin(9.0 * X[:, 0]) + X[:, 1])
    question = Question(np.array([0.5, 0.5]), radius=0.4, threshold=-3.0)
    certificate = question.certificate(model)
    boxes = search_boxes(certificate, (0, 1))
    if len(boxes):
        area = ((boxes[:, 1] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 2])).sum()
        assert area == pytest.approx(0.64)


@pytest.mark.parametrize("title", PICTURES)
@pytest.mark.parametrize("classes", [None, ("no", "yes"), ("a", "b", "c")])
def test_pictures_of_each_kind_of_model(title, classes):
    figure = pytest.importorskip("matplotlib.figure").Figure()
    fields = {} if classes is None else {"likelihood": Probit(), "classes": classes}
    if classes is not None and len(classes) == 3:
        weights = np.random.default_rng(2).normal(size=(3, 6))
        fields |= {"likelihood": Softmax(), "weights": weights, "factor": None}
    model = posterior(**fields)
    threshold = 0.1 if classes is None else None
    question = Question(np.array([0.1, 0.2, 0.3]), radius=0.05, threshold=threshold)
    ax = figure.add_subplot()
    PICTURES[title](Asked(question, model, maps_of(model)[0]), ax)
    assert ax.has_data() or ax.child_axes
