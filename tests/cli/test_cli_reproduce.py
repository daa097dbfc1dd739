"""`gpcert reproduce`: the list, a run, and what it refuses."""

from gpcert.study.experiments import ExperimentResult, names


def test_the_list_names_every_experiment(run):
    result = run("reproduce", "--list")
    assert result.exit_code == 0
    assert all(name in result.stdout for name in names())


def test_a_run_says_its_findings_and_where_they_are(run, tmp_path):
    result = run("reproduce", "scaling", "--smallest", "--output", tmp_path)
    assert result.exit_code == 0
    assert "third power" in result.stdout
    # two sizes and two points settle nothing, whatever their intervals say
    assert result.stdout.count("not judged") == 4
    assert " yes" not in result.stdout
    assert {each.agrees for each in ExperimentResult.read(tmp_path / "scaling").findings} == {
        "not judged"
    }
    assert (tmp_path / "scaling" / "result.json").is_file()
    (tmp_path / "scaling" / "times.svg").unlink()
    again = run("reproduce", "scaling", "--redraw", "--output", tmp_path)
    assert again.exit_code == 0
    assert (tmp_path / "scaling" / "times.svg").is_file()


def test_wrong_options_are_refused_before_any_work(run, tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    for arguments in (
        (),
        ("nothing",),
        ("safety", "--quick", "--full"),
        ("safety", "--jobs", 0),
        ("safety", "--output", file),
        ("safety", "--redraw", "--output", tmp_path),
        ("safety", "--full", "--data", tmp_path / "nowhere"),
        ("safety", "--target", "quality"),
        ("safety", "--on", file),
        ("safety", "--on", file, "--target", "quality"),
        ("safety", "--quick", "--on", file, "--target", "quality"),
        ("scaling", "--on", file, "--target", "quality"),
    ):
        result = run("reproduce", *arguments)
        assert result.exit_code == 3, arguments
        assert "error: " in result.stderr
