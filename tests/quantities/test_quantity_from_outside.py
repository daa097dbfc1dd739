"""A quantity of another package is one class, as CONTRIBUTING says: every verb takes it."""

import sys
from dataclasses import dataclass

import numpy as np
import pytest
from typer.testing import CliRunner

import gpcert
from gpcert import explain
from gpcert.attacks.functions import plain_function
from gpcert.certificates import Status
from gpcert.cli.app import app
from gpcert.enclosures.goals import QuantityGoal
from gpcert.errors import InputError
from gpcert.kernels import SquaredExponential
from gpcert.likelihoods import Probit
from gpcert.model.committee import Committee
from gpcert.model.multi_output import SeparateOutputs
from gpcert.numerics.rounding import TINY, down, gamma, up
from gpcert.paper.method import PaperMethod
from gpcert.quantities import Compound, Mean, OutputQuantity, Probability
from gpcert.quantities.output import Quantity
from gpcert.search import Budget, Problem, solve
from gpcert.testing.arb_reference import regression_posterior
from tests.drawn import drawn


@dataclass(frozen=True)
class Penalised(OutputQuantity):
    """`sign (mu - price V)`, V the variance."""

    output: int = 0
    sign: int = 1
    price: float = 1.5

    def lowest(self, alpha, beta, v_low, v_high):
        """Linear in V: the worse end, its rounding by the size of the terms."""
        slope = beta - self.sign * self.price
        size = np.abs(alpha) + (np.abs(beta) + self.price) * v_high
        ends = np.minimum(slope * v_low, slope * v_high)
        lower = down(alpha + ends - (gamma(8) * size + TINY), 2)
        return np.where(np.isnan(lower), -np.inf, lower)

    def highest(self, q, v_low, v_high):
        cost = self.sign * self.price
        return up(q - down(np.minimum(cost * v_low, cost * v_high), 1), 1)

    def value(self, q, v):
        return q - self.sign * self.price * v

    def slopes(self, q, v):
        return 1.0 + 0.0 * q, -self.sign * self.price + 0.0 * v


@dataclass(frozen=True)
class Gap(Compound):
    """`y_0 - y_1`: of two means by default, of whatever kernels."""

    parts: tuple[OutputQuantity, ...] = (Mean(0, 1), Mean(1, 1))

    def lowest(self, low, high):
        return down(low[0] - high[1], 1)

    def highest(self, low, high):
        return up(high[0] - low[1], 1)

    def value(self, y):
        return y[:, 0] - y[:, 1]

    def slopes(self, y):
        return np.tile([1.0, -1.0], (len(y), 1))


@dataclass(frozen=True)
class OneSided(Penalised):
    """`sign mu - price V`: of either sign another function."""

    def value(self, q, v):
        return q - self.price * v


def model(seed=3, outputs=1, **more):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(9, 2))
    kernel = SquaredExponential([0.8, 1.2 + 0.1 * seed])
    return regression_posterior(kernel, points, rng.normal(size=(outputs, 9)), 0.1, **more)


X0, BALL = np.array([0.05, -0.1]), gpcert.Ball([0.05, -0.1], 0.3)
TWO = model(outputs=2)
APART = SeparateOutputs((model(), model(4)))
BINARY = [model(k, likelihood=Probit(), classes=("no", "yes")) for k in (3, 4)]
COMMITTEE = Committee((*BINARY, BINARY[0]), ("a", "b", "c"), "one_vs_rest")
OF_MEMBERS = Gap(tuple(Probability(Probit(), k, 1) for k in (0, 1)))
LOSS = Penalised()
"""What the command is asked for by name."""


def values(posterior, quantity, X):
    return plain_function(posterior, quantity)(X)[0]


@pytest.mark.parametrize("sign", [1, -1])
def test_it_is_searched_and_attacked(sign):
    posterior, region = model(), gpcert.Box([-0.4, -0.3], [0.3, 0.4])
    quantity = Penalised(0, sign, 1.5)
    plain = QuantityGoal(quantity)
    paper = QuantityGoal(quantity, PaperMethod("analytic"), taylor=False)
    function = plain_function(posterior, quantity)
    X = region.sample(400, 0)
    found, gradients = function(X)
    mean, variance = posterior.predict(X)
    np.testing.assert_allclose(found, sign * (mean - 1.5 * variance)[:, 0], atol=1e-12)
    moved = function(X + np.array([1e-6, 0.0]))[0]
    np.testing.assert_allclose((moved - found) / 1e-6, gradients[:, 0], atol=1e-4)
    result = solve(Problem(posterior, region, [plain], tol=1e-4, budget=Budget(boxes=2000)))
    (goal,) = result.goals
    assert goal.upper - goal.lower <= 1e-4
    assert goal.lower <= found.min()
    assert goal.upper <= found.min() + 1e-4
    other = solve(Problem(posterior, region, [paper], tol=1e-4, budget=Budget(boxes=4)))
    assert other.goals[0].lower <= goal.upper


@pytest.mark.parametrize("separate", [False, True])
def test_one_of_several_others_is_one_class_too(separate):
    posterior = APART if separate else TWO
    region = gpcert.Box([-0.2, -0.1], [0.1, 0.2])
    plain = QuantityGoal(Gap())
    X = region.sample(400, 0)
    found, gradients = plain.function(posterior)(X)
    mean = posterior.mean(X)
    np.testing.assert_allclose(found, mean[:, 0] - mean[:, 1], atol=1e-12)
    moved = plain.function(posterior)(X + np.array([0.0, 1e-6]))[0]
    np.testing.assert_allclose((moved - found) / 1e-6, gradients[:, 1], atol=1e-4)
    paper = QuantityGoal(Gap(), PaperMethod("analytic"), taylor=False)
    for goal, boxes in ((plain, 2000), (paper, 40)):
        problem = Problem(posterior, region, [goal], tol=1e-2, budget=Budget(boxes=boxes))
        (ends,) = solve(problem).goals
        assert ends.lower <= found.min()
        assert ends.upper - ends.lower <= (1e-2 if goal is plain else 1.0)
        assert ends.upper <= found.min() + (ends.upper - ends.lower)


CASES = [(TWO, Penalised(1)), (APART, Penalised(1, -1, 0.5)), (TWO, Gap()), (APART, Gap()),
         (COMMITTEE, OF_MEMBERS), (COMMITTEE, Penalised(2)), (BINARY[0], Penalised())]  # fmt: skip


@pytest.mark.parametrize(("posterior", "quantity"), CASES)
def test_ranges_take_it(posterior, quantity, tmp_path):
    inside = values(posterior, quantity, np.vstack([X0, BALL.sample(1000, 0)]))
    rng = gpcert.prediction_range(posterior, BALL, quantity=quantity, tol=1e-2)
    assert rng.converged
    assert rng.minimum.lower <= inside.min() + 1e-9
    assert inside.max() - 1e-9 <= rng.maximum.upper
    assert rng.maximum.upper - rng.minimum.lower <= np.ptp(inside) + 0.3
    # stored by its name and its fields; read, told and drawn without the class
    assert rng.quantity == type(quantity).__name__
    assert repr(quantity) in rng.meaning
    rng.save(tmp_path / "range.json")
    again = gpcert.load(tmp_path / "range.json")
    assert str(again) == str(rng)
    drawn(again)
    every = gpcert.prediction_ranges(posterior, BALL, quantity=quantity, tol=1e-2)
    outputs = {one.output: one for one in every}
    assert outputs[rng.output].minimum.lower == pytest.approx(rng.minimum.lower, abs=0.02)
    if isinstance(quantity, OutputQuantity):  # that of every other output, too
        assert len(outputs) == sum(member.outputs for member in posterior.members)
        one = gpcert.prediction_range(posterior, BALL, quantity=quantity, output=rng.output)
        assert one.meaning == rng.meaning
    table = gpcert.prediction_range_many(posterior, [X0, X0 + 0.1], 0.1, quantity=quantity)
    assert len(table) == 2
    drawn(table)


@pytest.mark.parametrize(("posterior", "quantity"), CASES)
def test_decisions_take_it(posterior, quantity, tmp_path):
    inside = values(posterior, quantity, np.vstack([X0, BALL.sample(1000, 0)]))
    at, size = inside[0], np.ptp(inside)
    words = {"quantity": quantity, "threshold": float(inside.max() + 0.2 * size + 0.05)}
    cert = gpcert.certify(posterior, X0, 0.3, norm="inf", **words)
    assert cert.status is Status.ROBUST
    assert type(quantity).__name__ in cert.rule
    cert.save(tmp_path / "certificate.json")
    assert str(gpcert.load(tmp_path / "certificate.json")) == str(cert)
    words["threshold"] = float(at - 0.5 * (at - inside.min()))
    refuted = gpcert.certify_many(posterior, [X0, X0], 0.3, **words)
    assert [row.status for row in refuted] == [Status.NOT_ROBUST] * 2
    rad = gpcert.certified_radius(posterior, X0, rtol=0.1, max_radius=1.0, **words)
    assert 0.0 < rad.lower <= rad.upper <= 0.35
    radii = gpcert.certified_radius_many(posterior, [X0, X0], rtol=0.1, max_radius=1.0, **words)
    assert [row.upper >= rad.lower for row in radii] == [True, True]
    attacks = gpcert.attack(posterior, [X0], 0.3, **words)
    assert attacks.confirmed.all()
    drawn(attacks)


def test_a_second_output_by_name_and_by_object():
    X = np.vstack([X0, BALL.sample(1000, 0)])
    mean, variance = TWO.predict(X)
    most = float((mean + 2.0 * np.sqrt(variance))[:, 1].max())
    words = {"quantity": "ucb", "beta": 2, "output": 1, "threshold": most + 0.2}
    assert gpcert.certify(TWO, X0, 0.3, **words).rule.startswith("mean + 2 std of target 1 below")
    assert gpcert.certify(TWO, X0, 0.3, **words).robust
    assert gpcert.certified_radius(TWO, X0, rtol=0.1, **words).lower > 0.25
    by_object = {"quantity": Penalised(0), "output": 1, "threshold": 5.0}
    cert = gpcert.certify(TWO, X0, 0.3, **by_object)
    assert cert.rule == "Penalised of target 1 below 5.0"


@pytest.mark.parametrize("quantity", [Penalised(), Gap()])
def test_boxes_and_effects_take_it(quantity, tmp_path):
    low = np.array([[-0.2, -0.2], [0.0, 0.1]])
    words = {"quantity": ["mean", quantity], "out": {"mean": tmp_path / "mean.npy"}}
    name = type(quantity).__name__
    words["out"][name] = tmp_path / "own.npy"
    bounds = gpcert.bound_boxes(TWO, low, low + 0.1, **words)
    bounds.save(tmp_path / "bounds.npz")
    assert name in gpcert.load(tmp_path / "bounds.npz").ranges
    for row, (least, most) in zip(low, bounds[name][:, 0], strict=True):
        inside = values(TWO, quantity, gpcert.Box(row, row + 0.1).sample(200, 0))
        assert least <= inside.min() <= inside.max() <= most
    effects = explain.effects(TWO, X0, 0.2, quantity=quantity, tol=0.1)
    assert effects.quantity == name
    assert np.all(effects.lower <= effects.upper)


def test_files_of_another_object_are_not_gone_on_with(tmp_path):
    low, path = np.array([[-0.2, -0.2]]), tmp_path / "own.npy"
    gpcert.bound_boxes(TWO, low, low + 0.1, quantity=Penalised(), out=path)
    with pytest.raises(InputError, match="own"):
        gpcert.bound_boxes(TWO, low, low + 0.1, quantity=Penalised(price=2.0), out=path)


def test_two_of_one_class_have_their_fields_as_names():
    low = np.array([[-0.2, -0.2]])
    both = [Penalised(price=1.0), Penalised(price=2.0)]
    bounds = gpcert.bound_boxes(TWO, low, low + 0.1, quantity=both)
    assert list(bounds.ranges) == [repr(each) for each in both]
    with pytest.raises(InputError, match="different ones"):
        gpcert.bound_boxes(TWO, low, low + 0.1, quantity=[both[0], both[0]])


def test_the_command_takes_it_by_its_module(tmp_path, monkeypatch):
    TWO.save(tmp_path / "model.npz")
    np.savetxt(tmp_path / "points.csv", [X0], delimiter=",", header="a,b", comments="")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "own_quantities", sys.modules[__name__])
    asked = ["model.npz", "points.csv", "--radius", "0.1"]

    def run(*words):
        return CliRunner().invoke(app, list(words))

    found = run("range", *asked, "--quantity", "own_quantities:LOSS", "--output", "out.json")
    assert found.exit_code == 0, found.output
    assert {row.quantity for row in gpcert.load("out.json")} == {"Penalised"}
    more = ["--quantity", "own_quantities:LOSS", "--threshold", "9"]
    found = run("certify", *asked, *more)
    assert found.exit_code == 0, found.output
    corners = ["low.npy", "high.npy"]
    for name, corner in zip(corners, (X0, X0 + 0.1), strict=True):
        np.save(name, corner[None])
    found = run("boxes", "model.npz", *corners, "--quantity", "mean,own_quantities:LOSS")
    assert found.exit_code == 0, found.output
    for name, message in (("own_quantities:NOTHING", "NOTHING"), ("nowhere:LOSS", "nowhere"),
                          ("own_quantities:X0", "Quantity"), ("meen", "module:NAME")):  # fmt: skip
        found = run("range", *asked, "--quantity", name)
        assert found.exit_code == 3
        assert message in found.output


def test_what_it_lacks_is_said():
    class Bare(Quantity):
        pass

    box = gpcert.Box([-0.1, -0.1], [0.1, 0.1])
    with pytest.raises(InputError, match="define the property `negative`"):
        gpcert.prediction_range(TWO, box, quantity=Bare())
    with pytest.raises(InputError, match=r"OneSided.negative to be minus it"):
        gpcert.prediction_range(TWO, box, quantity=OneSided())
    with pytest.raises(InputError, match="an output of 0 to 1, got 2"):
        gpcert.prediction_range(TWO, box, quantity=Gap((Mean(0, 1), Mean(2, 1))))
    with pytest.raises(InputError, match="Gap names the outputs"):
        gpcert.prediction_range(TWO, box, quantity=Gap(), output=1)
    with pytest.raises(InputError, match="beta: belongs to"):
        gpcert.prediction_range(TWO, box, quantity=Gap(), beta=1.0)
