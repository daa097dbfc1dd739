"""Models from files: a safe `.npz` of `Posterior.save`, or a `.joblib` that must be trusted."""

from __future__ import annotations

from pathlib import Path

import joblib

from gpcert import committee
from gpcert.adapters import as_posterior
from gpcert.cli.terminal import error_console
from gpcert.committee import Model
from gpcert.errors import InputError
from gpcert.extras import install_hint


def load_model(path: Path) -> Model:
    """The model in a file; says on stderr when opening the file runs code from it."""
    if not path.is_file():
        raise InputError(f"MODEL: expected a file, but {str(path)!r} is none")
    if path.suffix == ".npz":
        return committee.load_model(path)
    if path.suffix in {".joblib", ".pkl", ".pickle"}:
        return as_posterior(_load_trusted(path))
    raise InputError(
        f"MODEL: expected a .npz file of Posterior.save or a .joblib file, got {str(path)!r}"
    )


def _load_trusted(path: Path) -> object:
    error_console().print(
        f"warning: {path} is a joblib file, and joblib files are code: opening it runs what is in "
        "it. Open only files that you trust; gpcert.as_posterior(model).save('model.npz') writes "
        "a file without code.",
        style="yellow",
        markup=False,
        soft_wrap=True,
    )
    try:
        return joblib.load(path)
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        raise InputError(
            f"{path}: the model in it needs {package}, which is not installed; "
            f"{install_hint(package)}"
        ) from error
    except Exception as error:  # unpickling runs code of any library, so anything may be raised
        raise InputError(
            f"{path}: expected a model of joblib.dump; {type(error).__name__}: {error}"
        ) from error
