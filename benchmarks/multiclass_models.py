"""The models of several classes: softmax Laplace for images, Dirichlet-based GPs for digits.

    python benchmarks/multiclass_models.py FOLDER CACHE

fits all of them into a cache and shows how good they are. The cache holds the trained kernels only:
the posterior is inferred anew at each run, so that it always is the one of the present code.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.optimize
from problems import exact

import gpcert
from gpcert.integrals.plain_probabilities import expected_softmax
from gpcert.kernels import SquaredExponential
from gpcert.models import GPClassifier
from gpcert.study.datasets import Dataset, digits, fashion, mnist
from models import TRAINING, sampled

EPOCHS = 40
"""Evaluations of the evidence in a fit; both converge before."""

BOUNDS = (1e-2, 1e3)
"""Of amplitude^2 and of the length-scale, all models."""

LEAST_ACCURACY = {"mnist358": 0.92, "fashion-tsp": 0.77, "digits": 0.90}
"""A model below these is refused: it says nothing. The paper reports about 93 % for MNIST358, which
the model exceeds, and about 85 % for Fashion, which it does not reach (79 %). That floor was 0.80
before the first fit; it was lowered because the data, not the fit, is the limit: training from four
starts ends at the same evidence, and a support vector machine tuned by cross-validation has 79 % on
the same 1000 images, and 84.5 % on all 18000."""

DIGITS_TRAINING = 300
"""Training images of the digits, whatever the number of classes: only m changes."""

ALPHA = 0.01
"""Milios et al. (2018): the Dirichlet prior's parameter alpha_eps."""


class Trained(NamedTuple):
    """A trained kernel, its (approximate) log evidence, and what training took."""

    kernel: SquaredExponential
    evidence: float
    evaluations: int
    seconds: float


class Prepared(NamedTuple):
    """A posterior whose constants are computed, its test points, accuracy, and set-up seconds."""

    posterior: gpcert.Posterior
    X_test: np.ndarray
    accuracy: float
    setup: float


def image_data(name: str, folder: Path) -> Dataset:
    """The chosen classes: training images at random, test images in random order."""
    whole = mnist((3, 5, 8), folder) if name == "mnist358" else fashion((0, 2, 6), folder)
    return sampled(whole)


def image_model(
    name: str, folder: Path, cache: Path | None, count: int = TRAINING
) -> tuple[GPClassifier, Dataset]:
    """Softmax Laplace on the first `count` images, with the kernel trained on all TRAINING."""
    data = image_data(name, folder)
    trained = _cached(cache, name, lambda: _train_laplace(data))
    model = _laplace(trained.kernel, 0).fit(data.X_train[:count], data.y_train[:count])
    return model, data


def prepared_images(name: str, folder: Path, cache: Path | None, count: int = TRAINING) -> Prepared:
    """The posterior of `image_model`, with what is computed once per model."""
    model, data = image_model(name, folder, cache, count)
    accuracy = float(model.score(data.X_test, data.y_test))
    if count == TRAINING:
        _check(name, accuracy)
    start = time.perf_counter()
    posterior = gpcert.as_posterior(model)
    _ = posterior.norms, posterior.excess
    return Prepared(posterior, data.X_test, accuracy, time.perf_counter() - start)


def _laplace(kernel: SquaredExponential, epochs: int) -> GPClassifier:
    return GPClassifier(
        kernel, likelihood="softmax", max_epochs=epochs, parameter_bounds=BOUNDS, random_state=0
    )


def _train_laplace(data: Dataset) -> Trained:
    start = time.perf_counter()
    model = _laplace(SquaredExponential(3.0), EPOCHS).fit(data.X_train, data.y_train)
    seconds = time.perf_counter() - start
    kernel = model.kernel_
    assert isinstance(kernel, SquaredExponential)
    return Trained(kernel, model.evidence_, len(model.trace_.evidence), seconds)


def digits_data(classes: int) -> Dataset:
    """Scikit-learn's 8x8 digits 0..classes-1, pixels in [0, 1]."""
    data = digits(range(classes))
    X_train, y_train = data.X_train[:DIGITS_TRAINING], data.y_train[:DIGITS_TRAINING]
    return replace(data, X_train=X_train, y_train=y_train)


def prepared_digits(classes: int, cache: Path | None) -> Prepared:
    """Independent outputs under the softmax, with what is computed once per model."""
    from gpcert.likelihoods import Softmax

    data = digits_data(classes)
    latent, _ = digits_latent(classes, cache)
    accuracy = latent_accuracy(latent, data)
    _check("digits", accuracy)
    start = time.perf_counter()
    posterior = replace(latent, likelihood=Softmax(), classes=data.classes)
    _ = posterior.norms, posterior.excess
    return Prepared(posterior, data.X_test, accuracy, time.perf_counter() - start)


def digits_latent(classes: int, cache: Path | None) -> tuple[gpcert.Posterior, Trained]:
    """The latent functions of Dirichlet-based classification, one per class, independent.

    Milios et al. (2018), "Dirichlet-based Gaussian processes for large-scale calibrated
    classification", Sec. 4: with `a = alpha_eps + [y = c]`, class c is a regression on the targets
    `log a - s/2` with noise variances `s = log(1 + 1/a)`; the classes share their kernel. With
    `K + diag(s_c) = L_c L_c^T` the canonical form is `A_c = L_c^-1`,
    `t_c = A_c^T A_c (targets - their mean)`, and that mean is the offset.
    """
    data = digits_data(classes)
    trained = _cached(cache, f"digits{classes}", lambda: _train_dirichlet(data))
    targets, noise, offset = _dirichlet_targets(data.y_train, classes)
    parts = [
        exact(trained.kernel, data.X_train, *each) for each in zip(targets, noise, strict=True)
    ]
    weights, factor = (np.stack(part) for part in zip(*parts, strict=True))
    posterior = gpcert.Posterior(trained.kernel, data.X_train, weights, factor, offset=offset)
    return posterior, trained


def _dirichlet_targets(y: np.ndarray, m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Targets less their mean (m, N), noise variances (m, N), and the means (m,)."""
    alpha = ALPHA + (y == np.arange(m)[:, None])
    noise = np.log1p(1.0 / alpha)
    targets = np.log(alpha) - noise / 2.0
    offset = targets.mean(axis=1)
    return targets - offset[:, None], noise, offset


def _train_dirichlet(data: Dataset) -> Trained:
    """The kernel that maximises the sum of the classes' log evidences; two parameters."""
    targets, noise, _ = _dirichlet_targets(data.y_train, len(data.classes))
    start = time.perf_counter()

    def kernel(theta: np.ndarray) -> SquaredExponential:
        length, variance = np.exp(theta).tolist()
        return SquaredExponential(length, variance=variance)

    def cost(theta: np.ndarray) -> float:
        K = kernel(theta).value(data.X_train, data.X_train)
        total = 0.0
        for y, s in zip(targets, noise, strict=True):
            L = scipy.linalg.cholesky(K + np.diag(s), lower=True)
            z = scipy.linalg.solve_triangular(L, y, lower=True)
            total += 0.5 * float(z @ z) + float(np.log(np.diag(L)).sum())
        return total + 0.5 * targets.size * float(np.log(2.0 * np.pi))

    found = scipy.optimize.minimize(
        cost,
        np.log([2.0, 10.0]),
        method="L-BFGS-B",
        bounds=[(float(np.log(BOUNDS[0])), float(np.log(BOUNDS[1])))] * 2,
    )
    seconds = time.perf_counter() - start
    return Trained(kernel(found.x), -float(found.fun), int(found.nfev), seconds)


def latent_accuracy(posterior: gpcert.Posterior, data: Dataset) -> float:
    """Share of test points whose most probable class (by plain quadrature) is theirs."""
    mean, covariance = posterior.predict(data.X_test)[0], posterior.covariances(data.X_test)
    chosen = expected_softmax(mean, covariance).argmax(axis=1)
    return float(np.mean(np.asarray(data.classes)[chosen] == data.y_test))


def difference_eigenvalues(posterior: gpcert.Posterior, X: np.ndarray) -> np.ndarray:
    """(n, m - 1) eigenvalues of the covariance of `f_k - f_0`, k = 1..m-1: its size matters."""
    covariance = posterior.covariances(X)
    differences = np.eye(posterior.outputs)[1:] - np.eye(posterior.outputs)[0]
    return np.linalg.eigvalsh(differences @ covariance @ differences.T)


def _check(name: str, accuracy: float) -> None:
    if accuracy < LEAST_ACCURACY[name]:
        raise SystemExit(f"{name}: the fit failed, accuracy {accuracy:.3f}")


def _cached(cache: Path | None, name: str, train: Callable[[], Trained]) -> Trained:
    """What `train` returns, kept in `multiclass-NAME.json`; JSON keeps every bit of a float."""
    path = None if cache is None else cache / f"multiclass-{name}.json"
    if path is not None and path.exists():
        record: dict[str, Any] = json.loads(path.read_text())
        kernel = SquaredExponential(**record.pop("kernel"))
        return Trained(kernel=kernel, **record)
    trained = train()
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        record = trained._asdict() | {"kernel": trained.kernel.config()}
        path.write_text(json.dumps(record, indent=2) + "\n")
    return trained


def _describe(name: str, folder: Path, cache: Path) -> None:
    """Fit one model, and print what was found."""
    if name.startswith("digits"):
        classes = int(name.removeprefix("digits"))
        data = digits_data(classes)
        posterior, _ = digits_latent(classes, cache)
        accuracy = latent_accuracy(posterior, data)
    else:
        model, data = image_model(name, folder, cache)
        posterior, accuracy = model.posterior_, float(model.score(data.X_test, data.y_test))
    eigenvalues = difference_eigenvalues(posterior, data.X_test[:200])
    spread = np.quantile(eigenvalues, [0.0, 0.5, 1.0], axis=0)
    trained = json.loads((cache / f"multiclass-{name}.json").read_text())
    print(f"{name}: accuracy {accuracy:.4f}, {trained}")
    print("  eigenvalues of the differences' covariance, least, median, most (columns: order):")
    print(np.array2string(spread, precision=3, prefix="  "), flush=True)


if __name__ == "__main__":
    import argparse

    parser = argparse.ArgumentParser(description="Fit all models into a cache folder.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("cache", type=Path)
    given = parser.parse_args()
    for each in ("digits3", "digits5", "digits10", "mnist358", "fashion-tsp"):
        _describe(each, given.folder, given.cache)
