"""The quadratic models of the variance, on random models, regions and cells."""

import pytest
from hypothesis import given, settings

from gpcert.testing.effort import examples
from tests.enclosures.enclosure_checks import check_variance
from tests.strategies import cases


@pytest.mark.parametrize("derivatives", [True, False])
@settings(max_examples=examples(60))
@given(case=cases())
def test_models_enclose_the_variance(case, derivatives):
    check_variance(case, derivatives)
