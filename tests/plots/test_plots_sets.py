"""Pictures of level sets: what they draw is what is proved."""

import numpy as np
import pytest

import gpcert
from gpcert.errors import InputError
from gpcert.kernels import SquaredExponential

Figure = pytest.importorskip("matplotlib.figure").Figure
BUMP = gpcert.Posterior(SquaredExponential(1.0), points=[[0.0, 0.0, 0.0]], weights=[1.0])


@pytest.fixture
def ax():
    return Figure(figsize=(3, 2)).add_subplot()


@pytest.fixture(scope="module")
def ball():
    return gpcert.level_set(BUMP, [(-2, 2)] * 3, np.exp(-0.5), tol=0.02)


def test_a_section_has_the_states_of_its_points(ax, ball):
    inside = gpcert.Box([-0.5, -0.5, -0.5], [0.5, 0.5, 0.5])
    assert ball.plot(ax, features=[0, 2], at=[0.0, 0.3, 0.0], box=inside, edges=True) is ax
    image = ax.images[0].get_array()
    assert image[200, 200] == 1
    assert image[0, 0] == 0
    assert image.shape == (400, 400)
    radius = np.sqrt(np.mean(image == 1) * 16 / np.pi)
    assert 0.85 < radius < np.sqrt(1 - 0.09) + 0.01  # what is proved is inside the ball
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("feature 0", "feature 2")


def test_a_profile_lies_between_its_bounds(ax, ball):
    ball.plot(ax, features=[1])
    at, lower, upper = ball.profile(1)
    section = np.pi * np.maximum(1.0 - at**2, 0.0) / 16.0
    assert np.all(lower <= section + 1e-3)
    assert np.all(section <= upper + 1e-3)
    assert len(ax.collections) == 2


def test_areas_of_classes(ax):
    model = gpcert.Posterior(
        SquaredExponential(1.0), [[-1.0, 0.0], [1.0, 0.0]], [-1.0, 1.0], 0.5 * np.eye(2),
        likelihood=gpcert.likelihoods.Probit(), classes=(0, 1),
    )  # fmt: skip
    gpcert.level_set(model, [(-1, 1), (-1, 1)], tol=0.05).plot(ax)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "class 0", "class 1", "undecided"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"features": [0, 1, 2]}, "one or two different ones"),
        ({"features": [0, 0]}, "one or two different ones"),
        ({"features": [7]}, "features: expected some of"),
        ({"at": [0.0]}, "at: expected a point of 3 features"),
    ],
)
def test_bad_input_is_an_error_in_words(ax, ball, words, message):
    with pytest.raises(InputError, match=message):
        ball.plot(ax, **words)


def test_cells_of_an_invariant_set(ax):
    turn = gpcert.Posterior(
        gpcert.kernels.Linear([1.0, 1.0, 1.0]), np.eye(3), [[0.6, -0.3, 0.5], [0.3, 0.6, 0.0]]
    )
    found = gpcert.invariant_set(
        turn, [(-1, 1)] * 2, inputs=[-0.1, 0.1], disturbance=0.02, beta=0, cells=100
    )
    assert len(found) > 50
    assert found.plot(ax) is ax
    assert len(ax.collections[0].get_paths()) == len(found)
    with pytest.raises(InputError, match="features: expected two different ones"):
        found.plot(ax, features=[0, 5])


def test_ranges_over_boxes_in_colours(ax):
    edges = np.linspace(-1.0, 1.0, 5)
    low = np.stack(np.meshgrid(edges[:-1], edges[:-1], [-0.5]), axis=-1).reshape(-1, 3)
    bounds = gpcert.bound_boxes(BUMP, low, low + np.array([0.5, 0.5, 1.0]))
    bounds.plot(ax, end="width")
    shown = ax.collections[0].get_array()
    np.testing.assert_array_equal(shown, np.diff(bounds["mean"][:, 0])[:, 0])
    bounds.plot(ax, features=[1, 0], at=[0.0, 0.0, 3.0])  # no box there
    for words, message in (
        ({"end": "middle"}, "end: expected 'lower', 'upper' or 'width'"),
        ({"output": 1}, "output: expected a number below 1"),
        ({"quantity": "std"}, "quantity: expected one of 'mean'"),
    ):
        with pytest.raises(InputError, match=message):
            bounds.plot(ax, **words)
