"""The checker's bounds against values at points, in ball arithmetic: kernels, Taylor polynomials,
lengths of what they leave, least values of quadratic functions, forms of the variance."""

import numpy as np
import pytest

pytest.importorskip("flint")
from flint import arb, arb_mat, ctx

import gpcert
from gpcert.testing.effort import examples
from gpcert.testing.kernel_references import partner_configs, reference_of
from gpcert_check.cell import Cell, Frame
from gpcert_check.container import Numbers
from gpcert_check.forms import Quadratic
from gpcert_check.kernels import read_kernel
from gpcert_check.posterior import Posterior
from gpcert_check.region import read_region

NOT_COVERED = {
    "cosine",
    "cosine_pair",
    "exponential_tilt",
    "generalised_spectral",
    "spectral_mixture",
}
KERNELS = sorted(partner_configs(2).keys() - NOT_COVERED)
CONFIGS = {
    **{name: (name, partner_configs(2)[name]) for name in KERNELS},
    "matern 1/2": ("matern", {"length_scale": 1.1, "nu": 0.5, "variance": 0.8}),
    "matern 5/2": ("matern", {"length_scale": [0.7, 1.1], "nu": 2.5, "variance": 0.8}),
    "matern 7/2": ("matern", {"length_scale": 1.1, "nu": 3.5, "variance": 0.8}),
    "smooth product": (
        "product",
        {"kernels": [["squared_exponential", {"length_scale": 1.2, "variance": 1.3}],
                     ["rational_quadratic", {"length_scale": 0.9, "alpha": 1.5, "variance": 0.6}]]},
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def precision():
    before, ctx.prec = ctx.prec, 200
    yield
    ctx.prec = before


def cell_of(rng, d=2, norm="inf"):
    center, radius = rng.normal(size=d), float(10 ** rng.uniform(-4, 0))
    region = read_region(gpcert.Ball(center, radius, norm=norm).describe())
    frame = Frame(region, None, None)
    box = gpcert.Ball(center, radius)
    return frame, Cell(frame, box.lower.tolist(), box.upper.tolist())


def points_in(cell, rng, n=6):
    """Points of a cell, its corners first."""
    low, high = np.array(cell.low), np.array(cell.high)
    u = np.concatenate([np.zeros((1, len(low))), np.ones((1, len(low))), rng.random((n, len(low)))])
    points = np.clip(low + u * (high - low), low, high)
    return [x.tolist() for x in points if cell.frame.region.contains(x.tolist())]


def exact(x):
    return [arb(float(v)) for v in x]


@pytest.mark.parametrize("name", CONFIGS)
def test_taylor_polynomials_and_what_they_leave(name):
    described = CONFIGS[name]
    rng = np.random.default_rng(len(name))
    for _ in range(examples(40)):
        frame, cell = cell_of(rng)
        kernel = read_kernel(list(described), [0, 1])
        data = rng.normal(size=(4, 2))
        kernel.bind(data.tolist(), frame)
        weights = exact(rng.normal(size=4))
        reference = reference_of(*described)

        def value(x, weights=weights, data=data, reference=reference):
            each = (t * reference(exact(x), exact(z)) for t, z in zip(weights, data, strict=True))
            return sum(each, arb(0))

        pairs = [(s, exact(z)) for s, z in zip(weights, data, strict=True)]
        norm2 = sum((s * t * reference(y, z) for s, y in pairs for t, z in pairs), arb(0))
        norm = norm2.upper().sqrt()
        for degree in range(kernel.degree + 1):
            jets = kernel.expansion(cell, degree)
            total = sum((t * v for t, v in zip(weights, jets.jet.value, strict=True)), arb(0))
            slopes = jets.gradient(weights) if degree else [arb(0)] * 2
            matrix = jets.hessian(weights) if degree > 1 else arb_mat(2, 2)
            allowed = norm * kernel.lengths(cell, degree).rest
            for x in points_in(cell, rng):
                d = [arb(a) - arb(c) for a, c in zip(x, cell.center, strict=True)]
                column = arb_mat(2, 1, d)
                bent = (column.transpose() * matrix * column)[0, 0] / 2
                known = total + sum((s * v for s, v in zip(slopes, d, strict=True)), bent)
                assert not abs(value(x) - known) > allowed


@pytest.mark.parametrize("name", CONFIGS)
def test_inner_products_of_derivatives_are_limits_of_differences(name):
    described, rng = CONFIGS[name], np.random.default_rng(1)
    frame, cell = cell_of(rng)
    kernel = read_kernel(list(described), [0, 1])
    if kernel.degree == 0:
        return
    kernel.bind([[0.0, 0.0]], frame)
    gram, reference, h = kernel.gram(cell.z), reference_of(*described), arb(2) ** -40
    c = exact(cell.center)

    def moved(j):
        return [v + h if i == j else v for i, v in enumerate(c)]

    for j in range(2):
        first = (reference(moved(j), c) - reference(c, c)) / h
        assert abs(first - gram[1 + j, 0]) < 1e-5
        for k in range(2):
            four = [reference(a, b) for a in (moved(j), c) for b in (moved(k), c)]
            second = (four[0] - four[1] - four[2] + four[3]) / (h * h)
            assert abs(second - gram[1 + j, 1 + k]) < 1e-4


@pytest.mark.parametrize("norm", [1, 2, "inf"])
def test_least_values_of_quadratics_are_below_values(norm):
    rng = np.random.default_rng(5)
    for _ in range(examples(200)):
        d = int(rng.integers(1, 5))
        _, cell = cell_of(rng, d, norm)
        size = float(cell.widths[0].mid())
        root = rng.normal(size=(d, d))
        matrix = root + root.T if rng.random() < 0.5 else root @ root.T
        slopes = rng.normal(size=d) * size * rng.uniform(0, 3)
        form = Quadratic(arb(float(rng.normal())), exact(slopes), arb_mat(matrix.tolist()))
        least, spread = form.minimum(cell), form.size(cell)
        for x in points_in(cell, rng, 10):
            column = arb_mat(d, 1, [arb(a) - arb(c) for a, c in zip(x, cell.center, strict=True)])
            along = (arb_mat(1, d, exact(slopes)) * column)[0, 0]
            moved = along + (column.transpose() * form.matrix * column)[0, 0] / 2
            assert not form.value + moved < least
            assert not abs(moved) > spread


@pytest.mark.parametrize("by_noise", [True, False])
def test_forms_of_the_variance_enclose_the_solved_system(by_noise):
    rng = np.random.default_rng(7)
    for _ in range(examples(20)):
        N, noise = 6, float(10 ** rng.uniform(-6, -1))
        points = rng.normal(size=(N, 2))
        kernel = gpcert.kernels.SquaredExponential(1.0)
        K = kernel.value(points, points) + noise * np.eye(N)
        factor = np.linalg.inv(np.linalg.cholesky(K))
        options = {"training_noise": noise} if by_noise else {}
        model = gpcert.Posterior(kernel, points, np.zeros(N), factor, **options)
        arrays = {n: Numbers(a.shape, a.ravel().tolist()) for n, a in model.arrays().items()}
        region = read_region(gpcert.Ball([0.0, 0.0], 0.1).describe())
        found = Posterior(model.header(), arrays, region)
        x = exact(rng.normal(size=2))
        k = arb_mat(N, 1, found.kernel.column(x))
        lower, upper, _ = found.precision(0).forms(k, arb_mat(1, 1, [arb(1)]))
        if by_noise:
            system = found.gram + arb_mat(
                N, N, [arb(noise * (i == j)) for i in range(N) for j in range(N)]
            )
            truth = 1 - (k.transpose() * system.solve(k))[0, 0]
        else:
            half = arb_mat(factor.tolist()) * k
            truth = 1 - (half.transpose() * half)[0, 0]
        assert not truth < lower[0, 0]
        assert not truth > upper[0, 0]
        assert abs(upper[0, 0] - lower[0, 0]) < 1e-12


ROUGH = {
    **{
        name: CONFIGS[name] for name in ("matern", "matern 1/2", "matern 5/2", "rational_quadratic")
    },
    "sum": ("sum", {"kernels": [list(CONFIGS["matern 1/2"]), ["constant", {"variance": 0.7}]]}),
    "multiple": ("scale", {"factor": 0.3, "kernel": list(CONFIGS["matern 1/2"])}),
}


@pytest.mark.parametrize("name", ROUGH)
def test_chords_hold_point_by_point(name):
    rng = np.random.default_rng(len(name))
    proved, linear = 0, []
    for _ in range(examples(60)):
        frame, cell = cell_of(rng, norm=("inf", 2)[rng.integers(2)])
        data = np.array(cell.center) + rng.normal(size=(4, 2)) * 10 ** rng.uniform(-3, 0.5)
        kernel, weights = read_kernel(list(ROUGH[name]), [0, 1]), exact(rng.normal(size=4))
        kernel.bind(data.tolist(), frame)
        found = kernel.chords(cell, weights)
        if not (found.below.is_finite() and found.above.is_finite()):
            continue
        proved += 1
        reference = reference_of(*ROUGH[name])
        for x in points_in(cell, rng):
            pairs = zip(weights, data, strict=True)
            value = sum((t * reference(exact(x), exact(z)) for t, z in pairs), arb(0))
            d = [arb(a) - arb(b) for a, b in zip(x, cell.center, strict=True)]
            slopes = sum((s * v for s, v in zip(found.known.slopes, d, strict=True)), arb(0))
            bent = (arb_mat([d]) * found.known.matrix * arb_mat(2, 1, d))[0, 0] / 2
            left = value - found.known.value - slopes - bent
            assert not left < -found.below, name
            assert not left > found.above, name
            linear.append(float(found.below + found.above))
    assert proved > 5
    assert min(linear) < 1e-3  # some cells are small


@pytest.mark.parametrize("nu", [0.5, 1.5])
def test_rough_kernels_at_a_data_point(nu, tmp_path):
    from tests.check.check_cases import CHECKED, verdict

    model = gpcert.Posterior(gpcert.kernels.Matern(1.0, nu), [[0.0], [1.0]], [1.0, -0.2])
    path = tmp_path / "x.cert"
    gpcert.certify(model, [0.0], 0.3, threshold=0.1, proof=True).save(path)
    assert verdict(path) == CHECKED
    box = gpcert.Box([0.0], [0.5])
    gpcert.prediction_range(model, box, quantity="mean", tol=1e-2, proof=True).save(path)
    assert verdict(path) == CHECKED


@pytest.mark.parametrize("nu", [1.5, 2.5, 4.5])
def test_rough_kernels_are_exact_at_the_data(nu):
    """Where s is about 0 its root would lose half of the digits."""
    kernel = read_kernel(["matern", {"variance": 1.0, "length_scale": 1.0, "nu": nu}], [0])
    with ctx.workprec(80):
        for size in (0.0, 1e-22, 1e-9):
            found = kernel.profile(arb(0, size), kernel.degree)
            assert found[0].rad() <= 4 * nu * size + 1e-20
            for part in (0.3, 0.5, 1.0) if size else ():
                inside = kernel.profile(arb(part * size), kernel.degree)
                assert all(a.overlaps(b) for a, b in zip(found, inside, strict=True))
