"""`method=`: the paper's method, Taylor's and both answer alike, through every verb."""

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF
from typer.testing import CliRunner

import gpcert
from gpcert import Budget
from gpcert.api.running import Method
from gpcert.cli.app import app
from gpcert.enclosures.goals import QuantityGoal
from gpcert.errors import InputError
from gpcert.kernels import Linear, Matern, Product, SquaredExponential, Sum
from gpcert.likelihoods import Logistic, Probit
from gpcert.quantities import Mean, Variance
from gpcert.search import Problem, StopReason, solve
from gpcert.testing.arb_reference import regression_posterior
from gpcert.testing.effort import crossed, variants

METHODS = [
    {"method": "taylor"},
    {"method": "paper"},
    {"method": "paper", "variance_bound": "analytic"},
    {"method": "both"},
    {"method": "both", "variance_bound": "solver"},
]


def posterior(kernel=None, **options):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.5, 1.5, (10, 2))
    targets = (2.0 * np.sin(2 * X[:, 0]) * X[:, 1])[None]
    kernel = kernel or SquaredExponential([0.9, 1.1])
    return regression_posterior(kernel, X, targets, 0.1, **options)


BOX = gpcert.Box([-0.1, 0.1], [0.1, 0.3])


def grid(box):
    return np.stack(np.meshgrid(*np.linspace(box.lower, box.upper, 40).T), axis=-1).reshape(-1, 2)


@crossed(
    {
        "quantity": ["mean", "variance", "probability"],
        "likelihood": [Probit(), Logistic()],
        "how": METHODS,
    }
)
def test_ranges_converge_to_the_same(how, likelihood, quantity):
    model = posterior(likelihood=likelihood)
    found = gpcert.prediction_range(model, BOX, tol=0.01, quantity=quantity, **how)
    mean, variance = model.predict(grid(BOX))
    values = {"mean": mean, "variance": variance, "probability": model.prediction(grid(BOX))}
    true = values[quantity]
    assert found.converged
    assert found.minimum.lower <= true.min() <= found.minimum.upper + 1e-3
    assert found.maximum.lower - 1e-3 <= true.max() <= found.maximum.upper


@pytest.mark.parametrize(
    "kernel",
    [
        Matern([0.9, 1.1], 1.5),
        Sum((SquaredExponential(0.9), Linear([0.3, 0.3], [0.0, 0.0]))),
        Product((SquaredExponential(0.9), SquaredExponential([2.0, 3.0]))),
    ],
    ids=["matern", "sum", "product"],
)
@pytest.mark.parametrize("how", METHODS[1:3], ids=str)
def test_other_kernels(how, kernel):
    model = posterior(kernel)
    box = gpcert.Box([-0.02, 0.1], [0.02, 0.14])
    found = gpcert.prediction_range(model, box, tol=0.05, quantity="variance", **how)
    true = model.predict(grid(box))[1]
    assert found.converged
    assert found.minimum.lower <= true.min() <= found.minimum.upper + 1e-3
    assert found.maximum.lower - 1e-3 <= true.max() <= found.maximum.upper


@pytest.mark.parametrize("how", METHODS, ids=str)
def test_certify(how, regressor, classifier):
    x = [0.2, -0.3]
    assert gpcert.certify(regressor, x, 0.02, delta=0.5, **how).status.name == "ROBUST"
    moved = gpcert.certify(regressor, x, 0.5, delta=0.01, **how)
    assert moved.status.name == "NOT_ROBUST"
    sure = gpcert.certify(classifier, [1.0, 0.3], 0.02, threshold=0.6, **how)
    assert sure.status.name == "ROBUST"
    assert gpcert.certify(classifier, [1.0, 0.3], 0.05, **how).status.name == "ROBUST"


@variants("how", METHODS[1:3], ids=str)
def test_many_and_radius(how, regressor):
    points = [[0.2, -0.3], [0.0, 0.1]]
    table = gpcert.certify_many(regressor, points, 0.01, delta=0.5, **how)
    assert [c.status.name for c in table] == ["ROBUST", "ROBUST"]
    radius = gpcert.certified_radius(
        regressor, points[0], delta=0.3, rtol=0.1, budget=Budget(seconds=20.0), **how
    )
    reference = gpcert.certified_radius(regressor, points[0], delta=0.3, rtol=0.1)
    assert 0 < radius.lower <= reference.upper
    assert reference.lower <= radius.upper


def test_several_outputs(many_outputs):
    box = gpcert.Box([0.0, 0.0], [0.05, 0.05])
    found = gpcert.prediction_ranges(many_outputs, box, tol=0.05, method="paper")
    plain = gpcert.prediction_ranges(many_outputs, box, tol=0.05)
    for one, other in zip(found, plain, strict=True):
        assert one.minimum.lower <= other.minimum.upper
        assert other.minimum.lower <= one.minimum.upper


def test_a_budget_is_met_between_boxes():
    """Solvers are slow: the search must look at the clock after every pair of boxes."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (60, 2))
    model = GaussianProcessClassifier(4.0 * RBF(0.7), optimizer=None).fit(X, X.sum(1) > 0)
    ball = gpcert.Ball([0.1, 0.0], 0.5)
    found = gpcert.prediction_range(
        model, ball, tol=1e-6, budget=Budget(seconds=0.5), method="paper"
    )
    assert found.reason is StopReason.TIME
    assert found.seconds < 5.0
    boxes = gpcert.prediction_range(
        model, ball, tol=1e-6, budget=Budget(boxes=5, seconds=None), method="paper"
    )
    assert boxes.reason is StopReason.BOXES
    assert boxes.boxes <= 6


def test_random_state_repeats():
    model = posterior()
    boxes = [
        gpcert.prediction_range(
            model, BOX, tol=1e-3, quantity="mean", method="paper", random_state=seed
        ).boxes
        for seed in (0, 0)
    ]
    assert boxes[0] == boxes[1]


def test_the_default_takes_closed_forms_for_rough_kernels():
    """Variance of a Matern 1/2: Taylor's order 0 alone needs two hundred times as many boxes."""
    model = posterior(Matern([0.7, 1.0], 0.5))
    box = gpcert.Box([-0.05, 0.15], [0.15, 0.35])
    found = gpcert.prediction_range(model, box, tol=0.02, quantity="variance")
    plain = [QuantityGoal(Variance(0, sign)) for sign in (1, -1)]
    alone = solve(Problem(model, box, plain, tol=0.02))
    assert found.converged
    assert 10 * found.boxes < alone.boxes


def test_closed_forms_join_where_features_have_no_derivative():
    """Of a Matern 3/2 they save few boxes, and a box costs up to a hundred times as much."""
    quantities = [Variance(0, 1), Mean(0, 1)]
    for kernel, joined in (
        (Matern(0.7, 0.5), True),
        (Matern(0.7, 0.5) + SquaredExponential(1.0), True),
        (Matern(0.7, 1.5), False),
        (SquaredExponential(1.0), False),
    ):
        goals = Method().goals(quantities, 0, posterior(kernel))
        assert [goal.paper is not None for goal in goals] == [joined, False]


@pytest.mark.parametrize("command", ["certify", "range", "radius"])
def test_command_line(command, tmp_path):
    model, points = tmp_path / "model.npz", tmp_path / "points.csv"
    posterior().save(model)
    points.write_text("0.1,0.2\n")
    arguments = [
        command,
        str(model),
        str(points),
        "--method",
        "paper",
        "--variance-bound",
        "analytic",
    ]
    if command != "range":
        arguments += ["--delta", "0.5"]
    if command != "radius":
        arguments += ["--radius", "0.02"]
    assert CliRunner().invoke(app, arguments).exit_code in {0, 2}


def test_arguments_are_checked():
    with pytest.raises(InputError, match="method"):
        Method("best")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="variance"):
        Method("paper", "quick")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="leave it out"):
        gpcert.prediction_range(posterior(), BOX, variance_bound="solver")
