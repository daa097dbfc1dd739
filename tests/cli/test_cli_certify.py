"""`gpcert certify`: exit codes are the verdict, files hold all of it."""

import pytest

import gpcert

FAR = "1.0,0.0\n-1.0,0.1\n"
NEAR = "1.0,0.0\n0.2,0.0\n"


def test_all_proved_is_0(run, npz, csv):
    result = run("certify", npz, csv(FAR), "--radius", 0.3)
    assert result.exit_code == 0
    assert result.stdout.count("ROBUST") >= 2
    assert "2 points: 2 ROBUST, 0 NOT_ROBUST, 0 UNKNOWN" in result.stdout
    assert result.stderr == ""


def test_some_refuted_is_1(run, npz, csv):
    result = run("certify", npz, csv(NEAR), "--radius", 0.5)
    assert result.exit_code == 1
    assert "1 ROBUST, 1 NOT_ROBUST" in result.stdout


def test_some_undecided_is_2(run, npz, csv):
    # on the boundary itself the margin is zero: neither proof nor counter-example exists
    result = run("certify", npz, csv("1.0,0.0\n0.0,0.0\n"), "--radius", 0)
    assert result.exit_code == 2
    assert "1 ROBUST, 0 NOT_ROBUST, 1 UNKNOWN" in result.stdout


@pytest.mark.parametrize("text", ["x,y\n" + FAR, FAR, "\ufeffx,y\r\n" + FAR, "\n" + FAR + "\n\n"])
def test_header_or_none_are_the_same_points(run, npz, csv, tmp_path, text):
    output = tmp_path / "results.json"
    result = run("certify", npz, csv(text), "--radius", 0.3, "--output", output)
    assert result.exit_code == 0
    centers = [c.region["center"] for c in gpcert.CertificateTable.load(output)]
    assert centers == [[1.0, 0.0], [-1.0, 0.1]]


def test_counting_header_must_be_settled(run, npz, csv):
    points = csv("0,1\n" + FAR)
    unsure = run("certify", npz, points, "--radius", 0.1)
    assert unsure.exit_code == 3
    assert "--header" in unsure.stderr
    assert "2 points" in run("certify", npz, points, "--radius", 0.1, "--header").stdout
    assert "3 points" in run("certify", npz, points, "--radius", 0.1, "--no-header").stdout


def test_output_round_trip_and_csv(run, npz, csv, posterior, tmp_path):
    pd = pytest.importorskip("pandas")
    output, frame = tmp_path / "results.json", tmp_path / "frame.csv"
    arguments = ["--radius", 0.5, "--output", output, "--csv", frame]
    result = run("certify", npz, csv(NEAR), *arguments)
    assert str(output) in result.stdout
    loaded = gpcert.CertificateTable.load(output)
    direct = gpcert.certify_many(posterior, [[1.0, 0.0], [0.2, 0.0]], 0.5)
    assert [c.status for c in loaded] == [c.status for c in direct]
    assert loaded[1].counterexample.tolist() == direct[1].counterexample.tolist()
    assert loaded[0].decision == "b"
    assert list(pd.read_csv(frame)["status"]) == ["ROBUST", "NOT_ROBUST"]


def test_options_reach_the_region_and_the_rule(run, npz, csv, tmp_path):
    output = tmp_path / "results.json"
    result = run(
        "certify", npz, csv("1.0,0.0\n"), "--radius", 0.9, "--norm", "2", "--features", "0",
        "--domain", "-1,1.5", "--threshold", 0.55, "--seconds", 5, "--output", output,
    )  # fmt: skip
    assert result.exit_code in {0, 1}
    (certificate,) = gpcert.CertificateTable.load(output)
    assert certificate.region["norm"] == 2.0
    assert certificate.region["features"] == [0]
    assert certificate.region["domain"] == [[-1.0, -1.0], [1.5, 1.5]]
    assert "0.55" in certificate.rule


def test_regression_wants_delta(run, csv, tmp_path):
    path = tmp_path / "regressor.npz"
    kernel = gpcert.kernels.SquaredExponential(1.0)
    gpcert.Posterior(kernel, points=[[0.0]], weights=[1.0]).save(path)
    points = csv("0.1\n")
    without = run("certify", path, points, "--radius", 0.1)
    assert without.exit_code == 3
    assert "delta" in without.stderr
    moved = run("certify", path, points, "--radius", 0.1, "--delta", 0.5, "--output-norm", "2")
    assert moved.exit_code == 0


def test_joblib_warns_that_it_is_code(run, trusted, csv):
    result = run("certify", trusted, csv(FAR), "--radius", 0.1)
    assert result.exit_code == 0
    assert "joblib files are code" in result.stderr
    assert "trust" in result.stderr
    assert "joblib" not in result.stdout


def test_jobs(run, npz, csv):
    assert run("certify", npz, csv(FAR), "--radius", 0.3, "--jobs", 2).exit_code == 0


def test_a_long_table_is_cut(run, npz, csv):
    result = run("certify", npz, csv("1.0,0.0\n" * 60), "--radius", 0.1)
    assert "and 10 more" in result.stdout
    assert "60 points" in result.stdout
