"""Run by test_plain_install.py in a fresh process: what works without extras, and what says so."""

import importlib
import json
import pkgutil
import sys
import warnings
from importlib.machinery import PathFinder
from pathlib import Path

from gpcert.errors import MissingExtraError
from gpcert.utils.optional_imports import EXTRAS


def hide(packages):
    """No module of these packages is found from now on, as if they were not installed."""
    find = PathFinder.find_spec

    def find_spec(name, path=None, target=None):
        return None if name.partition(".")[0] in packages else find(name, path, target)

    PathFinder.find_spec = staticmethod(find_spec)
    for name in [name for name in sys.modules if name.partition(".")[0] in packages]:
        del sys.modules[name]  # scikit-learn imports pandas where it is installed


def command(*arguments):
    """Exit code of the command, and what it printed on both streams."""
    from typer.testing import CliRunner

    from gpcert.cli.app import app

    done = CliRunner().invoke(app, [str(each) for each in arguments])
    return done.exit_code, " ".join(done.output.split())


def refused(call):
    """What the error of a missing extra says."""
    try:
        call()
    except MissingExtraError as error:
        return str(error)
    return None


def not_imported():
    """Modules of ours that cannot be imported."""
    import gpcert

    found = []
    for module in pkgutil.walk_packages(gpcert.__path__, "gpcert."):
        if not module.name.endswith("__main__"):
            try:
                importlib.import_module(module.name)
            except (ModuleNotFoundError, MissingExtraError):
                found.append(module.name)
    return found


def main(folder):
    """Import everything without the extras, ask, and print what came of it."""
    hide(EXTRAS)
    warnings.simplefilter("error")
    import numpy as np
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF

    import gpcert
    from gpcert import explain

    X = np.array([[-1.0, 0.0], [1.0, 0.0], [-1.5, 0.3], [1.4, -0.2]])
    model = GaussianProcessClassifier(RBF(1.0), optimizer=None).fit(X, [0, 1, 0, 1])
    certificate = gpcert.certify(model, X[0], radius=0.1)
    certificate.save(folder / "certificate.json")
    table = gpcert.certify_many(model, X, radius=0.1)
    found = gpcert.prediction_range(model, X[0], radius=0.1, tol=0.05)
    radius = gpcert.certified_radius(model, X[0])
    paper = gpcert.prediction_range(
        model, X[0], radius=0.05, tol=0.1, method="paper", variance_bound="analytic"
    )
    gpcert.as_posterior(model).save(folder / "model.npz")
    (folder / "points.csv").write_text("a,b\n-1.0,0.0\n", encoding="utf-8")
    question = ("certify", folder / "model.npz", folder / "points.csv", "--radius", "0.1")
    works = {
        "certify": certificate.status.name,
        "load": gpcert.load(folder / "certificate.json").status.name,
        "table": str(table),
        "range": found.minimum.lower <= found.minimum.upper,
        "radius": 0 < radius.lower <= radius.upper,
        "paper": paper.minimum.lower <= paper.minimum.upper,
        "effects": str(explain.effects(model, X[0], radius=0.05)),
        "accuracy": str(gpcert.certified_accuracy(model, X, [0, 1, 0, 1], [0.05])),
        "curve": str(gpcert.safety_curve(model, X[0], radii=[0.05, 0.1])),
        "command": command(*question, "--output", folder / "results.json"),
        "help": command("--help"),
    }
    refusals = {
        "to_frame": refused(table.to_frame),
        "plot": refused(table.plot),
        "plot_range": refused(found.plot),
        "solver": refused(
            lambda: gpcert.prediction_range(
                model, X[0], radius=0.5, tol=1e-4, method="paper", variance_bound="solver"
            )
        ),
        "torch": refused(lambda: gpcert.certify(model, X[0], radius=0.1, backend="torch")),
        "lime": refused(lambda: explain.lime(model, X)),
        "shap": refused(lambda: explain.effects(model, X[:1], radius=0.05).to_shap()),
        "sift": refused(lambda: explain.salient_features(model, X[0], shape=(1, 2))),
        "testing": refused(lambda: importlib.import_module("gpcert.testing.node_contract")),
        "reproduce": refused(
            lambda: importlib.import_module("gpcert.study.experiments").reproduce(
                "safety", output=folder
            )
        ),
        "--csv": command(*question, "--csv", "-"),
        "--plot": command("worst-case", *question[1:], "--plot", folder / "picture.png"),
        "demo": command("demo", "--quick", "--output-dir", folder / "demo"),
    }
    print(json.dumps({"works": works, "refusals": refusals, "not_imported": not_imported()}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
