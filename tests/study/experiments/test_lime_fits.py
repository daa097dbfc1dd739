"""LIME written out: linear functions are found exactly, and the package says the same."""

import numpy as np
import pytest

from gpcert.study.experiments.fits import lime_of_scripts, lime_tabular

SLOPES = np.array([[1.0, -2.0], [0.5, 0.0], [-3.0, 1.0]])


def line(Z: np.ndarray) -> np.ndarray:
    return 0.25 + Z @ SLOPES


def wave(Z: np.ndarray) -> np.ndarray:
    return np.sin(Z @ SLOPES)


def test_slopes_of_a_linear_function_are_found_per_standard_deviation():
    background = np.random.default_rng(1).normal(2.0, [1.0, 3.0, 0.5], (400, 3))
    found = lime_tabular(line, background[0], background, 20_000, 0)
    expected = (SLOPES * background.std(axis=0)[:, None]).T
    # the ridge takes a little away, as in the package
    np.testing.assert_allclose(found, expected, rtol=2e-3, atol=1e-5)


@pytest.mark.parametrize("image", [False, True])
def test_the_version_of_the_scripts_finds_a_linear_function_where_it_looks(image):
    found = lime_of_scripts(line, np.array([0.5, 1.0, 0.0]), 300, 0, image=image)
    seen = np.array([True, True, not image])  # a black pixel never changes
    np.testing.assert_allclose(found, SLOPES.T * seen, atol=1e-9)


def test_an_image_all_black_has_no_weights():
    assert not lime_of_scripts(line, np.zeros(3), 20, 0, image=True).any()


def test_the_tabular_version_is_that_of_the_package():
    pytest.importorskip("lime")
    from lime import lime_tabular as tabular

    background = np.random.default_rng(2).normal(size=(200, 3))
    x, n = background[0], 20_000
    explainer = tabular.LimeTabularExplainer(
        background, mode="regression", discretize_continuous=False, random_state=0
    )
    theirs = np.zeros(3)
    explained = explainer.explain_instance(
        x, lambda Z: wave(Z)[:, 0], num_features=3, num_samples=n
    )
    for feature, weight in explained.as_map()[1]:
        theirs[feature] = weight
    ours = lime_tabular(wave, x, background, n, 0)[0]
    # other random points: as near as twenty thousand of them make it
    np.testing.assert_allclose(ours, theirs, atol=0.02)
