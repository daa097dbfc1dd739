"""Every parameter of a verb is an option of its command."""

import inspect

import pytest
import typer

import gpcert
from gpcert import explain
from gpcert.cli.app import app

OPTIONS = {
    "model": "model",
    "X": "points",
    "x": "points",
    "y": "labels",
    "budget": "seconds",
    "random_state": "seed",
    "n_jobs": "jobs",
    "output": "label",  # --class
    "n_samples": "samples",
    "bounds": "radius",
    "inputs": "laws",
}
"""What a parameter is called on the command line, where its own name is another thing there."""

NOWHERE = {
    "region": "a Python object; --radius, --norm, --features, --domain and --scale say as much",
    "fixed": "the ball's --features say what moves",
    "proof": "certificates hold one point each, and commands take tables; from Python",
    "paving": "the cells of a picture; from Python",
    "all_outputs": "what gpcert range does unless --class names one",
}
"""Parameters that have no place on a command line, and why."""

OWN = {
    "invariant": {"inputs": "inputs"},
    "lipschitz": {"norm": "distance"},
    "fair": {"norm": "distance"},
}
"""What a parameter is called on one command, where its name is that of the ball's."""

NOT_THERE = {"explain": {"checkpoint"}, "boxes": {"checkpoint"}}
"""Parameters that one command lacks: it calls the verb once for each point, or writes files of
`out=`, which go on by themselves."""

VERBS = {
    "certify": [gpcert.certify_many, gpcert.certify],
    "range": [gpcert.prediction_range_many, gpcert.prediction_range, gpcert.prediction_ranges],
    "boxes": [gpcert.bound_boxes],
    "level-set": [gpcert.level_set],
    "invariant": [gpcert.invariant_set],
    "uniform-beta": [gpcert.uniform_beta],
    "radius": [gpcert.certified_radius_many, gpcert.certified_radius],
    "attack": [gpcert.attack],
    "safety": [gpcert.safety_curve],
    "robustness": [gpcert.robustness],
    "accuracy": [gpcert.certified_accuracy],
    "worst-case": [gpcert.worst_case],
    "monotone": [gpcert.certify_monotone],
    "lipschitz": [gpcert.lipschitz],
    "difference": [gpcert.difference_range],
    "fair": [gpcert.certify_fair],
    "probability": [gpcert.failure_probability],
    "expectation": [gpcert.expectation],
    "sobol": [gpcert.sobol_indices],
    "explain": [
        explain.effects,
        explain.sufficient,
        explain.contrastive,
        explain.pixel_budget,
        explain.lime,
    ],
}

NO_VERBS = {"demo", "explore", "page", "reproduce", "report", "resume", "show", "verify"}
"""Commands that ask nothing of a model."""

COMMANDS = typer.main.get_command(app).commands
PAIRS = [(command, verb) for command, verbs in VERBS.items() for verb in verbs]


def named(command, name):
    return OWN.get(command, {}).get(name, OPTIONS.get(name, name))


@pytest.mark.parametrize(("command", "verb"), PAIRS, ids=lambda each: getattr(each, "__name__", ""))
def test_every_parameter_is_an_option(command, verb):
    has = {parameter.name for parameter in COMMANDS[command].params}
    wanted = {named(command, name) for name in inspect.signature(verb).parameters}
    assert wanted - has - set(NOWHERE) - NOT_THERE.get(command, set()) == set()


@pytest.mark.parametrize(("command", "verb"), PAIRS, ids=lambda each: getattr(each, "__name__", ""))
def test_defaults_are_the_same(command, verb):
    options = {parameter.name: parameter for parameter in COMMANDS[command].params}
    for name, parameter in inspect.signature(verb).parameters.items():
        option = options.get(named(command, name))
        if option is None or name == "budget" or parameter.default is parameter.empty:
            continue
        assert str(option.default) == str(parameter.default), name
    if "budget" in inspect.signature(verb).parameters:
        limit = None if command == "boxes" else gpcert.Budget().seconds  # one box each has an end
        assert options["seconds"].default == limit
        assert options["boxes"].default is None
        assert 1e9 * options["memory"].default == gpcert.Budget().memory


def test_all_commands_are_compared():
    assert set(VERBS) == set(COMMANDS) - NO_VERBS


@pytest.mark.parametrize(
    ("arguments", "right"),
    [
        (("radius", "--tol", "0.1"), "--rtol"),
        (("accuracy", "--radii", "1", "--tol", "1"), "--rtol"),
    ],
)
def test_the_wrong_option_names_the_right_one(run, npz, csv, arguments, right):
    command, *rest = arguments
    result = run(command, npz, csv("0.0,0.0\n"), *rest)
    assert result.exit_code == 3
    assert right in result.stderr.replace(rest[-2], "", 1)


def test_scale(run, npz, csv, tmp_path):
    out = tmp_path / "out.json"
    numbers = run("certify", npz, csv("1.0,0.0\n"), "--radius", "0.1", "--scale", "2,4",
                  "--output", out)  # fmt: skip
    assert numbers.exit_code in {0, 1, 2}, numbers.output
    assert gpcert.load(out)[0].region["radius"] == [0.2, 0.4]
    named = run("certify", npz, csv("1.0,0.0\n"), "--radius", "0.1", "--scale", "1=4",
                "--output", out)  # fmt: skip
    assert named.exit_code in {0, 1, 2}, named.output
    assert gpcert.load(out)[0].region["radius"] == [0.0, 0.4]
    model = gpcert.load(npz)
    assert model.spread is None
    refused = run("certify", npz, csv("1.0,0.0\n"), "--radius", "0.1", "--scale", "std")
    assert refused.exit_code == 3
    assert "standard deviations of the training data" in refused.stderr


def test_accuracies_of_ranges(run, npz, csv, tmp_path):
    points, out = csv("1.0,0.0\n"), tmp_path / "out.json"
    ask = ("range", npz, points, "--radius", 0.3, "--quantity", "mean", "--output", out)
    assert run(*ask, "--rtol", "0.001", "--tol", "1e-4").exit_code == 0
    (found,) = gpcert.load(out)
    for side in (found.minimum, found.maximum):
        assert side.width <= max(1e-4, 0.001 * max(side.lower, -side.upper))
    refused = run("explain", npz, points, "--radius", 0.1, "--what", "sufficient", "--rtol", 0.1)
    assert refused.exit_code == 3
    assert "--rtol" in refused.stderr
