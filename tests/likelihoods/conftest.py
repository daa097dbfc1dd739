"""What several tests of likelihoods share."""

import pytest

from gpcert.arrays import backend_from_name


@pytest.fixture(params=["numpy", "torch"])
def backend(request):
    """Both backends, torch where it is installed."""
    if request.param == "torch":
        pytest.importorskip("torch")
    return backend_from_name(request.param)
