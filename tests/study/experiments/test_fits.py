"""Pixels that move, and accuracies beside the paper's."""

import numpy as np
import pytest

from gpcert.errors import InputError
from gpcert.study.experiments.base import Sources, class_label
from gpcert.study.experiments.fits import accuracy_finding, key_patch


def test_sift_finds_a_patch_in_every_digit():
    pytest.importorskip("skimage")
    for image in Sources().load("digits38").X_test[:30]:
        patch = key_patch(image, 10, "sift")
        assert len(set(patch)) == 10
        within = key_patch(image, 10, "sift-scale")
        assert 1 <= len(within) <= 10
        rows, columns = np.divmod(patch, 8)
        assert np.hypot(rows - rows.mean(), columns - columns.mean()).max() < 4.0  # one disc


def test_an_image_without_key_points_is_refused():
    pytest.importorskip("skimage")
    with pytest.raises(InputError, match=r"SIFT key points.*blob"):
        key_patch(np.zeros(196), 10, "sift")
    with pytest.raises(InputError, match="sift, sift-scale, blob"):
        key_patch(np.zeros(196), 10, "corner")


@pytest.mark.parametrize(
    ("accuracy", "tests", "paper", "agrees"),
    [(0.957, 2876, 0.93, "yes"), (0.787, 3000, 0.85, "no"), (0.93, 1000, 0.93, "yes")],
)
def test_accuracies_are_judged_with_both_sampling_errors(accuracy, tests, paper, agrees):
    assert accuracy_finding("mnist358", accuracy, tests, paper).agrees == agrees


def test_garments_have_names():
    assert [class_label("fashion-tsp", k) for k in (0, 2, 6)] == ["t-shirt", "pullover", "shirt"]
