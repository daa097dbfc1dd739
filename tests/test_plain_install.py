"""Without extras: proofs, files and the command work; what needs an extra says which."""

import importlib
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from gpcert.utils.optional_imports import EXTRAS, MissingExtraError, optional

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DISTRIBUTIONS = {
    "flint": "python-flint",
    "skimage": "scikit-image",
    "skopt": "scikit-optimize",
}


@pytest.fixture(scope="module")
def outcome(tmp_path_factory):
    """What tests/plain_install.py found in a process that sees no package of an extra."""
    command = [
        sys.executable,
        ROOT / "tests" / "plain_install.py",
        tmp_path_factory.mktemp("plain"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_proofs_files_and_the_command_work(outcome):
    works = outcome["works"]
    assert works["certify"] == works["load"] == "ROBUST"
    assert all(works[name] is True for name in ("range", "radius", "paper"))
    assert all("rows" in works[name] or "point" in works[name] for name in ("table", "curve"))
    code, text = works["command"]
    assert (code, "1 ROBUST" in text) == (0, True)
    code, text = works["help"]
    assert (code, "certify" in text) == (0, True)


def test_every_module_but_those_of_a_library_can_be_imported(outcome):
    libraries = "torch|gpytorch|botorch|gpflow|gpy|gpjax|tinygp|jax"
    theirs = re.compile(rf"gpcert\.(testing(\.\w+)*|adapters\.({libraries})_\w+)")
    assert not [name for name in outcome["not_imported"] if not theirs.fullmatch(name)]


@pytest.mark.parametrize(
    ("what", "extra"),
    [
        ("to_frame", "plots"),
        ("plot", "plots"),
        ("plot_range", "plots"),
        ("solver", "paper"),
        ("torch", "torch"),
        ("lime", "explain"),
        ("shap", "explain"),
        ("sift", "explain"),
        ("testing", "testing"),
        ("reproduce", "plots"),
    ],
)
def test_what_is_missing_is_named(what, extra, outcome):
    assert f"pip install 'gpcert[{extra}]'" in outcome["refusals"][what]


@pytest.mark.parametrize("what", ["--csv", "--plot", "demo"])
def test_a_command_says_so_before_the_work(what, outcome):
    code, text = outcome["refusals"][what]
    assert code == 3
    assert "pip install 'gpcert[plots]'" in text
    assert "ROBUST" not in text


def test_every_package_is_in_its_extra():
    for package, extra in EXTRAS.items():
        wanted = PROJECT["optional-dependencies"][extra]
        assert any(each.startswith(DISTRIBUTIONS.get(package, package)) for each in wanted)
        assert not any(each.startswith(package) for each in PROJECT["dependencies"])


def test_a_library_that_lacks_a_part_of_its_own_is_not_called_missing(tmp_path, monkeypatch):
    (tmp_path / "half_there.py").write_text("import nobody_has_this", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    with pytest.raises(ModuleNotFoundError, match="nobody_has_this") as raised:
        optional("half_there", "a test")
    assert not isinstance(raised.value, MissingExtraError)
