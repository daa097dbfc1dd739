"""The patch of an image that an analysis perturbs: pixels of its strongest blob."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import gaussian_laplace

from gpcert.arrays import finite_array
from gpcert.errors import InputError

SCALES_AN_OCTAVE = 3
SMALLEST_SCALE = 1.0
"""Blobs have at least the radius of a pixel."""


def key_patch(image: np.ndarray, count: int = 10) -> np.ndarray:
    """The `count` pixels nearest to the strongest key point of a square image, in their order.

    The paper perturbs ten pixels that SIFT selects (a disc around one key point). SIFT's key points
    are extrema of differences of Gaussians over place and scale (Lowe 2004), which approximate the
    scale-normalised Laplacian `s^2 |lap G_s * image|` used here (Lindeberg 1998). Detectors with
    contrast and edge thresholds find none in many images of 14x14 pixels; the largest response
    always exists, depends on the image alone, and so is the same for all models compared.

    >>> image = np.zeros((8, 8))
    >>> image[2, 5] = 1.0
    >>> key_patch(image.ravel(), 5).tolist()
    [13, 20, 21, 22, 29]
    """
    pixels = finite_array("image", image, ndim=1)
    side = image_shape(pixels.size)[0]
    if not 1 <= count <= pixels.size:
        raise InputError(f"count: expected 1 to {pixels.size} pixels, got {count!r}")
    octaves = np.log2(max(side / 4.0, 1.0) / SMALLEST_SCALE)
    steps = np.arange(int(SCALES_AN_OCTAVE * octaves) + 1) / SCALES_AN_OCTAVE
    picture = pixels.reshape(side, side)
    responses = [
        s**2 * np.abs(gaussian_laplace(picture, s, mode="nearest"))
        for s in SMALLEST_SCALE * 2.0**steps
    ]
    place = divmod(int(np.argmax(np.max(responses, axis=0))), side)
    rows, columns = np.indices((side, side))
    distance = (rows - place[0]) ** 2 + (columns - place[1]) ** 2
    return np.sort(np.argsort(distance.ravel(), kind="stable")[:count])


def image_shape(pixels: int) -> tuple[int, int]:
    """Rows and columns of a square image.

    >>> image_shape(196)
    (14, 14)
    """
    side = int(np.sqrt(pixels) + 0.5)
    if side * side != pixels:
        raise InputError(f"image: expected a square number of pixels, got {pixels}")
    return side, side
