"""A library that is missing is named with what to install."""

import pytest

from gpcert.errors import MissingExtraError
from gpcert.utils import optional_imports as extras


def test_a_missing_library_is_named_with_its_extra(monkeypatch):
    def missing(name):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    monkeypatch.setattr(extras, "import_module", missing)
    with pytest.raises(MissingExtraError, match=r"botorch.*gpcert\[botorch\]") as found:
        extras.library("botorch.models")
    assert found.value.name == "botorch"
    for name in ("torch", "gpytorch", "GPy", "gpjax", "tinygp"):
        with pytest.raises(MissingExtraError, match=rf"{name}.*gpcert\[{name.lower()}\]"):
            extras.library(name)
    with pytest.raises(MissingExtraError, match=r"gpflow.*numpy>=2"):
        extras.library("gpflow")
