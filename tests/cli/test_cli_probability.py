"""`gpcert probability` and `gpcert expectation`: the verbs' numbers, laws from text."""

import pytest
from scipy import stats

import gpcert
from gpcert.kernels import SquaredExponential

LAWS = ("norm(0,0.5)", "uniform(-1, scale=2)")
FROZEN = [stats.norm(0, 0.5), stats.uniform(-1, 2)]


def test_the_numbers_of_the_verbs(run, npz, posterior, tmp_path):
    out = tmp_path / "p.json"
    result = run("probability", npz, *LAWS, "--threshold", "0.1", "--output", out)
    assert result.exit_code == 0, result.output
    here = gpcert.failure_probability(posterior, FROZEN, 0.1)
    assert (gpcert.load(out).lower, gpcert.load(out).upper) == (here.lower, here.upper)
    result = run("expectation", npz, *LAWS, "--tol", "0.01", "--output", out)
    assert result.exit_code == 0, result.output
    here = gpcert.expectation(posterior, FROZEN, tol=0.01)
    assert (gpcert.load(out).lower, gpcert.load(out).upper) == (here.lower, here.upper)


def test_sobol_indices(run, tmp_path):
    model, out, picture = (tmp_path / name for name in ("m.npz", "s.json", "s.png"))
    regression = gpcert.Posterior(SquaredExponential([1.0, 2.0]), [[0.0, 0.5]], [1.0])
    regression.save(model)
    result = run("sobol", model, *LAWS, "--output", out)
    assert result.exit_code == 0, result.output
    here = gpcert.sobol_indices(regression, FROZEN)
    assert gpcert.load(out).first.tolist() == here.first.tolist()
    pytest.importorskip("matplotlib")
    assert run("sobol", model, *LAWS, "--plot", picture).exit_code == 0
    assert picture.stat().st_size > 1000


def test_a_budget_that_ends_first(run, npz):
    ask = ("probability", npz, *LAWS, "--threshold", "0.1", "--rtol", "1e-9", "--boxes", "9")
    assert run(*ask).exit_code == 2


@pytest.mark.parametrize(
    ("laws", "words"),
    [
        (("poisson(3)", "0"), "a density"),
        (("norm(0,x)", "0"), "expected numbers"),
        (("normal", "0"), "a distribution, as norm(0,1)"),
        (("a=norm(0,1)", "0"), "names of all features"),
        (("norm(0,1)",), "each of 2 features"),
    ],
)
def test_laws_that_are_refused(run, npz, laws, words):
    result = run("probability", npz, *laws, "--threshold", "0")
    assert result.exit_code == 3
    assert words in " ".join(result.output.split())
