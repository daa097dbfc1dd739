"""An option that has no effect is an error, in every command: nothing is ignored in silence."""

import numpy as np
import pytest

import gpcert
from gpcert.kernels import SquaredExponential

BALL = ("--radius", 0.2)
LABELS = "a\nb\n"


@pytest.fixture
def files(tmp_path, npz):
    """The paths that arguments name in braces."""
    two = gpcert.Posterior(
        SquaredExponential(1.0), [[-1.0, 0.0], [1.0, 0.0]], [[1.0, -1.0], [0.5, 0.5]], np.eye(2)
    )
    two.save(tmp_path / "two.npz")
    (tmp_path / "points.csv").write_text("1.0,0.0\n0.5,0.3\n")
    (tmp_path / "one.csv").write_text("1.0,0.0\n")
    return {"model": npz, "two": tmp_path / "two.npz", "points": tmp_path / "points.csv",
            "one": tmp_path / "one.csv", "folder": tmp_path}  # fmt: skip


EXPLAIN = ("explain", "{model}", "{one}")
UNUSED = {
    "--jobs: no effect on one point": ("safety", "{model}", "{one}", "--radii", "0.1", "--jobs", 2),
    "output_norm: belongs to delta=": ("certify", "{model}", "{one}", *BALL, "--output-norm", "2"),
    "beta: belongs to quantity='band'": ("range", "{model}", "{one}", *BALL, "--beta", 2),
    "beta: says which value": ("certify", "{model}", "{one}", *BALL, "--beta", 2),
    "output: says which value": ("certify", "{model}", "{one}", *BALL, "--class", "a"),
    "quantity: says which value": ("radius", "{two}", "{one}", "--quantity", "ucb"),
    "delta= as well": (
        "certify", "{two}", "{one}", *BALL, "--delta", 1, "--target", 1),
    "threshold: expected output=": ("certify", "{two}", "{one}", *BALL, "--threshold", 1),
    "class_weight: expected a classifier": (
        "certify", "{two}", "{one}", *BALL, "--class-weight", "1,2", "--threshold", 1),
    "delta: expected a regression": ("certify", "{model}", "{one}", *BALL, "--delta", 1),
    "variance_bound: 'solver'": ("range", "{model}", "{one}", *BALL, "--variance-bound", "solver"),
    "--class: expected one of 0, 1; got '7'": ("range", "{two}", "{one}", *BALL, "--target", 7),
    "restarts: has no effect on method='gpfgs'": (
        "attack", "{model}", "{one}", *BALL, "--method", "gpfgs", "--restarts", 9),
    "iterations: has no effect": (
        "attack", "{model}", "{one}", *BALL, "--method", "gpfgs_probability", "--iterations", 9),
    "random_state: has no effect": (
        "attack", "{model}", "{one}", *BALL, "--method", "gpfgs", "--seed", 9),
    "expected either --radius or --relative, got both": (
        "certify", "{model}", "{one}", *BALL, "--relative", 0.1),
    "expected either --radius or --relative, got neither": ("worst-case", "{two}", "{one}"),
    "radius=, radii= and relative=": (
        "robustness", "{model}", "{one}", *BALL, "--radii", "0.1,0.2"),
    "scale: is the unit of radius=": (
        "range", "{model}", "{one}", "--relative", 0.1, "--scale", "1,2"),
    "budget: boxes and memory": ("boxes", "{two}", "{one}", "{one}", "--boxes", 3),
    "--shape: no effect without --plot": (*EXPLAIN, *BALL, "--shape", "1,2"),
    "--ranking: no effect on --what effects": (*EXPLAIN, *BALL, "--ranking", "gradient"),
    "--samples: no effect": (*EXPLAIN, *BALL, "--samples", 10),
    "--class-weight: no effect": (*EXPLAIN, *BALL, "--class-weight", "1,2"),
    "--mean: no effect on --what sufficient": (*EXPLAIN, *BALL, "--what", "sufficient", "--mean"),
    "--tol: no effect on --what contrastive": (
        *EXPLAIN, *BALL, "--what", "contrastive", "--tol", 0.1),
    "--class: no effect on --what pixels": (*EXPLAIN, *BALL, "--what", "pixels", "--class", "a"),
    "--shape: no effect on --what pixels": (
        *EXPLAIN, *BALL, "--what", "pixels", "--shape", "1,2", "--plot", "{folder}/x.png"),
    "--radius, --tol, --features, --domain, --scale, --seconds, --boxes, --memory, --jobs, "
    "--backend, --progress: no effect on --what lime; leave it out": (
        *EXPLAIN, *BALL, "--what", "lime", "--features", 0, "--domain", "0,1", "--scale", "1,1",
        "--seconds", 60, "--boxes", 9, "--memory", 2, "--jobs", 1, "--backend", "numpy",
        "--tol", 0.1, "--progress"),
    "--relative: no effect on --what lime": (*EXPLAIN, "--what", "lime", "--relative", 0.1),
    "--quick, --data: no effect beside --list": (
        "reproduce", "--list", "--quick", "--data", "{folder}"),
    "--full, --data, --jobs: no effect with --redraw": (
        "reproduce", "safety", "--redraw", "--full", "--data", "{folder}", "--jobs", 2),
    "data: has no effect, as 'safety' at the scale 'quick'": (
        "reproduce", "safety", "--quick", "--data", "{folder}"),
    "data: has no effect, as 'scaling' at the scale 'full'": (
        "reproduce", "scaling", "--full", "--data", "{folder}"),
    "data: has no effect, as 'safety' at the scale 'smallest'": (
        "reproduce", "all", "--smallest", "--data", "{folder}"),
    "expected a folder with the data files, got the file": (
        "reproduce", "safety", "--quick", "--data", "{one}"),
    "got none of the name": ("reproduce", "all", "--full", "--data", "{folder}/nowhere"),
}  # fmt: skip


@pytest.mark.parametrize("message", UNUSED)
def test_options_without_effect_are_refused(run, files, message):
    arguments = [str(each).format(**files) for each in UNUSED[message]]
    if arguments[0] == "reproduce" and "--list" not in arguments:
        arguments += ["--output", str(files["folder"] / "results")]
    result = run(*arguments)
    assert result.exit_code == 3, result.output
    assert message in " ".join(result.stderr.split())
    assert not (files["folder"] / "results").exists()


def test_options_with_an_effect_are_taken(run, files):
    """What the refusals above must not forbid."""
    for arguments in (
        ("safety", "{model}", "{one}", "--radii", "0.1", "--class", "a"),
        ("explain", "{model}", "{one}", *BALL, "--class", "a", "--mean", "--seconds", 60),
        ("explain", "{two}", "{one}", *BALL, "--quantity", "ucb", "--beta", 1, "--tol", 0.1),
        ("certify", "{two}", "{one}", *BALL, "--delta", 9, "--output-norm", "2"),
        ("boxes", "{two}", "{one}", "{one}", "--tol", 1, "--boxes", 9),
        ("attack", "{model}", "{one}", *BALL, "--method", "gpfgs", "--seed", 0),
        ("reproduce", "--list"),
    ):
        given = [str(each).format(**files) for each in arguments]
        result = run(*given)
        assert result.exit_code in {0, 1, 2}, (given, result.output)
