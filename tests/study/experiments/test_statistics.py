"""Intervals hold what they should about as often as they say; patches lie where the image is."""

import numpy as np
import pytest

from gpcert.errors import InputError
from gpcert.study.experiments.fits import image_shape, key_patch, ratio_of
from gpcert.study.experiments.results import Estimate, bootstrap, exceeds, share


def test_bootstrap_intervals_cover_the_mean_about_as_often_as_they_say():
    rng = np.random.default_rng(0)
    found = [bootstrap(rng.exponential(size=50), np.mean, random_state=k) for k in range(120)]
    covered = np.mean([each.low <= 1.0 <= each.high for each in found])
    assert 0.85 <= covered <= 1.0


def test_points_are_resampled_with_both_of_their_values():
    below = np.exp(np.random.default_rng(0).normal(size=50))
    ratio = ratio_of(np.mean, 3.0 * below, below)  # exactly 3 at every point
    np.testing.assert_allclose(ratio, 3.0, rtol=1e-12)


def test_a_share_of_none_still_has_an_interval():
    found = share([False] * 10)
    assert found.value == 0.0
    assert 0.2 < found.high < 0.35


def test_a_claim_is_settled_only_by_the_whole_interval():
    assert exceeds(Estimate(2.0, 1.1, 3.0), 1.0) == "yes"
    assert exceeds(Estimate(2.0, 1.0, 3.0), 1.0) == "unclear"
    assert exceeds(Estimate(0.5, 0.2, 0.9), 1.0) == "no"
    with pytest.raises(InputError):
        bootstrap([])
    with pytest.raises(InputError):
        share([])


@pytest.mark.parametrize("side", [8, 14, 28])
def test_the_patch_lies_at_the_blob_wherever_it_is(side):
    rows, columns = np.indices((side, side))
    for place in ((2, 3), (side // 2, side - 3)):
        image = np.exp(-((rows - place[0]) ** 2 + (columns - place[1]) ** 2) / 2.0)
        chosen = key_patch(image.ravel(), 9, "blob")
        assert len(set(chosen)) == 9
        far = np.hypot(chosen // side - place[0], chosen % side - place[1])
        assert far.max() < 2.0
    # dark blobs on a bright ground as well
    assert np.array_equal(key_patch(1.0 - image.ravel(), 9, "blob"), chosen)


def test_images_that_are_not_square_are_refused():
    with pytest.raises(InputError, match="square"):
        image_shape(15)
    with pytest.raises(InputError, match="count"):
        key_patch(np.zeros(16), 17)
