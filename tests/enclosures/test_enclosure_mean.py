"""The quadratic models of the mean, on random models, regions and cells."""

import pytest
from hypothesis import given, settings

from gpcert.testing.effort import examples
from tests.enclosures.enclosure_checks import check_mean
from tests.strategies import cases


@pytest.mark.parametrize("pointwise", [True, False])
@settings(max_examples=examples(60))
@given(case=cases())
def test_models_enclose_the_mean(case, pointwise):
    check_mean(case, pointwise)
